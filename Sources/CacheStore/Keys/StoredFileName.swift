// SipHash-2-4 with 128 bits: the names of stored files, keyed by a secret of the folder so that nobody can choose them.

/// A key that the folder keeps.
public struct StoredFileNameKey: Sendable, Equatable {
    public var low: UInt64
    public var high: UInt64

    public init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }

    /// Tells it from another without giving it away.
    public var stamp: Int64 { Int64(bitPattern: StoredFileName(Array("stamp".utf8), key: self).low) }
}

/// The name of a stored file: 16 bytes. The table of open files compares and hashes it, for each hit.
public struct StoredFileName: Hashable, Sendable, CustomStringConvertible {
    public var high: UInt64
    public var low: UInt64

    @inlinable
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// The keyed hash of some bytes.
    public init(_ bytes: [UInt8], key: StoredFileNameKey) {
        self = bytes.withUnsafeBytes { StoredFileName($0, key: key) }
    }

    /// The same. No allocation.
    public init(_ bytes: UnsafeRawBufferPointer, key: StoredFileNameKey) {
        var hash = SipHash<FullRounds>(key.low, key.high, isWide: true)
        hash.add(bytes)
        (high, low) = hash.end128()
    }

    /// From 32 hexadecimal digits.
    public init?(hex: String) {
        guard hex.utf8.count == 32, let high = UInt64(hex.prefix(16), radix: 16),
            let low = UInt64(hex.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    @inlinable
    public static func == (left: StoredFileName, right: StoredFileName) -> Bool {
        left.low == right.low && left.high == right.high
    }

    @inlinable
    public func hash(into hasher: inout Hasher) {
        hasher.combine(high)
        hasher.combine(low)
    }

    /// 32 hexadecimal digits.
    public var description: String { Self.hex(high) + Self.hex(low) }

    /// Two folder levels, then the whole name.
    public var relativePath: String {
        let name = description
        return "\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name)"
    }

    private static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
