// Answers a client's conditional request from the store (RFC 9111 section 4.3.2, RFC 9110 section 13.2.2).

package import HTTPWire

package enum ConditionalAnswer: Sendable, Equatable {
    /// Answer with the stored response.
    case full
    /// Answer 304 with these fields (RFC 9110 section 15.4.5).
    case notModified(Fields)
}

extension Caching {
    /// What the request's conditions make of a stored response that may be used.
    package static func answerConditional(request: RequestHead, stored: StoredHead) -> ConditionalAnswer {
        // Conditions count only where the answer without them would be a success (RFC 9110 section 13.2.1).
        guard request.method == .get || request.method == .head, Status.isSuccessful(stored.status) else {
            return .full
        }
        let fields = request.fields
        let tag = entityTag(stored.fields)
        let now = stored.responseTime
        let modified = lastModified(stored.fields, now: now)

        if let list = EntityTagList(fields, .ifNoneMatch) {
            return holds(list, tag, { $0.matchesWeakly($1) }) ? .notModified(notModifiedFields(stored)) : .full
        }
        if let limit = dateCondition(fields, .ifModifiedSince, now: now) {
            // Without Last-Modified its Date says when this was current (RFC 9111 section 4.3.2).
            let current = modified ?? date(stored.fields, responseTime: stored.responseTime)
            return current <= limit ? .notModified(notModifiedFields(stored)) : .full
        }
        return .full
    }

    /// Whether a request with If-Match or If-Unmodified-Since may be answered from the store. These conditions are the origin's to
    /// refuse for (RFC 9111 section 4.3.2), and a cache may ignore them (RFC 9110 section 13.1.1); but a client that asks this
    /// way joins the answer to what it has, so that one for which they do not hold is the origin's to give.
    static func meetsPreconditions(request: RequestHead, stored: StoredHead) -> Bool {
        let fields = request.fields
        if let list = EntityTagList(fields, .ifMatch) {
            return holds(list, entityTag(stored.fields), { $0.matchesStrongly($1) })
        }
        guard let limit = dateCondition(fields, .ifUnmodifiedSince, now: stored.responseTime) else { return true }
        return lastModified(stored.fields, now: stored.responseTime).map { $0 <= limit } ?? true
    }

    /// Whether the request has conditions that only the origin may refuse for: where it is asked, it is asked with them.
    package static func hasPreconditions(_ request: RequestHead) -> Bool {
        request.fields.contains(.ifMatch) || request.fields.contains(.ifUnmodifiedSince)
    }

    private static func holds(
        _ list: EntityTagList,
        _ tag: EntityTag?,
        _ matches: (EntityTag, EntityTag) -> Bool
    ) -> Bool {
        switch list {
        case .any: return true
        case .tags(let tags):
            guard let tag else { return false }
            return tags.contains { matches($0, tag) }
        }
    }

    /// The date of a condition; one that does not parse, or stands twice, is ignored (RFC 9110 section 13.1.3).
    private static func dateCondition(_ fields: Fields, _ field: KnownField, now: Int64) -> Int64? {
        let values = fields.all(field)
        guard values.count == 1, let value = values.first else { return nil }
        return HTTPDate.parse(value, now: now)
    }

    private static func notModifiedFields(_ stored: StoredHead) -> Fields {
        var kept: Set<String> = [
            "cache-control", "content-location", "date", "etag", "expires", "vary",
        ]
        // Without a tag the date is what guides the client's own cache.
        if entityTag(stored.fields) == nil { kept.insert("last-modified") }
        var fields = stored.fields
        fields.removeAll { name, _ in
            let name = ASCII.lowercased(name)
            // Targeted fields are named so by convention (RFC 9213 section 2.4).
            return !kept.contains(name) && !name.hasSuffix("-cache-control")
        }
        return fields
    }
}
