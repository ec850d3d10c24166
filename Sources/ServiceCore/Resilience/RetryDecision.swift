// Whether a fetch is made once more, after which wait, and how many retries an origin may get.

package import DownloadCore
package import HTTPWire
package import Policies
import Upstream

/// How an attempt ended before anything of its answer was sent on.
package enum AttemptEnd: Sendable, Equatable {
    /// - `retryAfter`: the value of Retry-After.
    case head(status: Int, retryAfter: String?)
    case failed(FetchError)
    /// The body is not what the route expects.
    case content(String)

    /// For logs.
    package var text: String {
        switch self {
        case .head(let status, _): "the status was \(status)"
        case .failed(let error): error.description
        case .content(let why): "the body \(why)"
        }
    }

    /// Of the answer; nil where there was none.
    package var status: Int? { if case .head(let status, _) = self { status } else { nil } }

    /// What a policy may name it; nil for what no policy repeats.
    package var cause: RetryCause? {
        switch self {
        case .head(let status, _): .status(status)
        case .content: .content
        case .failed(.upstream(let error)):
            switch error.kind {
            case .timeout, .proxy(504): .timeout
            // It has nothing against the request, and may reach the origin another time.
            case .proxy(nil), .proxy(502), .proxy(503): .connect
            case .nameNotFound, .resolver, .connectionRefused, .unreachable, .tls, .closed: .connect
            default: nil
            }
        case .failed(.mapping), .failed(.type): .content
        case .failed: nil
        }
    }

    /// Nothing of the request reached the origin.
    package var isUnsent: Bool {
        // An alert of TLS 1.3 may come after the request was sent.
        if case .failed(.upstream(let error)) = self { error.isUnsent && error.kind != .tls } else { false }
    }
}

/// What follows an attempt.
package enum RetryDecision: Sendable, Equatable {
    /// Another one, after so many nanoseconds.
    case retry(after: UInt64)
    /// What came is the answer.
    case final

    /// - Parameters:
    ///   - retry: the number of the retry that it would be, 1 for the first.
    ///   - hasSentBody: content of the request has been read, and cannot be read again.
    ///   - now: Unix seconds, for a Retry-After that is a date.
    ///   - draw: 0 to 1, for the jitter.
    package static func decide(
        _ end: AttemptEnd,
        _ policy: RetryPolicy,
        retry: Int,
        method: Method,
        hasSentBody: Bool,
        now: Int64,
        draw: Double
    ) -> RetryDecision {
        guard retry <= policy.count, !hasSentBody, let cause = end.cause, policy.causes.contains(cause),
            // The origin may have acted on what was sent (RFC 9110 section 9.2.2).
            end.isUnsent || policy.methods == .any || method.isIdempotent
        else { return .final }
        var wait = policy.wait(beforeRetry: retry, draw: draw)
        if case .head(_, let value?) = end, let asked = nanoseconds(value, now: now) {
            guard asked <= policy.maxRetryAfter else { return .final }
            wait = max(wait, asked)
        }
        return .retry(after: wait)
    }

    /// The value of Retry-After: seconds or a date (RFC 9110 section 10.2.3); nil for what is neither.
    private static func nanoseconds(_ value: String, now: Int64) -> UInt64? {
        if !value.isEmpty, value.utf8.allSatisfy({ 48...57 ~= $0 }) {
            return UInt64(value).flatMap { $0 <= 1_000_000_000 ? $0 * 1_000_000_000 : nil } ?? .max
        }
        return HTTPDate.parse(value, now: now).map { UInt64(max(0, min($0 - now, 1_000_000_000))) * 1_000_000_000 }
    }
}

/// Tokens: each fetch brings a part of one, each second one, and a retry takes one.
package struct RetryBudget: Sendable, Equatable {
    /// A burst of retries that is always allowed.
    private static let reserve = 10.0
    /// What good times leave for bad ones.
    private static let most = 50.0

    /// What errors and logs say where there is none left.
    package static let refusal =
        "the budget of retries is used up, which keeps a failing origin from getting several times its load; "
        + "raise 'budget' for more"

    /// Why there is no retry.
    package enum Refusal: Sendable, Equatable {
        /// The one before was still there.
        case first
        case further
    }

    private var tokens = reserve
    private var isUsedUp = false
    /// Up to when seconds have been counted, monotonic nanoseconds; 0 before the first fetch.
    private var counted: UInt64 = 0

    package init() {}

    /// A first attempt is made.
    /// - Parameter share: what it brings, 0 to 1. Values outside are brought to the nearer end; not-a-number is 0.
    package mutating func earn(_ share: Double, now: UInt64) {
        refill(now)
        let share = share.isNaN ? 0 : min(max(share, 0), 1)
        tokens = min(tokens + share, Self.most)
    }

    /// - Returns: whether there was one to take.
    package mutating func take(now: UInt64) -> Bool { refuses(now: now) == nil }

    /// Takes one.
    /// - Returns: nil where there was one to take.
    package mutating func refuses(now: UInt64) -> Refusal? {
        refill(now)
        guard tokens >= 1 else {
            defer { isUsedUp = true }
            return isUsedUp ? .further : .first
        }
        tokens -= 1
        isUsedUp = false
        return nil
    }

    /// Time fills the reserve alone; what lies above it comes from requests.
    private mutating func refill(_ now: UInt64) {
        defer { counted = now }
        guard counted > 0, now > counted, tokens < Self.reserve else { return }
        tokens = min(tokens + Double(now - counted) / 1e9, Self.reserve)
    }
}
