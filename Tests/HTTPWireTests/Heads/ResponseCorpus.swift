// Response heads to take and to refuse: the tables of the tests and the seeds of the fuzzing.

import HTTPWire

enum ResponseCorpus {
    /// Heads that are refused with 502: reason, head.
    static let refused: [(WireReason, String)] = [
        // RFC 9112 section 4
        (.statusLineMalformed, "\r\nHTTP/1.1 200 OK\r\n\r\n"),
        (.statusLineMalformed, "http/1.1 200 OK\r\n\r\n"),
        (.statusLineMalformed, "ICY 200 OK\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1  200 OK\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 20 OK\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 2000 OK\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 2x0 OK\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 -20 OK\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 099 Low\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 600 High\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 200\tOK\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1 200 O\0K\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1.1\r\n\r\n"),
        (.statusLineMalformed, "HTTP/1x1 200 OK\r\n\r\n"),
        (.reasonTooLong, "HTTP/1.1 200 \(String(repeating: "r", count: 513))\r\n\r\n"),
        (.versionUnsupported, "HTTP/1.2 200 OK\r\n\r\n"),
        (.versionUnsupported, "HTTP/0.9 200 OK\r\n\r\n"),
        (.versionUnsupported, "HTTP/2 200 \r\n\r\n"),
        (.bareLineFeed, "HTTP/1.1 200 OK\n\n"),
        (.bareLineFeed, "HTTP/1.1 200\n\n"),
        (.bareLineFeed, "HTTP/1.1 200 OK\r\nX: y\n\r\n"),
        (.bareLineFeed, "HTTP/1.1 200 OK\r\nX: y\r\n\n"),
        (.bareCarriageReturn, "HTTP/1.1 200 OK\rX\r\n\r\n"),
        (.bareCarriageReturn, "HTTP/1.1 200 OK\r\nX: y\rz\r\n\r\n"),
        // RFC 9112 section 5
        (.spaceBeforeColon, ok("Name : v")),
        (.spaceBeforeColon, ok("Content-Length : 5")),
        (.fieldNameEmpty, ok(": v")),
        (.fieldNameMalformed, ok("Na(me: v")),
        (.fieldNameMalformed, ok("Name")),
        (.foldedLine, ok("X: y\r\n folded")),
        (.foldedLine, "HTTP/1.1 200 OK\r\n X: y\r\n\r\n"),
        (.fieldValueControl, ok("X: a\0b")),
        (.fieldValueControl, ok("X: a\u{7F}b")),
        (.fieldTooLong, ok("X: " + String(repeating: "v", count: 8190))),
        (.tooManyFields, ok((0...100).map { "F\($0): v" }.joined(separator: "\r\n"))),
        // RFC 9112 section 6
        (.contentLengthRepeated, ok("Content-Length: 5\r\nContent-Length: 3")),
        (.contentLengthRepeated, ok("Content-Length: 5\r\nContent-Length: 5")),
        (.contentLengthRepeated, ok("Content-Length: 5, 5")),
        (.contentLengthMalformed, ok("Content-Length: 0x5")),
        (.contentLengthMalformed, ok("Content-Length: +5")),
        (.contentLengthMalformed, ok("Content-Length: -0")),
        (.contentLengthMalformed, ok("Content-Length: 5 6")),
        (.contentLengthMalformed, ok("Content-Length:")),
        (.contentLengthMalformed, ok("Content-Length: 9223372036854775808")),
        (.contentLengthMalformed, "HTTP/1.1 304 Not Modified\r\nContent-Length: x\r\n\r\n"),
        (.contentLengthMalformed, ok("Transfer-Encoding: chunked\r\nContent-Length: x")),
        (.transferEncodingUnknown, ok("Transfer-Encoding: xchunked")),
        (.transferEncodingUnknown, ok("Transfer-Encoding: identity")),
        (.transferEncodingUnknown, ok("Transfer-Encoding: gzip, chunked")),
        (.transferEncodingMalformed, ok("Transfer-Encoding: ,,chunked")),
        (.transferEncodingMalformed, ok("Transfer-Encoding: chunked, gzip")),
        (.transferEncodingMalformed, ok("Transfer-Encoding: chunked, chunked")),
        (.transferEncodingMalformed, ok("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")),
        (.transferEncodingInHTTP10, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ]

    /// Heads that are taken: the request's method, framing, whether the connection is kept, head.
    static let taken: [(Method, BodyFraming, Bool, String)] = [
        (.get, .length(5), true, ok("Content-Length: 5")),
        (.get, .length(0), true, ok("Content-Length: 0")),
        (.get, .chunked, true, ok("Transfer-Encoding: Chunked")),
        (.get, .chunked, false, ok("Transfer-Encoding: chunked\r\nConnection: close")),
        (.get, .untilClose, false, ok("X: y")),
        (.get, .untilClose, false, "HTTP/1.1 200 OK\r\n\r\n"),
        (.get, .untilClose, false, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"),
        (.get, .length(5), false, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"),
        (.get, .length(5), true, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"),
        (.get, .length(5), false, ok("Content-Length: 5\r\nConnection: close")),
        (.head, .none, true, ok("Content-Length: 5")),
        (.head, .none, true, ok("Transfer-Encoding: chunked")),
        (.head, .none, true, ok("X: y")),
        (.get, .none, true, "HTTP/1.1 100 Continue\r\n\r\n"),
        (.get, .none, true, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        (.get, .none, true, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
        (.get, .none, true, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
        (.get, .none, false, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (.get, .none, true, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        (.get, .none, true, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (.connect, .none, true, ok("Content-Length: 5")),
        (.connect, .length(5), true, "HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n"),
        (.get, .length(1), true, "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n"),
        (.get, .length(1), true, "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\n"),
        (.get, .length(1), true, "HTTP/1.1 599 \u{E9}t\u{E9} \t!\r\nContent-Length: 1\r\n\r\n"),
        (.get, .length(1), true, "HTTP/1.1 200 \(String(repeating: "r", count: 512))\r\nContent-Length: 1\r\n\r\n"),
    ]

    /// A head that a strict reader refuses and a lenient one takes.
    struct Mended: Sendable {
        /// Why it is refused.
        var reason: WireReason
        var head: String
        /// What comes out.
        var fields: [(String, String)]
        var framing = BodyFraming.length(5)
        var isOdd = false
        var status = 200
        var text = "OK"

        init(
            _ reason: WireReason,
            _ head: String,
            _ fields: [(String, String)],
            _ framing: BodyFraming = .length(5),
            isOdd: Bool = false,
            status: Int = 200,
            text: String = "OK"
        ) {
            (self.reason, self.head, self.fields) = (reason, head, fields)
            (self.framing, self.isOdd, self.status, self.text) = (framing, isOdd, status, text)
        }
    }

    private static let five = ("Content-Length", "5")
    private static let length = "\r\nContent-Length: 5"

    /// What is mended: a row for each way.
    static let mended: [Mended] = [
        // RFC 9112 section 5.1
        Mended(.spaceBeforeColon, ok("X-A : b" + length), [("X-A", "b"), five]),
        Mended(.spaceBeforeColon, ok("X-A \t : b" + length), [("X-A", "b"), five]),
        Mended(.spaceBeforeColon, ok("Connection : close"), [("Connection", "close")], .untilClose),
        // RFC 9112 section 5.2
        Mended(.foldedLine, ok("X-A: b\r\n c" + length), [("X-A", "b c"), five]),
        Mended(.foldedLine, ok("X-A: b \r\n\t  c d\r\n  e " + length), [("X-A", "b c d e"), five]),
        Mended(.foldedLine, ok("X-A:\r\n b" + length), [("X-A", "b"), five]),
        Mended(.foldedLine, ok("X-A: b\r\n \r\n c" + length), [("X-A", "b c"), five]),
        Mended(.foldedLine, ok("X-A: b\r\n Content-Length: 9" + length), [("X-A", "b Content-Length: 9"), five]),
        // RFC 9110 section 5.5
        Mended(.fieldValueControl, ok("X-A: b\u{1}c\u{7F}d" + length), [("X-A", "b c d"), five]),
        Mended(.fieldValueControl, ok("X-A: \u{B}b\u{1B}" + length), [("X-A", "b"), five]),
        Mended(.statusLineMalformed, "HTTP/1.1 200 O\u{1}K\r\nContent-Length: 5\r\n\r\n", [five], text: "O K"),
        // RFC 9110 section 8.6
        Mended(.contentLengthRepeated, ok("Content-Length: 5" + length), [five], isOdd: true),
        Mended(.contentLengthRepeated, ok("Content-Length: 5, 5"), [five], isOdd: true),
        Mended(.contentLengthRepeated, ok("Content-Length: 5 ,5\r\nA: b" + length), [five, ("A", "b")], isOdd: true),
        Mended(
            .contentLengthRepeated,
            ok("Content-Length: 5\r\nTransfer-Encoding: chunked" + length),
            [("Transfer-Encoding", "chunked")],
            .chunked,
            isOdd: true
        ),
        // RFC 9112 section 2.2
        Mended(.bareLineFeed, "HTTP/1.1 200 OK\nContent-Length: 5\n\n", [five], isOdd: true),
        Mended(.bareLineFeed, "HTTP/1.1 200\nContent-Length: 5\n\n", [five], isOdd: true, text: ""),
        Mended(.bareLineFeed, ok("X-A: b\nContent-Length: 5"), [("X-A", "b"), five], isOdd: true),
        Mended(.bareLineFeed, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\n", [five], isOdd: true),
        Mended(.bareLineFeed, "HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\n", [five], isOdd: true),
        Mended(.bareLineFeed, "HTTP/1.1 200 OK\n\n", [], .untilClose, isOdd: true),
        // RFC 9112 section 6.1
        Mended(
            .transferEncodingInHTTP10,
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n",
            [("Transfer-Encoding", "chunked"), ("Connection", "keep-alive")],
            .chunked,
            isOdd: true
        ),
        // RFC 9110 section 15
        Mended(
            .statusLineMalformed,
            "HTTP/1.1 600 High\r\nContent-Length: 5\r\n\r\n",
            [five],
            status: 600,
            text: "High"
        ),
        Mended(.statusLineMalformed, "HTTP/1.1 999 No\r\nContent-Length: 5\r\n\r\n", [five], status: 999, text: "No"),
        // All at once.
        Mended(
            .spaceBeforeColon,
            "HTTP/1.1 200 O\tK\r\nA : 1\n B\u{2}\nContent-Length: 5\r\nContent-Length: 5\r\n\n",
            [("A", "1 B"), five],
            isOdd: true,
            text: "O\tK"
        ),
    ]

    /// What even a lenient reader refuses, since it could be read in two ways: reason, head.
    static let neverMended: [(WireReason, String)] = [
        (.spaceBeforeColon, ok("Content-Length : 5")),
        (.spaceBeforeColon, ok("Content-Length\t: 5" + length)),
        (.spaceBeforeColon, ok("Transfer-Encoding : chunked")),
        (.spaceBeforeColon, ok("Na me: v")),
        (.spaceBeforeColon, ok("no colon at all")),
        (.foldedLine, ok("Content-Length:\r\n 5")),
        (.foldedLine, ok("Transfer-Encoding:\r\n chunked")),
        (.foldedLine, ok("Transfer-Encoding: chunked\r\n , identity")),
        (.foldedLine, ok("Content-Length: 5" + length + "\r\n 5")),
        (.foldedLine, "HTTP/1.1 200 OK\r\n X: y\r\n\r\n"),
        (.fieldValueControl, ok("Transfer-Encoding: \u{B}chunked")),
        (.fieldValueControl, ok("Content-Length: 5\u{1}")),
        (.fieldValueControl, ok("X: a\0b")),
        (.fieldValueControl, ok("X : y\r\nX: a\0b")),
        (.bareCarriageReturn, ok("X : y\r\nX: a\rb")),
        (.bareCarriageReturn, ok("X: y\nX: a\r\r")),
        (.contentLengthRepeated, ok("Content-Length: 5\r\nContent-Length: 3")),
        (.contentLengthRepeated, ok("Content-Length: 5, 3")),
        (.contentLengthRepeated, ok("Content-Length: 5, x")),
        (.contentLengthRepeated, ok("Content-Length: 5,")),
        (.contentLengthRepeated, ok("Content-Length: 5" + length + "\r\nContent-Length: 6")),
        (.fieldNameMalformed, ok("Transfer-Encoding\u{B}: chunked\r\nX : y")),
        (.fieldNameEmpty, ok("X : y\r\n: x")),
        (.transferEncodingMalformed, ok("X : y\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked")),
        (.transferEncodingUnknown, "HTTP/1.0 200 OK\nTransfer-Encoding: gzip, chunked\n\n"),
        (.statusLineMalformed, "HTTP/1.1 099 Low\n\n"),
        (.statusLineMalformed, "HTTP/1.1 1000 High\n\n"),
        (.statusLineMalformed, "HTTP/1.1\u{1}200 OK\n\n"),
        (.statusLineMalformed, "HTTP/1.1 200 O\0K\r\n\r\n"),
        (.bareLineFeed, "\nHTTP/1.1 200 OK\n\n"),
        (.bareLineFeed, "HTTP/1.1\n200 OK\n\n"),
    ]

    static func ok(_ lines: String) -> String { "HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n" }
}
