// How library mode checks a stored response: a plain HEAD whose answer is compared, for
// origins whose fields say little.

import HTTPWire

extension Caching {
    /// How to check `stored` in library mode; nil where it is fetched anew: nothing is stored, the policy never asks,
    /// or the request says `no-cache`.
    ///
    /// A HEAD carries no conditions: to If-Modified-Since an origin answers 304 also where its copy has become
    /// older, and here any difference counts. A conditional GET carries what the policy compares, and there is
    /// none without a validator.
    static func libraryCheck(
        _ request: RequestHead,
        _ stored: StoredHead?,
        _ policy: CachePolicy,
        _ capabilities: OriginCapabilities,
        byGet: Bool
    ) -> Revalidation? {
        guard let stored, !CacheControl(request: request.fields).noCache,
            let chosen = chooseCheck(policy: policy, capabilities: capabilities, length: stored.bodyLength)
        else { return nil }
        if chosen == .head, !byGet { return Revalidation(kind: .head, conditions: Fields()) }
        var conditions = Fields()
        if policy.compare.contains(.etag), entityTag(stored.fields) != nil, let tag = stored.fields.first(.etag) {
            conditions.set(.ifNoneMatch, tag)
        } else if policy.compare.contains(.lastModified) {
            conditions = dateCondition(stored)
        }
        return conditions.isEmpty ? nil : Revalidation(kind: .conditional, conditions: conditions)
    }

    /// What `answer`, the answer to a HEAD, shows to be different from the stored response in library mode. At least
    /// one of the compared fields must be in both, and each that is in both must be equal. A field that only one of
    /// them has says nothing, and the next rule decides.
    static func libraryChange(
        from stored: StoredHead,
        to answer: ResponseHead,
        comparing rules: [CompareRule],
        now: Int64
    ) -> HeadChange? {
        var matched = false
        for rule in CompareRule.allCases where rules.contains(rule) {
            switch rule {
            case .etag:
                guard let old = entityTag(stored.fields), let new = entityTag(answer.fields) else { continue }
                guard old.matchesWeakly(new) else { return .etag }
            case .lastModified:
                guard let old = stored.fields.first(.lastModified), let new = answer.fields.first(.lastModified) else {
                    continue
                }
                guard isSameDate(old, new, now: now) else { return .lastModified }
            case .length:
                // Some origins code what they send to GET, and tell HEAD the length that it has uncoded.
                guard let old = stored.bodyLength, let new = contentLength(answer.fields),
                    hasSameCodings(stored.fields, answer.fields)
                else { continue }
                guard old == new else { return .length }
            }
            matched = true
        }
        return matched ? nil : .noValidator
    }

    private static func hasSameCodings(_ one: Fields, _ other: Fields) -> Bool {
        guard one.contains(.contentEncoding) || other.contains(.contentEncoding) else { return true }
        return one.combined(.contentEncoding)?.lowercased() == other.combined(.contentEncoding)?.lowercased()
    }

    /// Two dates in any of the forms of RFC 9110 section 5.6.7 are the same moment; what is no date
    /// is compared as it was sent.
    private static func isSameDate(_ old: String, _ new: String, now: Int64) -> Bool {
        let oldDate = HTTPDate.parse(old, now: now)
        let newDate = HTTPDate.parse(new, now: now)
        return oldDate == nil && newDate == nil ? old == new : oldDate == newDate
    }
}
