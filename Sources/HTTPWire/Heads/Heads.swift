// The heads of requests and responses as values that outlive the buffer they came in, with
// versions, framing and limits.

/// A version that Drydock speaks; every other is refused with 505.
package enum HTTPVersion: UInt8, Sendable {
    case http10, http11

    /// The compiler's own is called through tables where another module asks.
    @inlinable package static func == (left: HTTPVersion, right: HTTPVersion) -> Bool {
        left.rawValue == right.rawValue
    }

    /// As it is written in a start line.
    package var name: String { self == .http11 ? "HTTP/1.1" : "HTTP/1.0" }
}

/// The head of a request.
package struct RequestHead: Sendable, Equatable {
    package var method: Method
    /// Visible ASCII without `#`, exactly as received, but for bytes of UTF-8: those are percent-encoded.
    package var target: String
    package var version: HTTPVersion
    package var fields: Fields

    package init(method: Method, target: String, version: HTTPVersion = .http11, fields: Fields = Fields()) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }
}

/// The head of a response, interim ones included.
package struct ResponseHead: Sendable, Equatable {
    /// 100 to 599; from an origin up to 999.
    package var status: Int
    /// As received, bytes as in `Latin1`; may be empty.
    package var reason: String
    package var version: HTTPVersion
    /// The end of the message as it came may be found elsewhere by others: nothing of it is stored.
    package var isOddlyFramed: Bool
    package var fields: Fields

    package init(
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

/// How the end of a body is found (RFC 9112 section 6.3).
package enum BodyFraming: Sendable, Equatable {
    /// No body follows the head.
    case none
    /// Exactly this many bytes follow.
    case length(UInt64)
    case chunked
    /// A response whose body ends with the connection.
    case untilClose

    /// The compiler's own is called through tables where another module asks.
    @inlinable package static func == (left: BodyFraming, right: BodyFraming) -> Bool {
        switch (left, right) {
        case (.none, .none), (.chunked, .chunked), (.untilClose, .untilClose): true
        case (.length(let left), .length(let right)): left == right
        default: false
        }
    }
}

/// Which of the two kinds of message is read: it decides the status of an error.
package enum MessageSide: Sendable {
    case request, response
}

/// The limits of a head, in bytes. Values over 1 GiB count as 1 GiB, below 16 bytes as 16.
package struct HeadLimits: Sendable, Equatable {
    /// Bytes of the whole head with its empty line; default 64 KiB; past it 431.
    package var head: Int
    /// Number of field lines; default 100; past it 431.
    package var fields: Int
    /// Bytes of one field line without its CRLF; default 8 KiB; past it 431.
    package var field: Int
    /// Bytes of the request target; default 8 KiB; past it 414.
    package var target: Int

    package init(head: Int = 65536, fields: Int = 100, field: Int = 8192, target: Int = 8192) {
        self.head = Self.bounded(head)
        self.fields = max(0, fields)
        self.field = Self.bounded(field)
        self.target = Self.bounded(target)
    }

    /// The compiler's own is called through tables where another module asks.
    @inlinable package static func == (left: HeadLimits, right: HeadLimits) -> Bool {
        left.head == right.head && left.fields == right.fields && left.field == right.field
            && left.target == right.target
    }

    /// What the heads of responses may measure, unless a configuration says otherwise: policies of 9 KB
    /// exist, and hundreds of cookies.
    package static let response = HeadLimits(head: 262_144, fields: 1000, field: 65536)

    private static func bounded(_ bytes: Int) -> Int { min(max(bytes, 16), 1 << 30) }
}

/// How far a parser has come.
package enum ParseProgress: Equatable, Sendable {
    case needMore
    /// The head takes this many bytes from the start of the buffer; what follows was not looked at.
    case complete(headLength: Int)
}

/// Where one field line lies in the buffer it was parsed from.
package struct FieldEntry: Sendable, Equatable {
    package var nameOffset: UInt32
    package var nameLength: UInt32
    /// Of the value without surrounding whitespace.
    package var valueOffset: UInt32
    package var valueLength: UInt32
    package var known: KnownField

    @inline(__always)
    package func name(in buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        buffer.part(Int(nameOffset)..<Int(nameOffset) + Int(nameLength))
    }

    @inline(__always)
    package func value(in buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        buffer.part(Int(valueOffset)..<Int(valueOffset) + Int(valueLength))
    }
}
