// Answers from the sources that `from` names, in its order, and from no others.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Rungs {
        /// An origin that answers well, or with a 503 while it is told to fail.
        private final class Origin: Sendable {
            let isFailing = Monitor(false)
            let server: ScriptedOrigin

            init(_ fields: [(String, String)] = [("Cache-Control", "max-age=60")]) throws {
                let isFailing = isFailing
                server = try ScriptedOrigin { request in
                    if isFailing.read({ $0 }) { return .answer(503, "down") }
                    return .answer("live \(String(decoding: request.body, as: UTF8.self))", fields: fields)
                }
            }

            var requests: Int { server.requests() }
            func fail() { isFailing.update { $0 = true } }
        }

        private static func rung(_ response: RawResponse) -> String? {
            CacheStatusMember(response.field("Cache-Status"))?.detail
        }

        /// Recordings of `/api/users/7` and of a POST of `{}` to `/api/orders`, made from an origin of its own.
        private static func recordings(_ folder: TemporaryFolder) throws {
            let origin = try ScriptedOrigin { _ in .answer("recorded") }
            let keys = "recordings: { dir: \(folder.path)/recordings }"
            let daemon = try Daemon(services(service("api", origin.url, keys, "source: record")))
            _ = try daemon.exchange("/api/users/7")
            _ = try daemon.exchange("POST", "/api/orders", body: Array("{}".utf8))
        }

        private static let demo = "demo: { rules: [{ name: r, when: { path: /demo }, body: played }] }"

        @Test func whatIsNoRungIsNeverAsked() throws {
            let (origin, folder) = (try Origin(), try TemporaryFolder())
            try Self.recordings(folder)
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.server.url,
                        "from: [recording, demo]",
                        "recordings: { dir: \(folder.path)/recordings }",
                        Self.demo
                    )
                )
            )
            let recorded = try daemon.exchange("/api/users/7")
            #expect(recorded.text == "recorded" && Self.rung(recorded) == "recording")
            let played = try daemon.exchange("/api/demo")
            #expect(played.text == "played" && Self.rung(played) == "demo")
            #expect(try daemon.exchange("POST", "/api/orders", body: Array("{}".utf8)).text == "recorded")
            for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
                let refused = try daemon.exchange(method, "/api/other", body: method == "PUT" ? [1] : nil)
                #expect(refused.status == 504, "\(method)")
                if method == "GET" { #expect(refused.text.contains("recording, demo alone"), "\(refused.text)") }
            }
            let upgrade = try daemon.exchange("/api/ws", fields: [("Connection", "Upgrade"), ("Upgrade", "websocket")])
            #expect(upgrade.status == 504)
            _ = try daemon.command("prefetch", "/api/other")
            _ = try daemon.command("explain", "/api/other")
            #expect(origin.server.connections == 0)
            #expect(try daemon.metric("drydock_rung_answers_total{rung=\"recording\"}") == 2)
            #expect(try daemon.metric("drydock_rung_answers_total{rung=\"demo\"}") == 1)
            #expect(try daemon.metric("drydock_rung_answers_total{rung=\"live\"}") == 0)
        }

        @Test func theNextRungAnswersWhereTheOriginFails() throws {
            let (origin, folder) = (try Origin([]), try TemporaryFolder())
            try Self.recordings(folder)
            let file = try folder.write("sorry.txt", "sorry")
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.server.url,
                        "from: [live, recording, demo, fallback]",
                        "recordings: { dir: \(folder.path)/recordings }",
                        "cache: { fallback: { file: \(file) } }",
                        Self.demo
                    )
                )
            )
            let live = try daemon.exchange("/api/users/7")
            #expect(live.text == "live " && Self.rung(live) == "live")
            #expect(try daemon.exchange("POST", "/api/orders", body: Array("{}".utf8)).text == "live {}")
            origin.fail()
            for (target, text, rung) in [
                ("/api/users/7", "recorded", "recording"), ("/api/demo", "played", "demo"),
                ("/api/other", "sorry", "fallback"),
            ] {
                let answer = try daemon.exchange(target)
                #expect(answer.text == text && Self.rung(answer) == rung, "\(target): \(answer.text)")
            }
            // The content is there for each rung.
            let posted = try daemon.exchange("POST", "/api/orders", body: Array("{}".utf8))
            #expect(posted.text == "recorded" && Self.rung(posted) == "recording")
            // The origin says best why there is no answer.
            let other = try daemon.exchange("POST", "/api/orders", body: Array("[]".utf8))
            #expect(other.status == 503 && other.text == "down")
            #expect(origin.requests == 7)
            origin.server.stop()
            #expect(try daemon.exchange("/api/users/7").text == "recorded")
            #expect(try daemon.exchange("PUT", "/api/x", body: [1]).status == 502)
            // What is longer than is held goes to the origin alone.
            let long = [UInt8](repeating: 0x61, count: 2 << 20)
            #expect(try daemon.exchange("POST", "/api/orders", body: long).status == 502)
        }

        @Test func aRecordingComesBetweenTheStoreAndTheOrigin() throws {
            let (origin, folder) = (try Origin(), try TemporaryFolder())
            try Self.recordings(folder)
            let keys = "recordings: { dir: \(folder.path)/recordings }"
            let daemon = try Daemon(
                services(service("api", origin.server.url, "from: [fresh, recording, live, stale]", keys))
            )
            #expect(Self.rung(try daemon.exchange("/api/users/7")) == "recording")
            let first = try daemon.exchange("/api/a")
            #expect(first.text == "live " && Self.rung(first) == "live")
            #expect(first.field("Cache-Status")?.contains("stored") == true)
            for _ in 0..<3 { #expect(Self.rung(try daemon.exchange("/api/a")) == "fresh") }
            #expect(origin.requests == 1)
            #expect(try daemon.metric("drydock_rung_answers_total{rung=\"fresh\"}") == 3)
        }

        @Test func staleResponsesAnswerOnlyWhereTheyAreARung() throws {
            let origin = try Origin([("Cache-Control", "max-age=60, stale-while-revalidate=600, stale-if-error=600")])
            let daemon = try Daemon(
                DaemonSettings(
                    "clock: { movable: true }\nservices:\n"
                        + service("fresh", origin.server.url, "from: [fresh, live]")
                        + service("stale", origin.server.url, "from: [live, stale]")
                        + service("kept", origin.server.url, "from: [fresh, stale]")
                )
            )
            #expect(Self.rung(try daemon.exchange("/fresh/a")) == "live")
            #expect(Self.rung(try daemon.exchange("/fresh/a")) == "fresh")
            for _ in 0..<2 { #expect(Self.rung(try daemon.exchange("/stale/a")) == "live") }
            #expect(origin.requests == 3)
            _ = try daemon.command("clock", "advance", "100s")
            #expect(Self.rung(try daemon.exchange("/fresh/a")) == "live")
            #expect(origin.requests == 4)
            #expect(try daemon.exchange("/kept/a").status == 504)
            origin.fail()
            _ = try daemon.command("clock", "advance", "100s")
            #expect(try daemon.exchange("/fresh/a").status == 503)
            let stale = try daemon.exchange("/stale/a")
            #expect(stale.text == "live " && Self.rung(stale) == "stale")
            _ = try daemon.command("offline", "on")
            let requests = origin.requests
            #expect(try daemon.exchange("/fresh/a").status == 504)
            #expect(Self.rung(try daemon.exchange("/stale/a")) == "stale")
            #expect(origin.requests == requests)
        }

        @Test func seedsAnswerAloneWhereNothingElseIsARung() throws {
            let (origin, folder) = (try Origin(), try TemporaryFolder())
            _ = try folder.write("seed/\(origin.server.authority)/a", "seeded")
            let daemon = try Daemon(
                services(
                    service("api", origin.server.url, "from: [seed]", "cache: { seed_dir: \(folder.path)/seed }")
                )
            )
            let seeded = try daemon.exchange("/api/a")
            #expect(seeded.text == "seeded" && Self.rung(seeded) == "seed")
            #expect(try daemon.exchange("/api/b").status == 504)
            #expect(try daemon.exchange("DELETE", "/api/a").status == 504)
            #expect(origin.server.connections == 0)
        }

        @Test func anEndpointHasRungsOfItsOwn() throws {
            let (origin, folder) = (try Origin(), try TemporaryFolder())
            try Self.recordings(folder)
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.server.url,
                        "recordings: { dir: \(folder.path)/recordings }",
                        "endpoints: [{ name: users, path: /users/:id, from: [recording] }]"
                    )
                )
            )
            #expect(Self.rung(try daemon.exchange("/api/users/7")) == "recording")
            let refused = try daemon.exchange("/api/users/8")
            #expect(refused.status == 504 && refused.text.contains("Not recorded"))
            // Without rungs nothing changes.
            #expect(try daemon.exchange("/api/a").text == "live ")
            #expect(Self.rung(try daemon.exchange("/api/a")) == "memory")
            #expect(origin.requests == 1)
        }

        @Test func anExplanationSaysWhichRungAnswers() throws {
            let (origin, folder) = (try Origin(), try TemporaryFolder())
            try Self.recordings(folder)
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.server.url,
                        "from: [fresh, recording, live, stale, demo]",
                        "recordings: { dir: \(folder.path)/recordings }",
                        Self.demo
                    )
                )
            )
            func explained(_ target: String) throws -> String {
                let result = try daemon.command("explain", target)
                #expect(result.succeeded, "\(result.report)")
                return result.output
            }
            let recorded = try explained("/api/users/7")
            for line in [
                "rung           fresh: no, nothing is stored for this request",
                "rung           recording: answers, recorded ",
                "rung           live: answers, asks \(origin.server.url)/users/7",
                "rung           demo: no, no rule is for this request",
                "decision       recording answers (configuration, from)",
            ] {
                #expect(recorded.contains(line), "\(line): \(recorded)")
            }
            let demo = try explained("/api/demo")
            #expect(demo.contains("rung           recording: no, there is no recording of 'GET /demo'"), "\(demo)")
            #expect(demo.contains("rung           demo: answers, rule r"), "\(demo)")
            #expect(demo.contains("live is asked, and if that fails, demo answers (configuration, from)"), "\(demo)")
            #expect(origin.requests == 0)
            _ = try daemon.exchange("/api/demo")
            let stored = try explained("/api/demo")
            #expect(stored.contains("decision       fresh answers (configuration, from)"), "\(stored)")
            _ = try daemon.command("offline", "on")
            #expect(try explained("/api/other").contains("no rung answers: 504 (configuration, from)"))
        }
    }
}
