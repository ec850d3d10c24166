// `drydock explain`: what becomes of a request is said as it then happens, and saying it changes nothing.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Explain {
        private static func settings(_ origin: ScriptedOrigin) -> DaemonSettings {
            let endpoints = "endpoints: [{ name: user, path: /users/:id, cache: { revalidate: conditional } }]"
            let off = service("off", origin.url, "cache: { mode: none }")
            let hosted = "  - { name: hosted, match: { host: api.localhost }, base_url: \"\(origin.url)/base\" }\n"
            var settings = services(service("api", origin.url, endpoints), off, hosted)
            settings.rest += "forward: { allow: [127.0.0.1] }\nclock: { movable: true }\n"
            return settings
        }

        private static func daemon(_ origin: ScriptedOrigin) throws -> Daemon { try Daemon(settings(origin)) }

        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                let fields = [("Cache-Control", "max-age=60"), ("Vary", "Accept-Language"), ("Age", "7")]
                return .resource(request, etag: "\"1\"", fields: fields, "text")
            }
        }

        private func document(_ daemon: Daemon, _ arguments: [String]) throws -> [String: Any] {
            let result = try Shell.run(
                Daemon.binary(),
                ["explain", "--json"] + arguments,
                environment: ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"]
            )
            #expect(result.succeeded, "\(result.report)")
            return try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        }

        /// Each way to write a URL leads where the request itself leads.
        @Test func theKeyIsTheOneThatIsUsed() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            let ways: [(explained: String, sent: String, host: String, url: String, service: String)] = [
                ("/api/a?b", "/api/a?b", "127.0.0.1:\(daemon.port)", "\(origin.url)/a?b", "api"),
                ("\(daemon.url)/api/c#part", "/api/c", "127.0.0.1:\(daemon.port)", "\(origin.url)/c", "api"),
                ("http://localhost:\(daemon.port)/api/d", "/api/d", "localhost", "\(origin.url)/d", "api"),
                ("http://api.localhost/e", "/e", "api.localhost", "\(origin.url)/base/e", "hosted"),
                ("\(origin.url)/f", "\(origin.url)/f", origin.authority, "\(origin.url)/f", ""),
            ]
            for way in ways {
                let before = try #require(try document(daemon, [way.explained])["cache"] as? [String: Any])
                #expect(before["url"] as? String == way.url, "\(way)")
                #expect(before["service"] as? String == way.service, "\(way)")
                #expect(before["outcome"] as? String == "fetch", "\(way)")
                let asked = origin.requests()
                let sent = try daemon.client().exchange("GET", way.sent, host: way.host)
                #expect(sent.cacheStatus?.forwarded == "uri-miss", "\(way) \(sent.head)")
                #expect(origin.requests() == asked + 1)
                let after = try #require(try document(daemon, [way.explained])["cache"] as? [String: Any])
                #expect(after["outcome"] as? String == "answer", "\(way)")
            }
        }

        @Test func everyTermIsThere() throws {
            let origin = try Self.origin()
            // The ages that are said are those of a clock that stands still.
            let daemon = try StillClock().daemon(Self.settings(origin))
            for language in ["en", "de"] {
                _ = try daemon.exchange("/api/users/1", fields: [("Accept-Language", language)])
            }
            _ = try daemon.command("clock", "advance", "100s")
            let hits = try daemon.command("status", "--json").output
            let result = try daemon.command("explain", "/api/users/1", "-H", "Accept-Language: en", "-H", "X-A: b")
            #expect(result.succeeded, "\(result.report)")
            for line in [
                "request        GET /api/users/1", "               X-A: b",
                "route          service api at /api, endpoint user", "origin         \(origin.url)/users/1",
                "key            \(origin.url)/users/1 of service api", "stored         2 responses",
                ", memory+disk, chosen", "not chosen: vary (RFC 9111 section 4.1)",
                "varies by accept-language, stored for 'de', the request has 'en': differs",
                "corrected_age_value = age_value + response_delay = 7 + 0 = 7", "s (RFC 9111 section 4.2.3)",
                "lifetime       60s from max-age (RFC 9111 section 5.2.2.1)", "freshness      stale for 47",
                "decision       asks the origin whether it is still good: expired (RFC 9111 section 4.2)",
                "sends          GET \(origin.url)/users/1, revalidate: conditional",
                "               If-None-Match: \"1\"",
                "on failure     answers with it up to 1d past its freshness (RFC 5861 section 4)",
                "fetches        none under way", "uncacheable    no", "offline        no",
            ] {
                #expect(result.output.contains(line), "\(line) in \(result.output)")
            }
            // Nothing has been counted, asked or moved by it.
            #expect(origin.requests() == 2)
            let later = try daemon.command("status", "--json").output
            for counter in ["hits", "misses", "answers"] {
                let count = try [hits, later].map { text in
                    try (JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])?[counter] as? Int
                }
                #expect(count[0] == count[1] && count[0] != nil)
            }
            #expect(
                try daemon.exchange("/api/users/1", fields: [("Accept-Language", "en")]).cacheStatus?.detail
                    == "revalidated"
            )
        }

        @Test func requestFieldsDecide() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            _ = try daemon.exchange("/api/x")
            let ways: [(field: String, outcome: String, reason: String)] = [
                ("Cache-Control: max-age=1000", "answer", "fresh"),
                ("Cache-Control: no-cache", "check", "request-no-cache"),
                ("Pragma: no-cache", "check", "request-pragma"),
                ("Cache-Control: min-fresh=60", "check", "request-min-fresh"),
                ("Cache-Control: only-if-cached", "answer", "fresh"), ("Accept-Language: fr", "check", "vary-miss"),
            ]
            for way in ways {
                let cache = try #require(try document(daemon, ["/api/x", "-H", way.field])["cache"] as? [String: Any])
                #expect(cache["outcome"] as? String == way.outcome, "\(way) \(cache)")
                let decision = cache["decision"] as? [String: Any]
                #expect(decision?["reason"] as? String == way.reason, "\(way) \(cache)")
                #expect((decision?["section"] as? String)?.hasPrefix("RFC 9111 section") == true)
            }
            let refused =
                try document(daemon, ["/api/y", "-H", "Cache-Control: only-if-cached"])["cache"] as? [String: Any]
            #expect(refused?["outcome"] as? String == "refuse" && refused?["upstream"] == nil)
        }

        /// What of it the client gets, as it then does.
        @Test func conditionsAndRangesAreAnswered() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            _ = try daemon.exchange("/api/x")
            let ways: [(name: String, value: String, line: String, status: Int)] = [
                ("Accept", "text/plain", "status         200\n", 200),
                ("If-None-Match", "W/\"1\"", "status         304 (RFC 9111 section 4.3.2)\n", 304),
                ("Range", "bytes=1-2", "status         206, bytes 1-2 (RFC 9110 section 14.2)\n", 206),
                ("Range", "bytes=-1, 0-0", "status         206, bytes 3-3, 0-0 (RFC 9110 section 14.2)\n", 206),
                ("Range", "bytes=9-", "status         416 (RFC 9110 section 15.5.17)\n", 416),
            ]
            for way in ways {
                let said = try daemon.command("explain", "/api/x", "-H", "\(way.name): \(way.value)")
                #expect(said.output.contains(way.line), "\(way) \(said.report)")
                #expect(try daemon.exchange("/api/x", fields: [(way.name, way.value)]).status == way.status, "\(way)")
            }
            #expect(origin.requests() == 1)
        }

        /// What is stored of a response that is not whole, and what is missing of it.
        @Test func partsAndHolesAreShown() throws {
            let origin = try ScriptedOrigin { request in
                guard let range = request.field("Range")?.firstMatch(of: /bytes=([0-9]+)-([0-9]+)/),
                    let first = Int(range.1), let last = Int(range.2)
                else { return .answer(to: request, String(repeating: "x", count: 1000)) }
                let fields = [
                    ("Cache-Control", "max-age=60"), ("ETag", "\"1\""),
                    ("Content-Range", "bytes \(first)-\(last)/1000"),
                ]
                return .answer(206, to: request, fields: fields, String(repeating: "x", count: last - first + 1))
            }
            let daemon = try Self.daemon(origin)
            let none = try daemon.command("explain", "/api/x", "-H", "Range: bytes=0-99")
            #expect(none.output.contains("decision       asks the origin for a part: uri-miss"), "\(none.report)")
            _ = try daemon.exchange("/api/x", fields: [("Range", "bytes=0-99")])
            let stored = try daemon.command("explain", "/api/x", "-H", "Range: bytes=10-19")
            for line in [
                "200, 1000 B, of which bytes 0-99, ", "decision       answers from ",
                "status         206, bytes 10-19 ",
            ] {
                #expect(stored.output.contains(line), "\(stored.report)")
            }
            let more = try daemon.command("explain", "/api/x", "-H", "Range: bytes=50-149")
            for line in [
                "decision       asks the origin for a part: partial (RFC 9111 section 3.3)",
                "               Range: bytes=100-149\n               If-Range: \"1\"\n",
            ] {
                #expect(more.output.contains(line), "\(more.report)")
            }
            #expect(origin.requests() == 1)
            let answer = try daemon.exchange("/api/x", fields: [("Range", "bytes=50-149")])
            #expect(answer.cacheStatus?.forwarded == "partial", "\(answer.head)")
            #expect(origin.log.last?.field("Range") == "bytes=100-149")
        }

        @Test func whatGoesPastTheStoreIsSaid() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            let off = try daemon.command("explain", "/off/x")
            #expect(off.output.contains("nothing is stored or looked up: "), "\(off.report)")
            #expect(off.output.contains("(configuration, cache.mode)"))
            let body = try daemon.command("explain", "/api/x", "-H", "Content-Length: 3")
            #expect(body.output.contains("content (RFC 9110 section 9.3.1)"), "\(body.report)")
            let upgrade = try daemon.command(
                "explain",
                "/api/x",
                "--header",
                "Connection: upgrade",
                "--header",
                "Upgrade: websocket"
            )
            #expect(upgrade.output.contains("route          a tunnel of service api"), "\(upgrade.report)")
            #expect(origin.connections == 0)
        }

        @Test func forwardModeIsCalledByItsName() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            for name in ["forward", ""] {
                let said = try document(daemon, ["--service", name, "\(origin.url)/users/1"])
                #expect((said["cache"] as? [String: Any])?["service"] as? String == "", "\(said)")
            }
        }

        @Test func whatIsRefusedFails() throws {
            let daemon = try Self.daemon(Self.origin())
            let ways: [(arguments: [String], code: Int32, words: String)] = [
                (["/nowhere"], 1, "is answered 404 No such service"),
                (["https://example.com/"], 1, "no rule allows example.com:443"),
                (["http://10.0.0.1/"], 1, "is answered 403"), (["nonsense"], 1, "write a path, or http://HOST/PATH"),
                (["/api/x", "-H", "Via: 1.1 drydock"], 1, "is answered 508"),
                (["/api/x", "--service", "apis"], 1, "no service is called apis; did you mean 'api'?"),
                (["/api/x", "--service", "off"], 1, "service 'off' does not lead to '/api/x'"),
                (["/api/x", "-H", "Host: evil.example"], 1, "is answered 421"),
                (["/api/x y"], 1, "is answered 400"), (["/api/x", "-H", "nothing"], 2, "Name: value"), ([], 2, "url"),
            ]
            for way in ways {
                let result = try Shell.run(
                    Daemon.binary(),
                    ["explain"] + way.arguments,
                    environment: ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"]
                )
                #expect(result.end == .exited(way.code), "\(result.report)")
                #expect(result.errors.contains(way.words), "\(result.report)")
            }
            let socket = try RawClient(unix: daemon.home.adminSocket)
            for query in [
                "", "?url=", "?url=/a&url=/b", "?url=/a&x=1", "?url=/a&field=x", "?url=/a&field=a:b%0d%0ac:d",
            ] {
                expectProblem(try socket.exchange("/v1/explain\(query)"), 400)
            }
            expectProblem(try socket.exchange("POST", "/v1/explain?url=/a", body: []), 405)
        }
    }
}
