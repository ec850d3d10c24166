// Bytes that depend on their position, made and checked on the fly, so that bodies of any size need no memory.

import Foundation

/// An endless, reproducible sequence of bytes with a prime period, so that misplaced bytes show.
package enum Pattern {
    private static let period = 65_537
    private static let largest = 262_144

    // Holds the period often enough that any piece of up to `largest` bytes is contiguous in it.
    private static let table: [UInt8] = {
        var state: UInt32 = 0x9E37_79B9
        let once = (0..<period).map { _ -> UInt8 in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(truncatingIfNeeded: state >> 24)
        }
        var bytes = [UInt8]()
        while bytes.count < period + largest { bytes += once }
        return bytes
    }()

    /// Calls `body` with the bytes at `offset`, at most `count` of them and at most 256 KiB; returns its result.
    package static func withPiece<Result>(
        at offset: Int,
        count: Int,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        let start = offset % period
        return try table.withUnsafeBytes { bytes in
            try body(UnsafeRawBufferPointer(rebasing: bytes[start..<(start + min(count, largest))]))
        }
    }

    /// Whether `bytes` are the sequence's bytes at `offset`.
    package static func matches(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        var done = 0
        while done < bytes.count {
            let piece = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let (count, equal) = withPiece(at: offset + done, count: piece.count) { expected in
                guard let left = piece.baseAddress, let right = expected.baseAddress else { return (1, false) }
                return (expected.count, memcmp(left, right, expected.count) == 0)
            }
            if !equal { return false }
            done += count
        }
        return true
    }

    /// The bytes of a range, in memory.
    package static func bytes(_ range: Range<Int>) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(range.count)
        while bytes.count < range.count {
            withPiece(at: range.lowerBound + bytes.count, count: range.count - bytes.count) { bytes += $0 }
        }
        return bytes
    }
}
