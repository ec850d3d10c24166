// Cache-Status of a hit as bytes, for the path on which nothing may be allocated.

internal import HTTPWire

/// Writes `NAME; hit; ttl=N; detail=WHERE` for one cache name and one detail.
package struct HitStatus: Sendable {
    private let prefix: [UInt8]
    private let suffix: [UInt8]

    /// The most bytes that `write` fills.
    package let maximumLength: Int

    package init(cacheName: String, detail: CacheStatus.Detail) {
        prefix = Array((CacheStatus(cacheName: cacheName, hit: true).value + "; ttl=").utf8)
        suffix = Array("; detail=\(detail.rawValue)".utf8)
        // The longest Int64 has 20 characters.
        maximumLength = prefix.count + 20 + suffix.count
    }

    /// Writes the value at the start of `buffer` and answers its length; 0, and nothing written, where `buffer` is smaller
    /// than `maximumLength`. `ttl` is in seconds. Allocates nothing.
    package func write(ttl: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard buffer.count >= maximumLength else { return 0 }
        buffer.copyBytes(from: prefix)
        let offset = Serializer.appendDecimal(ttl, into: buffer, at: prefix.count)
        // Within bounds: maximumLength counts prefix, the longest number and suffix.
        UnsafeMutableRawBufferPointer(rebasing: buffer[offset...]).copyBytes(from: suffix)
        return offset + suffix.count
    }
}
