// Housekeeping end to end: purges that a restart does not undo, pins, listings, and the commands that ask for them.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Keeping {
        static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                .resource(
                    request,
                    etag: "\"1\"",
                    fields: [("Cache-Control", "max-age=600"), ("Cache-Tag", "all, \(request.target.dropFirst())")],
                    "kept \(request.target)"
                )
            }
        }

        private func daemon(_ origin: ScriptedOrigin) throws -> Daemon {
            var settings = services(service("api", origin.url), service("other", origin.url))
            settings.rest += "clock: { movable: true }\n"
            return try Daemon(settings)
        }

        /// Whether a path is answered from the store; nothing is fetched for it.
        private func isStored(_ daemon: Daemon, _ path: String) throws -> Bool {
            try daemon.exchange(path, fields: [("Cache-Control", "only-if-cached, max-stale")]).status == 200
        }

        private func settled(_ daemon: Daemon) throws -> Bool {
            try eventually {
                try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text.contains("\ndrydock_fills 0\n")
            }
        }

        @Test(arguments: ["url", "prefix", "glob", "tag", "older", "all", "path"], [false, true])
        func whatIsPurgedStaysPurgedOverAKilledDaemon(_ kind: String, _ isKilled: Bool) throws {
            let origin = try Self.origin()
            let daemon = try daemon(origin)
            for path in ["/api/a", "/api/b", "/other/a"] { #expect(try daemon.exchange(path).status == 200) }
            #expect(try settled(daemon))
            let base = "http://127.0.0.1:\(origin.port)"
            let result: ShellResult
            var gone: Set<String> = ["/api/a", "/other/a"]
            switch kind {
            case "url": result = try daemon.command("purge", "\(base)/a")
            case "prefix": result = try daemon.command("purge", "--prefix", "\(base)/a")
            case "glob": result = try daemon.command("purge", "--glob", "*/a")
            case "tag": result = try daemon.command("purge", "--tag", "a")
            case "path":
                gone = ["/api/b"]
                result = try daemon.command("purge", "/api/b", "--service", "api")
            case "older":
                gone = []
                result = try daemon.command("purge", "--older-than", "1h")
            default:
                gone.insert("/api/b")
                result = try daemon.command("purge", "--all")
            }
            #expect(result.succeeded, "\(result.report)")
            #expect(result.output.contains("\(gone.count) stored response"), "\(result.report)")
            if isKilled { try daemon.restart(SIGKILL) }
            for path in ["/api/a", "/api/b", "/other/a"] {
                #expect(try isStored(daemon, path) != gone.contains(path), "\(path)")
            }
            #expect(origin.requests() == 3)
        }

        @Test(arguments: [false, true]) func softlyPurgedIsStaleAndChecked(_ isKilled: Bool) throws {
            let origin = try Self.origin()
            let daemon = try daemon(origin)
            for path in ["/api/a", "/api/b"] { _ = try daemon.exchange(path) }
            #expect(try settled(daemon))
            let result = try daemon.command("purge", "--tag", "a", "--soft")
            #expect(result.output == "1 stored response made stale\n", "\(result.report)")
            if isKilled { try daemon.restart(SIGKILL) }
            let stale = try daemon.command("list", "--stale")
            #expect(stale.output.contains("/a") && !stale.output.contains("/b"), "\(stale.report)")
            #expect(try isStored(daemon, "/api/a"))
            let checked = try daemon.exchange("/api/a")
            #expect(checked.field("Cache-Status")?.contains("detail=revalidated") == true, "\(checked.head)")
            #expect(try daemon.exchange("/api/a").field("Cache-Status")?.contains("hit; ttl=") == true)
            #expect(try daemon.command("list", "--stale").output.isEmpty)
        }

        @Test func pinsAreKeptAndSparedForTheirAge() throws {
            let origin = try Self.origin()
            let daemon = try daemon(origin)
            for path in ["/api/a", "/api/b"] { _ = try daemon.exchange(path) }
            #expect(try settled(daemon))
            let url = "http://127.0.0.1:\(origin.port)/a"
            #expect(try daemon.command("pin", "/api/a").output == "pinned \(url)\n")
            #expect(try daemon.command("pin", url).output == "\(url) was pinned already\n")
            #expect(try daemon.command("list", "--pinned").output.contains(url))
            #expect(try daemon.command("clock", "advance", "2s").succeeded)
            #expect(try daemon.command("purge", "--older-than", "0s").output == "1 stored response purged\n")
            try daemon.restart(SIGKILL)
            #expect(try daemon.command("pins").output == "\(url)\n")
            #expect(try isStored(daemon, "/api/a"))
            #expect(try !isStored(daemon, "/api/b"))
            #expect(try daemon.command("purge", "--all").succeeded)
            #expect(try !isStored(daemon, "/api/a"))
            #expect(try daemon.command("unpin", url).output == "unpinned \(url)\n")
            #expect(try daemon.command("pins", "--json").output == "{\"urls\":[]}\n")
        }

        @Test func aListingHasPagesAndFilters() throws {
            let origin = try Self.origin()
            let daemon = try daemon(origin)
            for number in 0..<25 { _ = try daemon.exchange("/\(number % 2 == 0 ? "api" : "other")/\(number)") }
            #expect(try settled(daemon))
            for _ in 0..<2 {
                var seen: [String] = []
                var next: String? = ""
                while let after = next {
                    let path = "/v1/entries?limit=4" + (after.isEmpty ? "" : "&after=\(after)")
                    let page = try RawClient(unix: daemon.home.adminSocket).exchange(path)
                    let document = try #require(
                        try JSONSerialization.jsonObject(with: Data(page.body)) as? [String: Any]
                    )
                    let entries = try #require(document["entries"] as? [[String: Any]])
                    seen += entries.compactMap { $0["url"] as? String }
                    next = document["next"] as? String
                }
                #expect(seen.count == 25 && seen == seen.sorted() && Set(seen).count == 25)
                let list = { (arguments: [String]) in
                    try Shell.run(
                        Daemon.binary(),
                        ["list"] + arguments,
                        environment: ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"]
                    ).output.split(separator: "\n").count
                }
                #expect(try list([]) == 25)
                #expect(try list(["--service", "api"]) == 13)
                #expect(try list(["--tier", "disk"]) == 25)
                #expect(try list(["*:\(origin.port)/1*"]) == 11)
                #expect(try list(["/24"]) == 1)
                #expect(try list(["--min-size", "1KiB"]) == 0)
                #expect(try list(["--fresh", "--limit", "3"]) == 3)
                // And from the disk alone.
                try daemon.restart()
            }
        }

        @Test("a listing that is cut says how much more there is, and goes on where it ended")
        func aListingSaysThatThereIsMore() throws {
            let origin = try ScriptedOrigin { request in
                let fields = [("Cache-Control", "max-age=600"), ("Vary", "Accept-Language")]
                return .resource(request, etag: "\"1\"", fields: fields, "kept \(request.target)")
            }
            let daemon = try daemon(origin)
            for path in ["a", "b", "c", "d"] { _ = try daemon.exchange("/api/\(path)") }
            for language in ["de", "fr"] { _ = try daemon.exchange("/api/b", fields: [("Accept-Language", language)]) }
            #expect(try settled(daemon))
            let whole = try daemon.command("list", "--limit", "6")
            #expect(whole.output.split(separator: "\n").count == 6 && whole.errors.isEmpty, "\(whole.report)")
            // The variants of one URL stay together: what follows is behind it.
            let cut = try daemon.command("list", "--limit", "2")
            #expect(cut.end == .exited(0) && cut.output.split(separator: "\n").count == 4, "\(cut.report)")
            let url = "http://127.0.0.1:\(origin.port)/b"
            #expect(cut.errors == "2 more: use --limit 6, or --after '\(url)' for what follows\n", "\(cut.report)")
            let rest = try daemon.command("list", "--after", url)
            #expect(rest.output.split(separator: "\n").count == 2 && rest.errors.isEmpty, "\(rest.report)")
            // Ages and tiers change meanwhile.
            func urls(_ text: String) -> [Substring] { text.matches(of: /http:.*/).map(\.0) }
            #expect(urls(cut.output + rest.output) == urls(whole.output) && urls(whole.output).count == 6)
            for (limit, more) in [("2", 2), ("6", 0)] {
                let text = try daemon.command("list", "--json", "--limit", limit).output
                let document = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
                #expect(document["more"] as? Int == more && document["next"] as? String == (more > 0 ? url : nil))
            }
        }

        @Test(
            "a service that does not exist is refused, with the nearest name; one that is gone is reached as long as it has something"
        )
        func servicesThatDoNotExist() throws {
            let origin = try Self.origin()
            let daemon = try daemon(origin)
            for path in ["/api/a", "/other/a"] { _ = try daemon.exchange(path) }
            #expect(try settled(daemon))
            for arguments in [["list", "--service", "ohter"], ["purge", "--all", "--service", "ohter"]] {
                let refused = try daemon.command(arguments)
                #expect(refused.end == .exited(1), "\(refused.report)")
                #expect(
                    refused.errors.contains("no service is called ohter; did you mean 'other'?"),
                    "\(refused.report)"
                )
                var far = arguments
                far[far.count - 1] = "something-else"
                let listed = try daemon.command(far)
                #expect(listed.errors.contains("something-else; there are api, other"), "\(listed.report)")
            }
            #expect(try isStored(daemon, "/api/a") && isStored(daemon, "/other/a"))
            let forward = try daemon.command("list", "--service", "forward")
            #expect(forward.succeeded && forward.output.isEmpty, "\(forward.report)")
            try daemon.rewrite(services(service("api", origin.url)))
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.command("list", "--service", "other").output.split(separator: "\n").count == 1)
            #expect(try daemon.command("purge", "--all", "--service", "other").output == "1 stored response purged\n")
            #expect(try eventually { try daemon.command("list", "--service", "other").end == .exited(1) })
        }

        @Test(
            "only a URL or a path can be pinned",
            arguments: ["nonsense", "a b", "api/a", "ftp://a/b", "http://", "*"]
        )
        func onlyURLsArePinned(_ text: String) throws {
            let origin = try Self.origin()
            let daemon = try daemon(origin)
            let refused = try daemon.command("pin", "--", text)
            #expect(refused.end == .exited(1), "\(refused.report)")
            #expect(
                refused.errors.contains("'\(text)' is not a URL; give a path, or http://HOST/PATH"),
                "\(refused.report)"
            )
            #expect(try daemon.command("pins").output.isEmpty)
        }

        @Test func whatIsDoneIsCountedAndTold() throws {
            let origin = try Self.origin()
            let daemon = try daemon(origin)
            _ = try daemon.exchange("/api/a")
            #expect(try settled(daemon))
            #expect(try daemon.command("purge", "--prefix", "http://", "--soft").succeeded)
            #expect(try daemon.command("purge", "--prefix", "http://").succeeded)
            let metrics = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            for line in ["drydock_purged_total 1", "drydock_soft_purged_total 1", "drydock_pins 0"] {
                #expect(metrics.contains("\n\(line)\n"), "\(line)")
            }
            #expect(daemon.errors.contains("purged") && daemon.errors.contains("prefix http://"), "\(daemon.errors)")
            let wrong = try daemon.command("purge")
            #expect(wrong.end == .exited(2) && wrong.errors.contains("--older-than"), "\(wrong.report)")
            let both = try daemon.command("purge", "--all", "--tag", "a")
            #expect(both.end == .exited(2))
            let unit = try daemon.command("purge", "--older-than", "7")
            #expect(unit.end == .exited(2) && unit.errors.contains("7s"), "\(unit.report)")
        }

        @Test func aSchedulePurgesAgainAndAgain() throws {
            let origin = try Self.origin()
            var settings = services(service("api", origin.url))
            settings.rest += "\npurge:\n  - { tag: a, every: 1s, at_start: true }\n"
            let daemon = try Daemon(settings)
            for _ in 0..<2 {
                #expect(try daemon.exchange("/api/a").status == 200)
                #expect(try eventually { try !isStored(daemon, "/api/a") })
            }
            #expect(try daemon.exchange("/api/b").status == 200)
            let turns = { daemon.errors.components(separatedBy: "tag a").count - 1 }
            let before = turns()
            #expect(eventually { turns() > before + 1 })
            #expect(try isStored(daemon, "/api/b"))
        }
    }
}
