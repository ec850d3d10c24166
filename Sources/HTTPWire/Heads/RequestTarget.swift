// The four forms of a request target (RFC 9112 section 3.2), found without allocation and kept as sent but for UTF-8.

/// A parsed request target. Path and query stay as sent: nothing is decoded or normalised.
public struct RequestTarget: Sendable, Equatable {
    public enum Form: Sendable, Equatable {
        /// A path with its query, beginning with `/`.
        case origin(pathAndQuery: String)
        /// An absolute URL: the scheme in lower case, and a path that is `/` where the URL has none.
        case absolute(scheme: String, authority: Authority, pathAndQuery: String)
        /// `host:port`, with CONNECT only.
        case authority(Authority)
        /// `*`, with OPTIONS only.
        case asterisk
    }

    public var form: Form
    /// OPTIONS for the server as a whole: `*`, or an absolute URL without path and query, which the last proxy sends on
    /// as `*` (RFC 9112 section 3.2.4).
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

    /// Which form a target has and where its parts lie; allocates nothing, so that the parser can
    /// ask it for every request.
    struct Parts {
        enum Kind { case origin, absolute, authority, asterisk }

        var kind: Kind
        var schemeLength = 0
        var authority = 0..<0

        /// Expects bytes that are all of `ByteClass.target`.
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

        /// `scheme "://" authority`, the authority ending at `/`, `?` or the end.
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
    /// The target as it is matched, keyed, logged and sent: with bytes beyond ASCII
    /// percent-encoded (RFC 3986 section 2.1).
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
        // The parser has found that it is a target; a path is one as a whole.
        if head.target.utf8.first == 0x2F, head.method != .connect {
            return RequestTarget(form: .origin(pathAndQuery: head.target), isServerWide: false)
        }
        return try RequestTarget.parse(head.target, method: head.method)
    }
}
