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
                let control = ("Cache-Control", "max-age=10\(own)")
                return .resource(
                    request,
                    etag: "\"1\"",
                    fields: [control, ("Date", httpDate(ahead.read { $0 }))],
                    "text"
                )
            }
            var settings = services(
                service("short", origin.url),
                service("long", origin.url, "cache: { stale_while_revalidate: 30s }")
            )
            settings.rest += Self.movable
            let daemon = try Daemon(settings)
            for path in ["/short/x", "/long/x", "/long/own"] { _ = try daemon.exchange(path) }
            _ = try daemon.command("clock", "advance", "20s")
            ahead.update { $0 = 20 }
            #expect(try daemon.exchange("/short/x").cacheStatus?.detail == "revalidated")
            let stale = try daemon.exchange("/long/x").cacheStatus
            #expect(stale?.isHit == true && stale?.detail == "refreshing", "\(String(describing: stale))")
            #expect(try eventually { try daemon.exchange("/long/x").cacheStatus?.detail == "memory" })
            #expect(try daemon.exchange("/long/own").cacheStatus?.detail == "revalidated")
            // Past the 30 seconds it has to wait for the check.
            _ = try daemon.command("clock", "advance", "41s")
            ahead.update { $0 = 61 }
            #expect(try daemon.exchange("/long/x").cacheStatus?.detail == "revalidated")
        }
    }
}
