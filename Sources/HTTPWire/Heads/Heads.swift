// The heads of requests and responses as values that do not need the buffer they came in, with versions, framing and
// limits.

/// A version that Drydock supports; every other is refused with 505.
public enum HTTPVersion: UInt8, Sendable {
    case http10, http11

    /// Compares raw values; the compiler's own implementation is called through tables from other modules.
    @inlinable public static func == (left: HTTPVersion, right: HTTPVersion) -> Bool {
        left.rawValue == right.rawValue
    }

    /// The version as it is in a start line.
    public var name: String { self == .http11 ? "HTTP/1.1" : "HTTP/1.0" }
}

/// The head of a request.
public struct RequestHead: Sendable, Equatable {
    public var method: Method
    /// The request target as received, in visible ASCII without `#`; bytes of UTF-8 are percent-encoded.
    public var target: String
    public var version: HTTPVersion
    public var fields: Fields

    public init(method: Method, target: String, version: HTTPVersion = .http11, fields: Fields = Fields()) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }
}

/// The head of a response, interim ones included.
public struct ResponseHead: Sendable, Equatable {
    /// The status: 100 to 599; from an origin up to 999.
    public var status: Int
    /// The reason phrase as received, bytes as in `Latin1`; may be empty.
    public var reason: String
    public var version: HTTPVersion
    /// Whether other parsers may find the end of the received message elsewhere: then no part of it is stored.
    public var isOddlyFramed: Bool
    public var fields: Fields

    public init(
        status: Int,
        reason: String = "",
        version: HTTPVersion = .http11,
        fields: Fields = Fields(),
        isOddlyFramed: Bool = false
    ) {
        self.status = status
        self.reason = reason
        self.version = version
        self.isOddlyFramed = isOddlyFramed
        self.fields = fields
    }
}

/// The framing of a body, by which its end is found (RFC 9112 section 6.3).
public enum BodyFraming: Sendable, Equatable {
    /// No body follows the head.
    case none
    /// Exactly this many bytes follow.
    case length(UInt64)
    case chunked
    /// The body of a response ends with the connection.
    case untilClose

    /// Compares the cases; the compiler's own implementation is called through tables from other modules.
    @inlinable public static func == (left: BodyFraming, right: BodyFraming) -> Bool {
        switch (left, right) {
        case (.none, .none), (.chunked, .chunked), (.untilClose, .untilClose): true
        case (.length(let left), .length(let right)): left == right
        default: false
        }
    }
}

/// The kind of message that is read, which decides the status of an error.
public enum MessageSide: Sendable {
    case request, response
}

/// The limits of a head, in bytes. Values over 1 GiB count as 1 GiB, below 16 bytes as 16.
public struct HeadLimits: Sendable, Equatable {
    /// The most bytes of the whole head with its empty line; default 64 KiB; beyond it 431.
    public var head: Int
    /// The most field lines; default 100; beyond it 431.
    public var fields: Int
    /// The most bytes of one field line without its CRLF; default 8 KiB; beyond it 431.
    public var field: Int
    /// The most bytes of the request target; default 8 KiB; beyond it 414.
    public var target: Int

    public init(head: Int = 65536, fields: Int = 100, field: Int = 8192, target: Int = 8192) {
        self.head = Self.bounded(head)
        self.fields = max(0, fields)
        self.field = Self.bounded(field)
        self.target = Self.bounded(target)
    }

    /// Compares the members; the compiler's own implementation is called through tables from other modules.
    @inlinable public static func == (left: HeadLimits, right: HeadLimits) -> Bool {
        left.head == right.head && left.fields == right.fields && left.field == right.field
            && left.target == right.target
    }

    /// The limits of response heads, unless a configuration sets others: policies of 9 KB exist, and hundreds of
    /// cookies.
    public static let response = HeadLimits(head: 262_144, fields: 1000, field: 65536)

    private static func bounded(_ bytes: Int) -> Int { min(max(bytes, 16), 1 << 30) }
}

/// The progress of a parser.
public enum ParseProgress: Equatable, Sendable {
    case needMore
    /// The head has this many bytes from the start of the buffer; the bytes after it were not read.
    case complete(headLength: Int)
}

/// The range of one field line in the buffer it was parsed from.
public struct FieldEntry: Sendable, Equatable {
    public var nameOffset: UInt32
    public var nameLength: UInt32
    /// The offset of the value without surrounding whitespace.
    public var valueOffset: UInt32
    public var valueLength: UInt32
    public var known: KnownField

    public init(nameOffset: UInt32, nameLength: UInt32, valueOffset: UInt32, valueLength: UInt32, known: KnownField) {
        self.nameOffset = nameOffset
        self.nameLength = nameLength
        self.valueOffset = valueOffset
        self.valueLength = valueLength
        self.known = known
    }

    @inline(__always)
    public func name(in buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        buffer.part(Int(nameOffset)..<Int(nameOffset) + Int(nameLength))
    }

    @inline(__always)
    public func value(in buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        buffer.part(Int(valueOffset)..<Int(valueOffset) + Int(valueLength))
    }
}

// MARK: - Interim responses

/// The limits of interim responses (1xx) to one request, for every carrier. Without them, an origin that never sends
/// the final response could fill the memory.
public enum InterimBound {
    public static let maximumHeads = 100
    /// The most bytes of all their heads together.
    public static let maximumBytes = 256 << 10
}
