// Faults through the real handler: what the client sees byte for byte, what becomes of the connection, and that nothing
// of a fault is stored.

import EventLoop
import Glibc
import Policies
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct FaultTests {
    /// The length of the body that the origin sends.
    private static let body = "0123456789abcdef"
    private static let length = body.utf8.count

    private static func service(_ origin: ScriptedOrigin, _ faults: String) -> String {
        "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\", faults: \(faults) }]"
    }

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], body) }
    }

    /// Everything up to the end of the connection, and whether that was a reset.
    private static func readAll(_ client: RawClient) throws -> (text: String, isReset: Bool) {
        var bytes: [UInt8] = []
        while true {
            do { bytes += try client.readRaw(1) } catch TestSupportError.system(_, let code) where code == ECONNRESET {
                return (String(decoding: bytes, as: UTF8.self), true)
            } catch is RawClientError {
                return (String(decoding: bytes, as: UTF8.self), false)
            }
        }
    }

    /// A fault, the content that the client gets behind the head, and how it ends.
    struct Case: Sendable, CustomTestStringConvertible {
        let fault: String
        /// Nil: there is no head, and the text is all there is.
        let contentLength: String?
        let text: String
        var isReset = false

        var testDescription: String { fault }
    }

    static let cases = [
        Case(fault: "reset", contentLength: nil, text: "", isReset: true),
        Case(fault: "{ reset: { after: 4B } }", contentLength: "16", text: "0123", isReset: true),
        Case(fault: "empty", contentLength: nil, text: ""),
        Case(fault: "close", contentLength: "16", text: ""),
        Case(fault: "{ close: { after: 5B } }", contentLength: "16", text: "01234"),
        Case(fault: "{ bad_chunk: { after: 3B } }", contentLength: "", text: "3\r\n012\r\nno-size\r\n"),
        Case(fault: "{ stalled_head: { for: 20ms } }", contentLength: nil, text: "HTTP/1.1 200 OK\r\nContent-Ty"),
        Case(fault: "{ stalled_body: { after: 2B, for: 20ms } }", contentLength: "16", text: "01"),
        Case(fault: "{ slow_close: { for: 20ms } }", contentLength: "16", text: body),
        Case(fault: "{ wrong_length: { by: 10 } }", contentLength: "26", text: body),
        Case(fault: "{ wrong_length: { by: -10 } }", contentLength: "6", text: body),
        Case(
            fault: "garbage",
            contentLength: nil,
            text: "\u{1}\u{2}\u{7f} this is no HTTP \u{3}\r\n\u{4}\u{5}\u{6}\r\nnor is this"
        ),
        Case(
            fault: "{ garbage: { after: status_line } }",
            contentLength: nil,
            text: "HTTP/1.1 200 OK\r\n\u{1}\u{2}\u{7f} this is no HTTP \u{3}\r\n\u{4}\u{5}\u{6}\r\nnor is this"
        ),
    ]

    /// The second request has come with the first one, and must not be answered, whatever the client takes for the end
    /// of the first answer.
    @Test(arguments: cases) func whatTheClientSees(_ one: Case) async throws {
        let origin = try Self.origin()
        let text = Self.service(origin, "{ name: f, first: 1, fault: \(one.fault) }")
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            try client.send("GET /s/x HTTP/1.1\r\nHost: localhost\r\n\r\nGET /s/y HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let seen = try Self.readAll(client)
            #expect(seen.isReset == one.isReset)
            if let contentLength = one.contentLength {
                let parts = seen.text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
                let head = String(parts.first ?? "")
                #expect(head.hasPrefix("HTTP/1.1 200 "))
                #expect(parts.last.map(String.init) == one.text)
                let framing =
                    contentLength.isEmpty ? "Transfer-Encoding: chunked" : "Content-Length: \(contentLength)"
                #expect(head.contains(framing), "\(head)")
                #expect(head.contains("Drydock-Demo: fault=f; wire="), "\(head)")
            } else {
                #expect(seen.text == one.text)
            }
            // The connection is gone, the daemon is not, and the response was stored as it is.
            try harness.settle()
            let next = try harness.exchange("GET", "/s/x")
            #expect(next.text == Self.body)
            // Where nothing of the answer was to go out, the origin was not asked before.
            let isSpared = ["reset", "empty", "garbage"].contains(one.fault)
            #expect(next.field("Cache-Status")?.contains("; hit; ") == !isSpared)
            #expect(next.field("Drydock-Demo") == nil)
            #expect(origin.requests(target: "/x") == 1)
            let counters = try harness.counters()
            let kinds = WireFault.Kind.allCases.map { counters[.fault($0)] }
            #expect(kinds.reduce(0, +) == 1)
            #expect(counters[.errorAborted] == 1)
        }
        #expect(origin.requests(target: "/y") == 0)
    }

    @Test func headAndOlderClientsHaveNoChunks() async throws {
        let origin = try Self.origin()
        let text = Self.service(origin, "{ fault: { bad_chunk: { after: 3B } } }")
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            try client.send("GET /s/x HTTP/1.0\r\n\r\n")
            let old = try Self.readAll(client)
            #expect(old.isReset)
            #expect(!old.text.contains("no-size"))
            let other = try harness.client()
            try other.request("HEAD", "/s/x")
            let head = try Self.readAll(other)
            #expect(!head.isReset)
            #expect(head.text.hasSuffix("\r\n\r\n"))
        }
    }

    @Test func aStatusTakesThePlaceOfTheAnswer() async throws {
        let origin = try Self.origin()
        let faults = "{ name: busy, first: 1, status: 503, retry_after: 3s, latency: 5ms }"
        try await HandlerHarness.run(Self.service(origin, faults)) { harness throws in
            let client = try harness.client()
            let first = try client.exchange("/s/x")
            #expect(first.status == 503)
            #expect(first.text == "")
            #expect(first.field("Retry-After") == "3")
            let said = try #require(first.field("Drydock-Demo"))
            #expect(said.hasPrefix("fault=busy; latency=5ms; status=503; draw="))
            try harness.settle()
            #expect(first.field("Cache-Status") == "drydock; detail=fault")
            // The same connection, and what the origin says.
            let second = try client.exchange("/s/x")
            #expect(second.status == 200)
            #expect(second.text == Self.body)
            #expect(second.field("Cache-Status")?.contains("; fwd=uri-miss; ") == true)
            let counters = try harness.counters()
            #expect(counters[.faultStatus] == 1)
            #expect(counters[.faultLatency] == 1)
        }
        #expect(origin.requests() == 1)
    }

    /// A POST of a target whose response is stored, with a fault.
    /// - Returns: its answer, and Cache-Status of a GET after it, without the fault.
    private static func post(_ origin: ScriptedOrigin, _ faults: String) async throws -> (RawResponse, String) {
        let seen = Monitor<(RawResponse, String)?>(nil)
        try await HandlerHarness.run(Self.service(origin, "[]")) { harness throws in
            #expect(try harness.exchange("GET", "/s/x").status == 200)
            try harness.settle()
            try harness.reload(Self.service(origin, faults))
            let client = try harness.client()
            try client.request("POST", "/s/x", body: Array("order".utf8))
            let answer = try client.readResponse(method: "POST")
            try harness.reload(Self.service(origin, "[]"))
            let after = try harness.exchange("GET", "/s/x").field("Cache-Status") ?? ""
            seen.update { $0 = (answer, after) }
        }
        return try #require(seen.read { $0 })
    }

    @Test(arguments: ["", "at: miss, ", "at: [miss, demo], "])
    func whatAFaultTakesTheOriginIsNotAskedFor(_ fault: String) async throws {
        let origin = try Self.origin()
        let (answer, after) = try await Self.post(origin, "{ \(fault)status: 503 }")
        #expect(answer.status == 503)
        #expect(answer.field("Cache-Status") == "drydock; detail=fault")
        #expect(origin.requests(method: "POST") == 0)
        // What was not sent has invalidated nothing.
        #expect(after.contains("; hit; "))
    }

    @Test func anAskedOriginDoesItsWork() async throws {
        let origin = try Self.origin()
        let (answer, after) = try await Self.post(origin, "{ at: miss, origin: ask, status: 503 }")
        #expect(answer.status == 503)
        #expect(origin.requests(method: "POST") == 1)
        #expect(after.contains("; fwd=uri-miss; "))
    }

    /// What is stored and is to be validated is no miss before the origin has said so.
    @Test func aValidationIsNoMissBeforeItsAnswer() async throws {
        let origin = try ScriptedOrigin { request in
            let isKnown = request.field("If-None-Match") != nil
            let fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=60")]
            return .answer(isKnown ? 304 : 200, to: request, fields: fields, isKnown ? "" : "body")
        }
        let url = origin.url
        let text: @Sendable (String) -> String = { faults in
            "services: [{ name: s, match: { prefix: /s }, base_url: \"\(url)\", "
                + "cache: { revalidate: conditional }, faults: \(faults) }]"
        }
        try await HandlerHarness.run(text("[]")) { harness throws in
            #expect(try harness.exchange("GET", "/s/x").status == 200)
            try harness.settle()
            harness.clock.advance(seconds: 61)
            try harness.reload(text("{ at: miss, status: 503 }"))
            #expect(try harness.exchange("GET", "/s/x").status == 200)
            #expect(origin.requests() == 2)
            harness.clock.advance(seconds: 61)
            try harness.reload(text("{ at: [miss, revalidate, stale], status: 503 }"))
            #expect(try harness.exchange("GET", "/s/x").status == 503)
            #expect(origin.requests() == 2)
        }
    }

    @Test func faultsActWhereTheySay() async throws {
        let origin = try ScriptedOrigin { request in
            let isKnown = request.field("If-None-Match") != nil
            let fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=60")]
            return .answer(isKnown ? 304 : 200, to: request, fields: fields, isKnown ? "" : "body")
        }
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                cache: { revalidate: conditional }
                faults:
                  - { name: of-miss, at: miss, origin: ask, status: 500 }
                  - { name: of-hit, at: hit, status: 501 }
                  - { name: of-check, at: revalidate, status: 502 }
              - { name: d, match: { prefix: /d }, demo: { enabled: on, status: 204 }, faults: { at: demo, status: 504 } }
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/s/x").status == 500)
            try harness.settle()
            #expect(try harness.exchange("GET", "/s/x").status == 501)
            harness.clock.advance(seconds: 61)
            #expect(try harness.exchange("GET", "/s/x").status == 502)
            let demo = try harness.exchange("GET", "/d/x")
            #expect(demo.status == 504)
            let said = try #require(demo.field("Drydock-Demo"))
            #expect(said.contains("; draw=") && said.contains(", fault=504; status=504; draw="))
        }
    }

    /// Stale is what is stored and stale, whatever made it the answer.
    @Test func aStaleAnswerThatIsCheckedBehindItIsStale() async throws {
        let origin = try Self.origin()
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                cache: { stale_while_revalidate: 60s }
                faults: [{ name: of-hit, at: hit, status: 501 }, { name: of-stale, at: stale, status: 502 }]
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/s/x").status == 200)
            try harness.settle()
            #expect(try harness.exchange("GET", "/s/x").status == 501)
            harness.clock.advance(seconds: 601)
            let stale = try harness.exchange("GET", "/s/x")
            #expect(stale.status == 502)
            // Every second counts that a busy machine lets pass.
            #expect(stale.field("Cache-Status")?.contains(/hit; ttl=-\d+; detail=refreshing/) == true)
        }
    }

    /// A body that no tier takes waits for its slowest reader: one that a fault keeps from reading is alone with it.
    @Test func othersDoNotWaitForAClientThatIsKeptFromReading() async throws {
        let body = String(repeating: "0123456789abcdef", count: 4 << 16)
        let gate = Monitor(false)
        let origin = try ScriptedOrigin { request in
            _ = gate.wait(120, until: { $0 })
            return .answer(to: request, fields: [("Cache-Control", "max-age=600")], body)
        }
        let faults = "{ first: 1, fault: { stalled_body: { after: 4B } } }"
        let text = "cache: { memory: { size: 1MiB } }\n" + Self.service(origin, faults)
        try await HandlerHarness.run(text) { harness throws in
            let clients = try (0..<3).map { _ in try harness.client() }
            try clients[0].request("GET", "/s/x")
            #expect(origin.waitForRequests(1))
            for client in clients.dropFirst() { try client.request("GET", "/s/x") }
            gate.update { $0 = true }
            // Which of them the fault acts on, they decide among themselves.
            let isWhole = try clients.map { client in
                let head = try client.readHead()
                if head.field("Drydock-Demo") != nil { return false }
                var count = 0
                _ = try client.readBody { count += $0.count }
                return count == body.utf8.count
            }
            #expect(isWhole.count { $0 } == 2)
        }
    }

    @Test func othersThatWaitForTheSameResponseSeeNothingOfIt() async throws {
        let gate = Monitor(false)
        let origin = try ScriptedOrigin { request in
            _ = gate.wait(120, until: { $0 })
            return .answer(to: request, fields: [("Cache-Control", "max-age=600")], Self.body)
        }
        let faults = "{ first: 1, fault: { close: { after: 4B } } }"
        try await HandlerHarness.run(Self.service(origin, faults)) { harness throws in
            let (one, two) = (try harness.client(), try harness.client())
            try one.request("GET", "/s/x")
            #expect(origin.waitForRequests(1))
            try two.request("GET", "/s/x")
            gate.update { $0 = true }
            let bodies = try [one, two].map { client in
                let head = try client.readHead()
                var text: [UInt8] = []
                _ = try client.readBody { text += $0 }
                return (String(decoding: text, as: UTF8.self), head.field("Drydock-Demo") != nil)
            }
            #expect(Set(bodies.map(\.0)) == ["0123", Self.body])
            #expect(bodies.count { $0.1 } == 1)
            try harness.settle()
            #expect(try harness.exchange("GET", "/s/x").text == Self.body)
        }
        #expect(origin.requests() == 1)
    }

    @Test func aPacedBodyTakesItsTime() async throws {
        let origin = try Self.origin()
        let text = """
            services:
              - { name: rate, match: { prefix: /rate }, base_url: "\(origin.url)", faults: { pace: 80B/s } }
              - { name: pieces, match: { prefix: /pieces }, base_url: "\(origin.url)", faults: { dribble: { chunks: 4, over: 200ms } } }
            """
        try await HandlerHarness.run(text) { harness throws in
            for path in ["/rate/x", "/pieces/x", "/rate/x"] {
                let began = ContinuousClock.now
                let answer = try harness.exchange("GET", path)
                #expect(answer.text == Self.body)
                // 16 bytes at 80 bytes a second.
                #expect(hasPassed(.milliseconds(200), since: began))
                #expect(answer.field("Drydock-Demo")?.contains("; pace=") == true)
            }
            #expect(try harness.counters()[.faultPace] == 3)
        }
    }

    /// With a length, in chunks, and to a client that knows no chunks: the answer is there while its connection still is.
    @Test func aSlowCloseComesBehindTheWholeAnswer() async throws {
        // The rest of a body without a length comes when the client has its head.
        let gates = ["/y": Gate(), "/z": Gate()]
        let origin = try ScriptedOrigin { request in
            let fields = [("Cache-Control", "no-store")]
            guard let gate = gates[request.target] else { return .answer(to: request, fields: fields, Self.body) }
            var reply = OriginReply.chunked(["01234567", "89abcdef"], fields: fields)
            reply.steps.insert(.wait(gate), at: 2)
            return reply
        }
        try await HandlerHarness.run(Self.service(origin, "{ fault: slow_close }")) { harness throws in
            for (index, target) in ["/x", "/y"].enumerated() {
                let client = try harness.client()
                try client.request("GET", "/s\(target)")
                #expect((try client.readHead().field("Transfer-Encoding") == "chunked") == (target == "/y"))
                gates[target]?.open()
                var text: [UInt8] = []
                _ = try client.readBody { text += $0 }
                #expect(String(decoding: text, as: UTF8.self) == Self.body)
                // The exchange is over when the client leaves, and not before.
                #expect(try harness.counters()[.errorAborted] == UInt64(index))
                client.close()
                #expect(try blockUntil { try harness.counters()[.errorAborted] == UInt64(index) + 1 })
            }
            let old = try harness.client()
            try old.send("GET /s/z HTTP/1.0\r\n\r\n")
            var seen = ""
            while !seen.hasSuffix(Self.body) {
                seen += String(decoding: try old.readRaw(1), as: UTF8.self)
                if seen.hasSuffix("\r\n\r\n") { gates["/z"]?.open() }
            }
            #expect(!seen.contains("Transfer-Encoding"))
            #expect(try harness.counters()[.errorAborted] == 2)
            old.close()
            #expect(try blockUntil { try harness.counters()[.errorAborted] == 3 })
            #expect(try harness.counters()[.faultSlowClose] == 3)
        }
    }

    @Test func aStallEndsWithItsClient() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.service(origin, "{ fault: stalled_body }")) { harness throws in
            let client = try harness.client()
            try client.request("GET", "/s/x")
            #expect(try client.readHead().status == 200)
            client.close()
            #expect(try blockUntil { try harness.counters()[.errorAborted] == 1 })
        }
    }

    @Test func reloadsKeepTheCount() async throws {
        let origin = try Self.origin()
        let text = Self.service(origin, "{ first: 2, status: 503 }")
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/s/x").status == 503)
            try harness.reload(text)
            #expect(try harness.exchange("GET", "/s/x").status == 503)
            #expect(try harness.exchange("GET", "/s/x").status == 200)
            try harness.reload(Self.service(origin, "[]"))
            #expect(try harness.exchange("GET", "/s/y").status == 200)
        }
    }

    @Test func forwardModeHasFaultsToo() async throws {
        let origin = try Self.origin()
        let text = "forward: { allow: [127.0.0.1], faults: { name: f, status: 418 } }"
        try await HandlerHarness.run(text) { harness throws in
            for _ in 0..<2 {
                let answer = try harness.exchange("GET", "\(origin.url)/x", host: "127.0.0.1:\(origin.port)")
                #expect(answer.status == 418)
            }
        }
    }

    /// What has a fault goes neither the fast way nor the direct one; what has none keeps both.
    @Test func routesWithFaultsLeaveTheFastWays() throws {
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: http://127.0.0.1:9
                cache: { mode: none }
                endpoints:
                  - { name: bad, path: /bad, faults: 3g }
                  - { name: good, path: /good }
            """
        let route = try #require(try compile(text).services.first)
        let bad = try #require(route.endpoints.first { $0.name == "bad" })
        let good = try #require(route.endpoints.first { $0.name == "good" })
        #expect("\(bad.hotKey) \(bad.passThrough)" == "none never")
        #expect("\(good.hotKey) \(good.passThrough)" == "whole always")
        #expect("\(route.itself.hotKey) \(route.itself.passThrough)" == "whole always")
    }
}
