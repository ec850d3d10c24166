// Whether calls wait for an origin that is away, and for how long.

/// The bounds of the calls of one service that wait for its origin.
package struct ParkPolicy: Sendable, Equatable {
    /// Nanoseconds that a call may wait in all.
    package var time: UInt64
    /// Calls that may wait at the same time, at least 1.
    package var calls: Int
    /// Bytes that they may take together: heads, contents, and 32 KiB for each call.
    package var size: Int

    package init(time: UInt64, calls: Int = 1000, size: Int = 64 << 20) {
        self.time = time
        self.calls = calls
        self.size = size
    }
}
