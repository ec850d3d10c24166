// The name of a draw: enough of it to draw the same once more.

/// Which request of which key a draw was for, such as `9f3a01c2b4d5e6f7.12`: the key's digest with sixteen hexadecimal
/// digits, and the number of the request among those with this key, from 1.
///
/// Together with a rule and its seed it gives the whole draw, without the request.
package struct DrawName: Sendable, Hashable, CustomStringConvertible {
    package let key: DrawKey
    /// From 0.
    package let ordinal: UInt64

    package init(_ key: DrawKey, ordinal: UInt64) {
        self.key = key
        self.ordinal = ordinal
    }

    /// - Returns: nil for what is not the name of a draw.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 16, parts[1].utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
            parts[0].utf8.first != UInt8(ascii: "+"), let digest = UInt64(parts[0], radix: 16),
            let number = UInt64(parts[1]), number > 0
        else { return nil }
        self.init(DrawKey(digest: digest), ordinal: number - 1)
    }

    /// Of the first request of a key whose digest is 0: what stands in prepared answers until they are sent.
    package static let blank = DrawName(DrawKey(digest: 0), ordinal: 0)

    package var description: String {
        let digits = String(key.digest, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits + ".\(ordinal &+ 1)"
    }
}
