// How requests share a fetch, and what becomes of it when nobody waits for it any more.

/// How requests for one key wait for each other.
package struct CollapseLimits: Sendable, Equatable {
    /// How long a request waits for the head of another's fetch, in nanoseconds; then it fetches for itself.
    package var wait: UInt64
    /// How many wait; the next fetches for itself.
    package var waiters: Int

    package init(wait: UInt64 = 30_000_000_000, waiters: Int = 10_000) {
        self.wait = wait
        self.waiters = waiters
    }
}

/// What happens to a shared fetch when its last client has left.
package enum ClientAbort: Sendable, Equatable {
    /// It continues, for later requests.
    case finish
    /// It ends.
    case abort
    /// It continues where at least this share of the body has arrived, 0 to 1; it ends where less has, or
    /// where the length is unknown.
    case finishIf(Double)

    /// - Parameters:
    ///   - received: bytes of the body so far.
    ///   - length: of the whole body; nil where it is unknown.
    package func goesOn(received: Int64, length: Int64?) -> Bool {
        switch self {
        case .finish: true
        case .abort: false
        case .finishIf(let share): length.map { Double(received) >= share * Double($0) } ?? false
        }
    }
}
