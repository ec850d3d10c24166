// Heads, chunks, numbers and reason phrases as wire bytes.

public enum Serializer {
    /// Appends the request line, the fields and the empty line.
    public static func write(_ head: RequestHead, into bytes: inout [UInt8]) {
        bytes.append(contentsOf: head.method.name.utf8)
        bytes.append(0x20)
        bytes.append(contentsOf: head.target.utf8)
        bytes.append(0x20)
        bytes.append(contentsOf: head.version.name.utf8)
        endLine(&bytes)
        write(head.fields, into: &bytes)
        endLine(&bytes)
    }

    /// Appends the status line, the fields and the empty line. Control characters in the reason become SP.
    public static func write(_ head: ResponseHead, into bytes: inout [UInt8]) {
        writeStatusLine(head, into: &bytes)
        write(head.fields, into: &bytes)
        endLine(&bytes)
    }

    /// Appends the status line with its CRLF. Control characters in the reason become SP.
    public static func writeStatusLine(_ head: ResponseHead, into bytes: inout [UInt8]) {
        bytes.append(contentsOf: head.version.name.utf8)
        bytes.append(0x20)
        let status = min(max(head.status, 0), 999)
        for divisor in [100, 10, 1] { bytes.append(0x30 + UInt8(status / divisor % 10)) }
        bytes.append(0x20)
        let start = bytes.count
        Latin1.append(head.reason, to: &bytes)
        let table = ByteClass.table
        for position in start..<bytes.count where table[Int(bytes[position])] & ByteClass.value == 0 {
            bytes[position] = 0x20
        }
        endLine(&bytes)
    }

    /// Appends the field lines, each with its CRLF, byte for byte.
    public static func write(_ fields: Fields, into bytes: inout [UInt8]) {
        fields.forEachRun { bytes.append(contentsOf: $0) }
    }

    /// Appends the size line of a chunk of `count` bytes; the data and a CRLF follow it. Appends nothing for a count
    /// below 1, which would end the body.
    public static func chunkHeader(_ count: Int, into bytes: inout [UInt8]) {
        guard count > 0 else { return }
        var shift = (Int.bitWidth - 1 - count.leadingZeroBitCount) / 4 * 4
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: count >> shift & 15)
            bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            shift -= 4
        }
        endLine(&bytes)
    }

    /// Appends the last chunk, the trailers and the empty line.
    public static func lastChunk(trailers: Fields = Fields(), into bytes: inout [UInt8]) {
        bytes.append(0x30)
        endLine(&bytes)
        write(trailers, into: &bytes)
        endLine(&bytes)
    }

    /// Writes the number in decimal at `offset` and returns the offset after it; writes nothing if it does not fit (at
    /// most 20 bytes).
    public static func appendDecimal(_ value: Int64, into bytes: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        let sign = value < 0 ? 1 : 0
        var rest = value.magnitude
        var digits = 1
        // This cannot overflow: the magnitude of an Int64 has 19 digits at most, and 10 to the power of 19 is less than
        // 2 to the power of 64.
        var power: UInt64 = 10
        while digits < 19, rest >= power {
            digits &+= 1
            power &*= 10
        }
        let length = sign &+ digits
        guard offset >= 0, offset <= bytes.count, bytes.count &- offset >= length, let base = bytes.baseAddress else {
            return offset
        }
        var position = offset &+ length
        repeat {
            position &-= 1
            let tenth = rest / 10
            // The writes are within the length that was compared above: there is one round for each digit.
            base.storeBytes(
                of: 0x30 &+ UInt8(truncatingIfNeeded: rest &- tenth &* 10),
                toByteOffset: position,
                as: UInt8.self
            )
            rest = tenth
        } while rest > 0
        if value < 0 { bytes[offset] = 0x2D }
        return offset &+ length
    }

    private static func endLine(_ bytes: inout [UInt8]) {
        bytes.append(0x0D)
        bytes.append(0x0A)
    }
}

// MARK: - Reason phrases

/// The reason phrases of the statuses in IANA's registry of HTTP.
public enum ReasonPhrase {
    private static let reasons: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
        200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
        205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used",
        300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
        305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
        413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
        417: "Expectation Failed", 418: "I'm a teapot", 421: "Misdirected Request", 422: "Unprocessable Content",
        423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required",
        428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
        507: "Insufficient Storage", 508: "Loop Detected", 510: "Not Extended", 511: "Network Authentication Required",
    ]

    /// The phrase in RFC 9110 section 15, or in the registry; empty for other statuses.
    public static func reason(_ status: Int) -> String { reasons[status] ?? "" }
}
