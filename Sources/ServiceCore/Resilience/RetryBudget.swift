// How many retries an origin may get: a share of its requests, so that its failing does not double its load.

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
