// The circuit breaker of an origin as a value: closed, open, or half-open with one probe under way.

package import Policies

/// Closed, every fetch goes to the origin. After failures in a row it is open, and none does. After a while it is half-open: one fetch
/// probes the origin, and its outcome closes the breaker or opens it again.
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
        /// A probe is under way.
        case halfOpen
    }

    /// What a fetch may do.
    package enum Verdict: Sendable, Equatable {
        case pass
        /// It is the probe: its outcome is to be told as that of one.
        case probe
        /// The origin is left alone, for so many nanoseconds still; 0 while a probe is under way.
        case refuse(for: UInt64)
    }

    package private(set) var state = State.closed
    /// Failures in a row, and when the first of them came.
    private var failures = 0
    private var firstFailure: UInt64 = 0

    package init() {}

    /// Asks for a fetch.
    /// - Parameter now: monotonic nanoseconds.
    package mutating func admit(now: UInt64) -> Verdict {
        switch state {
        case .closed: return .pass
        case .halfOpen: return .refuse(for: 0)
        case .open(let until):
            guard now >= until else { return .refuse(for: until - now) }
            state = .halfOpen
            return .probe
        }
    }

    /// A fetch got an answer that is no failure.
    /// - Returns: whether the breaker closed by it.
    package mutating func succeeded(isProbe: Bool) -> Bool {
        // A fetch from before the opening says nothing about the origin of now.
        guard state == .closed || isProbe && state == .halfOpen else { return false }
        let wasOpen = state != .closed
        state = .closed
        failures = 0
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
            if failures == 0 || now &- firstFailure > policy.window { (failures, firstFailure) = (0, now) }
            failures += 1
            guard failures >= policy.failures else { return false }
        }
        failures = 0
        state = .open(until: now &+ policy.open)
        return true
    }

    /// The probe ended without an outcome, since nobody waited for it any more: the next fetch is one.
    package mutating func probeWasGivenUp(now: UInt64) {
        if state == .halfOpen { state = .open(until: now) }
    }
}
