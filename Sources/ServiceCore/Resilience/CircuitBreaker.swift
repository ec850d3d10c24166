// The circuit breaker of an origin as a value: closed, open, or half-open with one probe under way.

package import Policies

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
