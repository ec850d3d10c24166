// The quotas of requests: each request is counted, its answer tells what is left, and one beyond the limit is refused.

import EventLoop
import HTTPWire
import Policies
import ServiceCore

/// The quota that applies to one request.
struct RequestQuota {
    private let match: RouteMatch
    private let exchange: Exchange
    private let clock: WallClock

    init(_ match: RouteMatch, _ exchange: Exchange, _ clock: WallClock) {
        self.match = match
        self.exchange = exchange
        self.clock = clock
    }

    /// Counts the request if the quota is for such requests.
    /// - Parameters:
    ///   - counted: the kind of request that the quota may count.
    ///   - added: the fields that every answer gets; the state of the quota is appended.
    /// - Throws: the answer to a request beyond the limit.
    func take(_ counted: RateLimitPolicy.Counted, _ added: inout Fields) throws(Problem) {
        guard let policy = match.endpoint.request.policies.rateLimit, policy.count == counted else { return }
        let name = policy.scope.isEmpty ? match.route.label : policy.scope
        let client = exchange.peer.isUnix ? "unix" : exchange.peer.host
        let runtime = match.route.runtime
        let verdict = runtime.rates.take(policy, scope: name, client: client, now: clock.now())
        let seconds = policy.window / 1_000_000_000
        // The fields are those of draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
        added.append("RateLimit-Policy", "\"\(name)\";q=\(policy.limit);w=\(seconds)")
        added.append("RateLimit", "\"\(name)\";r=\(verdict.left);t=\(verdict.reset)")
        guard verdict.isOver else { return }
        if verdict.isNews {
            runtime.resilience.tell(.cameEarly(client: client, quota: name, wait: verdict.reset))
        }
        exchange.outcome.fault = "rate_limit"
        var fields = added
        fields.append(.retryAfter, String(verdict.reset))
        throw Problem(
            status: policy.status,
            title: "Too many requests",
            detail: "\(policy.limit) requests in \(seconds) s are answered here; come back in \(verdict.reset) s",
            fields: fields
        )
    }
}
