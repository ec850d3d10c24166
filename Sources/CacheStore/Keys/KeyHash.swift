// The hash of a cache key: SipHash-1-3 under a secret of this process, so that nobody can choose URLs that collide.

/// The standard library's `Hasher` is the same function, made for values that come in parts; a whole key
/// takes half of its time here.
enum KeyHash {
    /// Drawn when the process asks for the first hash.
    private static let secret = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 { hash(bytes, secret.0, secret.1) }

    static func hash(_ bytes: UnsafeRawBufferPointer, _ first: UInt64, _ second: UInt64) -> UInt64 {
        var hash = SipHash<QuickRounds>(first, second)
        hash.add(bytes)
        return hash.end()
    }
}
