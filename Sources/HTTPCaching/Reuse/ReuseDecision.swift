// Whether a stored response answers a request as it is (RFC 9111 section 4), and if not, why not, and whether it may
// stand in for an error.

package import HTTPWire

/// The reason why a stored response must be validated before it is used; the raw value is what diagnostics print.
package enum StaleReason: String, Sendable, CaseIterable {
    case expired
    /// The response never had a freshness lifetime.
    case noFreshness = "no-freshness"
    case invalidFreshness = "invalid-freshness"
    /// The response has a time that is in the future by the clock.
    case clockSetBack = "clock-set-back"
    /// The response has `no-cache`.
    case noCache = "no-cache"
    case requestNoCache = "request-no-cache"
    /// The request has `Pragma: no-cache`, and no Cache-Control.
    case requestPragma = "request-pragma"
    case requestMaxAge = "request-max-age"
    case requestMinFresh = "request-min-fresh"
    /// The request's If-Match or If-Unmodified-Since does not hold for the response: only the origin may refuse for
    /// that.
    case requestPrecondition = "request-precondition"

    /// True if the response is fresh, but the request does not accept it.
    package var isFromRequest: Bool {
        switch self {
        case .requestNoCache, .requestPragma, .requestMaxAge, .requestMinFresh, .requestPrecondition: true
        case .expired, .noFreshness, .invalidFreshness, .clockSetBack, .noCache: false
        }
    }
}

/// The reason why a stale response may be used without asking first; the raw value is what `Cache-Status` prints as
/// `detail`.
package enum StaleAllowance: String, Sendable, CaseIterable {
    /// The request accepts this much staleness (RFC 9111 section 5.2.1.2).
    case maxStale = "max-stale"
    /// The response is within its `stale-while-revalidate` (RFC 5861 section 3): it answers, and is validated in the
    /// background.
    case whileRevalidate = "refreshing"
    /// The staleness is accepted for a request that wants only stored responses, so nothing is validated in the
    /// background.
    case unrefreshed
    /// The origin is not to be asked: the stored response answers, whatever its age (RFC 9111 section 4.2.4).
    case offline
    /// The last check failed a moment ago, and the next one waits (`check_pause`).
    case checkPause = "check-pause"
}

/// A check of a stored response that failed a moment ago.
package struct FailedCheck: Sendable, Equatable {
    /// The status that the origin answered; nil if it could not be asked.
    package var errorStatus: Int?

    package init(errorStatus: Int?) { self.errorStatus = errorStatus }
}

/// The reason why a stored response does not answer this request.
package enum MismatchReason: String, Sendable, CaseIterable {
    case cacheOff = "cache-off"
    case method
    case vary
    /// The response was stored for a request with Authorization and may not be shared (RFC 9111 section 3.5).
    case authorization
    /// The response was made by another mapping than the one of its route, or by a mapping although the route has none
    /// now.
    case mapping
    /// The response was stored under other expectations than those of its route (``StoredHead/isExpected(by:)``).
    case expect
}

package enum ReuseDecision: Sendable, Equatable {
    /// The response answers. `age` is the value of Age, `ttl` > 0 the remaining freshness; both in seconds.
    case fresh(age: Int64, ttl: Int64)
    /// The response answers although it has been stale for `staleness` seconds, which is below 0 if only the request
    /// asks for validation.
    case staleAllowed(age: Int64, staleness: Int64, allowance: StaleAllowance)
    /// The response has to be validated first. `by` is the staleness in seconds, below 0 if it is fresh by itself.
    case stale(age: Int64, by: Int64, reason: StaleReason)
    /// The response does not answer this request.
    case mismatch(MismatchReason)
    /// The request wants only an answer without asking the origin, and this response is none: 504 (RFC 9111 section
    /// 5.2.1.7).
    case onlyIfCachedMiss(StaleReason)
}

extension Caching {
    /// Whether `stored` answers `request` at `now` (RFC 9111 section 4). With `isOffline` the origin cannot be asked:
    /// the selected response answers, stale or not, even if a directive asks for validation; only a precondition that
    /// does not hold leaves the request to the origin. After a `failedCheck`, a response that may be used stale instead
    /// of an error answers without another check.
    package static func lookup(
        request: RequestHead,
        stored: StoredHead,
        policy: CachePolicy,
        now: Int64,
        isOffline: Bool = false,
        failedCheck: FailedCheck? = nil
    ) -> ReuseDecision {
        guard policy.mode != .none else { return .mismatch(.cacheOff) }
        guard request.method == .get || request.method == .head, stored.requestMethod == .get else {
            return .mismatch(.method)
        }
        guard selects(stored: stored, request: request) else { return .mismatch(.vary) }
        guard stored.isMapped(as: policy) else { return .mismatch(.mapping) }
        guard stored.isExpected(by: policy) else { return .mismatch(.expect) }
        let control = ResponseControl(stored.fields, policy: policy)
        if stored.hadAuthorization, !control.allowsAuthorized { return .mismatch(.authorization) }

        let wish = CacheControl(request: request.fields)
        let age = age(stored, now: now)
        let lifetime = lifetime(stored, control, policy: policy)
        let by = staleness(stored, lifetime, policy: policy, now: now)
        guard meetsPreconditions(request: request, stored: stored) else {
            // This applies to a fresh, stale or offline answer: the client joins it to the representation that it has.
            let reason = StaleReason.requestPrecondition
            if wish.onlyIfCached { return .onlyIfCachedMiss(reason) }
            return .stale(age: age, by: by, reason: reason)
        }
        var reason = validationReason(stored, control, wish, age: age, by: by, lifetime: lifetime, policy: policy)
        // After the clock was set back the staleness is unknown, so only a check can tell.
        if reason == .expired, isAhead(stored, now: now) { reason = .clockSetBack }
        guard let reason else { return .fresh(age: age, ttl: -by) }
        if isOffline { return .staleAllowed(age: age, staleness: by, allowance: .offline) }
        if let failedCheck, !reason.isFromRequest, wish.minFresh == nil,
            mayServeStale(
                stored: stored,
                policy: policy,
                staleness: by,
                request: request,
                errorStatus: failedCheck.errorStatus
            ).isAllowed
        {
            return .staleAllowed(age: age, staleness: by, allowance: .checkPause)
        }
        if reason == .expired, control.staleProhibition(status: stored.status, policy: policy) == nil,
            let allowance = allowance(wish, control, policy, by: by),
            // After a check that has just failed, a refresh behind a stale answer would repeat it with every request.
            failedCheck == nil || allowance != .whileRevalidate
        {
            let isUnrefreshed = allowance == .whileRevalidate && wish.onlyIfCached
            return .staleAllowed(age: age, staleness: by, allowance: isUnrefreshed ? .unrefreshed : allowance)
        }
        return wish.onlyIfCached ? .onlyIfCachedMiss(reason) : .stale(age: age, by: by, reason: reason)
    }

    /// Whether `stored`, which another request fetched or checked, answers `request`, which has waited for it since
    /// `asked` (Unix seconds). It does if it is fresh, or in library mode, where one transfer serves all waiting
    /// requests, if it is no older than `asked`.
    package static func answersWaiting(
        request: RequestHead,
        stored: StoredHead,
        policy: CachePolicy,
        asked: Int64,
        now: Int64
    ) -> Bool {
        switch lookup(request: request, stored: stored, policy: policy, now: now) {
        case .fresh: true
        case .stale(_, _, .expired): policy.mode == .library && stored.responseTime >= asked
        case .stale, .staleAllowed, .mismatch, .onlyIfCachedMiss: false
        }
    }

    /// Whether the request wants a 504 rather than a fetch (RFC 9111 section 5.2.1.7).
    package static func onlyIfCached(_ request: RequestHead) -> Bool {
        CacheControl(request: request.fields).onlyIfCached
    }

    /// Whether the request asks for an answer straight from the origin (`no-cache`, `max-age=0`, Pragma): it never
    /// joins an older fetch, and it is validated by a conditional GET.
    package static func isReload(_ request: RequestHead) -> Bool {
        let wish = CacheControl(request: request.fields)
        return wish.noCache || wish.maxAge == 0
    }

    private static func validationReason(
        _ stored: StoredHead,
        _ control: ResponseControl,
        _ wish: CacheControl,
        age: Int64,
        by: Int64,
        lifetime: Lifetime,
        policy: CachePolicy
    ) -> StaleReason? {
        if control.requiresValidation(status: stored.status, policy: policy) { return .noCache }
        if wish.noCache { return wish.isPragma ? .requestPragma : .requestNoCache }
        // An immutable response is not checked for a mere reload while it is fresh (RFC 8246 section 2.1), but for a
        // no-cache. With max-age=0 a response of this very second is too old: it may be older by a fraction of it.
        let isImmutable = control.directives.immutable && by < 0
        if let limit = wish.maxAge, age > limit || limit == 0, !isImmutable { return .requestMaxAge }
        if by >= 0 {
            switch lifetime.source {
            case .none: return .noFreshness
            case .invalid: return .invalidFreshness
            default: return .expired
            }
        }
        if let least = wish.minFresh, -by < least { return .requestMinFresh }
        return nil
    }

    private static func allowance(
        _ wish: CacheControl,
        _ control: ResponseControl,
        _ policy: CachePolicy,
        by: Int64
    ) -> StaleAllowance? {
        // A request with min-fresh does not accept a stale response.
        guard wish.minFresh == nil else { return nil }
        switch wish.maxStale {
        case .any: return .maxStale
        case .seconds(let limit) where by <= limit: return .maxStale
        default: break
        }
        // A request with max-age and without max-stale accepts no stale response (RFC 9111 section 5.2.1.1).
        guard wish.maxAge == nil else { return nil }
        if policy.mode != .library {
            // 0 allows nothing, not even at the very moment of expiry.
            if control.directives.staleWhileRevalidate == 0 { return nil }
            if let limit = control.directives.staleWhileRevalidate { return by <= limit ? .whileRevalidate : nil }
        }
        let limit = policy.staleWhileRevalidate
        return limit > 0 && by <= limit ? .whileRevalidate : nil
    }
}

// MARK: - Stale responses in place of errors

/// The reason why a stale response may not be used; the raw value is what diagnostics print.
package enum StaleRefusal: String, Sendable, CaseIterable {
    case noCache = "no-cache"
    case mustRevalidate = "must-revalidate"
    case proxyRevalidate = "proxy-revalidate"
    /// s-maxage implies proxy-revalidate (RFC 9111 section 5.2.2.10).
    case sMaxAge = "s-maxage"
    /// The request's `no-cache` asks for a successful validation (RFC 9111 section 5.2.1.4).
    case requestNoCache = "request-no-cache"
    /// The request has an If-Match or If-Unmodified-Since: only the origin may answer it.
    case requestPrecondition = "request-precondition"
    /// The response is staler than the smallest `stale-if-error` of the configuration, the response and the request.
    case tooStale = "too-stale"
    /// The origin's status is not an error that a stale response may replace.
    case status
}

package enum StaleVerdict: Sendable, Equatable {
    /// The stale response may be used up to a staleness of `limit` seconds.
    case allowed(limit: Int64)
    case refused(StaleRefusal)

    package var isAllowed: Bool {
        if case .allowed = self { return true }
        return false
    }
}

extension Caching {
    /// Whether `stored` may be used at a staleness of `staleness` seconds because asking the origin failed: it could
    /// not be reached (`errorStatus` nil), or it answered `errorStatus`, which must be 500 to 599 or another failure by
    /// the policy.
    package static func mayServeStale(
        stored: StoredHead,
        policy: CachePolicy,
        staleness: Int64,
        request: RequestHead? = nil,
        errorStatus: Int? = nil
    ) -> StaleVerdict {
        if let errorStatus, !policy.countsAsFailure(errorStatus) { return .refused(.status) }
        let control = ResponseControl(stored.fields, policy: policy)
        if let refusal = control.staleProhibition(status: stored.status, policy: policy) { return .refused(refusal) }
        let wish = request.map { CacheControl(request: $0.fields) } ?? CacheControl()
        if wish.noCache { return .refused(.requestNoCache) }
        if let request, hasPreconditions(request) { return .refused(.requestPrecondition) }
        let own = policy.mode == .library ? nil : control.directives.staleIfError
        let bounds = [own, wish.staleIfError].compactMap(\.self)
        let limit = min(policy.staleIfError, bounds.min() ?? policy.staleIfError)
        // A configured 0 allows nothing, not even at the very moment of expiry.
        return limit > 0 && staleness <= limit ? .allowed(limit: limit) : .refused(.tooStale)
    }

    /// Whether `stored` may still answer at `now`, so that no server error replaces it: while it is fresh, while it is
    /// refreshed in the background, or in place of just that error.
    package static func mayStillServe(_ stored: StoredHead, errorStatus: Int, policy: CachePolicy, now: Int64) -> Bool {
        guard stored.status < 500 else { return false }
        let control = ResponseControl(stored.fields, policy: policy)
        let staleness = staleness(stored, policy: policy, now: now)
        if staleness < 0 { return !control.requiresValidation(status: stored.status, policy: policy) }
        guard control.staleProhibition(status: stored.status, policy: policy) == nil else { return false }
        let own = policy.mode == .library ? nil : control.directives.staleWhileRevalidate
        let limit = own ?? policy.staleWhileRevalidate
        if limit > 0, staleness <= limit { return true }
        return mayServeStale(stored: stored, policy: policy, staleness: staleness, errorStatus: errorStatus).isAllowed
    }
}
