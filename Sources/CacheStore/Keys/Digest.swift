// SipHash-2-4 with 128 bits: the names of stored files, keyed by a secret of the folder so that nobody can choose them.

/// A key that the folder keeps.
struct DigestKey: Sendable, Equatable {
    var low: UInt64
    var high: UInt64

    /// Tells it from another without giving it away.
    var stamp: Int64 { Int64(bitPattern: Digest(Array("stamp".utf8), key: self).low) }
}

/// The name of a stored file.
struct Digest: Hashable, Sendable, CustomStringConvertible {
    var high: UInt64
    var low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    init(_ bytes: [UInt8], key: DigestKey) { self = bytes.withUnsafeBytes { Digest($0, key: key) } }

    init(_ bytes: UnsafeRawBufferPointer, key: DigestKey) {
        var state = SipState(key)
        let whole = bytes.count / 8 * 8
        for start in stride(from: 0, to: whole, by: 8) {
            state.absorb(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)))
        }
        var last = UInt64(truncatingIfNeeded: bytes.count) << 56
        for offset in 0..<(bytes.count - whole) { last |= UInt64(bytes[whole + offset]) << UInt64(8 * offset) }
        state.absorb(last)
        (high, low) = state.finish()
    }

    /// From 32 hexadecimal digits.
    init?(hex: String) {
        guard hex.utf8.count == 32, let high = UInt64(hex.prefix(16), radix: 16),
            let low = UInt64(hex.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    var description: String { Self.hex(high) + Self.hex(low) }

    /// Two folder levels, then the whole name.
    var relativePath: String {
        let name = description
        return "\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name)"
    }

    private static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

private struct SipState {
    var v0, v1, v2, v3: UInt64

    init(_ key: DigestKey) {
        v0 = key.low ^ 0x736f_6d65_7073_6575
        v1 = key.high ^ 0x646f_7261_6e64_6f6d ^ 0xee
        v2 = key.low ^ 0x6c79_6765_6e65_7261
        v3 = key.high ^ 0x7465_6462_7974_6573
    }

    mutating func absorb(_ word: UInt64) {
        v3 ^= word
        round()
        round()
        v0 ^= word
    }

    mutating func finish() -> (UInt64, UInt64) {
        v2 ^= 0xee
        for _ in 0..<4 { round() }
        let first = v0 ^ v1 ^ v2 ^ v3
        v1 ^= 0xdd
        for _ in 0..<4 { round() }
        return (first, v0 ^ v1 ^ v2 ^ v3)
    }

    private mutating func round() {
        v0 &+= v1
        v1 = Self.rotate(v1, 13) ^ v0
        v0 = Self.rotate(v0, 32)
        v2 &+= v3
        v3 = Self.rotate(v3, 16) ^ v2
        v0 &+= v3
        v3 = Self.rotate(v3, 21) ^ v0
        v2 &+= v1
        v1 = Self.rotate(v1, 17) ^ v2
        v2 = Self.rotate(v2, 32)
    }

    private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 { value << bits | value >> (64 - bits) }
}
