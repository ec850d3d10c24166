// Deadlines and caps, with short limits: only that things end is asserted, never how soon.

import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct DeadlineTests {
    private static let short: UInt64 = 100_000_000

    @Test(arguments: ["G", "GET /a HTTP/1.1\r\nHost: h\r\n", "GET /a HTTP/1.1\r\nHost: h\r\nX: "])
    func `a head that does not come to its end is answered 408`(part: String) async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            #expect(try client.exchange("/a").text == "/a")
            try client.send(part)
            var settings = ServerSettings()
            settings.headTimeout = Self.short
            harness.server.update(settings)
            if part.count > 2 {
                #expect(try client.readResponse().status == 408)
                #expect(harness.counters[.errorTimeout] == 1)
            } else {
                client.finishSending()
            }
            #expect(try client.isClosedByServer())
        }
    }

    @Test func `a connection without requests is closed without a word`() async throws {
        try await ServerHarness.run { harness in
            let (fresh, used) = (try harness.client(), try harness.client())
            #expect(try used.exchange("/a").text == "/a")
            try used.send("\r\n")
            // They are those of the connections that are open, too.
            var settings = ServerSettings()
            settings.idle = Self.short
            harness.server.update(settings)
            for client in [fresh, used] { #expect(try client.isClosedByServer()) }
        }
    }

    @Test func `a body below the least rate is answered 408`() async throws {
        var settings = ServerSettings()
        settings.bodyGrace = Self.short
        settings.bodyRate = 1_000_000
        try await ServerHarness.run(settings: settings) { harness in
            let client = try harness.client()
            try client.send("POST /count HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\nslow")
            #expect(try client.readResponse().status == 408)
            #expect(try client.isClosedByServer())
            #expect(harness.observations.seen.read { $0.bodyErrors } == [.tooSlow])
        }
    }

    @Test func `the rate does not count while the daemon itself holds the body back`() async throws {
        var settings = ServerSettings()
        settings.bodyGrace = Self.short
        settings.bodyRate = 1_000_000
        try await ServerHarness.run(settings: settings) { harness in
            let client = try harness.client()
            try client.send("POST /gate HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\nslow")
            #expect(harness.observations.seen.wait(120) { $0.waiting == 1 })
            // The handler asks for nothing, so that nothing is late however long it takes.
            let other = try harness.client()
            for _ in 0..<50 { _ = try other.exchange("/hot/10") }
            harness.gate.open()
            #expect(try client.readResponse().text == "opened")
        }
    }

    @Test func `a client that takes nothing is cut`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client(receiveBuffer: 4096)
            try client.request("GET", "/fixed/64000000")
            #expect(harness.observations.seen.wait(120) { $0.mostQueued > 0 })
            var settings = ServerSettings()
            settings.idle = Self.short
            harness.server.update(settings)
            #expect(blockUntil { harness.counters[.connectionsClosed] == 1 })
            _ = try client.readHead()
            #expect(try client.readBody { _ in } == .cut)
        }
    }

    @Test func `connections over the caps are answered 503, and those inside are served`() async throws {
        var settings = ServerSettings()
        settings.perClient = 2
        try await ServerHarness.run(loops: 2, settings: settings) { harness in
            let first = try harness.client()
            let second = try harness.client()
            #expect(try first.exchange("/a").text == "/a")
            #expect(try second.exchange("/b").text == "/b")
            let third = try harness.client()
            let refused = try third.readResponse()
            #expect(refused.status == 503)
            #expect(refused.field("Retry-After") == "1")
            #expect(refused.field("Connection") == "close")
            #expect(refused.field("Proxy-Status")?.contains("connection_limit_reached") == true)
            #expect(try third.isClosedByServer())
            #expect(try first.exchange("/c").text == "/c")
            second.close()
            // The slot is free once the loop has seen the end.
            #expect(blockUntil { harness.server.limits.open == 1 })
            #expect(try harness.exchange("/d").text == "/d")
        }
    }

    @Test func `new limits hold for new connections, a bigger head too`() async throws {
        try await ServerHarness.run { harness in
            let fields = (0..<20).map { ("X\($0)", String(repeating: "x", count: 7000)) }
            let before = try harness.client()
            #expect(try before.exchange("/a").text == "/a")
            let client = try harness.client()
            try? client.request("GET", "/b", fields: fields)
            #expect(try client.readResponse().status == 431)
            var settings = ServerSettings()
            settings.head = HeadLimits(head: 200_000)
            settings.perClient = 5
            harness.server.update(settings)
            let after = try harness.client()
            #expect(try after.exchange("GET", "/c", fields: fields).text == "/c")
            #expect(try before.exchange("/d").text == "/d")
        }
    }

    @Test func `limits count in all, per client, and IPv6 clients by their network`() throws {
        let limits = ConnectionLimits(total: 3, perClient: 2, files: DescriptorLimit(0))
        let a = try #require(SocketAddress(numericHost: "2001:db8::1", port: 1))
        let sameNetwork = try #require(SocketAddress(numericHost: "2001:db8::2", port: 1))
        let other = try #require(SocketAddress(numericHost: "192.0.2.1", port: 1))
        #expect(limits.enter(a) == nil)
        #expect(limits.enter(sameNetwork) == nil)
        #expect(limits.enter(sameNetwork) == .perClient(limit: 2))
        #expect(limits.enter(other) == nil)
        #expect(limits.enter(other) == .total(limit: 3))
        limits.leave(a)
        #expect(limits.enter(other) == nil)
        #expect(limits.open == 3)
        limits.update(total: 5, perClient: 5)
        #expect(limits.enter(other) == nil)
    }

    @Test func `limits are held against the open files of the process`() throws {
        let limits = ConnectionLimits(total: 100, perClient: 100, files: DescriptorLimit(256))
        let peer = try #require(SocketAddress(numericHost: "192.0.2.1", port: 1))
        for _ in 0..<48 { #expect(limits.enter(peer) == nil) }
        let refusal = try #require(limits.enter(peer))
        #expect(refusal == .files(limit: 48) && refusal.problem.detail.contains("LimitNOFILE"))
        limits.leave(peer)
        #expect(limits.enter(peer) == nil)
        // Those that are refused are told so, as many at a time as there are descriptors for.
        for _ in 0..<16 { #expect(limits.enterRefused()) }
        #expect(!limits.enterRefused())
        limits.leaveRefused()
        #expect(limits.enterRefused())
    }

    @Test func `a client that no rule admits is answered 403`() async throws {
        var settings = ServerSettings()
        settings.clients = []
        try await ServerHarness.run(settings: settings) { harness in
            let client = try harness.client()
            let response = try client.readResponse()
            #expect(response.status == 403)
            #expect(response.text.contains("add it to clients"))
            #expect(try client.isClosedByServer())
        }
    }
}
