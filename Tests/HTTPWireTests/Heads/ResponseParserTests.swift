// The response parser: what it takes and what it refuses, each head in every split of its bytes and line by line.

import HTTPWire
import Testing

@Suite("Response parser")
struct ResponseParserTests {
    @Test("RFC 9112 4, 5, 6: what is refused, with 502", arguments: ResponseCorpus.refused)
    func refused(reason: WireReason, head: String) {
        // Long heads get every 61st split only: the parser's work for all of them would be quadratic.
        let outcome = bytes(head).count < 1000 ? responseOutcome(bytes(head)) : longOutcome(bytes(head))
        guard case .refused(let error) = outcome else {
            Issue.record("taken or incomplete: \(head.debugDescription)")
            return
        }
        #expect(error.status == 502)
        #expect(error.reason == reason)
    }

    func longOutcome(_ bytes: [UInt8]) -> ResponseOutcome {
        var parser = ResponseParser()
        let whole = parseResponse(bytes, ends: [bytes.count], method: .get, with: &parser)
        for split in stride(from: 0, to: bytes.count, by: 61) {
            #expect(parseResponse(bytes, ends: [split, bytes.count], method: .get, with: &parser) == whole)
        }
        #expect(feedResponse(bytes, method: .get, with: &parser) == whole)
        return whole
    }

    @Test(
        "RFC 9112 6.3, 9.3: framing and persistence; what follows the head is left alone",
        arguments: ResponseCorpus.taken
    )
    func taken(method: HTTPWire.Method, framing: BodyFraming, keepAlive: Bool, head: String) {
        for following in ["", "body", "\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
            guard case .taken(let seen) = responseOutcome(bytes(head + following), method: method) else {
                Issue.record("not taken: \(head.debugDescription)")
                return
            }
            #expect(seen.framing == framing)
            #expect(seen.keepAlive == keepAlive)
            #expect(seen.length == bytes(head).count)
        }
    }

    @Test("RFC 9112 6.3: Transfer-Encoding overrides Content-Length, which is dropped, and the connection ends")
    func lengthDropped() {
        for lines in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5",
        ] {
            let outcome = responseOutcome(bytes(ResponseCorpus.ok("A: 1\r\n\(lines)\r\nB: 2")))
            guard case .taken(let seen) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(seen.framing == .chunked && !seen.keepAlive)
            #expect(seen.head.fields == Fields([("A", "1"), ("Transfer-Encoding", "chunked"), ("B", "2")]))
        }
    }

    @Test("Status, reason, version and fields come out as sent")
    func parts() {
        let outcome = responseOutcome(bytes("HTTP/1.0 404 Not \u{E9} Found \r\nETag:\"a\"\r\nx: \u{FF}\r\n\r\n"))
        guard case .taken(let seen) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(seen.head.status == 404)
        #expect(seen.head.reason == "Not \u{E9} Found ")
        #expect(seen.head.version == .http10)
        #expect(seen.head.fields == Fields([("ETag", "\"a\""), ("x", "\u{FF}")]))
    }

    @Test("RFC 9110 15.2: interim responses and the final one are fed in a row")
    func interim() throws {
        var parser = ResponseParser()
        var statuses: [Int] = []
        let stream =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nAge: 1\r\n\r\n"
        for line in rawLines(bytes(stream)) {
            if case .complete = try feed(line, .get, &parser) { statuses.append(parser.makeHead().status) }
        }
        #expect(statuses == [100, 103, 200])
        #expect(parser.makeHead().fields == Fields([("Age", "1")]))
    }

    @Test("HTTP/2 status lines are taken only where asked for")
    func http2() throws {
        let plain = responseOutcome(bytes("HTTP/2 200 \r\nx: y\r\n\r\n"), parser: ResponseParser(acceptsHTTP2: true))
        guard case .taken(let seen) = plain else {
            Issue.record("\(plain)")
            return
        }
        #expect(seen.head.status == 200 && seen.framing == .untilClose && seen.keepAlive)
        let chunked = responseOutcome(
            bytes("HTTP/2 200 \r\nTransfer-Encoding: chunked\r\n\r\n"),
            parser: ResponseParser(acceptsHTTP2: true)
        )
        guard case .refused(let error) = chunked else {
            Issue.record("\(chunked)")
            return
        }
        #expect(error.reason == .transferEncodingMalformed && error.status == 502)
        guard
            case .taken = responseOutcome(bytes("HTTP/1.1 200 OK\r\n\r\n"), parser: ResponseParser(acceptsHTTP2: true))
        else {
            Issue.record("HTTP/1.1 refused")
            return
        }
        guard
            case .refused = responseOutcome(
                bytes("HTTP/2.0 200 OK\r\n\r\n"),
                parser: ResponseParser(acceptsHTTP2: true)
            )
        else {
            Issue.record("HTTP/2.0 taken")
            return
        }
    }

    @Test("A head over the limit is refused with 502")
    func headLimit() {
        let head = bytes(ResponseCorpus.ok("X: y"))
        for limit in 16..<head.count {
            let outcome = responseOutcome(head, parser: ResponseParser(limits: HeadLimits(head: limit)))
            #expect(outcome == .refused(WireError(.headTooLong, side: .response, offset: limit)))
        }
        guard case .taken = responseOutcome(head, parser: ResponseParser(limits: HeadLimits(head: head.count))) else {
            Issue.record("refused at the limit itself")
            return
        }
    }
}
