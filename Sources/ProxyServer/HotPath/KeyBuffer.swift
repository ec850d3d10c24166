// The cache key of a request as bytes, put together without an allocation.

import HTTPWire

/// A cache key being put together.
struct KeyBuffer {
    // A part of the hot path's scratch memory, `capacity` bytes.
    private let start: UnsafeMutableRawPointer
    private let capacity: Int
    private var count = 0

    init(_ start: UnsafeMutableRawPointer, _ capacity: Int) {
        self.start = start
        self.capacity = capacity
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// False if the key does not fit.
    mutating func append(_ part: UnsafeRawBufferPointer) -> Bool {
        guard let source = part.baseAddress else { return true }
        guard part.count <= capacity &- count else { return false }
        (start + count).copyMemory(from: source, byteCount: part.count)
        count &+= part.count
        return true
    }

    mutating func append(_ part: [UInt8]) -> Bool { part.withUnsafeBytes { append($0) } }

    mutating func append(_ part: String) -> Bool {
        for byte in part.utf8 where !append(byte) { return false }
        return true
    }

    mutating func append(_ byte: UInt8) -> Bool { withUnsafeBytes(of: byte) { append($0) } }
}
