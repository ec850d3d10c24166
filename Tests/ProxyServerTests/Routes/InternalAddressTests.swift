// What a client that is refused an internal address learns, and what the log has instead.

import Configuration
import EventLoop
import Foundation
import TestSupport
import Testing
import Upstream

@testable import ProxyServer

@Suite struct InternalAddressTests {
    private static let forward = #"forward: { enabled: true, allow: ["*"], connect: { allow: ["*:*"] } }"#

    @Test(arguments: ["GET", "CONNECT"])
    func `a refusal does not repeat what the name servers said, and the log does`(method: String) async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "reached") }
        let folder = try TemporaryFolder()
        let path = folder.path + "/access.log"
        var log = LogConfiguration()
        log.access = .file(path: path)
        try await HandlerHarness.run(Self.forward, log: log) { harness throws in
            let target = "localhost:\(origin.port)"
            let answer = try harness.exchange(method, method == "GET" ? "http://\(target)/x" : target, host: target)
            #expect(answer.status == 502)
            #expect(answer.field("Proxy-Status")?.contains("destination_ip_prohibited") == true)
            let said = answer.head.fields.map { "\($0.name): \($0.value)" } + [answer.text]
            for address in ["127.0.0.1", "::1"] {
                #expect(!said.joined(separator: "\n").contains(address), "\(said)")
            }
            #expect(answer.text.contains("localhost"))
            #expect(answer.text.contains("leads to an internal address: name the host under forward.allow"))
        }
        #expect(origin.requests() == 0)
        let lines = try String(contentsOfFile: path, encoding: .utf8)
        let isLogged = ["127.0.0.1", "::1"].contains { lines.contains("\($0), an internal address") }
        #expect(isLogged, "\(lines)")
    }

    @Test(arguments: ["GET", "CONNECT"])
    func `a name is looked up once, so that what was checked is what is connected to`(method: String) async throws {
        // Stands for the admin API of this daemon, which listens on that port.
        let admin = try ScriptedOrigin { .answer(to: $0, "reached") }
        let text = #"forward: { enabled: true, allow: [moving.test], connect: { allow: ["*:*"] } }"#
        let lookups = Counter()
        let lookup: Resolver.Lookup = { _, port in
            lookups.add()
            let host = lookups.value == 1 ? "127.0.0.2" : "127.0.0.1"
            return .addresses([SocketAddress(numericHost: host, port: port)].compactMap { $0 })
        }
        try await HandlerHarness.run(text, adminPort: admin.port, lookup: lookup, remembered: 0) { harness throws in
            let target = "moving.test:\(admin.port)"
            let answer = try harness.exchange(method, method == "GET" ? "http://\(target)/x" : target, host: target)
            #expect(answer.status == 502)
            #expect(answer.field("Proxy-Status")?.contains("connection_refused") == true)
        }
        #expect(lookups.value == 1)
        #expect(admin.connections == 0)
    }

    @Test(arguments: ["GET", "CONNECT"])
    func `nor does a connection that fails`(method: String) async throws {
        let port = try freePort()
        let cut = try ScriptedOrigin { _ in .cut }
        let text = #"forward: { enabled: true, allow: [localhost], connect: { allow: ["*:*"] } }"#
        try await HandlerHarness.run(text) { harness throws in
            // One that refuses, and for GET one that ends before its answer.
            for port in method == "GET" ? [port, cut.port] : [port] {
                let target = "localhost:\(port)"
                let answer = try harness.exchange(method, method == "GET" ? "http://\(target)/x" : target, host: target)
                #expect(answer.status == 502)
                let said = answer.head.fields.map { "\($0.name): \($0.value)" } + [answer.text]
                #expect(!said.joined(separator: "\n").contains("127.0.0.1"), "\(said)")
                #expect(!said.joined(separator: "\n").contains("::1"), "\(said)")
            }
        }
    }
}
