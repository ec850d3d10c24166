// Base64, for Basic credentials and for data in JSON and property lists.

/// Base64 (RFC 4648 section 4) with its padding, strictly read.
public enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    public static func encode(_ bytes: [UInt8]) -> String {
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            var bits: UInt32 = 0
            for offset in 0..<3 { bits = bits << 8 | (offset < count ? UInt32(bytes[start + offset]) : 0) }
            for index in 0..<4 {
                result.append(index > count ? UInt8(ascii: "=") : alphabet[Int(bits >> (18 - 6 * UInt32(index)) & 63)])
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Decodes a text; nil if it is not Base64 with its padding.
    public static func decode(_ text: String) -> [UInt8]? {
        let bytes = Array(text.utf8)
        guard bytes.count % 4 == 0 else { return nil }
        let padding = bytes.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding < 3 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count / 4 * 3)
        for start in stride(from: 0, to: bytes.count, by: 4) {
            let isLast = start + 4 == bytes.count
            var bits: UInt32 = 0
            for index in 0..<4 {
                let isPadding = isLast && index >= 4 - padding
                guard let value = isPadding ? 0 : value(bytes[start + index]) else { return nil }
                bits = bits << 6 | value
            }
            let count = isLast ? 3 - padding : 3
            // Unused bits must be zero.
            guard bits & ((1 << (8 * UInt32(3 - count))) - 1) == 0 else { return nil }
            for index in 0..<count { result.append(UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(index)))) }
        }
        return result
    }

    private static func value(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - 65)
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - 71)
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte) + 4
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
