// Who may ask for what: Host and Origin, forward targets, loops.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Rules {
        @Test func reverseModeAnswersOnlyForKnownHosts() throws {
            let origin = try ScriptedOrigin { request in .answer("for \(request.target)") }
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services:
                      - { name: api, match: { prefix: /api }, base_url: "\(origin.url)" }
                      - { name: named, match: { host: app.localhost }, base_url: "\(origin.url)" }
                    """
                )
            )
            let known = [
                "localhost", "localhost:\(daemon.port)", "127.0.0.1:\(daemon.port)", "[::1]:\(daemon.port)", "10.0.2.2",
                "[2001:db8::7]:80",
            ]
            for host in known {
                #expect(try daemon.client().exchange("GET", "/api/x", host: host).text == "for /x", "\(host)")
            }
            #expect(try daemon.client().exchange("GET", "/y", host: "app.localhost:\(daemon.port)").text == "for /y")
            let before = origin.requests()
            for host in [
                "evil.example", "evil.example:\(daemon.port)", "localhost.evil.example", "10.1.2.3.evil.example",
            ] {
                let refused = try daemon.client().exchange("GET", "/api/x", host: host)
                expectProblem(refused, 421)
            }
            #expect(origin.requests() == before)
        }

        @Test func aServiceWithCredentialsRefusesForeignWebOrigins() throws {
            let origin = try ScriptedOrigin { request in
                .answer(request.field("Authorization") ?? "none", fields: [("Cache-Control", "no-store")])
            }
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.url,
                        "auth: { bearer: \"s3cret\" }",
                        "cors: { origins: [\"http://localhost:3000\"] }"
                    ),
                    service("basic", origin.url, "auth: { basic: { user: me, password: pass } }"),
                    service("open", origin.url)
                )
            )
            #expect(try daemon.exchange("/api/x").text == "Bearer s3cret")
            #expect(try daemon.exchange("/basic/x").text == "Basic bWU6cGFzcw==")
            let before = origin.requests()
            let foreign = [("Origin", "http://evil.example")]
            expectProblem(try daemon.exchange("/api/x", fields: foreign), 403)
            expectProblem(try daemon.exchange("/api/x", fields: [("Origin", "null")]), 403)
            #expect(origin.requests() == before)
            let named = try daemon.exchange("/api/x", fields: [("Origin", "http://localhost:3000")])
            #expect(named.text == "Bearer s3cret")
            #expect(named.field("Access-Control-Allow-Origin") == "http://localhost:3000")
            #expect(try daemon.exchange("/open/x", fields: foreign).text == "none")
        }

        @Test func anOriginsOwnCrossOriginFieldsGiveWay() throws {
            let origin = try ScriptedOrigin { _ in
                .answer("x", fields: [("Access-Control-Allow-Origin", "*"), ("Vary", "Accept")])
            }
            let daemon = try Daemon(
                services(service("api", origin.url, "cors: { origins: [\"http://localhost:3000\"] }"))
            )
            let answer = try daemon.exchange("/api/x", fields: [("Origin", "http://localhost:3000")])
            #expect(answer.head.all("Access-Control-Allow-Origin") == ["http://localhost:3000"])
            #expect(answer.head.all("Vary").joined(separator: ", ") == "Accept, Origin")
        }

        @Test func forwardModeRefusesPrivateTargetsThatNoRuleNames() throws {
            let origin = try ScriptedOrigin { _ in .answer("secret") }
            let daemon = try Daemon(
                "forward: { enabled: true, allow: [\"*\"], connect: { allow: [\"*:\(origin.port)\"] } }"
            )
            let targets = [
                "127.0.0.1:\(origin.port)", "localhost:\(origin.port)", "[::1]:\(origin.port)",
                "0.0.0.0:\(origin.port)",
                "[::ffff:127.0.0.1]:\(origin.port)", "2130706433:\(origin.port)", "127.1:\(origin.port)",
                "0x7f.1:\(origin.port)", "10.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.169.254", "[fe80::1]",
                "[fd00::1]",
                "100.64.0.1", "[::]:\(origin.port)",
            ]
            for target in targets {
                let client = try daemon.client()
                let answer = try client.exchange("GET", "http://\(target)/", host: target)
                #expect([400, 403, 502].contains(answer.status), "\(target): \(answer.head)")
                #expect(answer.problem != nil)
                let tunnel = try daemon.client()
                try tunnel.send("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n")
                #expect(try tunnel.readResponse(method: "CONNECT").status >= 400, "CONNECT \(target)")
            }
            #expect(origin.connections == 0)
        }

        @Test func forwardModeReachesWhatARuleNames() throws {
            let origin = try ScriptedOrigin { request in .answer(request.field("Host") ?? "") }
            let daemon = try Daemon("forward: { enabled: true, allow: [\"127.0.0.1\"] }")
            let client = try daemon.client()
            // Absolute-form wins over Host (RFC 9112 section 3.2.2).
            #expect(try client.exchange("GET", "\(origin.url)/a", host: "other.example").text == origin.authority)
            let other = try client.exchange("GET", "http://localhost:\(origin.port)/", host: "localhost")
            #expect(other.status == 403)
            #expect(origin.requests() == 1)
        }

        @Test func forwardModeCanBeSwitchedOff() throws {
            let origin = try ScriptedOrigin { _ in .answer("secret") }
            let daemon = try Daemon("forward: { enabled: false, allow: [\"127.0.0.1\"] }")
            let answer = try daemon.client().exchange("GET", "\(origin.url)/", host: origin.authority)
            #expect((400..<500).contains(answer.status))
            #expect(origin.connections == 0)
        }

        @Test func loopsAre508() throws {
            let origin = try ScriptedOrigin { request in .answer(request.field("Via") ?? "none") }
            var settings = services(service("api", origin.url))
            settings.rest += "\nforward: { enabled: true, allow: [\"127.0.0.1\"] }\n"
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/api/x").text == "1.1 drydock")
            #expect(try daemon.exchange("/api/y", fields: [("Via", "1.0 other")]).text == "1.0 other, 1.1 drydock")
            for via in ["1.1 drydock", "1.0 other, 1.1 drydock (comment)", "1.1 a,1.1 drydock,1.1 b"] {
                expectProblem(try daemon.exchange("/api/z", fields: [("Via", via)]), 508)
            }
            // The daemon itself in absolute form is no loop, unless it says that it has been here.
            let itself = "\(daemon.url)/api/x"
            #expect(try daemon.exchange(itself).status == 200)
            expectProblem(try daemon.exchange(itself, fields: [("Via", "1.1 drydock")]), 508)
            expectProblem(try daemon.exchange("CONNECT", "127.0.0.1:\(daemon.port)"), 508)
            #expect(origin.requests() == 3)
        }

        @Test func hopByHopFieldsStopHere() throws {
            let origin = try ScriptedOrigin { request in
                .answer(
                    request.fields.map(\.name).joined(separator: ",").lowercased(),
                    fields: [
                        ("Connection", "X-Back"), ("X-Back", "1"), ("Keep-Alive", "timeout=5"), ("X-Kept", "a  b"),
                    ]
                )
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            let answer = try daemon.exchange(
                "/api/x",
                fields: [
                    ("Connection", "X-Hop, Authorization"), ("X-Hop", "1"), ("Authorization", "Bearer mine"),
                    ("Keep-Alive", "timeout=5"), ("Proxy-Connection", "keep-alive"), ("X-End", "1"), ("TE", "gzip"),
                ]
            )
            let names = answer.text.split(separator: ",").map(String.init)
            for gone in ["x-hop", "keep-alive", "proxy-connection", "te"] { #expect(!names.contains(gone), "\(gone)") }
            // Connection may not name a field that must reach the origin.
            for kept in ["x-end", "host", "authorization", "via"] { #expect(names.contains(kept), "\(kept)") }
            #expect(answer.field("X-Back") == nil && answer.field("Keep-Alive") == nil)
            #expect(answer.field("X-Kept") == "a  b")
        }

        @Test func addressesOfTheOriginAreRewrittenToThePrefix() throws {
            let address = Monitor("")
            let origin = try ScriptedOrigin { _ in
                let base = address.read { $0 }
                return .answer(
                    302,
                    fields: [
                        ("Location", "\(base)/v1/next?a=b"), ("Content-Location", "/v1/here"),
                        ("Set-Cookie", "a=b; Path=/v1; HttpOnly"),
                    ],
                    "moved"
                )
            }
            address.update { $0 = origin.url }
            let daemon = try Daemon(services(service("api", "\(origin.url)/v1")))
            let answer = try daemon.exchange("/api/x")
            #expect(origin.log.first?.target == "/v1/x")
            let location = try #require(answer.field("Location"))
            #expect(location == "/api/next?a=b" || location == "\(daemon.url)/api/next?a=b")
            #expect(answer.field("Content-Location")?.hasSuffix("/api/here") == true)
            #expect(answer.field("Set-Cookie")?.contains("Path=/api") == true)
        }
    }
}
