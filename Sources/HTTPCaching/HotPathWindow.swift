// When a stored response answers without any look at the rules: the memory tier's hot path compares two integers.

package import HTTPWire

/// The time in which a stored response is fresh for every request without one of `disqualifying` that selects it.
package struct HotPathWindow: Sendable, Equatable {
    /// Unix seconds; at this time it is stale.
    package let freshUntil: Int64
    /// Unix seconds; the age is `now - ageBase`.
    package let ageBase: Int64

    package init(freshUntil: Int64, ageBase: Int64) {
        self.freshUntil = freshUntil
        self.ageBase = ageBase
    }

    /// The request fields that decide about reuse: with one of them the request takes the long way.
    package static let disqualifying = FieldSet(
        .cacheControl,
        .pragma,
        .ifMatch,
        .ifNoneMatch,
        .ifModifiedSince,
        .ifUnmodifiedSince,
        .ifRange,
        .range
    )

    @inlinable
    package func isFresh(now: Int64) -> Bool { now < freshUntil }
    /// In seconds. Meaningful while fresh.
    @inlinable
    package func ttl(now: Int64) -> Int64 { freshUntil &- max(now, ageBase) }
    /// In seconds.
    @inlinable
    package func age(now: Int64) -> Int64 { max(now &- ageBase, 0) }
}

extension Caching {
    /// The window of a stored response; nil where reuse depends on more of the request than its selecting fields (Authorization), where
    /// no request selects it, where it can be invalidated with its groups (RFC 9875), or where it is never fresh.
    package static func hotPath(stored: StoredHead, policy: CachePolicy) -> HotPathWindow? {
        guard policy.mode != .none, stored.requestMethod == .get, !stored.varyNames.contains("*") else { return nil }
        guard stored.staleSince == nil else { return nil }
        guard cacheGroups(stored.fields).isEmpty else { return nil }
        let control = ResponseControl(stored.fields, policy: policy)
        if stored.hadAuthorization, !control.allowsAuthorized { return nil }
        guard !control.requiresValidation(status: stored.status, policy: policy) else { return nil }
        let lifetime = freshnessLifetime(stored, policy: policy).seconds
        let isCountedFromArrival = policy.mode == .library
        guard lifetime > (isCountedFromArrival ? 0 : stored.initialAge) else { return nil }
        let (ageBase, underflow) = stored.responseTime.subtractingReportingOverflow(stored.initialAge)
        let start = isCountedFromArrival ? stored.responseTime : ageBase
        let (freshUntil, overflow) = start.addingReportingOverflow(lifetime)
        return underflow || overflow ? nil : HotPathWindow(freshUntil: freshUntil, ageBase: ageBase)
    }
}
