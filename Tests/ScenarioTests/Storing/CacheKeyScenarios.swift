// The keys under `cache` that say how stale responses are treated: each value of them makes a difference.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct CacheSettings {
        static let movable = "clock: { movable: true }\n"

        /// RFC 5861 section 3, from the configuration, for a response that says nothing of it.
        @Test func staleWhileRevalidate() throws {
            let ahead = Monitor(0)
            let origin = try ScriptedOrigin { request in
                let own = request.target.hasSuffix("own") ? ", stale-while-revalidate=0" : ""
                let control = ("Cache-Control", "max-age=1000\(own)")
                return .resource(
                    request,
                    etag: "\"1\"",
                    fields: [control, ("Date", httpDate(ahead.read { $0 }))],
                    "text"
                )
            }
            var settings = services(
                service("short", origin.url),
                service("long", origin.url, "cache: { stale_while_revalidate: 3000s }")
            )
            settings.rest += Self.movable
            let daemon = try Daemon(settings)
            for path in ["/short/x", "/long/x", "/long/own"] { _ = try daemon.exchange(path) }
            _ = try daemon.command("clock", "advance", "2000s")
            ahead.update { $0 = 2000 }
            #expect(try daemon.exchange("/short/x").cacheStatus?.detail == "revalidated")
            let stale = try daemon.exchange("/long/x").cacheStatus
            #expect(stale?.isHit == true && stale?.detail == "refreshing", "\(String(describing: stale))")
            #expect(try eventually { try daemon.exchange("/long/x").cacheStatus?.detail == "memory" })
            #expect(try daemon.exchange("/long/own").cacheStatus?.detail == "revalidated")
            // Past the 3000 seconds it has to wait for the check.
            _ = try daemon.command("clock", "advance", "4100s")
            ahead.update { $0 = 6100 }
            #expect(try daemon.exchange("/long/x").cacheStatus?.detail == "revalidated")
        }

        /// `auto` checks what is short by a conditional GET, and what is long by HEAD until
        /// the origin has answered 304.
        @Test(arguments: [("head", ["HEAD", "HEAD"]), ("conditional", ["GET", "GET"]), ("auto", ["GET", "GET"])])
        func revalidateOfWhatIsShort(_ method: String, asked: [String]) throws {
            try checks(method, length: 100, asked)
        }

        @Test(arguments: [("head", ["HEAD", "HEAD"]), ("conditional", ["GET", "GET"]), ("auto", ["HEAD", "GET"])])
        func revalidateOfWhatIsLong(_ method: String, asked: [String]) throws {
            try checks(method, length: 100_000, asked)
        }

        private func checks(_ method: String, length: Int, _ asked: [String]) throws {
            let ahead = Monitor(0)
            let origin = try ScriptedOrigin { request in
                let fields = [("Cache-Control", "max-age=10"), ("Date", httpDate(ahead.read { $0 }))]
                let text = String(repeating: "x", count: length)
                return .resource(request, etag: "\"1\"", fields: fields, text)
            }
            var settings = services(service("api", origin.url, "cache: { revalidate: \(method) }"))
            settings.rest += Self.movable
            let daemon = try Daemon(settings)
            _ = try daemon.exchange("/api/x")
            for turn in 1...2 {
                _ = try daemon.command("clock", "advance", "20s")
                ahead.update { $0 = 20 * turn }
                #expect(try daemon.exchange("/api/x").cacheStatus?.detail == "revalidated")
            }
            #expect(origin.log.map(\.method) == ["GET"] + asked)
            #expect(origin.log.dropFirst().allSatisfy { $0.field("If-None-Match") == "\"1\"" })
        }

        @Test(arguments: [("max_variants: 2", 2), ("memory: true", 3)])
        func variantsOfAURLAreBounded(_ setting: String, kept: Int) throws {
            let origin = try ScriptedOrigin { request in
                let fields = [("Cache-Control", "max-age=600"), ("Vary", "X-Kind")]
                return .answer(to: request, fields: fields, request.field("X-Kind") ?? "none")
            }
            let daemon = try Daemon(services(service("api", origin.url, "cache: { \(setting) }")))
            for kind in ["a", "b", "c"] {
                #expect(try daemon.exchange("/api/x", fields: [("X-Kind", kind)]).text == kind)
            }
            let list = try daemon.command("explain", "/api/x", "-H", "X-Kind: c")
            #expect(list.output.contains("stored         \(kept) responses"), "\(list.report)")
            for kind in ["c", "b"] {
                let answer = try daemon.exchange("/api/x", fields: [("X-Kind", kind)])
                #expect(answer.cacheStatus?.isHit == true && answer.text == kind, "\(kind) \(answer.head)")
            }
            let first = try daemon.exchange("/api/x", fields: [("X-Kind", "a")])
            #expect(first.cacheStatus?.isHit == (kept == 3) && first.text == "a", "\(first.head)")
        }
    }
}
