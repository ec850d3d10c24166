// Host and port as they stand in Host, in an absolute target and after CONNECT.

/// A host with an optional port (RFC 3986 section 3.2, RFC 9110 section 7.2).
///
/// Stricter than the grammar: a name is unreserved characters only, because no resolver answers for the
/// rest, and userinfo is refused.
public struct Authority: Sendable, Hashable {
    /// Lower case; an IPv6 address keeps its brackets.
    public var host: String
    /// 1 to 65535; nil where none was given.
    public var port: UInt16?

    public init(host: String, port: UInt16? = nil) {
        self.host = host
        self.port = port
    }

    /// Parses an authority; nil if it is malformed.
    public static func parse(_ text: String) -> Authority? {
        var text = text
        return text.withUTF8 { parse(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Parses an authority; nil if it is malformed.
    public static func parse(bytes: UnsafeRawBufferPointer) -> Authority? {
        guard let parts = split(bytes) else { return nil }
        return Authority(host: lowercased(bytes.part(0..<parts.hostLength)), port: parts.port)
    }

    static func lowercased(_ bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: bytes.count) { target in
            for position in 0..<bytes.count { target[position] = ByteClass.lower(bytes[position]) }
            return bytes.count
        }
    }

    /// Where the host ends and what the port is; allocates nothing. An empty port counts as none.
    static func split(_ bytes: UnsafeRawBufferPointer) -> (hostLength: Int, port: UInt16?)? {
        guard let first = bytes.first else { return nil }
        var hostLength = 0
        if first == 0x5B {
            guard let close = bytes.firstIndex(of: 0x5D), isIPv6(bytes.part(1..<close)) else { return nil }
            hostLength = close + 1
        } else {
            let table = ByteClass.table
            while hostLength < bytes.count, table[Int(bytes[hostLength])] & ByteClass.unreserved != 0 {
                hostLength += 1
            }
            guard hostLength > 0, hostLength <= 255 else { return nil }
        }
        if hostLength == bytes.count { return (hostLength, nil) }
        guard bytes[hostLength] == 0x3A else { return nil }
        let digits = bytes.part(hostLength + 1..<bytes.count)
        if digits.isEmpty { return (hostLength, nil) }
        guard digits.count <= 5, let port = Decimal.parse(digits), port >= 1, port <= 65535 else { return nil }
        return (hostLength, UInt16(port))
    }

    /// Whether the bytes are an IPv6 address (RFC 3986 section 3.2.2), without a zone.
    private static func isIPv6(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= 2, bytes.count <= 45 else { return false }
        let table = ByteClass.table
        var groups = 0
        var isCompressed = false
        var position = 0
        if bytes[0] == 0x3A {
            guard bytes[1] == 0x3A else { return false }
            isCompressed = true
            position = 2
        }
        while position < bytes.count {
            let start = position
            while position < bytes.count, table[Int(bytes[position])] & ByteClass.hex != 0 { position += 1 }
            if position < bytes.count, bytes[position] == 0x2E {
                guard isIPv4(bytes.part(start..<bytes.count)) else { return false }
                groups += 2
                break
            }
            guard position > start, position - start <= 4 else { return false }
            groups += 1
            guard position < bytes.count else { break }
            guard bytes[position] == 0x3A else { return false }
            position += 1
            guard position < bytes.count else { return false }
            if bytes[position] == 0x3A {
                guard !isCompressed else { return false }
                isCompressed = true
                position += 1
            }
        }
        return isCompressed ? groups <= 7 : groups == 8
    }

    private static func isIPv4(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var octets = 0
        var start = 0
        for position in 0...bytes.count where position == bytes.count || bytes[position] == 0x2E {
            let digits = bytes.part(start..<position)
            guard digits.count <= 3, let value = Decimal.parse(digits), value <= 255 else { return false }
            guard digits.count == 1 || digits[0] != 0x30 else { return false }
            octets += 1
            start = position + 1
        }
        return octets == 4
    }
}

extension Authority: CustomStringConvertible {
    public var description: String { port.map { "\(host):\($0)" } ?? host }
}

/// Unsigned decimal numbers in wire bytes.
enum Decimal {
    /// The value of 1*DIGIT up to 2^63 - 1; nil for anything else, signs and spaces included.
    static func parse(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard !bytes.isEmpty else { return nil }
        var value: UInt64 = 0
        for byte in bytes {
            let digit = byte &- 0x30
            guard digit < 10 else { return nil }
            let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
            guard !overflowed, product <= UInt64(Int64.max) - UInt64(digit) else { return nil }
            value = product + UInt64(digit)
        }
        return value
    }
}
