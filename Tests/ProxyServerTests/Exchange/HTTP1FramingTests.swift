// How answers go out over HTTP/1.1: what their heads say, what is around their content, and how they end.

import HTTPWire
import Testing

@testable import ProxyServer

@Suite struct HTTP1FramingTests {
    struct Case: Sendable {
        var method = Method.get
        var version = HTTPVersion.http11
        var status = 200
        var fields: [(String, String)] = []
        var body: AnswerLength
        var keepAlive = true
        /// The lines of the head.
        let says: String
        /// What goes out for five bytes.
        let five: HTTP1Framing.Enclosed
        /// The last bytes; nil where some are missing after those five.
        let end: String?
        let goesOn: Bool
    }

    private static let chunk = HTTP1Framing.Enclosed.chunk(head: Array("5\r\n".utf8))

    private static let cases = [
        Case(body: .known(5), says: "Content-Length: 5\r\n", five: .content(5), end: "", goesOn: true),
        Case(body: .known(3), says: "Content-Length: 3\r\n", five: .content(3), end: "", goesOn: true),
        Case(body: .known(9), says: "Content-Length: 9\r\n", five: .content(5), end: nil, goesOn: true),
        Case(body: .none, says: "Content-Length: 0\r\n", five: .content(0), end: "", goesOn: true),
        Case(
            body: .unknown,
            says: "Transfer-Encoding: chunked\r\n",
            five: chunk,
            end: "0\r\nChecksum: abc\r\n\r\n",
            goesOn: true
        ),
        Case(
            version: .http10,
            body: .unknown,
            says: "Connection: close\r\n",
            five: .content(5),
            end: "",
            goesOn: false
        ),
        Case(
            version: .http10,
            body: .known(5),
            says: "Content-Length: 5\r\nConnection: keep-alive\r\n",
            five: .content(5),
            end: "",
            goesOn: true
        ),
        Case(
            body: .known(5),
            keepAlive: false,
            says: "Content-Length: 5\r\nConnection: close\r\n",
            five: .content(5),
            end: "",
            goesOn: false
        ),
        // What a head of another hop says of its own connection is not repeated.
        Case(
            fields: [("Transfer-Encoding", "chunked"), ("Connection", "close"), ("Keep-Alive", "timeout=5")],
            body: .known(5),
            says: "Content-Length: 5\r\n",
            five: .content(5),
            end: "",
            goesOn: true
        ),
        Case(method: .head, body: .known(5), says: "Content-Length: 5\r\n", five: .nothing, end: "", goesOn: true),
        Case(
            method: .head,
            fields: [("Content-Length", "7")],
            body: .none,
            says: "Content-Length: 7\r\n",
            five: .nothing,
            end: "",
            goesOn: true
        ),
        Case(method: .head, body: .unknown, says: "", five: .nothing, end: "", goesOn: true),
        Case(
            status: 204,
            fields: [("Content-Length", "0")],
            body: .none,
            says: "",
            five: .nothing,
            end: "",
            goesOn: true
        ),
        Case(
            status: 304,
            fields: [("Content-Length", "7")],
            body: .none,
            says: "Content-Length: 7\r\n",
            five: .nothing,
            end: "",
            goesOn: true
        ),
        Case(
            method: .connect,
            fields: [("Content-Length", "0")],
            body: .none,
            says: "",
            five: .nothing,
            end: "",
            goesOn: true
        ),
        Case(
            method: .connect,
            status: 403,
            body: .known(5),
            says: "Content-Length: 5\r\nConnection: close\r\n",
            five: .content(5),
            end: "",
            goesOn: false
        ),
    ]

    @Test(arguments: cases) func `the head says how the content goes out`(_ test: Case) {
        var head = ResponseHead(status: test.status, reason: "R", fields: Fields(test.fields))
        var keepAlive = test.keepAlive
        var framing = HTTP1Framing(&head, test.body, to: test.method, test.version, keepAlive: &keepAlive)
        var lines: [UInt8] = []
        Serializer.write(head.fields, into: &lines)
        #expect(String(decoding: lines, as: UTF8.self) == test.says)
        #expect(keepAlive == test.goesOn)
        #expect(framing.frameContent(0) == .nothing)
        #expect(framing.frameContent(5) == test.five)
        let counted =
            switch test.five {
            case .nothing: 0
            case .content(let count): count
            case .chunk: 5
            }
        #expect(framing.contentBytes == counted)
        #expect(framing.isWhole == (test.end != nil))
        guard let end = test.end else { return }
        #expect(String(decoding: framing.end(trailers: Fields([("Checksum", "abc")])), as: UTF8.self) == end)
        let isLegacy = test.version == .http10 && test.body == .unknown
        #expect(framing.endsWithConnection == isLegacy)
    }

    @Test func `the last lines of a head say what becomes of the connection`() {
        for (version, keepAlive, text) in [
            (HTTPVersion.http11, true, "\r\n"), (.http10, true, "Connection: keep-alive\r\n\r\n"),
            (.http11, false, "Connection: close\r\n\r\n"), (.http10, false, "Connection: close\r\n\r\n"),
        ] {
            let end = HTTP1Framing.headEnd(to: version, keepAlive: keepAlive)
            #expect(String(decoding: end, as: UTF8.self) == text)
        }
    }
}
