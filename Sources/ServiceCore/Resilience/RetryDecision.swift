// The decision whether a fetch is repeated, the wait before that, and the budget of retries for an origin.

package import DownloadCore
package import HTTPWire
package import Policies
import Upstream

/// The end of an attempt, before anything of its answer was sent on.
package enum AttemptEnd: Sendable, Equatable {
    /// The head came.
    /// - `retryAfter`: the value of Retry-After.
    case head(status: Int, retryAfter: String?)
    case failed(FetchError)
    /// The body does not meet the expectations of the route.
    case content(String)

    /// The end of the attempt for logs.
    package var text: String {
        switch self {
        case .head(let status, _): "the status was \(status)"
        case .failed(let error): error.description
        case .content(let why): "the body \(why)"
        }
    }

    /// The status of the answer; nil if there was none.
    package var status: Int? { if case .head(let status, _) = self { status } else { nil } }

    /// The cause by which a policy names the end; nil for an end that is never repeated.
    package var cause: RetryCause? {
        switch self {
        case .head(let status, _): .status(status)
        case .content: .content
        case .failed(.upstream(let error)):
            switch error.kind {
            case .timeout, .proxy(504): .timeout
            // The proxy has no objection to the request, and may reach the origin another time.
            case .proxy(nil), .proxy(502), .proxy(503): .connect
            case .nameNotFound, .resolver, .connectionRefused, .unreachable, .tls, .closed: .connect
            default: nil
            }
        case .failed(.mapping), .failed(.type): .content
        case .failed: nil
        }
    }

    /// Whether nothing of the request reached the origin.
    package var isUnsent: Bool {
        // An alert of TLS 1.3 may come after the request was sent.
        if case .failed(.upstream(let error)) = self { error.isUnsent && error.kind != .tls } else { false }
    }
}

/// The decision after an attempt.
package enum RetryDecision: Sendable, Equatable {
    /// Another attempt is made after this number of nanoseconds.
    case retry(after: UInt64)
    /// The answer, or the error, is final.
    case final

    /// The one function that decides about retries: of fetches, of demo answers, of a program's calls and tasks.
    /// - Parameters:
    ///   - retry: the number of the retry that it would be, 1 for the first: that of the attempt that has ended.
    ///   - path: the path of the request without its query, or the name of what failed, for the program's condition.
    ///   - hasSentBody: content of the request has been read, and cannot be read again.
    ///   - now: Unix seconds, for a Retry-After that is a date.
    ///   - draw: 0 to 1, for the jitter.
    ///   - mayAsk: whether another attempt may be made now; asked before the program is.
    package static func decide(
        _ end: AttemptEnd,
        _ policy: RetryPolicy,
        retry: Int,
        method: Method,
        path: @autoclosure () -> String = "",
        hasSentBody: Bool,
        now: Int64,
        draw: Double,
        mayAsk: () -> Bool = { true }
    ) -> RetryDecision {
        guard retry <= policy.count, !hasSentBody, let cause = end.cause, policy.causes.contains(cause),
            // The origin may have acted on the request (RFC 9110 section 9.2.2).
            end.isUnsent || policy.methods == .any || method.isIdempotent
        else { return .final }
        var wait = policy.wait(beforeRetry: retry, draw: draw)
        if case .head(_, let value?) = end, let asked = nanoseconds(value, now: now) {
            guard asked <= policy.longestRetryAfter.wholeNanoseconds else { return .final }
            wait = max(wait, asked)
        }
        guard mayAsk() else { return .final }
        if let shouldRetry = policy.shouldRetry {
            let attempt = RetryPolicy.FailedAttempt(
                number: retry,
                method: method.name,
                path: path(),
                cause: cause,
                status: end.status,
                detail: end.text
            )
            guard shouldRetry(attempt) else { return .final }
        }
        return .retry(after: wait)
    }

    /// The value of Retry-After in nanoseconds, from seconds or a date (RFC 9110 section 10.2.3); nil for any other
    /// value.
    private static func nanoseconds(_ value: String, now: Int64) -> UInt64? {
        if !value.isEmpty, value.utf8.allSatisfy({ 48...57 ~= $0 }) {
            return UInt64(value).flatMap { $0 <= 1_000_000_000 ? $0 * 1_000_000_000 : nil } ?? .max
        }
        return HTTPDate.parse(value, now: now).map { UInt64(max(0, min($0 - now, 1_000_000_000))) * 1_000_000_000 }
    }
}

/// What ``Resilience/verdict(on:_:retry:method:path:hasSentBody:now:mayAsk:)`` says of an attempt.
enum RetryVerdict: Sendable, Equatable {
    /// Another one follows, after so many nanoseconds; it has been counted and reported.
    case retry(after: UInt64)
    /// The answer, or the error, is final.
    case final
    /// What came is the answer, since the budget of retries has nothing left.
    case unaffordable
}

/// The budget of retries: each fetch earns a part of a retry, each second earns one, and a retry takes one.
package struct RetryBudget: Sendable, Equatable {
    /// The number of retries that time alone provides.
    private static let reserve = 10.0
    /// The most retries that are saved.
    private static let most = 50.0

    /// The words of errors and logs for a used-up budget.
    package static let refusal =
        "the budget of retries is used up, which keeps a failing origin from getting several times its load; "
        + "raise 'budget' for more"

    /// The kind of refusal by the budget.
    package enum Refusal: Sendable, Equatable {
        /// The previous retry was still allowed.
        case first
        case further
    }

    private var tokens = reserve
    private var isUsedUp = false
    /// The time until which seconds have been counted, in monotonic nanoseconds; 0 before the first fetch.
    private var counted: UInt64 = 0

    package init() {}

    /// Adds the share of a first attempt.
    /// - Parameter share: the share, 0 to 1. Values outside are clamped; not-a-number is 0.
    package mutating func earn(_ share: Double, now: UInt64) {
        refill(now)
        let share = share.isNaN ? 0 : min(max(share, 0), 1)
        tokens = min(tokens + share, Self.most)
    }

    /// Takes a retry.
    /// - Returns: whether there was one.
    package mutating func take(now: UInt64) -> Bool { refuses(now: now) == nil }

    /// Takes a retry.
    /// - Returns: nil if there was one, or else the kind of refusal.
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

    /// Adds retries for the time that has passed, up to the reserve; anything above comes from requests.
    private mutating func refill(_ now: UInt64) {
        defer { counted = now }
        guard counted > 0, now > counted, tokens < Self.reserve else { return }
        tokens = min(tokens + Double(now - counted) / 1e9, Self.reserve)
    }
}
