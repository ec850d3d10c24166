// The state of a service for failing origins, kept across reloads: circuit breakers, the budget of retries, and
// counters.

import HTTPWire
import Policies
import Synchronization

/// A report for operators.
package enum ServiceReport: Sendable, Equatable {
    /// An attempt is repeated.
    /// - `wait`: the nanoseconds before the next attempt.
    case retrying(method: String, path: String, attempt: Int, of: Int, wait: UInt64, why: String)
    /// A retry was due, and the budget was used up.
    /// - `isFirst`: whether the budget allowed the retry before.
    case retryRefused(method: String, path: String, attempts: Int, why: String, isFirst: Bool)
    /// A breaker opened.
    /// - `duration`: the nanoseconds until a request may probe the origin.
    case breakerOpened(origin: String, failures: Int, duration: UInt64)
    case breakerClosed(origin: String)
    /// A call was parked.
    /// - `time`: the nanoseconds that the call may wait.
    case parked(method: String, path: String, id: UInt64, time: UInt64, why: String)
    case notParked(method: String, path: String, why: ParkRefusal)
    /// A parked call was replayed.
    /// - `waited`: the nanoseconds since the call was parked, as in the next case.
    case replayed(method: String, path: String, id: UInt64, waited: UInt64)
    case parkExpired(method: String, path: String, id: UInt64, waited: UInt64)
    /// A client has returned before the time that it was told.
    /// - `wait`: the seconds that are left.
    case cameEarly(client: String, quota: String, wait: Int64)

    /// The report as one line.
    /// - Parameter service: the name of the service; empty for forward mode.
    package func text(service: String) -> String {
        let who = service.isEmpty ? "forward mode" : "service \(service)"
        return switch self {
        case .retrying(let method, let path, let attempt, let most, let wait, let why):
            "\(who): \(method) \(path): attempt \(attempt) of \(most) in \(wait / 1_000_000) ms, since \(why)"
        case .retryRefused(let method, let path, let attempts, let why, isFirst: _):
            "\(who): \(method) \(path): no further attempt after \(attempts), although \(why): \(RetryBudget.refusal)"
        case .breakerOpened(let origin, let failures, let duration):
            "\(who): the circuit breaker of \(origin) opened after \(failures) failures in a row: "
                + "nobody asks it for \(duration / 1_000_000) ms"
        case .breakerClosed(let origin):
            "\(who): the circuit breaker of \(origin) closed: the origin answers again"
        case .parked(let method, let path, let id, let time, let why):
            "\(who): \(method) \(path) is parked as \(id) for \(time / 1_000_000_000) s at most, since \(why)"
        case .notParked(let method, let path, let why):
            "\(who): \(method) \(path) is not parked, since \(why.text)"
        case .replayed(let method, let path, let id, let waited):
            "\(who): \(method) \(path), parked as \(id), was replayed after \(waited / 1_000_000) ms"
        case .parkExpired(let method, let path, let id, let waited):
            "\(who): \(method) \(path), parked as \(id), waited \(waited / 1_000_000) ms in vain"
        case .cameEarly(let client, let quota, let wait):
            "\(who): \(client) came back \(wait) s before Retry-After of the quota \(quota) had passed"
        }
    }

    /// Whether the report is a warning: a used-up budget, an origin that is left alone, or a call that waits in vain,
    /// but not an ordinary retry.
    package var isWarning: Bool {
        switch self {
        case .breakerOpened, .parkExpired, .notParked: true
        case .retryRefused(method: _, path: _, attempts: _, why: _, let isFirst): isFirst
        case .retrying, .breakerClosed, .parked, .replayed, .cameEarly: false
        }
    }
}

/// The state of one service for failing origins.
///
/// Sendable: breakers and budget are under one mutex, which is held for a few instructions; the counters are atomic.
package final class Resilience: Sendable {
    /// The circuit breaker as `drydock status` and the metrics show it.
    package enum BreakerState: Sendable, Equatable {
        case closed
        /// The breaker is open for this number of nanoseconds.
        case open(for: UInt64)
        case halfOpen

        package var name: String {
            switch self {
            case .closed: "closed"
            case .open: "open"
            case .halfOpen: "half-open"
            }
        }
    }

    private struct State {
        /// The breakers by origin: a reload may change the origin while fetches of the old plan are under way.
        var breakers: [String: CircuitBreaker] = [:]
        var budget = RetryBudget()
    }

    private let state = Mutex(State())
    private let retries = Atomic<Int>(0)
    private let unaffordable = Atomic<Int>(0)
    private let openings = Atomic<Int>(0)
    private let refusals = Atomic<Int>(0)
    private let now: @Sendable () -> UInt64
    private let onReport: @Sendable (ServiceReport) -> Void

    /// Makes the state of a service.
    /// - Parameters:
    ///   - now: the monotonic time in nanoseconds.
    ///   - onReport: called on any loop.
    package init(
        now: @escaping @Sendable () -> UInt64,
        onReport: @escaping @Sendable (ServiceReport) -> Void = { _ in }
    ) {
        self.now = now
        self.onReport = onReport
    }

    package func tell(_ report: ServiceReport) { onReport(report) }

    /// The number of retries since the start.
    package var retryCount: Int { retries.load(ordering: .relaxed) }
    /// The number of retries that the budget did not allow.
    package var unaffordableCount: Int { unaffordable.load(ordering: .relaxed) }
    /// The number of times that a breaker opened.
    package var openingCount: Int { openings.load(ordering: .relaxed) }
    /// The number of fetches that an open breaker refused.
    package var refusalCount: Int { refusals.load(ordering: .relaxed) }

    // MARK: - Retries

    /// Records a first attempt.
    /// - Parameter share: the retries that it earns; nil if retries need no budget.
    func earnRetries(_ share: Double?) {
        guard let share else { return }
        let now = now()
        state.withLock { $0.budget.earn(share, now: now) }
    }

    /// What follows an attempt, of fetches and of demo answers: the decision of the policy and of the caller, then that
    /// of the budget. A retry is counted and reported, and so is one for which the budget has nothing left.
    /// - Parameters:
    ///   - retry: the number of the retry that it would be, 1 for the first.
    ///   - path: the target of the request; what is reported of it has no query, which may hold secrets.
    ///   - hasSentBody: content of the request has been read, and cannot be read again.
    ///   - now: Unix seconds, for a Retry-After that is a date.
    ///   - mayAsk: whether another attempt may be made now.
    func verdict(
        on end: AttemptEnd,
        _ policy: RetryPolicy,
        retry: Int,
        method: Method,
        path: some StringProtocol,
        hasSentBody: Bool,
        now: Int64,
        mayAsk: () -> Bool = { true }
    ) -> RetryVerdict {
        let shown = path.prefix { $0 != "?" }
        let decision = RetryDecision.decide(
            end,
            policy,
            retry: retry,
            method: method,
            path: String(shown),
            hasSentBody: hasSentBody,
            now: now,
            draw: policy.jitter == 0 ? 0 : .random(in: 0...1),
            mayAsk: mayAsk
        )
        guard case .retry(let wait) = decision else { return .final }
        let clock = self.now()
        if policy.budget != nil, let refusal = state.withLock({ $0.budget.refuses(now: clock) }) {
            unaffordable.wrappingAdd(1, ordering: .relaxed)
            let isFirst = refusal == .first
            onReport(
                .retryRefused(
                    method: method.name,
                    path: String(shown),
                    attempts: retry,
                    why: end.text,
                    isFirst: isFirst
                )
            )
            return .unaffordable
        }
        retries.wrappingAdd(1, ordering: .relaxed)
        tell(
            .retrying(
                method: method.name,
                path: String(shown),
                attempt: retry + 1,
                of: policy.count + 1,
                wait: wait,
                why: end.text
            )
        )
        return .retry(after: wait)
    }

    // MARK: - The breaker

    /// The circuit breaker of an origin.
    package func breaker(of origin: String) -> BreakerState {
        let now = now()
        return state.withLock { state in
            switch state.breakers[origin]?.state ?? .closed {
            case .closed: .closed
            case .open(let until): .open(for: until > now ? until - now : 0)
            case .halfOpen: .halfOpen
            }
        }
    }

    /// Whether the breaker would refuse a fetch at present.
    package func leavesAlone(_ origin: String) -> Bool {
        let now = now()
        return state.withLock { $0.breakers[origin]?.refuses(now: now) ?? false }
    }

    /// Asks the breaker for the treatment of a fetch.
    func admit(to origin: String, _ policy: BreakerPolicy) -> CircuitBreaker.Verdict {
        let now = now()
        return state.withLock { $0.breakers[origin]?.admit(now: now, policy) ?? .pass }
    }

    /// Counts a refused fetch.
    func countRefusal() { refusals.wrappingAdd(1, ordering: .relaxed) }

    func succeeded(_ origin: String, isProbe: Bool) {
        // A closed breaker without failures is not kept in the table, which stays small across reloads.
        let hasClosed = state.withLock { state in
            let hasClosed = state.breakers[origin]?.succeeded(isProbe: isProbe) ?? false
            if state.breakers[origin]?.state == .closed { state.breakers[origin] = nil }
            return hasClosed
        }
        if hasClosed { onReport(.breakerClosed(origin: origin)) }
    }

    /// The most origins whose failures are remembered, because clients choose the origins of forward mode. Further
    /// origins are treated as if there were no breaker.
    static let maximumBreakers = 1024

    /// The number of breakers that refuse fetches at present.
    package var openBreakerCount: Int {
        let now = now()
        return state.withLock { $0.breakers.values.count { $0.refuses(now: now) } }
    }

    /// The number of origins whose failures are remembered.
    var breakerCount: Int { state.withLock { $0.breakers.count } }

    func failed(_ origin: String, isProbe: Bool, _ policy: BreakerPolicy) {
        let now = now()
        let hasOpened = state.withLock { state in
            if state.breakers.count >= Self.maximumBreakers, state.breakers[origin] == nil {
                state.breakers = state.breakers.filter { $0.value.refuses(now: now) }
                guard state.breakers.count < Self.maximumBreakers else { return false }
            }
            return state.breakers[origin, default: CircuitBreaker()].failed(isProbe: isProbe, now: now, policy)
        }
        guard hasOpened else { return }
        openings.wrappingAdd(1, ordering: .relaxed)
        onReport(
            .breakerOpened(
                origin: origin,
                failures: isProbe ? 1 : policy.failures,
                duration: policy.pause.wholeNanoseconds
            )
        )
    }

    func probeWasGivenUp(_ origin: String) {
        let now = now()
        state.withLock { $0.breakers[origin]?.probeWasGivenUp(now: now) }
    }
}
