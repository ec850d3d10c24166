// A connection whose client believes to be connected to somebody else: its requests are that authority's, on every way.

import Configuration
import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct InnerAuthorityTests {
    @Test func `no service with a prefix alone answers inside of a tunnel, by whatever way it would`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "of the origin") }
        defer { origin.stop() }
        let text = """
            forward: { enabled: true, allow: ["127.0.0.1"] }
            services:
              - { name: made, match: { prefix: /made }, demo: { enabled: true, body: "of this daemon" } }
              - { name: past, match: { prefix: /past }, base_url: "http://127.0.0.1:1", cache: { mode: none } }
              - { name: other, match: { host: localhost, prefix: /made }, demo: { enabled: true, body: "of this daemon" } }
            """
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        try await HandlerHarness.run(text, log: log) { harness in
            // The hot path and pass-through know the Host from here on.
            for _ in 0..<2 {
                #expect(try harness.exchange("GET", "/made/x").text == "of this daemon")
                #expect(try harness.exchange("GET", "/past/x").status == 502)
            }
            let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 1))
            let authority = try #require(Authority.parse(origin.authority))
            let request = "GET /made/x HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
            let last = "GET /past/x HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n\r\n"
            let result = Monitor(MemoryTransport.Result())
            harness.server.contexts[0].submit { context, loop in
                let sent = Array((request + request + last).utf8)
                let transport = MemoryTransport(sent, step: 1 << 20, stutters: false, result)
                context.connect(transport, from: address, to: authority, on: loop)
            }
            #expect(result.wait(120) { $0.isClosed })
            let received = String(decoding: result.read { $0.received }, as: UTF8.self)
            #expect(received.split(separator: "of the origin", omittingEmptySubsequences: false).count == 4)
            #expect(!received.contains("of this daemon") && !received.contains(" 502 "))
            #expect(origin.log.map(\.target) == ["/made/x", "/past/x"])
            #expect(blockUntil { (try? harness.counters().answers.count) == 7 })
        }
        let shown = folder.text("access.log").split(separator: "\n").filter {
            $0.contains("\"target\":\"http://\(origin.authority)/")
        }
        #expect(shown.count == 3)
    }

    @Test func `services of the tunnel's host answer inside of it`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "of the origin") }
        defer { origin.stop() }
        let text = """
            forward: { enabled: true, allow: ["127.0.0.1"] }
            services:
              - { name: made, match: { host: 127.0.0.1, prefix: /made }, demo: { enabled: true, body: "of the service" } }
              - { name: kept, match: { host: 127.0.0.1, prefix: /kept }, cache: { ttl: 1h } }
              - { name: past, match: { prefix: / }, demo: { enabled: true, body: "of this daemon" } }
            """
        try await HandlerHarness.run(text) { harness in
            let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 1))
            let authority = try #require(Authority.parse(origin.authority))
            let result = Monitor(MemoryTransport.Result())
            let targets = ["/made/x", "/kept/x", "/kept/x", "/other"]
            let sent = targets.map { target in
                let end = target == "/other" ? "Connection: close\r\n" : ""
                return "GET \(target) HTTP/1.1\r\nHost: \(authority)\r\n\(end)\r\n"
            }
            harness.server.contexts[0].submit { context, loop in
                let bytes = Array(sent.joined().utf8)
                let transport = MemoryTransport(bytes, step: 1 << 20, stutters: false, result)
                context.connect(transport, from: address, to: authority, on: loop)
            }
            #expect(result.wait(120) { $0.isClosed })
            let received = String(decoding: result.read { $0.received }, as: UTF8.self)
            #expect(received.contains("of the service") && !received.contains("of this daemon"))
            // The second one of those that are kept is the service's hit, and forward mode has the rest.
            #expect(origin.log.map(\.target) == ["/kept/x", "/other"])
            let keys = try harness.listed().map { String($0.split(separator: " ")[0]) }
            #expect(keys.sorted() == ["http://\(origin.authority)/kept/x", "http://\(origin.authority)/other"])
        }
    }
}
