// How many interim responses (1xx) one request may be answered with, on whatever way it goes.

/// What has come of them so far: without a bound, an origin that never comes to the final one fills the memory.
package struct InterimBound: Sendable {
    package static let mostHeads = 100
    /// Of all their heads together.
    package static let mostBytes = 256 << 10

    private var heads = 0
    private var bytes = 0

    package init() {}

    /// Counts one more.
    /// - Parameter length: of its head, in bytes.
    /// - Throws: `tooManyInterims`, with status 502.
    package mutating func take(length: Int) throws(WireError) {
        heads += 1
        bytes += length
        guard heads <= Self.mostHeads, bytes <= Self.mostBytes else {
            throw WireError(.tooManyInterims, side: .response, offset: bytes)
        }
    }
}
