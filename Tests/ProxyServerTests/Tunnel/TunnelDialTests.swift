// How tunnels reach their other side: the same dialling, the same deadlines and the same words as transfers.

import EventLoop
import Foundation
import HTTPWire
import TestSupport
import Testing
import Upstream

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct TunnelDialTests {
    private static let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]

    private static func lookup(_ hosts: String...) -> Resolver.Lookup {
        { _, port in .addresses(hosts.compactMap { SocketAddress(numericHost: $0, port: port) }) }
    }

    private static let forward = #"forward: { allow: [several.test], connect: { allow: ["several.test:*"] } }"#

    /// Of all services, and of forward mode.
    private static func within(_ connect: String) -> String { "defaults: { timeout: { connect: \(connect) } }\n" }

    private static func service(_ url: String, _ rest: String = "") -> String {
        "services: [{ name: ws, match: { prefix: /ws }, base_url: \"\(url)\"\(rest) }]"
    }

    private static func connect(_ harness: HandlerHarness, _ port: Int) throws -> RawClient {
        let client = try harness.client()
        try client.send("CONNECT several.test:\(port) HTTP/1.1\r\nHost: several.test:\(port)\r\n\r\n")
        return client
    }

    @Test("CONNECT gives a silent address a head start, and the next one wins")
    func connectGoesOn() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "here") }
        let silent = try SilentListener("127.0.0.4", port: origin.port)
        defer { silent.close() }
        let lookup = Self.lookup("127.0.0.4", "127.0.0.1")
        try await HandlerHarness.run(Self.within("2m") + Self.forward, lookup: lookup) { harness throws in
            let client = try Self.connect(harness, origin.port)
            #expect(try client.readHead(method: "CONNECT").status == 200)
            #expect(try client.exchange("/x").text == "here")
        }
    }

    @Test("an upgrade gives a silent address a head start, and the next one wins")
    func upgradeGoesOn() async throws {
        let origin = try ScriptedOrigin { .answer(403, to: $0, "here") }
        let silent = try SilentListener("127.0.0.4", port: origin.port)
        defer { silent.close() }
        let text = Self.service("http://several.test:\(origin.port)", ", timeout: { connect: 2m }")
        try await HandlerHarness.run(text, lookup: Self.lookup("127.0.0.4", "127.0.0.1")) { harness throws in
            #expect(try harness.client().exchange("/ws/x", fields: Self.upgrade).text == "here")
        }
    }

    @Test("CONNECT to silence ends with timeout.connect, in the words of a transfer, and leaves no socket")
    func silence() async throws {
        let silent = try SilentListener("127.0.0.4", port: try freePort())
        defer { silent.close() }
        let lookup = Self.lookup("127.0.0.4")
        try await HandlerHarness.run(Self.within("50ms") + Self.forward, lookup: lookup) { harness throws in
            try harness.know("several.test", silent.port)
            let answer = try Self.connect(harness, silent.port).readResponse(method: "CONNECT")
            #expect(answer.status == 504)
            #expect(answer.field("Proxy-Status")?.contains("error=connection_timeout") == true)
            #expect(answer.text.contains("no connection to several.test:\(silent.port) in time"))
            #expect(try harness.comesTo(sockets: 0))
        }
    }

    @Test("timeout.connect counts a name server that says nothing, for CONNECT and for an upgrade")
    func silentNameServer() async throws {
        let gate = Gate()
        defer { gate.open() }
        let lookup: Resolver.Lookup = { _, _ in
            gate.wait()
            return .notFound
        }
        let text = Self.within("50ms") + Self.forward + "\n" + Self.service("http://several.test:81")
        try await HandlerHarness.run(text, lookup: lookup) { harness throws in
            let answers = [
                try Self.connect(harness, 80).readResponse(method: "CONNECT"),
                try harness.client().exchange("/ws/x", fields: Self.upgrade),
            ]
            gate.open()
            for answer in answers {
                #expect(answer.status == 504)
                #expect(answer.field("Proxy-Status")?.contains("error=dns_timeout") == true)
                #expect(answer.text.contains("was not resolved in time"))
            }
        }
    }

    @Test("a client that leaves while its CONNECT is dialled takes the sockets with it")
    func clientLeaves() async throws {
        let port = try freePort()
        let silent = try SilentListener("127.0.0.4", port: port)
        let second = try SilentListener("127.0.0.5", port: port)
        defer {
            silent.close()
            second.close()
        }
        let lookup = Self.lookup("127.0.0.4", "127.0.0.5")
        try await HandlerHarness.run(Self.within("2m") + Self.forward, lookup: lookup) { harness throws in
            let client = try Self.connect(harness, port)
            #expect(try harness.comesTo(sockets: 2))
            client.close()
            #expect(try harness.comesTo(sockets: 0))
        }
    }

    @Test("a head that drips in is ended by timeout.first_byte, which is for all of it")
    func drippingHead() async throws {
        let origin = try ScriptedOrigin { _ in
            let drops = (0..<100).flatMap { _ in [OriginReply.Step.bytes(Array("x".utf8)), .pause(milliseconds: 20)] }
            return OriginReply([.bytes(Array("HTTP/1.1 101 Switching Protocols\r\nX: ".utf8))] + drops)
        }
        let text = Self.service(origin.url, ", timeout: { first_byte: 200ms, idle: 1m }")
        try await HandlerHarness.run(text) { harness throws in
            let answer = try harness.client().exchange("/ws/x", fields: Self.upgrade)
            #expect(answer.status == 504)
            #expect(answer.field("Proxy-Status")?.contains("error=http_response_timeout") == true)
            #expect(answer.text.contains("raise timeout.first_byte"))
        }
    }
}

extension HandlerHarness {
    /// Whether so many sockets to origins come to be open, tunnels left out; blocks.
    fileprivate func comesTo(sockets count: Int) throws -> Bool {
        try blockUntil { try ask({ $0.client.connectionCount }) == count }
    }

    /// Has a name looked up before a deadline counts that; blocks.
    fileprivate func know(_ host: String, _ port: Int) throws {
        let isKnown = Gate()
        _ = resolver.ask(host, port: UInt16(port), rules: .any) { _ in isKnown.open() }
        guard isKnown.wait() else { throw TestSupportError.timedOut("the name") }
    }
}
