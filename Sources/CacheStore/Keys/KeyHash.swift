// The hash of a cache key: SipHash-1-3 under a secret of this process, so that nobody can choose URLs that collide.

/// The standard library's `Hasher` is the same function, made for values that come in parts; a whole key takes half of its time
/// here.
enum KeyHash {
    /// Drawn when the process asks for the first hash.
    private static let secret = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 { hash(bytes, secret.0, secret.1) }

    static func hash(_ bytes: UnsafeRawBufferPointer, _ first: UInt64, _ second: UInt64) -> UInt64 {
        var state = State(
            v0: first ^ 0x736F_6D65_7073_6575,
            v1: second ^ 0x646F_7261_6E64_6F6D,
            v2: first ^ 0x6C79_6765_6E65_7261,
            v3: second ^ 0x7465_6462_7974_6573
        )
        var position = 0
        while position &+ 8 <= bytes.count {
            // Within bounds, as compared above.
            state.add(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)))
            position &+= 8
        }
        state.add(UInt64(truncatingIfNeeded: bytes.count) &<< 56 | rest(bytes, position))
        return state.end()
    }

    /// The bytes from `start` on, fewer than eight, as the low ones of a word.
    @inline(__always)
    private static func rest(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> UInt64 {
        guard start < bytes.count else { return 0 }
        if bytes.count >= 8 {
            // The last eight bytes are there, and those before `start` are shifted out.
            let word = bytes.loadUnaligned(fromByteOffset: bytes.count &- 8, as: UInt64.self)
            return UInt64(littleEndian: word) &>> UInt64(truncatingIfNeeded: 64 &- 8 &* (bytes.count &- start))
        }
        return bytes[start...].reversed().reduce(0) { $0 &<< 8 | UInt64($1) }
    }

    private struct State {
        var v0, v1, v2, v3: UInt64

        @inline(__always)
        mutating func add(_ word: UInt64) {
            v3 ^= word
            round()
            v0 ^= word
        }

        @inline(__always)
        mutating func end() -> UInt64 {
            v2 ^= 0xFF
            round()
            round()
            round()
            return v0 ^ v1 ^ v2 ^ v3
        }

        @inline(__always)
        private mutating func round() {
            v0 &+= v1
            v1 = rotated(v1, 13) ^ v0
            v0 = rotated(v0, 32)
            v2 &+= v3
            v3 = rotated(v3, 16) ^ v2
            v0 &+= v3
            v3 = rotated(v3, 21) ^ v0
            v2 &+= v1
            v1 = rotated(v1, 17) ^ v2
            v2 = rotated(v2, 32)
        }

        @inline(__always)
        private func rotated(_ word: UInt64, _ bits: UInt64) -> UInt64 { word &<< bits | word &>> (64 &- bits) }
    }
}
