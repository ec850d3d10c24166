// The request parser: what it takes and what it refuses, each head in every split of its bytes over reads.

import HTTPWire
import Testing

@Suite("Request parser")
struct RequestParserTests {
    @Test("RFC 9112 6: framing that is refused", arguments: RequestCorpus.framing)
    func framing(status: Int, reason: WireReason, head: String) { expectRefused(head, status, reason) }

    @Test("RFC 9112 2.2, 3, 5: lines that are refused", arguments: RequestCorpus.lines)
    func lines(status: Int, reason: WireReason, head: String) { expectRefused(head, status, reason) }

    @Test("RFC 9112 3.2: exactly one well-formed Host", arguments: RequestCorpus.hosts)
    func hosts(status: Int, reason: WireReason, head: String) { expectRefused(head, status, reason) }

    @Test(
        "RFC 9112 6, 9.3: framing and persistence; what follows the head is left alone",
        arguments: RequestCorpus.taken
    )
    func taken(framing: BodyFraming, keepAlive: Bool, head: String) throws {
        for following in ["", "\r\n", "\0\n\r", "GET /next HTTP/1.1\r\nHost: b\r\n\r\n"] {
            let seen = try expectTaken(head + following)
            #expect(seen.framing == framing)
            #expect(seen.keepAlive == keepAlive)
            #expect(seen.length == bytes(head).count)
            #expect(seen.present == seen.head.fields.present)
        }
    }

    @Test("Every head that is cut short asks for more")
    func incomplete() {
        let head = bytes(RequestCorpus.post("Content-Length: 5\r\nX: y"))
        var parser = RequestParser()
        for end in 0..<head.count { #expect(parseRequest(head, ends: [end], with: &parser) == .incomplete) }
    }

    @Test("Method, target, version and fields come out as sent")
    func parts() throws {
        let seen = try expectTaken("BREW /a/%2e?b=c HTTP/1.0\r\nHost:h\r\nx-Y:  1 2\t\r\nACCEPT: */*\r\nZ:\r\n\r\n")
        #expect(seen.head.method == .other("BREW"))
        #expect(seen.head.target == "/a/%2e?b=c")
        #expect(seen.head.version == .http10)
        #expect(seen.head.fields == Fields([("Host", "h"), ("x-Y", "1 2"), ("ACCEPT", "*/*"), ("Z", "")]))
        #expect(seen.present == FieldSet(.host, .other, .accept))
    }

    @Test(
        "UTF-8 in a target is percent-encoded, so that a resource has one name however it is written",
        arguments: [
            ("GET", "/\u{FC}", "/%C3%BC"), ("GET", "/%C3%BC", "/%C3%BC"),
            ("GET", "/a/\u{FC}b?\u{20AC}=\u{1F600}", "/a/%C3%BCb?%E2%82%AC=%F0%9F%98%80"),
            ("DELETE", "/\u{7FF}\u{800}\u{FFFF}\u{10FFFF}", "/%DF%BF%E0%A0%80%EF%BF%BF%F4%8F%BF%BF"),
            ("GET", "http://a.test/\u{FC}", "http://a.test/%C3%BC"),
            ("OPTIONS", "http://a.test?\u{FC}", "http://a.test?%C3%BC"),
        ]
    )
    func rawTarget(method: String, sent: String, target: String) throws {
        let raw = text(Array(sent.utf8))
        #expect(try expectTaken("\(method) \(raw) HTTP/1.1\r\nHost: a\r\n\r\n").head.target == target)
        var parser = RequestParser()
        // The mark goes with the head: the same fields, said again, belong to another target.
        for (path, isRaw) in [(raw, raw != target), ("/plain", false), (raw, raw != target)] {
            parser.reset()
            let head = bytes("\(method) \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            try head.withUnsafeBytes { (buffer: UnsafeRawBufferPointer) throws in
                #expect(try parser.parse(buffer) == .complete(headLength: head.count))
                #expect(parser.hasRawTarget == isRaw)
                #expect(parser.isOrdinary == !isRaw)
                let made = parser.makeHead(buffer)
                #expect(made.target == (path == raw ? target : "/plain"))
                _ = try parser.makeTarget(made)
            }
        }
    }

    @Test(
        "What is no UTF-8 in a target, or stands where a host stands, is refused",
        arguments: [
            ("GET", "/\u{80}", .targetMalformed), ("GET", "/\u{C3}", .targetMalformed),
            ("GET", "/\u{C3}/\u{BC}", .targetMalformed), ("GET", "/\u{C0}\u{AF}", .targetMalformed),
            ("GET", "/\u{E0}\u{80}\u{AF}", .targetMalformed), ("GET", "/\u{ED}\u{A0}\u{80}", .targetMalformed),
            ("GET", "/\u{F4}\u{90}\u{80}\u{80}", .targetMalformed), ("GET", "/\u{FF}", .targetMalformed),
            ("GET", "/\u{C3}\u{BC}#", .targetMalformed), ("GET", "/\u{C3}\u{BC}\u{7F}", .targetMalformed),
            ("GET", "\u{C3}\u{BC}", .targetMalformed), ("GET", "http://\u{C3}\u{BC}/", .authorityMalformed),
            ("CONNECT", "\u{C3}\u{BC}:443", .authorityMalformed),
        ] as [(String, String, WireReason)]
    )
    func rawTargetRefused(method: String, target: String, reason: WireReason) {
        expectRefused("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n", 400, reason)
    }

    @Test("Offsets point into the buffer")
    func offsets() throws {
        let head = bytes("\r\nPUT /x HTTP/1.1\r\nHost: a\r\nETag: \"e\" \r\n\r\n")
        var parser = RequestParser()
        try head.withUnsafeBytes { (buffer: UnsafeRawBufferPointer) throws in
            #expect(try parser.parse(buffer) == .complete(headLength: head.count))
            #expect(Array(buffer[parser.targetRange]) == bytes("/x"))
            #expect(parser.entries.map { Array($0.name(in: buffer)) } == [bytes("Host"), bytes("ETag")])
            #expect(parser.value(.etag, in: buffer).map(Array.init) == bytes("\"e\""))
            #expect(parser.value(.age, in: buffer) == nil)
            #expect(try parser.parse(buffer) == .complete(headLength: head.count))
        }
    }

    @Test(
        "RFC 9110 10.1.1: Expect in HTTP/1.1 only",
        arguments: [
            ("HTTP/1.1", "100-continue", true), ("HTTP/1.1", "100-Continue", true), ("HTTP/1.1", "other", false),
            ("HTTP/1.0", "100-continue", false),
        ]
    )
    func expect(version: String, value: String, expected: Bool) throws {
        let seen = try expectTaken("POST / \(version)\r\nHost: a\r\nContent-Length: 1\r\nExpect: \(value)\r\n\r\n")
        #expect(seen.expectsContinue == expected)
        #expect(seen.present.contains(.expect))
    }

    @Test(
        "RFC 9110 7.8: Upgrade counts where Connection names it, in HTTP/1.1",
        arguments: [
            ("HTTP/1.1", "keep-alive, Upgrade", true), ("HTTP/1.1", "keep-alive", false),
            ("HTTP/1.0", "upgrade", false),
        ]
    )
    func upgrade(version: String, connection: String, expected: Bool) throws {
        let head = "GET / \(version)\r\nHost: a\r\nConnection: \(connection)\r\nUpgrade: websocket\r\n\r\n"
        #expect(try expectTaken(head).requestsUpgrade == expected)
    }

    @Test("Pipelined requests are taken one by one from what is left")
    func pipelined() throws {
        var rest = bytes("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        var parser = RequestParser()
        for (target, keepAlive) in [("/1", true), ("/2", false)] {
            guard case .taken(let seen) = parseRequest(rest, ends: [rest.count], with: &parser) else {
                Issue.record("not taken")
                return
            }
            #expect(seen.head.target == target && seen.keepAlive == keepAlive)
            rest.removeFirst(seen.length)
        }
        #expect(rest.isEmpty)
    }

    @Test("A warm parser keeps its storage from request to request")
    func storage() {
        var parser = RequestParser()
        let head = bytes(RequestCorpus.get("A: 1\r\nB: 2\r\nC: 3"))
        var addresses: Set<UnsafeRawPointer?> = []
        for _ in 0..<5 {
            _ = parseRequest(head, ends: [10, head.count], with: &parser)
            #expect(parser.entries.count == 4)
            addresses.insert(parser.entries.withUnsafeBytes { $0.baseAddress })
        }
        #expect(addresses.count == 1)
    }

    @Test("A byte that was scanned is not scanned again")
    func scannedOnce() throws {
        let head = bytes(RequestCorpus.get("X: " + String(repeating: "v", count: 40) + "\r\nY: 1"))
        let value = try #require(head.firstIndex(of: UInt8(ascii: "v")))
        for split in value...value + 40 {
            var parser = RequestParser()
            let first = try head[..<split].withUnsafeBytes { try parser.parse($0) }
            #expect(first == .needMore)
            // What the parser has seen turns into what it would refuse.
            var changed = head
            for position in value..<split { changed[position] = 0 }
            let second = try changed.withUnsafeBytes { try parser.parse($0) }
            #expect(second == .complete(headLength: head.count))
        }
    }

    @Test("A refusal is final until reset")
    func final() {
        var parser = RequestParser()
        let bad = bytes("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n")
        let good = bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(throws: WireError(.methodMalformed, side: .request, offset: 3)) {
            try bad.withUnsafeBytes { try parser.parse($0) }
        }
        #expect(throws: WireError(.methodMalformed, side: .request, offset: 3)) {
            try good.withUnsafeBytes { try parser.parse($0) }
        }
        parser.reset()
        #expect(throws: Never.self) { try good.withUnsafeBytes { try parser.parse($0) } }
    }

    @Test("Every refusal names its place and what to do", arguments: WireReason.allCases)
    func advice(reason: WireReason) {
        let error = WireError(reason, side: .request, offset: 7)
        #expect(error.detail == "\(reason.rawValue) at byte 7: \(reason.advice)")
        #expect([400, 411, 414, 431, 501, 505].contains(error.status))
        #expect(WireError(reason, side: .response).status == 502)
    }
}
