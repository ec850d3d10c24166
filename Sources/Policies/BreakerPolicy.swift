// When an origin that fails is left alone for a while.

/// When the circuit breaker of an origin opens, and for how long.
package struct BreakerPolicy: Sendable, Equatable {
    /// Failures in a row that open it, at least 1.
    package var failures: Int
    /// Nanoseconds within which they must come.
    package var window: UInt64
    /// Nanoseconds that it stays open before one request may probe the origin.
    package var open: UInt64

    package init(failures: Int = 5, window: UInt64 = 10_000_000_000, open: UInt64 = 30_000_000_000) {
        self.failures = failures
        self.window = window
        self.open = open
    }
}
