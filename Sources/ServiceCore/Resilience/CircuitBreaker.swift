// The circuit breaker of an origin, and the report of each fetch's end to it and to others.

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
        /// The breaker is open until a monotonic time in nanoseconds.
        case open(until: UInt64)
        /// A probe is under way; if it has no result until then, the next fetch is a probe.
        case halfOpen(until: UInt64)
    }

    /// The treatment of a fetch.
    package enum Verdict: Sendable, Equatable {
        case pass
        /// The fetch is the probe, and its outcome is reported as one.
        case probe
        /// The origin is left alone.
        case refuse
    }

    package private(set) var state = State.closed
    /// The times of the last failures in a row.
    private var failures: [UInt64] = []

    package init() {}

    /// Asks for the treatment of a fetch.
    /// - Parameter now: the monotonic time in nanoseconds.
    package mutating func admit(now: UInt64, _ policy: BreakerPolicy) -> Verdict {
        guard !refuses(now: now) else { return .refuse }
        if state == .closed { return .pass }
        state = .halfOpen(until: now &+ policy.pause.wholeNanoseconds)
        return .probe
    }

    /// Whether a fetch would be refused at present.
    package func refuses(now: UInt64) -> Bool {
        switch state {
        case .closed: false
        case .open(let until), .halfOpen(let until): now < until
        }
    }

    private var isHalfOpen: Bool {
        if case .halfOpen = state { true } else { false }
    }

    /// Records an answer that is no failure.
    /// - Returns: whether it closed the breaker.
    package mutating func succeeded(isProbe: Bool) -> Bool {
        // A fetch that began before the breaker opened says nothing about the present state of the origin.
        guard state == .closed || isProbe && isHalfOpen else { return false }
        let wasOpen = state != .closed
        state = .closed
        failures = []
        return wasOpen
    }

    /// Records a failed fetch.
    /// - Returns: whether it opened the breaker.
    package mutating func failed(isProbe: Bool, now: UInt64, _ policy: BreakerPolicy) -> Bool {
        switch state {
        case .open: return false
        case .halfOpen:
            guard isProbe else { return false }
        case .closed:
            failures.append(now)
            if failures.count > policy.failures { failures.removeFirst(failures.count - policy.failures) }
            // Loops read the clock before they get here, and may come in another order.
            guard failures.count == policy.failures, let first = failures.min(),
                now < first + policy.window.wholeNanoseconds
            else { return false }
        }
        failures = []
        state = .open(until: now &+ policy.pause.wholeNanoseconds)
        return true
    }

    /// Records that the probe was abandoned without an outcome: the next fetch is a probe.
    package mutating func probeWasGivenUp(now: UInt64) {
        if isHalfOpen { state = .open(until: now) }
    }
}

/// Reports the end of a fetch to the breaker, to parked calls, and to those that learn latencies. Loop-bound. It is a
/// class so that a fetch of a service without all three has only one nil reference.
final class OriginWatch {
    private let resilience: Resilience
    private let origin: String
    /// The policy of the breaker; nil for none.
    private let policy: BreakerPolicy?
    /// The parked calls of the service; nil if it parks none.
    private let parked: ParkedCalls?
    private let isProbe: Bool
    /// The learners of the origin's latency.
    private let learners: [LearnedLatency]
    /// The beginning of the fetch in monotonic nanoseconds; 0 if nothing learns latencies.
    private let began: UInt64

    /// Makes a watch; nil if the breaker refuses the fetch.
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

    /// Reports a final head. The three statuses of a gateway mean that the origin is away (RFC 9110 section 15.6).
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

    /// Reports a fetch without an answer.
    func failed(_ error: UpstreamError) {
        switch error.kind {
        // These errors say nothing about the origin.
        case .proxy(let status?) where status < 500 || status == 508: givenUp()
        case .request, .requestBody, .addressRefused, .tlsFile, .cancelled, .internal: givenUp()
        default: if let policy { resilience.failed(origin, isProbe: isProbe, policy) }
        }
    }

    /// Reports that the fetch was abandoned.
    func givenUp() {
        if isProbe { resilience.probeWasGivenUp(origin) }
    }
}

@available(*, unavailable) extension OriginWatch: Sendable {}
