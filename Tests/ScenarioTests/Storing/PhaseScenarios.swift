// Placeholders, fallbacks, bodies that are not what they should be, and clients that leave, seen by clients.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Phases {
        static let fields = [("Cache-Control", "max-age=600")]
        static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 1, 2, 3]

        /// A home with the two files that stand in.
        private func home() throws -> DaemonHome {
            let home = try DaemonHome()
            try home.folder.write("loading.svg", "<svg/>")
            try home.folder.write("broken.txt", "broken")
            return home
        }

        @Test func thePlaceholderAnswersWhileThereIsNothing() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                request.target == "/slow"
                    ? OriginReply([.wait(gate)]).then(.answer(fields: Self.fields, body: Self.png))
                    : .answer(fields: Self.fields, body: Self.png)
            }
            let settings = services(
                service("api", origin.url, "cache: { placeholder: { file: ./loading.svg, after: 20ms, status: 203 } }")
            )
            let daemon = try Daemon(settings, at: try home())
            let first = try daemon.exchange("/api/slow")
            #expect(first.status == 203 && first.text == "<svg/>" && first.end == .complete)
            #expect(first.field("Content-Type") == "image/svg+xml" && first.field("Cache-Control") == "no-store")
            #expect(first.field("Cache-Status") == "drydock; fwd=uri-miss; detail=placeholder")
            #expect(first.head.reason == "Non-Authoritative Information")
            #expect(first.field("Age") == nil && first.field("Content-Length") == "6")
            #expect(try daemon.exchange("/api/slow").cacheStatus?.isCollapsed == true)
            gate.open()
            #expect(try eventually { try daemon.exchange("/api/slow").body == Self.png })
            #expect(try daemon.exchange("/api/slow").cacheStatus?.isHit == true)
            #expect(origin.requests(target: "/slow") == 1)
            #expect(try daemon.metric("drydock_cache_total{outcome=\"placeholder\"}") >= 2)
        }

        @Test func theFallbackAnswersWhenTheFetchFails() throws {
            let origin = try ScriptedOrigin { request in
                request.target == "/kept"
                    ? .answer(fields: Self.fields, "kept") : .answer(503, fields: Self.fields, "theirs")
            }
            var settings = services(
                service("api", origin.url, "cache: { fallback: { file: broken.txt, status: 404 } }"),
                service("none", origin.url, "cache: { mode: none, fallback: { file: broken.txt } }")
            )
            settings.rest += "clock: { movable: true }\n"
            let daemon = try Daemon(settings, at: try home())
            #expect(try daemon.exchange("/api/kept").text == "kept")
            // Twice: the 503 may be stored, and is no answer all the same.
            for _ in 0..<2 {
                let got = try daemon.exchange("/api/error")
                #expect(got.status == 404 && got.text == "broken" && got.field("Cache-Control") == "no-store")
                #expect(got.cacheStatus?.detail == "fallback" && got.cacheStatus?.isHit == false, "\(got.head)")
                #expect(try eventually { try daemon.metric("drydock_fills") == 0 })
            }
            #expect(try daemon.exchange("/none/error").text == "broken")
            origin.stop()
            let got = try daemon.exchange("/api/new")
            #expect(got.text == "broken" && got.field("Cache-Status") == "drydock; fwd=uri-miss; detail=fallback")
            #expect(try daemon.exchange("HEAD", "/api/new").field("Content-Length") == "6")
            _ = try daemon.command("clock", "advance", "1h")
            #expect(try daemon.exchange("/api/kept").cacheStatus?.detail == "stale-if-error", "stale comes first")
            expectProblem(try daemon.exchange("POST", "/api/new", body: []), 502)
            #expect(
                eventually {
                    daemon.accessLog.contains { $0.contains("detail=fallback") && $0.contains("refused") }
                },
                "\(daemon.accessLog)"
            )
            #expect(try daemon.metric("drydock_cache_total{outcome=\"fallback\"}") >= 4)
        }

        @Test func whatIsNotExpectedIsPassedOnAndNotStored() throws {
            let html = "<!doctype html><title>Sign in</title>"
            let origin = try ScriptedOrigin { request in
                request.target.hasSuffix("good")
                    ? .answer(to: request, fields: Self.fields, body: Self.png)
                    : .answer(to: request, fields: Self.fields, html)
            }
            let settings = services(
                service(
                    "img",
                    origin.url,
                    "response: { expect: image }",
                    "endpoints:",
                    "  - { name: pages, path: /pages/*, response: { expect: any } }"
                )
            )
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/img/good").body == Self.png)
            #expect(try daemon.exchange("/img/good").cacheStatus?.isHit == true)
            for _ in 0..<3 {
                let got = try daemon.exchange("/img/bad")
                #expect(got.status == 200 && got.text == html && got.end == .complete)
                #expect(got.field("Cache-Status") == "drydock; fwd=uri-miss; fwd-status=200; detail=unexpected-content")
            }
            _ = try daemon.exchange("/img/pages/one")
            #expect(try daemon.exchange("/img/pages/one").cacheStatus?.isHit == true)
            #expect(origin.requests(target: "/bad") == 3)
            #expect(try daemon.metric("drydock_unexpected_bodies_total") == 3)
            let lines = daemon.errors.split(separator: "\n").filter { $0.contains("should be an image") }
            #expect(lines.count == 1 && lines[0].contains("\(origin.url)/bad of service img"), "\(daemon.errors)")
            #expect(lines.first?.contains("warning") == true && lines.first?.contains("<!doctype") == true)
        }

        @Test(arguments: ["finish", "abort", "finish-if 90%", "finish-if 10%"])
        func whenTheLastClientLeaves(_ policy: String) throws {
            let size = 4 << 20
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in
                let head = OriginReply.head(200, fields: Self.fields + [("Content-Length", "\(size)")])
                return OriginReply([head, .pattern(size / 2, from: 0), .wait(gate), .pattern(size / 2, from: size / 2)])
            }
            var settings = services(service("api", origin.url, "cache: { on_client_abort: \(policy) }"))
            settings.logLevel = "debug"
            let daemon = try Daemon(settings)
            let clients = try (0..<3).map { _ in try daemon.client() }
            for client in clients {
                try client.request("GET", "/api/file")
                _ = try client.readHead()
                // All of the first half has come from the origin, and one of them has read most of it.
                _ = try client.readBody(upTo: size / 2 - (64 << 10)) { _ in }
            }
            for client in clients { client.reset() }
            let goesOn = policy == "finish" || policy == "finish-if 10%"
            if goesOn {
                gate.open()
            } else {
                #expect(try eventually { try daemon.metric("drydock_abandoned_fetches_total") == 1 })
                gate.open()
                #expect(eventually { daemon.errors.contains("the fetch was ended after") })
            }
            #expect(try eventually { try daemon.metric("drydock_fills") == 0 })
            let later = try daemon.exchange("/api/file")
            #expect(later.body.count == size && later.end == .complete)
            #expect(later.cacheStatus?.isHit == goesOn)
            #expect(origin.requests() == (goesOn ? 1 : 2))
        }

        @Test func droppingWaitersKeepsTheFetch() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                OriginReply([.wait(gate)]).then(.answer(fields: Self.fields, "late \(request.target)"))
            }
            // Without them, the fetch would end with its clients.
            var settings = services(service("api", origin.url, "cache: { on_client_abort: abort }"))
            // Nobody has to look into a file first: whoever has been begun waits for the fetch.
            settings.disk = nil
            let daemon = try Daemon(settings)
            let waiting = try daemon.begin("/api/head", count: 3)
            #expect(origin.waitForRequests(1))
            let dropped = try daemon.command("cancel", "--waiters", "/api/head")
            #expect(dropped.output == "3 waiting requests told, 1 fetch kept\n", "\(dropped.report)")
            for client in waiting {
                let got = try client.readResponse()
                expectProblem(got, 503)
                #expect(got.problem?["title"] as? String == "Cancelled")
                #expect((got.problem?["detail"] as? String)?.contains("the fetch goes on") == true)
            }
            let none = try daemon.command("cancel", "api", "--waiters", "--json")
            #expect(none.output == "{\"fetches\":1,\"waiters\":0}\n", "\(none.report)")
            #expect(try daemon.command("cancel", "--waiters").end == .exited(2))
            #expect(daemon.errors.contains("dropped who waited for the fetches of /api/head: 3 requests told, 1 go on"))
            gate.open()
            #expect(try eventually { try daemon.command("list").output.contains("/head") })
            let hit = try daemon.exchange("/api/head")
            #expect(hit.text == "late /head" && hit.cacheStatus?.isHit == true, "\(hit.head)")
            #expect(origin.requests() == 1)
        }

        @Test func cancellingTellsEveryWaiter() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                switch request.target {
                case "/kept": return .answer(fields: Self.fields, "kept")
                case "/body":
                    let head = OriginReply.head(200, fields: Self.fields + [("Content-Length", "1000000")])
                    return OriginReply([head, .pattern(5000, from: 0), .wait(gate), .pattern(995_000, from: 5000)])
                default: return OriginReply([.wait(gate)]).then(.answer(fields: Self.fields, "late"))
                }
            }
            var settings = services(service("api", origin.url), service("other", origin.url))
            // Nobody has to look into a file first: whoever has been begun waits for the fetch.
            settings.disk = nil
            let daemon = try Daemon(settings)
            _ = try daemon.exchange("/api/kept")
            let waiting = try daemon.begin("/api/head", count: 5)
            let reading = try daemon.client()
            try reading.request("GET", "/api/body")
            #expect(try reading.readHead().status == 200)
            let other = try #require(try daemon.begin("/other/head").first)
            #expect(origin.waitForRequests(4))

            let unknown = try daemon.command("cancel", "nobody")
            #expect(
                unknown.end == .exited(1) && unknown.report.contains("no service is called nobody"),
                "\(unknown.report)"
            )
            #expect(try daemon.command("cancel").end == .exited(2))
            #expect(try daemon.command("cancel", "api", "--all").end == .exited(2))
            #expect(try daemon.command("cancel", "/api/none").output == "no matching fetch is under way\n")
            let one = try daemon.command("cancel", "/api/head")
            #expect(one.succeeded && one.output == "1 fetch ended, 5 waiting requests told\n", "\(one.report)")
            for client in waiting {
                let got = try client.readResponse()
                expectProblem(got, 503)
                #expect(got.problem?["title"] as? String == "Cancelled")
                #expect(got.field("Proxy-Status")?.hasPrefix("drydock; error=connection_terminated") == true)
                #expect(got.field("Cache-Status")?.hasPrefix("drydock; fwd=uri-miss") == true)
            }
            let service = try daemon.command("cancel", "api", "--json")
            #expect(service.output == "{\"fetches\":1,\"waiters\":1}\n", "\(service.report)")
            #expect(try reading.readBody { _ in } == .cut)
            let all = try daemon.command("cancel", "--all")
            #expect(all.output == "1 fetch ended, 1 waiting request told\n", "\(all.report)")
            expectProblem(try other.readResponse(), 503)
            #expect(try daemon.metric("drydock_cancelled_fetches_total") == 3)
            #expect(daemon.errors.contains("cancelled the fetches of service api: 1 ended, 1 request told"))

            gate.open()
            #expect(try daemon.exchange("/api/kept").cacheStatus?.isHit == true)
            #expect(try daemon.exchange("/api/head").text == "late")
            #expect(try daemon.exchange("/api/body").body.count == 1_000_000)
        }
    }
}
