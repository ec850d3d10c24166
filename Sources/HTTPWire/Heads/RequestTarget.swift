// The four forms of a request target (RFC 9112 section 3.2), parsed without allocation and kept as sent except for
// UTF-8, and the authority in it.

/// A parsed request target. Path and query stay as sent: they are neither decoded nor normalised.
public struct RequestTarget: Sendable, Equatable {
    public enum Form: Sendable, Equatable {
        /// A path with its query, beginning with `/`.
        case origin(pathAndQuery: String)
        /// An absolute URL: the scheme is in lower case, and the path is `/` if the URL has none.
        case absolute(scheme: String, authority: Authority, pathAndQuery: String)
        /// An authority as `host:port`, with CONNECT only.
        case authority(Authority)
        /// An asterisk, with OPTIONS only.
        case asterisk
    }

    public var form: Form
    /// Whether the target is the server as a whole, with OPTIONS: `*`, or an absolute URL without path and query, which
    /// the last proxy forwards as `*` (RFC 9112 section 3.2.4).
    public var isServerWide: Bool

    /// Parses the target; throws 400 with its reason if it has none of the forms that the method allows.
    public static func parse(_ target: String, method: Method) throws(WireError) -> RequestTarget {
        let bytes = Array(target.utf8)
        let result: Result<RequestTarget, WireError> = bytes.withUnsafeBytes { raw in
            do throws(WireError) {
                return .success(try parse(bytes: raw, method: method))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Parses the target; throws 400 with its reason if it has none of the forms that the method allows.
    public static func parse(bytes: UnsafeRawBufferPointer, method: Method) throws(WireError) -> RequestTarget {
        guard ByteClass.all(bytes, are: ByteClass.target) else { throw WireError(.targetMalformed, side: .request) }
        let parts = try Parts(bytes, method: method, offset: 0)
        switch parts.kind {
        case .asterisk:
            return RequestTarget(form: .asterisk, isServerWide: true)
        case .origin:
            return RequestTarget(form: .origin(pathAndQuery: Latin1.string(bytes)), isServerWide: false)
        case .authority:
            return RequestTarget(form: .authority(try authority(bytes.part(parts.authority))), isServerWide: false)
        case .absolute:
            let rest = bytes.part(parts.authority.upperBound..<bytes.count)
            let path = Latin1.string(rest)
            let form = Form.absolute(
                scheme: Authority.lowercased(bytes.part(0..<parts.schemeLength)),
                authority: try authority(bytes.part(parts.authority)),
                pathAndQuery: rest.first == 0x2F ? path : "/" + path
            )
            return RequestTarget(form: form, isServerWide: method == .options && rest.isEmpty)
        }
    }

    private static func authority(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Authority {
        guard let authority = Authority.parse(bytes: bytes) else {
            throw WireError(.authorityMalformed, side: .request)
        }
        return authority
    }

    /// The form of a target and the ranges of its parts; it allocates nothing, so that the parser can use it for every
    /// request.
    struct Parts {
        enum Kind { case origin, absolute, authority, asterisk }

        var kind: Kind
        var schemeLength = 0
        var authority = 0..<0

        /// Finds the parts; the bytes must all be of `ByteClass.target`.
        init(_ target: UnsafeRawBufferPointer, method: Method, offset: Int) throws(WireError) {
            guard let first = target.first else { throw WireError(.targetMalformed, side: .request, offset: offset) }
            if case .connect = method {
                guard let parts = Authority.split(target), parts.port != nil else {
                    throw WireError(.authorityMalformed, side: .request, offset: offset)
                }
                kind = .authority
                authority = 0..<target.count
                return
            }
            if first == 0x2F {
                kind = .origin
                return
            }
            if first == 0x2A, target.count == 1 {
                guard case .options = method else { throw WireError(.targetAsterisk, side: .request, offset: offset) }
                kind = .asterisk
                return
            }
            kind = .absolute
            try findAuthority(target, offset)
        }

        /// Finds the authority after `scheme "://"`, which ends at `/`, `?` or the end.
        private mutating func findAuthority(_ target: UnsafeRawBufferPointer, _ offset: Int) throws(WireError) {
            while schemeLength < target.count, Self.isScheme(target[schemeLength]) { schemeLength += 1 }
            let start = schemeLength + 3
            guard target.count > start, schemeLength > 0, ByteClass.lower(target[0]) &- 0x61 < 26,
                target[schemeLength] == 0x3A, target[schemeLength + 1] == 0x2F, target[schemeLength + 2] == 0x2F
            else { throw WireError(.targetMalformed, side: .request, offset: offset) }
            var end = start
            while end < target.count, target[end] != 0x2F, target[end] != 0x3F { end += 1 }
            guard Authority.split(target.part(start..<end)) != nil else {
                throw WireError(.authorityMalformed, side: .request, offset: offset + start)
            }
            authority = start..<end
        }

        private static func isScheme(_ byte: UInt8) -> Bool {
            ByteClass.lower(byte) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == 0x2B || byte == 0x2D || byte == 0x2E
        }
    }
}

extension RequestTarget {
    /// The target as it is matched, keyed, logged and sent: with bytes beyond ASCII percent-encoded (RFC 3986 section
    /// 2.1).
    static func encoded(_ bytes: UnsafeRawBufferPointer) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count + 32)
        for byte in bytes {
            guard byte >= 0x80 else {
                text.append(byte)
                continue
            }
            text.append(0x25)
            for digit in [byte >> 4, byte & 15] { text.append(digit < 10 ? 0x30 + digit : 0x37 + digit) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension RequestParser {
    /// Parses the target of a head from `makeHead`.
    public func makeTarget(_ head: RequestHead) throws(WireError) -> RequestTarget {
        // The parser has checked the target; a path is the whole target.
        if head.target.utf8.first == 0x2F, head.method != .connect {
            return RequestTarget(form: .origin(pathAndQuery: head.target), isServerWide: false)
        }
        return try RequestTarget.parse(head.target, method: head.method)
    }
}

// MARK: - Authority

/// A host with an optional port (RFC 3986 section 3.2, RFC 9110 section 7.2).
///
/// Stricter than the grammar: a name has only unreserved characters, because no resolver answers for others, and
/// userinfo is refused.
public struct Authority: Sendable, Hashable {
    /// The host in lower case; an IPv6 address keeps its brackets.
    public var host: String
    /// The port, 1 to 65535; nil if none was given.
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

    /// The length of the host, and the port; allocates nothing. An empty port counts as none.
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
