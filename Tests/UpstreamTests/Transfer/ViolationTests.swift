// Responses that libcurl or a lenient reader takes for good, and that are not: each is a 502, and its
// connection is not used again.

import HTTPWire
import TestSupport
import Testing
import Upstream

struct Violation: Sendable, CustomTestStringConvertible {
    let response: String
    let reason: WireReason
    /// Where libcurl refuses it first, and calls it something else.
    var reasonByLibcurl: WireReason
    var testDescription: String { "\(reason.rawValue): \(response.prefix(60).debugDescription)" }

    init(_ reason: WireReason, _ response: String) {
        self.reason = reason
        reasonByLibcurl = reason
        self.response = response
    }

    func orByLibcurl(_ reason: WireReason) -> Violation {
        var violation = self
        violation.reasonByLibcurl = reason
        return violation
    }

    /// A 200 with these field lines and a body of five bytes.
    static func fields(_ reason: WireReason, _ lines: String, body: String = "hello") -> Violation {
        Violation(reason, "HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n\(body)")
    }

    static func chunks(_ reason: WireReason, _ body: String) -> Violation {
        fields(reason, "Transfer-Encoding: chunked", body: body)
    }

    static let all: [Violation] = [
        // Framing, http-rules C 1 to 5.
        .fields(.contentLengthRepeated, "Content-Length: 5\r\nContent-Length: 3"),
        .fields(.contentLengthRepeated, "Content-Length: 5\r\nContent-Length: 5"),
        .fields(.contentLengthRepeated, "Content-Length: 5, 5"),
        .fields(.contentLengthMalformed, "Content-Length: 0x5"),
        .fields(.contentLengthMalformed, "Content-Length: +5"),
        .fields(.contentLengthMalformed, "Content-Length: -0"),
        .fields(.contentLengthMalformed, "Content-Length: 5 6"),
        .fields(.contentLengthMalformed, "Content-Length:"),
        .fields(.contentLengthMalformed, "Content-Length: 99999999999999999999"),
        .fields(.contentLengthMalformed, "Content-Length: 5a"),
        .fields(.transferEncodingUnknown, "Transfer-Encoding: xchunked", body: "5\r\nhello\r\n0\r\n\r\n"),
        .fields(.transferEncodingUnknown, "Transfer-Encoding: identity"),
        // Chunks, 10 to 12.
        .chunks(.bareLineFeed, "5\nhello\r\n0\r\n\r\n"),
        .chunks(.bareLineFeed, "5\r\nhello\n0\r\n\r\n"),
        .chunks(.chunkSizeMalformed, "0x5\r\nhello\r\n0\r\n\r\n"),
        .chunks(.chunkSizeMalformed, "+5\r\nhello\r\n0\r\n\r\n"),
        .chunks(.chunkSizeMalformed, "\r\nhello\r\n0\r\n\r\n"),
        .chunks(.chunkSizeTooLarge, "00000000000000005\r\nhello\r\n0\r\n\r\n"),
        .chunks(.chunkEndMalformed, "5\r\nhelloX\r\n0\r\n\r\n"),
        // Head, 15, 17, 32 and 22.
        .fields(.spaceBeforeColon, "Content-Length : 5"),
        .fields(.foldedLine, "X-A: b\r\n c\r\nContent-Length: 5"),
        .fields(.foldedLine, "X-A: b\r\n\tc\r\nContent-Length: 5"),
        .fields(.fieldNameEmpty, ": x\r\nContent-Length: 5"),
        .fields(.fieldNameMalformed, "X(A): b\r\nContent-Length: 5"),
        .fields(.spaceBeforeColon, "no colon\r\nContent-Length: 5").orByLibcurl(.fieldNameMalformed),
        .fields(.bareLineFeed, "X-A: b\nContent-Length: 5"),
        .fields(.fieldValueControl, "X-A: b\u{0}c\r\nContent-Length: 5"),
        .fields(.fieldValueControl, "X-A: b\u{1}c\r\nContent-Length: 5"),
        Violation(.bareLineFeed, "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello"),
        Violation(.bareLineFeed, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello"),
        Violation(.statusLineMalformed, "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Violation(.statusLineMalformed, "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Violation(.statusLineMalformed, "HTTP/1.1 600 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Violation(.statusLineMalformed, "HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Violation(.statusLineMalformed, "hello without a head, as HTTP/0.9 had it"),
        Violation(.statusLineMalformed, "ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Violation(.versionUnsupported, "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Violation(
            .transferEncodingInHTTP10,
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ),
        Violation(
            .reasonTooLong,
            "HTTP/1.1 200 \(String(repeating: "x", count: 600))\r\nContent-Length: 5\r\n\r\nhello"
        ),
        // Limits, 18.
        .fields(.tooManyFields, (0..<101).map { "X-\($0): y" }.joined(separator: "\r\n")),
        .fields(.fieldTooLong, "X-A: \(String(repeating: "a", count: 9000))"),
        .fields(
            .headTooLong,
            (0..<20).map { "X-\($0): \(String(repeating: "a", count: 8000))" }.joined(separator: "\r\n")
        ),
        .fields(.fieldTooLong, "X-A: \(String(repeating: "a", count: 300_000))").orByLibcurl(.headTooLong),
        // An interim head is a head.
        Violation(
            .spaceBeforeColon,
            "HTTP/1.1 103 Early\r\nLink : x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        ),
    ]
}

@Suite struct ViolationTests {
    @Test(arguments: Violation.all, Carriage.allCases)
    func `is refused, and its connection discarded`(violation: Violation, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { request in
            request.target == "/good" ? .answer(to: request, "good") : .raw(violation.response)
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/good").text == "good")
        let heard = rig.run(UpstreamRequest(url: "\(origin.url)/bad", isLenient: false))
        guard case .protocolViolation(let error) = heard.error?.kind else {
            Issue.record("not refused: \(heard)")
            return
        }
        #expect(error.reason == (carriage == .wire ? violation.reason : violation.reasonByLibcurl))
        #expect(heard.error?.status == 502)
        #expect(!heard.isFinished)
        #expect(rig.get("\(origin.url)/good").text == "good")
        #expect(origin.connections == 2)
    }

    @Test(arguments: [101, 304], Carriage.allCases)
    func `a status that nothing asked for is refused`(status: Int, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { _ in
            .raw("HTTP/1.1 \(status) X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\ntunnel")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.get(origin.url)
        #expect(heard.error?.kind == .unexpectedStatus(status))
        #expect(heard.error?.status == 502)
        #expect(heard.bodyLength == 0)
    }

    @Test(arguments: ["If-None-Match", "If-Modified-Since"], Carriage.allCases)
    func `a 304 answers a condition`(field: String, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { _ in
            .raw("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        for _ in 0..<2 {
            let heard = rig.get(origin.url, fields: [(field, "\"a\"")])
            #expect(heard.head?.status == 304)
            #expect(heard.calls == "hf")
        }
        #expect(origin.connections == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `Content-Length beside chunked is dropped, and the connection closed after it`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        for _ in 0..<3 {
            let heard = rig.get(origin.url)
            #expect(heard.text == "hello")
            #expect(heard.framing == .chunked)
            #expect(heard.head?.fields.contains(.contentLength) == false)
        }
        #expect(origin.connections == 3)
    }

    @Test(arguments: [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "EXCESS"),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "EXCESS"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", "EXCESS"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello"),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "EXCESS"),
    ])
    func `bytes beyond a response end its connection, not the response`(
        method: String,
        response: String,
        excess: String
    ) throws {
        for (isLate, carriage) in [(false, Carriage.wire), (true, .wire), (false, .libcurl), (true, .libcurl)] {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                if request.target == "/next" { return .answer(to: request, "next") }
                if !isLate { return .raw(response + excess) }
                return OriginReply([OriginReply.text(response), .wait(gate), OriginReply.text(excess)])
            }
            let rig = try Rig(by: carriage)
            defer { rig.close() }
            let heard = rig.run(UpstreamRequest(method: Method(method), url: "\(origin.url)/first"))
            #expect(heard.isFinished)
            #expect(heard.bodyLength == (response.contains("hello") ? 5 : 0))
            if isLate {
                gate.open()
                // The loop sees the bytes on the idle connection, or the check before the next request does.
                #expect(rig.settled(origin))
            }
            #expect(rig.get("\(origin.url)/next").text == "next")
            #expect(origin.connections == 2)
        }
    }

    @Test(arguments: Carriage.allCases)
    func `bytes that are left in the socket are never read as the next response`(carriage: Carriage) throws {
        let evil = "HTTP/1.1 200 EVIL\r\nContent-Length: 4\r\n\r\nevil"
        let origin = try ScriptedOrigin { request in
            if request.target != "/first" { return .answer(to: request, "good") }
            let gap = OriginReply.Step.pause(milliseconds: 20)
            let head = OriginReply.text("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n")
            // In one piece with the end of the body: what arrives later than the next request nobody can tell from its answer.
            return OriginReply([head, gap, .bytes(Pattern.bytes(0..<300_000) + Array(evil.utf8))])
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        // The next request is sent from within the end of the first, before the loop can look at the idle socket.
        let second = Monitor(Heard())
        let url = "\(origin.url)/second"
        let (heard, _) = rig.watch(UpstreamRequest(url: "\(origin.url)/first")) { [inside = rig.inside] recorder in
            recorder.onEnd = { _ in
                _ = inside.client?.start(UpstreamRequest(url: url), body: nil, delegate: Recorder(second))
            }
        }
        #expect(heard.wait(120) { $0.isFinished })
        #expect(heard.read { $0.bodyLength } == 300_000)
        #expect(second.wait(120) { $0.isOver })
        #expect(second.read { $0.text } == "good")
        #expect(origin.connections == 2)
    }

    @Test(
        arguments: overBoth([
            (UpstreamError.Kind.truncated, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", 5),
            (.truncated, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 5),
            (.truncated, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", 5),
            (.truncated, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello", 5),
            (.closed, "HTTP/1.1 200 OK\r\nContent-", 0),
            (.closed, "HTTP/1.1 103 Early Hints\r\n\r\n", 0),
            (.closed, "", 0),
        ])
    )
    func `a response that ends short is not complete`(
        kind: UpstreamError.Kind,
        response: String,
        bytes: Int,
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { _ in OriginReply([OriginReply.text(response), .cut]) }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.run(UpstreamRequest(method: .post, url: origin.url))
        #expect(heard.error?.kind == kind)
        #expect(heard.error?.status == 502)
        #expect(heard.bodyLength == bytes)
        #expect(!heard.isFinished)
        #expect(origin.requests() == 1)
    }
}

extension Rig {
    /// Whether it comes to pass that something is to be read on each idle connection, or it has ended.
    func settled(_ origin: ScriptedOrigin) -> Bool {
        blockUntil { Descriptors.connected(to: origin.port).allSatisfy(Descriptors.isReadable) }
    }
}
