// Whether a stale response may stand in for an error (RFC 9111 section 4.2.4, RFC 5861 section 4).

package import HTTPWire

/// Why a stale response may not be used; the raw value is what diagnostics print.
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
    /// Staler than the smallest of the configured, the response's and the request's `stale-if-error`.
    case tooStale = "too-stale"
    /// The origin's status is not an error that a stale response may replace.
    case status
}

package enum StaleVerdict: Sendable, Equatable {
    /// Up to a staleness of `limit` seconds.
    case allowed(limit: Int64)
    case refused(StaleRefusal)

    package var isAllowed: Bool {
        if case .allowed = self { return true }
        return false
    }
}

extension Caching {
    /// Whether `stored` may be used at a staleness of `staleness` seconds because asking the origin failed: it could
    /// not be reached (`errorStatus` nil), or it answered with `errorStatus`, which must be 500 to 599, or what the
    /// policy takes for a failure, too.
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
        // A configured 0 means never, also at the very moment of expiry.
        return limit > 0 && staleness <= limit ? .allowed(limit: limit) : .refused(.tooStale)
    }

    /// Whether `stored` may still answer at `now`, so that no server error takes its place: while it is fresh, while it
    /// is refreshed behind, or in place of just that error.
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
