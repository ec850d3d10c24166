// How many interim responses (1xx) one request may be answered with, on whatever way it goes.

/// Without a bound, an origin that never comes to the final response fills the memory.
package enum InterimBound {
    package static let mostHeads = 100
    /// Of all their heads together.
    package static let mostBytes = 256 << 10
}
