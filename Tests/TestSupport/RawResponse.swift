// What the raw client read: one response, with how its body was framed and whether it came to its proper end.

import Foundation

/// A status line with its field lines.
package struct RawHead: Sendable, Equatable {
    package var version: String
    package var status: Int
    package var reason: String
    package var fields: [(name: String, value: String)]

    /// The first value of a field, its name in any case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.caseInsensitiveEqual(name) }?.value
    }

    /// All values of a field, one per line.
    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.caseInsensitiveEqual(name) }.map(\.value)
    }

    package static func == (left: RawHead, right: RawHead) -> Bool {
        left.version == right.version && left.status == right.status && left.reason == right.reason
            && left.fields.elementsEqual(right.fields) { $0.name == $1.name && $0.value == $1.value }
    }
}

/// How the end of a body is known (RFC 9112 section 6.3).
package enum RawFraming: Sendable, Equatable {
    case none
    case length(Int)
    case chunked
    case untilClose
}

/// Whether a body came to its end.
package enum RawBodyEnd: Sendable, Equatable {
    /// As its framing says; a body that ends with the connection counts as complete.
    case complete
    /// The connection ended or was reset before.
    case cut
}

/// One whole response.
package struct RawResponse: Sendable {
    package var head: RawHead
    package var interim: [RawHead]
    package var framing: RawFraming
    package var body: [UInt8]
    package var end: RawBodyEnd
    package var trailers: [(name: String, value: String)]

    package var status: Int { head.status }
    package var text: String { String(decoding: body, as: UTF8.self) }
    package func field(_ name: String) -> String? { head.field(name) }
}

/// Why the raw client could not read a response.
package enum RawClientError: Error, Equatable, CustomStringConvertible {
    /// The connection ended before a first byte of an answer.
    case closedWithoutAnswer
    /// The connection ended inside a head.
    case cutInHead
    /// The bytes are no HTTP/1.1 response.
    case malformed(String)

    package var description: String {
        switch self {
        case .closedWithoutAnswer: "the connection was closed without an answer"
        case .cutInHead: "the connection was closed inside a response head"
        case .malformed(let what): "not an HTTP/1.1 response: \(what)"
        }
    }
}

extension RawHead {
    /// Parses a head without its last empty line; strict about everything a proxy should never send.
    init(parsing bytes: UnsafeRawBufferPointer) throws {
        guard !bytes.contains(0) else { throw RawClientError.malformed("a NUL in the head") }
        var lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
        let statusLine = lines.removeFirst()
        let parts = statusLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", parts[1].utf8.count == 3,
            let status = Int(parts[1]), (100...999).contains(status),
            !parts[2].utf8.contains(where: { $0 < 32 && $0 != 9 })
        else { throw RawClientError.malformed("status line “\(statusLine)”") }
        self.init(
            version: String(parts[0]),
            status: status,
            reason: String(parts[2]),
            fields: try RawHead.fields(lines)
        )
    }

    static func fields(_ lines: [String]) throws -> [(name: String, value: String)] {
        try lines.map { line in
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), colon != line.startIndex,
                !line.utf8.contains(UInt8(ascii: "\r")), !line.utf8.contains(UInt8(ascii: "\n"))
            else { throw RawClientError.malformed("field line “\(line)”") }
            let name = String(line[..<colon])
            guard name.utf8.allSatisfy(RawHead.isToken) else {
                throw RawClientError.malformed("field name “\(name)”")
            }
            let value = line[line.utf8.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            return (name, String(value.reversed().drop { $0 == " " || $0 == "\t" }.reversed()))
        }
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// The framing of this head's body, as RFC 9112 section 6.3 orders the rules.
    func framing(method: String) throws -> RawFraming {
        let lengths = all("Content-Length")
        let codings = all("Transfer-Encoding")
        guard lengths.count <= 1, codings.count <= 1, lengths.isEmpty || codings.isEmpty else {
            throw RawClientError.malformed("Content-Length \(lengths) with Transfer-Encoding \(codings)")
        }
        if method == "HEAD" || status < 200 || status == 204 || status == 304 { return .none }
        if method == "CONNECT", (200..<300).contains(status) { return .none }
        if let coding = codings.first {
            guard coding.lowercased() == "chunked" else { throw RawClientError.malformed("coding “\(coding)”") }
            return .chunked
        }
        guard let length = lengths.first else { return .untilClose }
        guard !length.isEmpty, length.utf8.allSatisfy({ (48...57).contains($0) }), let count = Int(length) else {
            throw RawClientError.malformed("Content-Length “\(length)”")
        }
        return count == 0 ? .none : .length(count)
    }
}

extension String {
    func caseInsensitiveEqual(_ other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0 == $1 || ($0 | 0x20 == $1 | 0x20 && ($0 | 0x20) >= 0x61) }
    }
}
