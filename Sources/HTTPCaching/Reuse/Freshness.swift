// Age and freshness lifetime of responses (RFC 9111 section 4.2), and the window of time in which the hot path answers
// from one.

public import HTTPWire

/// The caching decisions, as pure functions of heads, a policy and a `now` in Unix seconds.
package enum Caching {}

/// The source of a freshness lifetime; the raw value is what diagnostics print.
package enum FreshnessSource: String, Sendable, CaseIterable {
    case sMaxAge = "s-maxage"
    case maxAge = "max-age"
    case expires
    /// The `max-age` or `s-maxage` of a targeted field (RFC 9213).
    case targeted
    /// The configured ttl.
    case ttl
    /// The ttl configured for this status.
    case ttlByStatus = "ttl-by-status"
    /// The default lifetime of library mode, two hours.
    case library
    /// No end: library mode with `revalidate: never`.
    case forever
    /// A tenth of the time since the last modification (RFC 9111 section 4.2.2).
    case heuristic
    /// The response was fresh until a purge made it stale.
    case purge
    /// The response was fresh until the answer to a HEAD showed that the resource has changed.
    case head
    /// Nothing says how long the response is fresh.
    case none
    /// A freshness directive or date does not parse, so the response is stale.
    case invalid
}

/// A freshness lifetime and its source.
package struct Lifetime: Sendable, Equatable {
    /// The lifetime in seconds, 0 to 2^31.
    package var seconds: Int64
    package var source: FreshnessSource

    package init(seconds: Int64, source: FreshnessSource) {
        self.seconds = seconds
        self.source = source
    }

    /// True if the response became stale at some point, rather than never having been fresh.
    var hasExpiry: Bool { source != .none && source != .invalid }
}

extension Caching {
    /// The longest heuristic lifetime in seconds; RFC 9111 section 4.2.2 leaves it to the cache.
    package static let heuristicLimit: Int64 = 86400

    /// The age in seconds at `now` (RFC 9111 section 4.2.3, current_age).
    package static func age(_ stored: StoredHead, now: Int64) -> Int64 {
        DeltaSeconds.clamp(
            DeltaSeconds.clamp(stored.initialAge) + DeltaSeconds.elapsed(from: stored.responseTime, to: now)
        )
    }

    /// The time in seconds at `now` that is compared with the freshness lifetime: the age, or in library mode the time
    /// since the response arrived or was checked, whatever its age was then.
    package static func timeInUse(_ stored: StoredHead, policy: CachePolicy, now: Int64) -> Int64 {
        guard policy.mode == .library else { return age(stored, now: now) }
        return DeltaSeconds.elapsed(from: stored.responseTime, to: now)
    }

    /// The time in seconds for which `stored` has been stale at `now`; below 0 while it is fresh. A response from a
    /// time after `now` is never fresh.
    package static func staleness(_ stored: StoredHead, policy: CachePolicy, now: Int64) -> Int64 {
        staleness(stored, freshnessLifetime(stored, policy: policy), policy: policy, now: now)
    }

    static func staleness(_ stored: StoredHead, _ lifetime: Lifetime, policy: CachePolicy, now: Int64) -> Int64 {
        let by = timeInUse(stored, policy: policy, now: now) - lifetime.seconds
        return isAhead(stored, now: now) ? max(by, 0) : by
    }

    /// The age in seconds at which a response arrives (RFC 9111 section 4.2.3, corrected_initial_age).
    package static func initialAge(_ fields: Fields, _ times: ResponseTimes) -> Int64 {
        let (requestTime, responseTime) = (times.requestTime, times.responseTime)
        let corrected = (receivedAge(fields) ?? 0) + DeltaSeconds.elapsed(from: requestTime, to: responseTime)
        let date = date(fields, responseTime: responseTime)
        var apparent = DeltaSeconds.elapsed(from: date, to: responseTime)
        // The clock of the system applies to an origin whose clock was not moved: the age of its response is measured
        // by it.
        let systemTime = responseTime - times.ahead
        if times.ahead > 0, date <= systemTime + unmovedSlack {
            apparent = DeltaSeconds.elapsed(from: date, to: systemTime)
        }
        return DeltaSeconds.clamp(max(apparent, corrected))
    }

    /// The seconds by which the clock of an origin whose clock was not moved may be ahead of the system's.
    private static let unmovedSlack: Int64 = 2

    /// The Age field in seconds. If it is a list, its first member counts; a value that does not parse is ignored (RFC
    /// 9111 section 5.1).
    static func receivedAge(_ fields: Fields) -> Int64? {
        let first = fields.values(.age).first?.split(separator: ASCII.comma, omittingEmptySubsequences: false).first
        return first.flatMap { DeltaSeconds.parse(ASCII.trim($0)) }
    }

    /// The freshness lifetime of the stored response under the policy.
    package static func freshnessLifetime(_ stored: StoredHead, policy: CachePolicy) -> Lifetime {
        lifetime(stored, ResponseControl(stored.fields, policy: policy), policy: policy)
    }

    /// The freshness lifetime by the given directives; a purge may have shortened it.
    static func lifetime(_ stored: StoredHead, _ control: ResponseControl, policy: CachePolicy) -> Lifetime {
        let whole = lifetime(
            control,
            status: stored.status,
            fields: stored.fields,
            responseTime: stored.responseTime,
            policy: policy
        )
        guard stored.staleSince != nil || stored.changedSince != nil else { return whole }
        let cuts = [(stored.staleSince, FreshnessSource.purge), (stored.changedSince, .head)]
        return cuts.reduce(whole) { lifetime, cut in
            guard let since = cut.0 else { return lifetime }
            let used = timeInUse(stored, policy: policy, now: since)
            return used < lifetime.seconds ? Lifetime(seconds: used, source: cut.1) : lifetime
        }
    }

    /// Whether one of the times of `stored` is after `now`, which means that the clock was set back and the age is
    /// unknown.
    static func isAhead(_ stored: StoredHead, now: Int64) -> Bool {
        now < stored.responseTime || now < stored.staleSince ?? now || now < stored.changedSince ?? now
    }

    static func lifetime(
        _ control: ResponseControl,
        status: Int,
        fields: Fields,
        responseTime: Int64,
        policy: CachePolicy
    ) -> Lifetime {
        if policy.mode == .library { return policy.libraryLifetime(status: status) }
        let configured = policy.configuredLifetime(status: status)
        if policy.overrideOrigin, let configured { return configured }
        return explicitLifetime(control, fields: fields, responseTime: responseTime)
            ?? configured
            ?? heuristicLifetime(control, status: status, fields: fields, responseTime: responseTime)
            ?? Lifetime(seconds: 0, source: .none)
    }

    /// The lifetime that the response declares: by s-maxage, else max-age, else Expires minus Date (RFC 9111 section
    /// 4.2.1).
    static func explicitLifetime(_ control: ResponseControl, fields: Fields, responseTime: Int64) -> Lifetime? {
        let directives = control.directives
        let isTargeted = control.targetedField != nil
        if directives.hasInvalidFreshness { return Lifetime(seconds: 0, source: .invalid) }
        if let seconds = directives.sMaxAge {
            return Lifetime(seconds: seconds, source: isTargeted ? .targeted : .sMaxAge)
        }
        if let seconds = directives.maxAge {
            return Lifetime(seconds: seconds, source: isTargeted ? .targeted : .maxAge)
        }
        guard !isTargeted, fields.contains(.expires) else { return nil }
        let dates = fields.all(.expires).map { expiry($0, now: responseTime) }
        guard let earliest = dates.compactMap(\.self).min(), !dates.contains(nil) else {
            return Lifetime(seconds: 0, source: .invalid)
        }
        let seconds = DeltaSeconds.elapsed(from: date(fields, responseTime: responseTime), to: earliest)
        return Lifetime(seconds: seconds, source: .expires)
    }

    /// The time of an expiry date; only the zone GMT is valid in it (RFC 9111 section 4.2).
    private static func expiry(_ value: String, now: Int64) -> Int64? {
        let isGMT = !ASCII.equalIgnoringCase(value.utf8.suffix(3), "UTC".utf8)
        return isGMT ? HTTPDate.parse(value, now: now) : nil
    }

    private static func heuristicLifetime(
        _ control: ResponseControl,
        status: Int,
        fields: Fields,
        responseTime: Int64
    ) -> Lifetime? {
        guard StatusCode.isHeuristicallyCacheable(status) || control.directives.public,
            let modified = fields.first(.lastModified).flatMap({ HTTPDate.parse($0, now: responseTime) })
        else { return nil }
        let unchanged = DeltaSeconds.elapsed(from: modified, to: date(fields, responseTime: responseTime))
        let seconds = min(unchanged / 10, heuristicLimit)
        return seconds > 0 ? Lifetime(seconds: seconds, source: .heuristic) : nil
    }

    /// The response's Date, or the time of its arrival if no Date parses.
    static func date(_ fields: Fields, responseTime: Int64) -> Int64 {
        let date = fields.withFirst(.date) { HTTPDate.parse($0, now: responseTime) }
        return (date ?? nil) ?? responseTime
    }
}

// MARK: - Times of a response

/// The `request_time` and `response_time` of RFC 9111 section 4.2.3, by one clock, in Unix seconds.
package struct ResponseTimes: Sendable, Equatable {
    package var requestTime: Int64
    package var responseTime: Int64
    /// The seconds by which both times are ahead of the system's clock; 0 unless the daemon's clock was moved.
    package var ahead: Int64

    package init(requestTime: Int64, responseTime: Int64, ahead: Int64 = 0) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.ahead = ahead
    }

    /// The times of a response that arrives in the same moment in which it is asked for.
    package init(at time: Int64, ahead: Int64 = 0) {
        self.init(requestTime: time, responseTime: time, ahead: ahead)
    }
}

// MARK: - The window of the hot path

/// The time in which a stored response is fresh for every request that selects it and has no field of
/// ``disqualifying``.
public struct HotPathWindow: Sendable, Equatable {
    /// The time when the response arrived or was last validated, in Unix seconds. Before this time it counts as stale,
    /// because the clock was set back.
    public let start: Int64
    /// The seconds of freshness from the start on; at their end the response is stale.
    public let freshFor: UInt32
    /// The age at the start, in seconds.
    public let initialAge: UInt32

    public init(start: Int64, freshFor: UInt32, initialAge: UInt32) {
        self.start = start
        self.freshFor = freshFor
        self.initialAge = initialAge
    }

    /// The request fields that decide about reuse: a request with one of them does not take the hot path.
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

    /// Whether the response is fresh at a time. One comparison serves both ends: what lies before the start is far
    /// beyond the end.
    @inlinable
    public func isFresh(now: Int64) -> Bool { UInt64(bitPattern: now &- start) < UInt64(freshFor) }
    /// The seconds of freshness that are left at a time. Meaningful while fresh.
    @inlinable
    public func ttl(now: Int64) -> Int64 { Int64(freshFor) &- (now &- start) }
    /// The age at a time, in seconds. Meaningful while fresh.
    @inlinable
    public func age(now: Int64) -> Int64 { (now &- start) &+ Int64(initialAge) }
}

extension Caching {
    /// The window of a stored response; nil if reuse depends on more of the request than its selecting fields
    /// (Authorization), if no request selects it, if it can be invalidated with its groups (RFC 9875), if it is an
    /// error that clients get in another form, or if it is never fresh.
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
        // The time must be within the bounds of arithmetic: for another one nothing tells whether it is in the future.
        guard freshFor > 0, stored.responseTime.magnitude < 1 << 62, let seconds = UInt32(exactly: freshFor),
            let age = UInt32(exactly: initialAge)
        else { return nil }
        return HotPathWindow(start: stored.responseTime, freshFor: seconds, initialAge: age)
    }
}
