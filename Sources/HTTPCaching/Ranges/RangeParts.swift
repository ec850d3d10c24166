// Which parts of a representation may be stored, and which belong together (RFC 9111 sections 3.3 and 3.4).

package import HTTPWire

/// A validator that no two different representations of one resource share (RFC 9110 section 8.8.1).
package enum StrongValidator: Sendable, Equatable {
    /// A modification date at least a second before the date of the response, in Unix seconds.
    case tag([UInt8])
    /// A modification date at least a second before the date of the response, Unix seconds.
    case date(Int64)

    /// The value of If-Range (RFC 9110 section 13.1.5).
    package var ifRange: String {
        switch self {
        case .tag(let opaque): opaque.withUnsafeBytes { Latin1.string($0) }
        case .date(let date): HTTPDate.format(date)
        }
    }
}

/// The reason why a part is not stored although a whole response with its fields would be; the raw value is what
/// `Cache-Status` prints.
package enum PartRefusal: String, Sendable, CaseIterable {
    /// The response has no strong validator, which would tell which parts belong together.
    case noStrongValidator = "no-strong-validator"
    case lengthUnknown = "complete-length-unknown"

    package var section: String { self == .noStrongValidator ? "RFC 9111 section 3.4" : "RFC 9110 section 14.4" }
}

package enum PartDecision: Sendable, Equatable {
    /// The part is stored under this head, which is that of the whole response with status 200 and the complete length.
    case store(StoredHead)
    case refuse(StoreRefusal)
    case refusePart(PartRefusal)
}

extension Caching {
    /// Whether the part that a 206 brings may be stored: if a 200 with its fields might be, and it has a strong
    /// validator.
    /// - Parameter content: the Content-Range that ``checkPart(_:asked:)`` returned.
    package static func decidePart(
        request: RequestHead,
        response: ResponseHead,
        content: ContentRange,
        policy: CachePolicy,
        times: ResponseTimes
    ) -> PartDecision {
        let whole = asWhole(response, length: content.length)
        let decision = decideStore(request: request, response: whole, policy: policy, times: times)
        if case .refuse(let refusal) = decision {
            return .refuse(refusal)
        }
        guard let length = content.length else { return .refusePart(.lengthUnknown) }
        var stored = makeStoredHead(
            request: request,
            response: whole,
            times: times,
            policy: policy
        )
        guard strongValidator(stored) != nil else { return .refusePart(.noStrongValidator) }
        stored.bodyLength = length
        return .store(stored)
    }

    /// The strong validator of a stored response. A weak entity tag, or an ETag that is not an entity tag, excludes the
    /// date, too (RFC 9110 section 13.1.5).
    package static func strongValidator(_ stored: StoredHead) -> StrongValidator? {
        if let tag = entityTag(stored.fields), !tag.isQuoted { return nil }
        if let tag = entityTag(stored.fields) { return tag.isWeak ? nil : .tag(tag.opaque) }
        return strongLastModified(stored.fields, now: stored.responseTime).map { .date($0) }
    }

    /// Whether a part belongs to the representation of the stored parts: it has the same strong validator (RFC 9111
    /// section 3.4) and the same length.
    package static func joins(_ stored: StoredHead, part: ResponseHead, content: ContentRange, now: Int64) -> Bool {
        guard let own = strongValidator(stored), let length = stored.bodyLength else { return false }
        if let other = content.length, other != length { return false }
        if let range = content.range, range.upperBound > length { return false }
        switch own {
        case .tag(let opaque): return entityTag(part.fields).map { !$0.isWeak && $0.opaque == opaque } ?? false
        case .date(let date):
            return entityTag(part.fields) == nil && strongLastModified(part.fields, now: now) == date
        }
    }

    /// The head of the stored parts, updated with the fields of a part that joins them (RFC 9111 sections 3.2 and 3.4).
    package static func joined(
        _ stored: StoredHead,
        part: ResponseHead,
        times: ResponseTimes,
        request: RequestHead,
        policy: CachePolicy
    ) -> StoredHead {
        var part = part
        part.fields.removeAll { name, _ in isContentDigest(name) }
        return freshened(
            stored: stored,
            by: part,
            times: times,
            request: request,
            policy: policy
        )
    }

    /// Whether the received start of a response that was cut short may be kept as a part, so that the rest can be asked
    /// for under the same strong validator.
    package static func mayResume(_ stored: StoredHead) -> Bool {
        guard stored.status == 200, stored.requestMethod == .get, stored.bodyLength != nil,
            strongValidator(stored) != nil
        else { return false }
        return stored.fields.values(.acceptRanges).contains { value in
            ASCII.listMembers(value).contains { ASCII.equalIgnoringCase($0, "bytes".utf8) }
        }
    }

    /// The Last-Modified date if it counts as strong (RFC 9110 section 8.8.2.2): Date is at least one second later.
    static func strongLastModified(_ fields: Fields, now: Int64) -> Int64? {
        guard let modified = lastModified(fields, now: now),
            let date = fields.withFirst(.date, { HTTPDate.parse($0, now: now) }) ?? nil, modified < date
        else { return nil }
        return modified
    }

    /// The head with which the whole representation would have come.
    private static func asWhole(_ part: ResponseHead, length: Int64?) -> ResponseHead {
        var whole = ResponseHead(status: 200, reason: "OK", fields: part.fields, isOddlyFramed: part.isOddlyFramed)
        whole.fields.remove(.contentRange)
        whole.fields.remove(.contentLength)
        whole.fields.removeAll { name, _ in isContentDigest(name) }
        if let length { whole.fields.append(.contentLength, String(length)) }
        return whole
    }
}

extension Caching {
    /// The conditions of a request that completes stored parts: If-Range, so that a changed representation comes as a
    /// whole (RFC 9110 section 13.1.5). For a check, they let a 304 confirm the parts.
    package static func partConditions(_ stored: StoredHead, isCheck: Bool) -> Fields {
        switch strongValidator(stored) {
        case nil: Fields()
        case .tag(let tag)?:
            Fields([(isCheck ? "If-None-Match" : "If-Range", StrongValidator.tag(tag).ifRange)])
        case .date(let date)?:
            Fields([(isCheck ? "If-Modified-Since" : "If-Range", StrongValidator.date(date).ifRange)])
        }
    }

    /// Whether a 304 to such a check is about these parts (RFC 9111 section 4.3.4): parts must not be joined under a
    /// weak tag.
    package static func confirms(_ notModified: Fields, _ stored: StoredHead) -> Bool {
        if entityTag(notModified)?.isWeak == true { return false }
        return !identified(by: notModified, among: [stored]).isEmpty
    }
}
