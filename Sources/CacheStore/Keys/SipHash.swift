// SipHash with a selectable number of rounds, and the names of stored files, which are made with it.

/// The number of rounds.
protocol SipRounds {
    /// Whether there are two rounds per word and four at the end, instead of one and three.
    static var isDouble: Bool { get }
}

/// SipHash-1-3, for tables in memory.
enum QuickRounds: SipRounds {
    @inline(__always)
    static var isDouble: Bool { false }
}

/// SipHash-2-4, for hashes that survive the process.
enum FullRounds: SipRounds {
    @inline(__always)
    static var isDouble: Bool { true }
}

/// A running hash that takes whole words; the last word has the length in its high byte.
struct SipHash<Rounds: SipRounds> {
    private var v0, v1, v2, v3: UInt64

    /// Makes a hash.
    /// - Parameter isWide: whether ``end128()`` will be called.
    @inline(__always)
    init(_ low: UInt64, _ high: UInt64, isWide: Bool = false) {
        v0 = low ^ 0x736F_6D65_7073_6575
        v1 = high ^ 0x646F_7261_6E64_6F6D ^ (isWide ? 0xEE : 0)
        v2 = low ^ 0x6C79_6765_6E65_7261
        v3 = high ^ 0x7465_6462_7974_6573
    }

    /// Adds all bytes and their number.
    @inline(__always)
    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var position = 0
        while position &+ 8 <= bytes.count {
            // The offset is within bounds, as compared above.
            add(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)))
            position &+= 8
        }
        add(UInt64(truncatingIfNeeded: bytes.count) &<< 56 | Self.rest(bytes, position))
    }

    /// The bytes from `start` on, fewer than eight, as the low bytes of a word.
    @inline(__always)
    private static func rest(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> UInt64 {
        guard start < bytes.count else { return 0 }
        if bytes.count >= 8 {
            // The last eight bytes exist, and those before `start` are shifted out.
            let word = bytes.loadUnaligned(fromByteOffset: bytes.count &- 8, as: UInt64.self)
            return UInt64(littleEndian: word) &>> UInt64(truncatingIfNeeded: 64 &- 8 &* (bytes.count &- start))
        }
        return bytes[start...].reversed().reduce(0) { $0 &<< 8 | UInt64($1) }
    }

    @inline(__always)
    private mutating func add(_ word: UInt64) {
        v3 ^= word
        round()
        if Rounds.isDouble { round() }
        v0 ^= word
    }

    /// The hash.
    @inline(__always)
    mutating func end() -> UInt64 {
        v2 ^= 0xFF
        return finish()
    }

    /// The 128-bit hash, for a value that was made for it.
    @inline(__always)
    mutating func end128() -> (first: UInt64, second: UInt64) {
        v2 ^= 0xEE
        let first = finish()
        v1 ^= 0xDD
        return (first, finish())
    }

    @inline(__always)
    private mutating func finish() -> UInt64 {
        round()
        round()
        round()
        if Rounds.isDouble { round() }
        return v0 ^ v1 ^ v2 ^ v3
    }

    @inline(__always)
    private mutating func round() {
        v0 &+= v1
        v1 = Self.rotated(v1, 13) ^ v0
        v0 = Self.rotated(v0, 32)
        v2 &+= v3
        v3 = Self.rotated(v3, 16) ^ v2
        v0 &+= v3
        v3 = Self.rotated(v3, 21) ^ v0
        v2 &+= v1
        v1 = Self.rotated(v1, 17) ^ v2
        v2 = Self.rotated(v2, 32)
    }

    @inline(__always)
    private static func rotated(_ word: UInt64, _ bits: UInt64) -> UInt64 { word &<< bits | word &>> (64 &- bits) }
}

// MARK: - Names of stored files

/// The key of the names of stored files, which the folder keeps.
public struct StoredFileNameKey: Sendable, Equatable {
    public var low: UInt64
    public var high: UInt64

    public init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }

    /// A number that identifies the key without revealing it.
    public var stamp: Int64 { Int64(bitPattern: StoredFileName(Array("stamp".utf8), key: self).low) }
}

/// The name of a stored file, 16 bytes, which the table of open files compares and hashes for each hit.
public struct StoredFileName: Hashable, Sendable, CustomStringConvertible {
    public var high: UInt64
    public var low: UInt64

    @inlinable
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// The keyed hash of some bytes.
    public init(_ bytes: [UInt8], key: StoredFileNameKey) {
        self = bytes.withUnsafeBytes { StoredFileName($0, key: key) }
    }

    /// The name of a key's file, from the bytes of the key. It does not allocate.
    public init(_ bytes: UnsafeRawBufferPointer, key: StoredFileNameKey) {
        var hash = SipHash<FullRounds>(key.low, key.high, isWide: true)
        hash.add(bytes)
        (high, low) = hash.end128()
    }

    /// A name from its 32 hexadecimal digits.
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

    /// The name as 32 hexadecimal digits.
    public var description: String { Self.hex(high) + Self.hex(low) }

    /// The path of the file in its folder: two levels of folders, then the whole name.
    public var relativePath: String {
        let name = description
        return "\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name)"
    }

    private static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
