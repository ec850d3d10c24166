// Clients that end their side behind a request: they get their answer, unless what they asked for ends with them.

import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct HalfCloseTests {
    private static func services(_ origin: ScriptedOrigin, _ cache: String) -> String {
        """
        services: [{ name: s, match: { prefix: /s }, base_url: "\(origin.url)", cache: { \(cache) } }]
        forward: { allow: [127.0.0.1], cache: { \(cache) } }
        """
    }

    /// Answers with the body it got, once the gate is open.
    private static func waiting(_ gate: Gate) throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let fields = [("Cache-Control", "max-age=600")]
            return OriginReply([.wait(gate)]).then(.answer(to: request, fields: fields, "got \(request.body.count)"))
        }
    }

    private static let requests: [(String, Int)] = [
        ("GET /s/x HTTP/1.1\r\nHost: localhost\r\n\r\n", 0), ("GET #/x HTTP/1.1\r\nHost: localhost\r\n\r\n", 0),
        ("POST /s/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 5),
        ("POST /s/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5 ;a\r\nhello\r\n0\r\n\r\n", 5),
        ("PUT #/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 5),
        // An Upgrade that is ignored.
        ("GET /s/x HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", 0),
        (
            "POST /s/x HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                + "Content-Length: 5\r\n\r\nhello", 5
        ),
    ]

    @Test(arguments: requests, ["mode: standard", "mode: none", "on_client_abort: finish"])
    func `a client that ends its side behind a request gets its answer`(
        request: (text: String, length: Int),
        cache: String
    ) async throws {
        let gate = Gate()
        let origin = try Self.waiting(gate)
        defer { gate.open() }
        try await HandlerHarness.run(Self.services(origin, cache)) { harness throws in
            let client = try harness.client()
            try client.send(request.text.replacing("#", with: origin.url))
            client.finishSending()
            #expect(origin.waitForRequests(1))
            // The end has come by then.
            try harness.turn()
            gate.open()
            let got = try client.readResponse()
            #expect(got.status == 200 && got.text == "got \(request.length)")
            #expect(try client.isClosedByServer())
            try harness.waitForConnections(0)
        }
    }

    @Test(arguments: ["on_client_abort: abort", "on_client_abort: abort, mode: none", "on_client_abort: finish-if 50%"])
    func `unless its leaving ends what it asked for`(cache: String) async throws {
        let gate = Gate()
        let origin = try Self.waiting(gate)
        defer { gate.open() }
        try await HandlerHarness.run(Self.services(origin, cache)) { harness throws in
            for (text, _) in Self.requests {
                let before = try harness.counters()[.errorAborted]
                let client = try harness.client()
                try client.send(text.replacing("#", with: origin.url))
                client.finishSending()
                #expect(try client.isClosedByServer())
                try harness.waitForConnections(0)
                #expect(try harness.counters()[.errorAborted] == before + 1)
            }
        }
    }

    @Test func `requests in a row are answered in a row, and the last half of one is not`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "no-store")], $0.target) }
        try await HandlerHarness.run(Self.services(origin, "mode: standard")) { harness throws in
            let client = try harness.client()
            for target in ["/s/1", "/s/2", "/s/3"] {
                try client.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            }
            try client.send("GET /s/4 HTTP/1.1\r\nHost")
            client.finishSending()
            for target in ["/1", "/2", "/3"] { #expect(try client.readResponse().text == target) }
            #expect(try client.isClosedByServer())
            #expect(origin.requests() == 3)
        }
    }

    @Test(arguments: ["Content-Length: 50\r\n\r\nshort", "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"])
    func `a body that its client does not finish is no body`(rest: String) async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "got \($0.body.count)") }
        try await HandlerHarness.run(Self.services(origin, "mode: standard")) { harness throws in
            for prefix in ["/s", origin.url] {
                let client = try harness.client()
                try client.send("POST \(prefix)/x HTTP/1.1\r\nHost: localhost\r\n\(rest)")
                client.finishSending()
                // It may be told so, and is not answered as if it had sent all of it (RFC 9112 section 8).
                let answer = try? client.readResponse()
                #expect(answer?.status ?? 400 >= 400)
                if answer != nil { #expect(try client.isClosedByServer()) }
            }
            try harness.waitForConnections(0)
            #expect(origin.log.allSatisfy { !$0.isComplete })
        }
    }

    @Test func `a client that resets the connection after its end has left`() async throws {
        let gate = Gate()
        let origin = try Self.waiting(gate)
        defer { gate.open() }
        try await HandlerHarness.run(Self.services(origin, "mode: none")) { harness throws in
            let client = try harness.client()
            try client.request("GET", "/s/x")
            client.finishSending()
            #expect(origin.waitForRequests(1))
            try harness.turn()
            client.reset()
            try harness.waitForConnections(0)
        }
    }
}
