// Answers a client's conditional request from the store (RFC 9111 section 4.3.2, RFC 9110 section 13.2.2).

package import HTTPWire

package enum ConditionalAnswer: Sendable, Equatable {
    /// The stored response is the answer.
    case full
    /// The answer is a 304 with these fields (RFC 9110 section 15.4.5).
    case notModified(Fields)
}

extension Caching {
    /// Evaluates the request's conditions against a stored response that may be used.
    package static func answerConditional(request: RequestHead, stored: StoredHead) -> ConditionalAnswer {
        let isKnown = stored.withValidators { isNotModified(request.fields, request.method, stored: $0) }
        return isKnown ? .notModified(notModifiedFields(stored)) : .full
    }

    /// Whether the conditions tell that the client has the stored response. Allocates nothing.
    /// - Parameter lines: the fields of a request, without those that Connection names.
    package static func isNotModified(
        _ lines: some FieldLines,
        _ method: Method,
        stored: BorrowedValidators
    ) -> Bool {
        // Conditions count only if the answer without them would be a success (RFC 9110 section 13.2.1).
        guard method == .get || method == .head, StatusCode.isSuccessful(stored.status) else { return false }
        if let isListed = lists(lines, .ifNoneMatch, stored, { $0.matchesWeakly($1) }) { return isListed }
        guard let limit = dateCondition(lines, .ifModifiedSince, now: stored.responseTime) else { return false }
        // Without Last-Modified, Date tells when the stored response was current (RFC 9111 section 4.3.2).
        return (stored.modifiedAt ?? stored.datedAt) <= limit
    }

    /// Whether a request with If-Match or If-Unmodified-Since may be answered from the store. Only the origin answers
    /// 412 (RFC 9111 section 4.3.2), and a cache may ignore these conditions (RFC 9110 section 13.1.1). But such a
    /// client joins the answer to the bytes that it has: if the conditions do not hold for `stored`, the origin must be
    /// asked.
    package static func meetsPreconditions(request: RequestHead, stored: StoredHead) -> Bool {
        let fields = request.fields
        let isListed = stored.withValidators { lists(fields, .ifMatch, $0) { $0.matchesStrongly($1) } }
        if let isListed { return isListed }
        guard let limit = dateCondition(fields, .ifUnmodifiedSince, now: stored.responseTime) else { return true }
        return lastModified(stored.fields, now: stored.responseTime).map { $0 <= limit } ?? true
    }

    /// Whether the request has If-Match or If-Unmodified-Since, for which only the origin may refuse; if it is asked,
    /// it gets these conditions.
    package static func hasPreconditions(_ request: RequestHead) -> Bool {
        request.fields.contains(.ifMatch) || request.fields.contains(.ifUnmodifiedSince)
    }

    /// Whether a list of entity tags names the stored response; nil if the field is absent.
    private static func lists(
        _ lines: some FieldLines,
        _ field: KnownField,
        _ stored: BorrowedValidators,
        _ matches: (BorrowedTag, BorrowedTag) -> Bool
    ) -> Bool? {
        let own = stored.tag
        var isListed: Bool?
        lines.forEachValue(field) { value in
            BorrowedTag.forEachMember(value) { member in
                var isNamed = BorrowedTag.isAny(member)
                if let own, let tag = BorrowedTag(member), matches(tag, own) { isNamed = true }
                isListed = isListed ?? false || isNamed
            }
        }
        return isListed
    }

    /// The date of a condition; a date that does not parse, or occurs twice, is ignored (RFC 9110 section 13.1.3).
    private static func dateCondition(_ lines: some FieldLines, _ field: KnownField, now: Int64) -> Int64? {
        lines.only(field) { HTTPDate.parse($0, now: now) }
    }

    private static func notModifiedFields(_ stored: StoredHead) -> Fields {
        let hasTag = hasTag(stored)
        var fields = stored.fields
        fields.removeAll { name, known in !isInNotModified(name, known, hasTag: hasTag) }
        return fields
    }

    /// Whether the response has an entity tag. Allocates nothing.
    package static func hasTag(_ stored: StoredHead) -> Bool { withTag(stored.fields) { $0 != nil } }

    /// Whether a 304 repeats a field of the stored response (RFC 9110 section 15.4.5). Allocates nothing.
    package static func isInNotModified(_ name: UnsafeRawBufferPointer, _ known: KnownField, hasTag: Bool) -> Bool {
        switch known {
        case .cacheControl, .cdnCacheControl, .contentLocation, .date, .etag, .expires, .vary: true
        // Without an entity tag the date guides the client's own cache.
        case .lastModified: !hasTag
        // The names of targeted fields end so by convention (RFC 9213 section 2.4).
        case .other:
            name.count >= targeted.utf8CodeUnitCount
                && name.part(name.count - targeted.utf8CodeUnitCount..<name.count).equalsIgnoringCase(targeted)
        default: false
        }
    }

    private static let targeted: StaticString = "-cache-control"
}
