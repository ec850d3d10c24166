// SipHash-2-4 with 128 bits: the names of stored files, keyed by a secret of the folder so that nobody can choose them.

/// A key that the folder keeps.
struct StoredFileNameKey: Sendable, Equatable {
    var low: UInt64
    var high: UInt64

    /// Tells it from another without giving it away.
    var stamp: Int64 { Int64(bitPattern: StoredFileName(Array("stamp".utf8), key: self).low) }
}

/// The name of a stored file.
struct StoredFileName: Hashable, Sendable, CustomStringConvertible {
    var high: UInt64
    var low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    init(_ bytes: [UInt8], key: StoredFileNameKey) { self = bytes.withUnsafeBytes { StoredFileName($0, key: key) } }

    init(_ bytes: UnsafeRawBufferPointer, key: StoredFileNameKey) {
        var hash = SipHash<FullRounds>(key.low, key.high, isWide: true)
        hash.add(bytes)
        (high, low) = hash.end128()
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
