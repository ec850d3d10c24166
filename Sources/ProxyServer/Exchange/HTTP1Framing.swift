// The framing of answers over HTTP/1.1: how long a body is said to be, what is around its bytes, and
// whether the connection goes on.

import HTTPWire

/// How the content of one answer goes out (RFC 9112 sections 6, 7 and 9); a value without I/O.
struct HTTP1Framing: Equatable {
    private enum Coding: Equatable {
        /// The answer has no content, as to HEAD or with 204 and 304: pieces that are sent are dropped.
        case none
        case length(left: Int64)
        case chunked
        case untilClose
    }

    /// What goes out for some bytes of content.
    enum Enclosed: Equatable {
        case nothing
        /// So many of them, as they are.
        case content(Int)
        /// These bytes, all of them, and CRLF.
        case chunk(head: [UInt8])
    }

    private var coding = Coding.none
    /// Content sent so far, without what is around it, in bytes.
    private(set) var contentBytes = 0

    /// Nothing may be sent.
    init() {}

    /// Content of a length that the head says already.
    init(length: Int64) { coding = .length(left: length) }

    /// Chooses how the content goes out, and says so in the head: Content-Length, Transfer-Encoding and Connection.
    ///
    /// To HEAD, and with 304, a Content-Length of the head is kept where `body` is `.none`.
    /// - Parameter keepAlive: another request may follow; false afterwards where none may.
    init(
        _ head: inout ResponseHead,
        _ body: AnswerLength,
        to method: Method,
        _ version: HTTPVersion,
        keepAlive: inout Bool
    ) {
        let isTunnel = method == .connect && 200..<300 ~= head.status
        let allowsContent = head.status >= 200 && head.status != 204 && head.status != 304 && !isTunnel
        head.fields.remove(.transferEncoding)
        head.fields.remove(.connection)
        head.fields.remove(.keepAlive)
        if !allowsContent, head.status != 304 { head.fields.remove(.contentLength) }
        switch (allowsContent, method == .head, body) {
        case (false, _, _), (_, true, .none), (_, true, .unknown): coding = .none
        case (_, true, .known(let length)): head.fields.set(.contentLength, String(length))
        case (_, _, .none):
            head.fields.set(.contentLength, "0")
            coding = .length(left: 0)
        case (_, _, .known(let length)):
            head.fields.set(.contentLength, String(length))
            coding = .length(left: length)
        case (_, _, .unknown):
            head.fields.remove(.contentLength)
            if version == .http11 {
                head.fields.set(.transferEncoding, "chunked")
                coding = .chunked
            } else {
                coding = .untilClose
                keepAlive = false
            }
        }
        // What follows a refused CONNECT may be meant for the tunnel: it must never be read as a request.
        if method == .connect, !isTunnel { keepAlive = false }
        guard !isTunnel else { return }
        if !keepAlive {
            head.fields.append(.connection, "close")
        } else if version == .http10 {
            head.fields.append(.connection, "keep-alive")
        }
    }

    /// Counts `count` bytes of content as sent, and drops what a declared length does not cover.
    mutating func frameContent(_ count: Int) -> Enclosed {
        guard count > 0 else { return .nothing }
        switch coding {
        case .none: return .nothing
        case .length(let left):
            let allowed = Int(min(left, Int64(count)))
            coding = .length(left: left - Int64(allowed))
            contentBytes += allowed
            return .content(allowed)
        case .chunked:
            contentBytes += count
            var head: [UInt8] = []
            Serializer.chunkHeader(count, into: &head)
            return .chunk(head: head)
        case .untilClose:
            contentBytes += count
            return .content(count)
        }
    }

    /// What is left of a declared length, in bytes; nil where none was declared.
    var lengthLeft: Int64? { if case .length(let left) = coding { left } else { nil } }

    /// As much was sent as was declared.
    var isWhole: Bool { (lengthLeft ?? 0) <= 0 }

    /// The end of the connection alone looks like a proper end.
    var endsWithConnection: Bool { coding == .untilClose }

    /// The last bytes of a complete answer.
    func end(trailers: Fields) -> [UInt8] {
        guard coding == .chunked else { return [] }
        var bytes: [UInt8] = []
        Serializer.lastChunk(trailers: trailers, into: &bytes)
        return bytes
    }

    /// The bytes of a fault on the wire.
    static func bytes(of part: BrokenPart) -> [UInt8] {
        func firstLine(_ head: ResponseHead) -> String {
            "HTTP/1.1 \(head.status) \(ReasonPhrase.reason(head.status))\r\n"
        }
        let text =
            switch part {
            case .beginning(let head): firstLine(head) + "Content-Ty"
            case .garbage(let head): (head.map(firstLine) ?? "") + garbage
            case .badChunk: "no-size\r\n"
            case .lastChunk: "0\r\n\r\n"
            case .surplus: ""
            }
        return Array(text.utf8)
    }

    /// Bytes that are neither a status line nor a field line: no line has a colon, and the last one has no end.
    private static let garbage = "\u{1}\u{2}\u{7f} this is no HTTP \u{3}\r\n\u{4}\u{5}\u{6}\r\nnor is this"

    /// The last lines of a head: Connection if it is needed, and the empty line.
    @inline(__always)
    static func headEnd(to version: HTTPVersion, keepAlive: Bool) -> UnsafeRawBufferPointer {
        let text: StaticString =
            switch (keepAlive, version) {
            case (true, .http11): "\r\n"
            case (true, .http10): "Connection: keep-alive\r\n\r\n"
            case (false, _): "Connection: close\r\n\r\n"
            }
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }
}
