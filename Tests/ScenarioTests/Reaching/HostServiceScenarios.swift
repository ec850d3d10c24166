// A program that obeys http_proxy, and services by host: mocks, rules and origins on the names that the program knows.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct HostServices {
        private static func daemon(_ origin: ScriptedOrigin) throws -> Daemon {
            try Daemon(
                """
                forward: { allow: [127.0.0.1] }
                services:
                  - { name: kept, match: { host: 127.0.0.1, prefix: /kept }, cache: { ttl: 1h } }
                  - { name: shop, match: { host: shop.example.com }, base_url: "\(origin.url)/shop", cache: { ttl: 1h } }
                  - name: api
                    match: { host: api.example.com }
                    endpoints:
                      - { name: user, path: /users/:id, demo: { enabled: true, body: "made" } }
                  - { name: prefixed, match: { prefix: /kept }, demo: { enabled: true, body: "of the daemon" } }

                """
            )
        }

        private func curl(_ daemon: Daemon, _ arguments: String...) throws -> ShellResult {
            try Shell.run("curl", ["-sS", "-x", daemon.url, "--noproxy", ""] + arguments)
        }

        @Test func rulesAndMocksOfAHostHoldForCurlBehindTheProxy() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, "for \($0.target)") }
            let daemon = try Self.daemon(origin)
            // A mock on a name that no name server of the test knows, and an origin that answers for another one.
            #expect(try curl(daemon, "http://api.example.com/users/7").output == "made")
            for _ in 0..<2 { #expect(try curl(daemon, "http://shop.example.com/x").output == "for /shop/x") }
            #expect(origin.requests() == 1)
            // The rules of a host, and beside them forward mode, whose responses have no lifetime here.
            for _ in 0..<2 { #expect(try curl(daemon, "\(origin.url)/kept/x").output == "for /kept/x") }
            #expect(origin.requests() == 2)
            for _ in 0..<2 { #expect(try curl(daemon, "\(origin.url)/other").output == "for /other") }
            #expect(origin.requests() == 4)
            let listed = try daemon.command("list").output
            for line in ["shop  \(origin.url)/shop/x", "kept  \(origin.url)/kept/x"] {
                #expect(listed.contains(line), "\(listed)")
            }
            // A host that the configuration does not allow is not reached because a service names it.
            let refused = try curl(daemon, "-o", "/dev/null", "-w", "%{http_code}", "http://api.example.com/other")
            #expect(refused.output == "403", "\(refused.report)")
            // To the daemon itself no origin is named.
            let direct = try Shell.run("curl", ["-sS", "-H", "Host: 127.0.0.1", "\(daemon.url)/kept/y"])
            #expect(direct.output.contains("service kept has no base_url"), "\(direct.report)")
            #expect(direct.output.contains("\"status\":421"), "\(direct.report)")
            #expect(origin.requests() == 4)
        }

        @Test func whoTakesARequestIsExplainedAndNoted() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, "for \($0.target)") }
            let daemon = try Self.daemon(origin)
            let ways: [(url: String, lines: [String])] = [
                ("http://api.example.com/users/7", ["service by host: takes it, service api at api.example.com"]),
                ("\(origin.url)/kept/x", ["service by host: takes it, service kept at 127.0.0.1/kept"]),
                (
                    "\(origin.url)/other",
                    ["service by host: no, there are only 127.0.0.1/kept (kept)", "forward mode: takes it"]
                ),
                ("http://localhost:\(daemon.port)/kept", ["own address: takes it", "service prefixed at /kept"]),
            ]
            for way in ways {
                let said = try daemon.command("explain", "--proxy", way.url)
                for line in way.lines { #expect(said.output.contains(line), "\(said.report)") }
            }
            let both = try daemon.command("explain", "--proxy", "--service", "api", "http://api.example.com/")
            #expect(!both.succeeded && both.errors.contains("leave --service out"), "\(both.report)")
            let check = try daemon.command("check", "-c", daemon.home.configuration)
            let notes = check.errors.split(separator: "\n").filter { $0.contains("note: ") }
            #expect(check.succeeded && notes.count == 1, "\(check.report)")
            let hosts = "for 127.0.0.1, shop.example.com, api.example.com are answered by the services"
            #expect(notes.first?.contains("requests that come through the proxy \(hosts)") == true, "\(check.report)")
            #expect(origin.requests() == 0)
        }
    }
}
