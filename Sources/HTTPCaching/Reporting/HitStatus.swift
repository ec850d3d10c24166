// What a hit says of itself as bytes, for the path on which nothing may be allocated.

import HTTPWire

/// Writes the lines `Age: N` and `Cache-Status: NAME; hit; ttl=N; detail=WHERE` for one cache name and one detail.
package struct HitStatus: Sendable {
    private static let first = Array("Age: ".utf8)
    /// From the age to the number of seconds that are left; the value of Cache-Status begins at `valueStart` there.
    private let middle: [UInt8]
    private let valueStart: Int
    /// From there to the end of the line.
    private let last: [UInt8]

    /// The most bytes that `write` fills.
    package let maximumLength: Int

    package init(cacheName: String, detail: CacheStatus.Detail) {
        let name = Array("\r\nCache-Status: ".utf8)
        middle = name + Array((CacheStatus(cacheName: cacheName, hit: true).value + "; ttl=").utf8)
        valueStart = name.count
        last = Array("; detail=\(detail.rawValue)\r\n".utf8)
        // The longest Int64 has 20 characters.
        maximumLength = Self.first.count + 20 + middle.count + 20 + last.count
    }

    /// Writes the lines at the start of `buffer`. Allocates nothing.
    /// - Parameters:
    ///   - age: in seconds, as `ttl` is.
    ///   - buffer: where it is smaller than `maximumLength`, nothing is written.
    /// - Returns: how many bytes they are, and which of them are the value of Cache-Status.
    package func write(
        age: Int64,
        ttl: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> (count: Int, value: Range<Int>) {
        guard buffer.count >= maximumLength, let start = buffer.baseAddress else { return (0, 0..<0) }
        // Within bounds: maximumLength counts all parts, and the longest numbers.
        var end = Self.copy(Self.first, to: start, 0)
        end = Serializer.appendDecimal(age, into: buffer, at: end)
        let value = end &+ valueStart
        end = Self.copy(middle, to: start, end)
        end = Serializer.appendDecimal(ttl, into: buffer, at: end)
        end = Self.copy(last, to: start, end)
        // Without the end of the line.
        return (end, value..<end &- 2)
    }

    @inline(__always)
    private static func copy(_ part: [UInt8], to start: UnsafeMutableRawPointer, _ offset: Int) -> Int {
        part.withUnsafeBytes { part in
            if let source = part.baseAddress { (start + offset).copyMemory(from: source, byteCount: part.count) }
        }
        return offset &+ part.count
    }
}
