// The circuit breaker of an origin, and how it hears, with others, of the end of each fetch.

import EventLoop
package import Policies
import Upstream

/// Closed, every fetch goes to the origin. After failures in a row it is open, and none does. After a while it is
/// half-open: one fetch probes the origin, and its outcome closes the breaker or opens it again.
///
///     closed ──failures in a row within the window──▶ open ──time──▶ half-open
///       ▲                                              ▲                │
///       └──────────────the probe succeeded─────────────┼────────────────┤
///                                                      └─it failed──────┘
package struct CircuitBreaker: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        case closed
        /// Until a time on the monotonic clock, in nanoseconds.
        case open(until: UInt64)
        /// A probe is under way; if nobody has heard of it until then, the next fetch is one.
        case halfOpen(until: UInt64)
    }

    /// What a fetch may do.
    package enum Verdict: Sendable, Equatable {
        case pass
        /// It is the probe: its outcome is to be told as that of one.
        case probe
        /// The origin is left alone.
        case refuse
    }

    package private(set) var state = State.closed
    /// When the last failures in a row came.
    private var failures: [UInt64] = []

    package init() {}

    /// Asks for a fetch.
    /// - Parameter now: monotonic nanoseconds.
    package mutating func admit(now: UInt64, _ policy: BreakerPolicy) -> Verdict {
        guard !refuses(now: now) else { return .refuse }
        if state == .closed { return .pass }
        state = .halfOpen(until: now &+ policy.open)
        return .probe
    }

    /// Whether a fetch would be refused, as it stands.
    package func refuses(now: UInt64) -> Bool {
        switch state {
        case .closed: false
        case .open(let until), .halfOpen(let until): now < until
        }
    }

    private var isHalfOpen: Bool {
        if case .halfOpen = state { true } else { false }
    }

    /// A fetch got an answer that is no failure.
    /// - Returns: whether the breaker closed by it.
    package mutating func succeeded(isProbe: Bool) -> Bool {
        // A fetch from before the opening says nothing about the origin of now.
        guard state == .closed || isProbe && isHalfOpen else { return false }
        let wasOpen = state != .closed
        state = .closed
        failures = []
        return wasOpen
    }

    /// A fetch failed.
    /// - Returns: whether the breaker opened by it.
    package mutating func failed(isProbe: Bool, now: UInt64, _ policy: BreakerPolicy) -> Bool {
        switch state {
        case .open: return false
        case .halfOpen:
            guard isProbe else { return false }
        case .closed:
            failures.append(now)
            if failures.count > policy.failures { failures.removeFirst(failures.count - policy.failures) }
            // Loops read the clock before they get here, and may come in another order.
            guard failures.count == policy.failures, let first = failures.min(), now < first + policy.window
            else { return false }
        }
        failures = []
        state = .open(until: now &+ policy.open)
        return true
    }

    /// The probe ended without an outcome, since nobody waited for it any more: the next fetch is one.
    package mutating func probeWasGivenUp(now: UInt64) {
        if isHalfOpen { state = .open(until: now) }
    }
}

/// Loop-bound. A class, so that a fetch of a service without all three pays for one reference that is nil.
final class OriginWatch {
    private let resilience: Resilience
    private let origin: String
    /// Nil where the service has no breaker.
    private let policy: BreakerPolicy?
    /// Nil where the service parks no calls.
    private let parked: ParkedCalls?
    private let isProbe: Bool
    /// Who learns how long the origin takes.
    private let learners: [LearnedLatency]
    /// Monotonic nanoseconds; 0 where nobody learns.
    private let began: UInt64

    /// Nil where the breaker refuses the fetch.
    init?(
        _ resilience: Resilience,
        _ origin: String,
        _ policy: BreakerPolicy?,
        _ parked: ParkedCalls?,
        _ learners: [LearnedLatency]
    ) {
        switch policy.map({ resilience.admit(to: origin, $0) }) ?? .pass {
        case .pass: isProbe = false
        case .probe: isProbe = true
        case .refuse: return nil
        }
        self.resilience = resilience
        self.origin = origin
        self.policy = policy
        self.parked = parked
        self.learners = learners
        began = learners.isEmpty ? 0 : Monotonic.now()
    }

    /// A final head came. The three statuses of a gateway say that the origin is not there (RFC 9110 section 15.6).
    func answered(_ status: Int) {
        if !learners.isEmpty {
            let now = Monotonic.now()
            for learner in learners { learner.record(now &- began) }
        }
        if 502...504 ~= status {
            if let policy { resilience.failed(origin, isProbe: isProbe, policy) }
        } else {
            if policy != nil { resilience.succeeded(origin, isProbe: isProbe) }
            parked?.originAnswered()
        }
    }

    /// There was no answer.
    func failed(_ error: UpstreamError) {
        switch error.kind {
        // They say nothing about the origin.
        case .proxy(let status?) where status < 500 || status == 508: givenUp()
        case .request, .requestBody, .addressRefused, .tlsFile, .cancelled, .internal: givenUp()
        default: if let policy { resilience.failed(origin, isProbe: isProbe, policy) }
        }
    }

    /// Nobody waits for the fetch any more.
    func givenUp() {
        if isProbe { resilience.probeWasGivenUp(origin) }
    }
}

@available(*, unavailable) extension OriginWatch: Sendable {}
