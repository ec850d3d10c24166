// Request methods, exact and case-sensitive (RFC 9110 section 9).

/// A request method; one that Drydock has no rule for is forwarded as `.other` and never tunnelled.
public enum Method: Sendable, Hashable {
    case get, head, post, put, delete, patch, options, trace, connect
    case other(String)

    /// The method with this exact spelling.
    public init(_ name: String) {
        var name = name
        self = name.withUTF8 { Method.known(UnsafeRawBufferPointer($0)) } ?? .other(name)
    }

    /// The method with these bytes; allocates only for one that Drydock does not know.
    public init(bytes: UnsafeRawBufferPointer) {
        self = Method.known(bytes) ?? .other(Latin1.string(bytes))
    }

    public var name: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .patch: "PATCH"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .connect: "CONNECT"
        case .other(let name): name
        }
    }

    /// Whether the method is answered with the request itself, credentials included: TRACE (RFC 9110 section 9.3.8),
    /// and TRACK, which some servers treat alike. Any case counts, since some servers ignore it.
    public var isLoopBack: Bool {
        switch self {
        case .trace: true
        case .other(let name): ["TRACE", "TRACK"].contains(name.uppercased())
        default: false
        }
    }

    /// Whether the method is safe (RFC 9110 section 9.2.1); an unknown method counts as unsafe.
    public var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        default: false
        }
    }

    /// Whether the method is idempotent (RFC 9110 section 9.2.2); an unknown method counts as not idempotent.
    public var isIdempotent: Bool {
        switch self {
        case .put, .delete: true
        default: isSafe
        }
    }

    /// Compares the cases; the compiler's own implementation is called through tables from other modules.
    @inlinable public static func == (left: Method, right: Method) -> Bool {
        switch (left, right) {
        case (.get, .get), (.head, .head), (.post, .post), (.put, .put), (.delete, .delete), (.patch, .patch),
            (.options, .options), (.trace, .trace), (.connect, .connect):
            true
        case (.other(let left), .other(let right)): left == right
        default: false
        }
    }

    /// Whether `GET` and a space are at the position. The caller has checked that four bytes follow.
    @inline(__always)
    static func isGet(_ bytes: RawSpan, at position: Int) -> Bool {
        UInt32(littleEndian: bytes[wordAt: position]) == 0x2054_4547
    }

    static func known(_ bytes: UnsafeRawBufferPointer) -> Method? {
        func word(_ text: StaticString, _ method: Method) -> Method? {
            // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
            let wanted = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
            for position in 0..<bytes.count where bytes[position] != wanted[position] { return nil }
            return method
        }
        return switch (bytes.count, bytes.first) {
        case (3, 0x47): word("GET", .get)
        case (3, 0x50): word("PUT", .put)
        case (4, 0x48): word("HEAD", .head)
        case (4, 0x50): word("POST", .post)
        case (5, 0x50): word("PATCH", .patch)
        case (5, 0x54): word("TRACE", .trace)
        case (6, 0x44): word("DELETE", .delete)
        case (7, 0x4F): word("OPTIONS", .options)
        case (7, 0x43): word("CONNECT", .connect)
        default: nil
        }
    }
}
