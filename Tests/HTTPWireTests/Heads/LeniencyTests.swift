// What a lenient reader of responses takes, and what it does not: each head in every split of
// its bytes and line by line.

import HTTPWire
import Testing

@Suite("Leniency towards origins")
struct LeniencyTests {
    @Test(
        "What is mended is refused without leniency, and with it is what it should have been",
        arguments: ResponseCorpus.mended
    )
    func mended(row: ResponseCorpus.Mended) {
        guard case .refused(let error) = responseOutcome(bytes(row.head)) else {
            Issue.record("taken by a strict reader: \(row.head.debugDescription)")
            return
        }
        #expect(error.status == 502 && error.reason == row.reason)
        for following in ["", "hello", "\nhello", "HTTP/1.1 200 OK\r\n\r\n"] {
            let whole = bytes(row.head + following)
            guard case .taken(let seen) = responseOutcome(whole, parser: ResponseParser(isLenient: true)) else {
                Issue.record("not taken: \(row.head.debugDescription)")
                return
            }
            #expect(seen.length == bytes(row.head).count)
            #expect(seen.head.status == row.status && seen.head.reason == row.text)
            #expect(seen.head.fields == Fields(row.fields))
            #expect(seen.framing == row.framing)
            #expect(seen.head.isOddlyFramed == row.isOdd)
            #expect(!row.isOdd || !seen.keepAlive)
        }
    }

    @Test("What could be read in two ways is refused by every reader", arguments: ResponseCorpus.neverMended)
    func neverMended(reason: WireReason, head: String) {
        for isLenient in [false, true] {
            guard case .refused(let error) = responseOutcome(bytes(head), parser: ResponseParser(isLenient: isLenient))
            else {
                Issue.record("taken or incomplete, lenient \(isLenient): \(head.debugDescription)")
                return
            }
            // A strict reader ends at what a lenient one passes over.
            if isLenient { #expect(error == WireError(reason, side: .response, offset: error.offset)) }
        }
    }

    @Test("What a strict reader refuses and nothing mends is refused by a lenient one, for the same reason")
    func refused() {
        let mended = Set(ResponseCorpus.mended.map(\.reason))
        var lenient = ResponseParser(isLenient: true)
        for (reason, head) in ResponseCorpus.refused where !mended.contains(reason) {
            let outcome = parseResponse(bytes(head), ends: [bytes(head).count], method: .get, with: &lenient)
            guard case .refused(let error) = outcome else {
                Issue.record("\(reason) taken or incomplete: \(head.prefix(80).debugDescription)")
                continue
            }
            #expect(error.reason == reason)
        }
    }

    @Test("What a strict reader takes is the same for a lenient one", arguments: ResponseCorpus.taken)
    func same(method: HTTPWire.Method, framing: BodyFraming, keepAlive: Bool, head: String) {
        let strict = responseOutcome(bytes(head), method: method)
        #expect(responseOutcome(bytes(head), method: method, parser: ResponseParser(isLenient: true)) == strict)
    }

    @Test("A head that has to be mended is bounded as any other, in bytes, lines and line length")
    func limits() {
        let head = bytes("HTTP/1.1 200 OK\r\nX-A : bcd\r\n efghijklmnop\nB: c\r\n\r\n")
        for limit in 20..<head.count {
            let parser = ResponseParser(limits: HeadLimits(head: limit), isLenient: true)
            #expect(
                responseOutcome(head, parser: parser)
                    == .refused(WireError(.headTooLong, side: .response, offset: limit))
            )
        }
        let cases: [(HeadLimits, WireReason?)] = [
            (HeadLimits(head: head.count), nil), (HeadLimits(fields: 2), nil), (HeadLimits(fields: 1), .tooManyFields),
            (HeadLimits(field: 21), nil), (HeadLimits(field: 20), .fieldTooLong),
        ]
        for (limits, reason) in cases {
            switch responseOutcome(head, parser: ResponseParser(limits: limits, isLenient: true)) {
            case .taken(let seen): #expect(reason == nil && seen.head.fields.first("x-a") == "bcd efghijklmnop")
            case .refused(let error): #expect(error.reason == reason)
            case .incomplete: Issue.record("incomplete with \(limits)")
            }
        }
    }

    @Test("The limits of responses: 64 KiB a line, 1000 lines, 256 KiB in all; their advice names their keys")
    func responseLimits() {
        func outcome(_ lines: String) -> WireError? {
            var parser = ResponseParser(limits: .response, isLenient: true)
            let head = bytes(ResponseCorpus.ok(lines))
            let outcome = parseResponse(head, ends: [head.count / 2, head.count], method: .get, with: &parser)
            if case .refused(let error) = outcome { return error }
            #expect(outcome != .incomplete)
            return nil
        }
        #expect(outcome("Content-Security-Policy: " + String(repeating: "p", count: 9216)) == nil)
        #expect(outcome("F: " + String(repeating: "v", count: 65533)) == nil)
        let long = outcome("F: " + String(repeating: "v", count: 65534))
        #expect(long?.reason == .fieldTooLong && long?.detail.hasSuffix("limits.response_line") == true)
        #expect(outcome((0..<1000).map { "F\($0): v" }.joined(separator: "\r\n")) == nil)
        let many = outcome((0...1000).map { "F\($0): v" }.joined(separator: "\r\n"))
        #expect(many?.reason == .tooManyFields && many?.detail.hasSuffix("limits.response_fields") == true)
        let large = outcome((0..<5).map { "F\($0): " + String(repeating: "v", count: 60000) }.joined(separator: "\r\n"))
        #expect(large?.reason == .headTooLong && large?.detail.hasSuffix("limits.response_head") == true)
    }

    @Test("A mended head is followed by the next one, line by line as well")
    func next() throws {
        var parser = ResponseParser(isLenient: true)
        var seen: [(Int, Bool)] = []
        let stream =
            "HTTP/1.1 103 Hints\nLink: <a>\n\nHTTP/1.1 100 Continue\r\nA : b\r\n\r\nHTTP/1.1 200 OK\r\nAge: 1\r\n\r\n"
        for line in rawLines(bytes(stream)) {
            if case .complete = try feed(line, .get, &parser) {
                seen.append((parser.makeHead().status, parser.oddFraming != nil))
            }
        }
        #expect(seen.map(\.0) == [103, 100, 200])
        #expect(seen.map(\.1) == [true, false, false])
        #expect(parser.makeHead().fields == Fields([("Age", "1")]))
    }
}
