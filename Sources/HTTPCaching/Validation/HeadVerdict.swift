// What the answer to a HEAD request says about the stored response to GET (RFC 9111 section 4.3.5).

package import HTTPWire

/// What a HEAD answer showed to be different; the raw value is what diagnostics print.
package enum HeadChange: String, Sendable, CaseIterable {
    case etag
    case lastModified = "last-modified"
    case length
    case status
    /// No validator stands in both: equal lengths prove nothing.
    case noValidator = "no-validator"
}

package enum HeadVerdict: Sendable, Equatable {
    /// The stored response is current; this is its head with the answer's fields.
    case unchanged(StoredHead)
    /// It is not, or cannot be shown to be: fetch.
    case changed(HeadChange)
    /// 404 or 410.
    case gone(Int)
    /// Any other error status: nothing is known of the stored response, nor whether GET would be refused, too.
    case failed(Int)
}

extension Caching {
    /// What `headAnswer`, the answer to a HEAD with the conditions of `revalidation`, says about `stored`.
    /// - Parameter times: of the answer.
    package static func judgeHead(
        stored: StoredHead,
        headAnswer: ResponseHead,
        times: ResponseTimes,
        request: RequestHead? = nil,
        policy: CachePolicy = CachePolicy()
    ) -> HeadVerdict {
        let now = times.responseTime
        let origin = stored.asOrigin
        func updated() -> StoredHead {
            freshened(
                stored: stored,
                by: headAnswer,
                times: times,
                request: request,
                policy: policy,
                byHead: true
            )
        }
        let status = headAnswer.status
        switch status {
        case 304:
            // It has matched by itself, but it may be about another response (section 4.3.4).
            if identified(by: headAnswer.fields, among: [origin]).isEmpty {
                return .changed(entityTag(headAnswer.fields) == nil ? .lastModified : .etag)
            }
            return .unchanged(updated())
        case stored.status: break
        case 404, 410: return .gone(status)
        case 200..<400: return .changed(.status)
        default: return .failed(status)
        }
        let difference =
            policy.mode == .library
            ? libraryChange(from: origin, to: headAnswer, comparing: policy.compare, now: now)
            : change(from: origin, to: headAnswer, now: now)
        if let difference { return .changed(difference) }
        return .unchanged(updated())
    }

    /// Every validator that came must match: one that the stored response lacks may be another representation's, and a
    /// strong tag names no bytes that had but a weak one.
    private static func change(from stored: StoredHead, to answer: ResponseHead, now: Int64) -> HeadChange? {
        var matched = false
        if let new = entityTag(answer.fields) {
            guard let old = entityTag(stored.fields), new.isWeak || !old.isWeak else { return .etag }
            guard old.matchesWeakly(new) else { return .etag }
            matched = true
        }
        if let new = answer.fields.first(.lastModified) {
            guard let old = stored.fields.first(.lastModified) else { return .lastModified }
            let oldDate = HTTPDate.parse(old, now: now)
            guard oldDate != nil ? oldDate == HTTPDate.parse(new, now: now) : old == new else { return .lastModified }
            matched = matched || oldDate != nil
        }
        if let new = contentLength(answer.fields),
            let old = stored.bodyLength, new != old
        {
            return .length
        }
        return matched ? nil : .noValidator
    }
}
