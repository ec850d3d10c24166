// When a stored response answers without any look at the rules: the memory tier's hot path compares two integers.

public import HTTPWire

/// The time in which a stored response is fresh for every request without one of `disqualifying` that selects it.
public struct HotPathWindow: Sendable, Equatable {
    /// When the response came, or was last found to be good, Unix seconds. Before this it is
    /// stale: the clock was set back.
    public let start: Int64
    /// Seconds from the start on; at their end it is stale.
    public let freshFor: UInt32
    /// In seconds, at the start.
    public let initialAge: UInt32

    public init(start: Int64, freshFor: UInt32, initialAge: UInt32) {
        self.start = start
        self.freshFor = freshFor
        self.initialAge = initialAge
    }

    /// The request fields that decide about reuse: with one of them the request takes the long way.
    public static let disqualifying = FieldSet(
        .cacheControl,
        .pragma,
        .ifMatch,
        .ifNoneMatch,
        .ifModifiedSince,
        .ifUnmodifiedSince,
        .ifRange,
        .range
    )

    /// One comparison for both ends: what lies before the start is far beyond the end.
    @inlinable
    public func isFresh(now: Int64) -> Bool { UInt64(bitPattern: now &- start) < UInt64(freshFor) }
    /// In seconds. Meaningful while fresh.
    @inlinable
    public func ttl(now: Int64) -> Int64 { Int64(freshFor) &- (now &- start) }
    /// In seconds. Meaningful while fresh.
    @inlinable
    public func age(now: Int64) -> Int64 { (now &- start) &+ Int64(initialAge) }
}

extension Caching {
    /// The window of a stored response; nil where reuse depends on more of the request than its selecting
    /// fields (Authorization), where no request selects it, where it can be invalidated with its groups (RFC
    /// 9875), where it is an error that clients get in another form, or where it is never fresh.
    package static func hotPath(stored: StoredHead, policy: CachePolicy) -> HotPathWindow? {
        guard policy.mode != .none, stored.requestMethod == .get, !stored.varyNames.contains("*") else { return nil }
        guard stored.staleSince == nil, stored.changedSince == nil, stored.isMapped(as: policy),
            stored.isExpected(by: policy), !policy.mapsErrors || policy.isSuccess(stored.status)
        else { return nil }
        guard cacheGroups(stored.fields).isEmpty else { return nil }
        let control = ResponseControl(stored.fields, policy: policy)
        if stored.hadAuthorization, !control.allowsAuthorized { return nil }
        guard !control.requiresValidation(status: stored.status, policy: policy) else { return nil }
        let lifetime = freshnessLifetime(stored, policy: policy).seconds
        let initialAge = DeltaSeconds.clamp(stored.initialAge)
        let freshFor = policy.mode == .library ? lifetime : lifetime - initialAge
        // Within a time that arithmetic bears: of no other can be told whether it is still to come.
        guard freshFor > 0, stored.responseTime.magnitude < 1 << 62, let seconds = UInt32(exactly: freshFor),
            let age = UInt32(exactly: initialAge)
        else { return nil }
        return HotPathWindow(start: stored.responseTime, freshFor: seconds, initialAge: age)
    }
}
