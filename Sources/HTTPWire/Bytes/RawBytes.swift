// Small views over raw bytes that several scanners share: parts, trimming, comparison without case, list members.

import Glibc

extension UnsafeRawBufferPointer {
    /// The bytes of the range as a buffer of its own; an empty buffer where the range does not lie inside.
    @inlinable @inline(__always)
    public func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        guard range.lowerBound >= 0, range.upperBound <= count else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(rebasing: self[range])
    }

    /// Without SP and HTAB at both ends (OWS, RFC 9110 section 5.6.3).
    public func trimmingWhitespace() -> UnsafeRawBufferPointer {
        var start = 0
        var end = count
        while start < end, self[start] == 0x20 || self[start] == 0x09 { start += 1 }
        while end > start, self[end - 1] == 0x20 || self[end - 1] == 0x09 { end -= 1 }
        return part(start..<end)
    }

    /// Whether both hold the same bytes.
    public func holdsSame(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        // One without a base is empty.
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }

    /// Whether these are just those bytes.
    @inlinable @inline(__always)
    public func holds(_ bytes: [UInt8]) -> Bool { count == bytes.count && begins(with: bytes) }

    /// Whether those bytes come first here.
    public func begins(with bytes: [UInt8]) -> Bool {
        guard let base = baseAddress, count >= bytes.count else { return bytes.isEmpty }
        return bytes.withUnsafeBytes { wanted in
            // Both lengths have been compared above.
            wanted.baseAddress.map { memcmp(base, $0, wanted.count) == 0 } ?? true
        }
    }

    /// Whether both hold the same bytes but for the case of ASCII letters.
    public func equalsIgnoringCase(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        for position in 0..<count where ByteClass.lower(self[position]) != ByteClass.lower(other[position]) {
            return false
        }
        return true
    }

    /// Whether these are the bytes of an ASCII word, but for the case of letters.
    public func equalsIgnoringCase(_ word: StaticString) -> Bool {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        equalsIgnoringCase(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Calls `body` for each member of a comma-separated list, trimmed, empty ones included (RFC 9110 section
    /// 5.6.1); no quoted strings.
    public func forEachMember(_ body: (UnsafeRawBufferPointer) -> Void) {
        var start = 0
        for position in 0...count where position == count || self[position] == 0x2C {
            body(part(start..<position).trimmingWhitespace())
            start = position + 1
        }
    }
}
