// What a service does about an origin that fails, across reloads: the circuit breakers, the budget of
// retries, and what is counted.

import HTTPWire
import Policies
import Synchronization

/// Something that an operator may want to read of.
package enum ServiceReport: Sendable, Equatable {
    /// - `wait`: nanoseconds before the attempt.
    case retrying(method: String, path: String, attempt: Int, of: Int, wait: UInt64, why: String)
    /// Another attempt was due, and the budget had none left.
    /// - `isFirst`: it had one left the time before.
    case retryRefused(method: String, path: String, attempts: Int, why: String, isFirst: Bool)
    /// - `duration`: nanoseconds until a request may probe the origin.
    case breakerOpened(origin: String, failures: Int, duration: UInt64)
    case breakerClosed(origin: String)
    /// - `time`: nanoseconds that the call may wait.
    case parked(method: String, path: String, id: UInt64, time: UInt64, why: String)
    case notParked(method: String, path: String, why: ParkRefusal)
    /// - `waited`: nanoseconds since the call was parked, as in the next case.
    case replayed(method: String, path: String, id: UInt64, waited: UInt64)
    case parkExpired(method: String, path: String, id: UInt64, waited: UInt64)
    /// A client has come back before the time that it was told.
    /// - `wait`: seconds that are left of it.
    case cameEarly(client: String, quota: String, wait: Int64)

    /// One line.
    /// - Parameter service: empty for forward mode.
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

    /// A retry is ordinary, a budget of them that is used up is not, nor is an origin that is left alone, nor a call that
    /// waits for it in vain.
    package var isWarning: Bool {
        switch self {
        case .breakerOpened, .parkExpired, .notParked: true
        case .retryRefused(method: _, path: _, attempts: _, why: _, let isFirst): isFirst
        case .retrying, .breakerClosed, .parked, .replayed, .cameEarly: false
        }
    }
}

/// One service's.
///
/// Sendable: breakers and budget are under one mutex, which is held for a few instructions; the counters are atomic.
package final class Resilience: Sendable {
    /// The circuit breaker as `drydock status` and the metrics show it.
    package enum BreakerState: Sendable, Equatable {
        case closed
        /// For so many nanoseconds still.
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
        /// By origin: a reload may name another one, while fetches of the old plan are under way.
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

    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - onReport: called on any loop.
    package init(
        now: @escaping @Sendable () -> UInt64,
        onReport: @escaping @Sendable (ServiceReport) -> Void = { _ in }
    ) {
        self.now = now
        self.onReport = onReport
    }

    package func tell(_ report: ServiceReport) { onReport(report) }

    /// Retries since the start.
    package var retryCount: Int { retries.load(ordering: .relaxed) }
    /// Retries that the budget had nothing left for.
    package var unaffordableCount: Int { unaffordable.load(ordering: .relaxed) }
    /// How often the breaker opened.
    package var openingCount: Int { openings.load(ordering: .relaxed) }
    /// Fetches that an open breaker refused.
    package var refusalCount: Int { refusals.load(ordering: .relaxed) }

    // MARK: - Retries

    /// A first attempt is made.
    /// - Parameter share: nil: its retries need no budget.
    func earnRetries(_ share: Double?) {
        guard let share else { return }
        let now = now()
        state.withLock { $0.budget.earn(share, now: now) }
    }

    /// Takes a retry out of the budget, where the policy has one, and reports where none is left.
    /// - Parameters:
    ///   - attempts: how many there were.
    ///   - why: what the last one ended with.
    func takeRetry(_ policy: RetryPolicy, method: Method, path: some StringProtocol, attempts: Int, why: String)
        -> Bool
    {
        let now = now()
        let refusal = policy.budget == nil ? nil : state.withLock { $0.budget.refuses(now: now) }
        guard let refusal else {
            retries.wrappingAdd(1, ordering: .relaxed)
            return true
        }
        unaffordable.wrappingAdd(1, ordering: .relaxed)
        onReport(
            .retryRefused(
                method: method.name,
                // A query may hold secrets.
                path: String(path.prefix { $0 != "?" }),
                attempts: attempts,
                why: why,
                isFirst: refusal == .first
            )
        )
        return false
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

    /// Whether the breaker would refuse a fetch, as it stands.
    package func leavesAlone(_ origin: String) -> Bool {
        let now = now()
        return state.withLock { $0.breakers[origin]?.refuses(now: now) ?? false }
    }

    /// Asks for a fetch.
    func admit(to origin: String, _ policy: BreakerPolicy) -> CircuitBreaker.Verdict {
        let now = now()
        return state.withLock { $0.breakers[origin]?.admit(now: now, policy) ?? .pass }
    }

    /// A fetch was refused.
    func countRefusal() { refusals.wrappingAdd(1, ordering: .relaxed) }

    func succeeded(_ origin: String, isProbe: Bool) {
        // One that is closed and has seen no failure needs no place in the table, which keeps it small across reloads.
        let hasClosed = state.withLock { state in
            let hasClosed = state.breakers[origin]?.succeeded(isProbe: isProbe) ?? false
            if state.breakers[origin]?.state == .closed { state.breakers[origin] = nil }
            return hasClosed
        }
        if hasClosed { onReport(.breakerClosed(origin: origin)) }
    }

    /// The origins of which failures are remembered at the same time: in forward mode it is for clients to say which
    /// there are. Those beyond are asked as if there were no breaker.
    static let maximumBreakers = 1024

    /// Circuit breakers that refuse fetches now.
    package var openBreakerCount: Int {
        let now = now()
        return state.withLock { $0.breakers.values.count { $0.refuses(now: now) } }
    }

    /// Origins of which failures are remembered.
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
        onReport(.breakerOpened(origin: origin, failures: isProbe ? 1 : policy.failures, duration: policy.open))
    }

    func probeWasGivenUp(_ origin: String) {
        let now = now()
        state.withLock { $0.breakers[origin]?.probeWasGivenUp(now: now) }
    }
}
