// `drydock clock`: lifetimes and windows go by a clock that a test moves, where the configuration allows it.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Clock {
        static let movable = "clock: { movable: true }\n"

        /// Its Date goes by the clock of the daemon, which is `ahead` seconds ahead.
        private static func origin(_ ahead: Monitor<Int>) throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                let fields = [("Cache-Control", "max-age=6000"), ("Date", httpDate(ahead.read { $0 }))]
                return .resource(request, etag: "\"1\"", fields: fields, "kept")
            }
        }

        private func seconds(_ value: String?) throws -> Int {
            let format = DateFormatter()
            format.locale = Locale(identifier: "en_US_POSIX")
            format.timeZone = TimeZone(identifier: "GMT")
            format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            let text = try #require(value)
            let date = try #require(format.date(from: text))
            return Int(date.timeIntervalSinceNow.rounded())
        }

        @Test func lifetimesGoByTheMovedClock() throws {
            let ahead = Monitor(0)
            let origin = try Self.origin(ahead)
            var settings = services(service("api", origin.url))
            settings.rest += Self.movable
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/api/kept").cacheStatus?.forwarded == "uri-miss")

            let moved = try daemon.command("clock", "advance", "3601s")
            #expect(moved.succeeded && moved.output.hasPrefix("clock: 3601s ahead, 20"), "\(moved.report)")
            let fresh = try daemon.exchange("/api/kept")
            #expect(fresh.cacheStatus?.isHit == true, "\(fresh.head)")
            #expect((3601...3900).contains(fresh.field("Age").flatMap { Int($0) } ?? 0), "\(fresh.head)")
            #expect(origin.requests() == 1)

            _ = try daemon.command("clock", "advance", "2h")
            ahead.update { $0 = 10801 }
            let checked = try daemon.exchange("/api/kept")
            #expect(checked.cacheStatus?.detail == "revalidated", "\(checked.head)")
            #expect(origin.requests() == 2)
            #expect(try daemon.exchange("/api/kept").cacheStatus?.isHit == true)

            // What the daemon says by itself has the same time.
            let own = try daemon.exchange("/nowhere")
            #expect((10500...10801).contains(try seconds(own.field("Date"))), "\(own.head)")
            let status = try daemon.command("status")
            #expect(status.output.contains("clock          10801s ahead, 20"), "\(status.report)")
            let metrics = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            #expect(metrics.contains("\ndrydock_clock_ahead_seconds 10801\n"))
            #expect(daemon.errors.contains("\"clock moved\",\"ahead\":\"10801s\",\"time_\":\"20"), "\(daemon.errors)")

            let back = try daemon.command("clock", "reset", "--json")
            let document = try JSONSerialization.jsonObject(with: Data(back.output.utf8)) as? [String: Any]
            #expect(document?["ahead"] as? Int == 0 && document?["is_movable"] as? Bool == true, "\(back.report)")
            #expect(abs(try seconds(daemon.exchange("/nowhere").field("Date"))) <= 300)
        }

        @Test(
            "what is checked or fetched after an advance is fresh from then on, whatever the origin's own clock says",
            arguments: ["head", "conditional"]
        )
        func anOriginThatStaysBehind(_ check: String) throws {
            let origin = try ScriptedOrigin { request in
                switch request.target {
                case "/expires":
                    let fields = [("Expires", httpDate(6000))]
                    return .resource(request, etag: "\"1\"", fields: fields, "kept")
                default:
                    return .resource(request, etag: "\"1\"", fields: [("Cache-Control", "max-age=6000")], "kept")
                }
            }
            var settings = services(service("api", origin.url, "cache: { revalidate: \(check) }"))
            settings.rest += Self.movable
            let daemon = try Daemon(settings)
            for target in ["/api/kept", "/api/expires"] {
                #expect(try daemon.exchange(target).cacheStatus?.forwarded == "uri-miss")
            }
            for round in 1...2 {
                #expect(try daemon.command("clock", "advance", "2h").succeeded)
                for target in ["/api/kept", "/api/expires"] {
                    let checked = try daemon.exchange(target)
                    #expect(checked.cacheStatus?.detail == "revalidated", "\(round) \(checked.head)")
                    let fresh = try daemon.exchange(target)
                    #expect(fresh.cacheStatus?.isHit == true, "\(round) \(fresh.head)")
                    #expect((0...300).contains(fresh.field("Age").flatMap { Int($0) } ?? -1), "\(fresh.head)")
                }
            }
            #expect(try daemon.exchange("/api/new").cacheStatus?.isStored == true)
            #expect(try daemon.exchange("/api/new").cacheStatus?.isHit == true)
            #expect(try daemon.command("clock", "advance", "90m").succeeded)
            for target in ["/api/kept", "/api/new"] {
                #expect(try daemon.exchange(target).cacheStatus?.isHit == true, "\(target)")
            }
            let explained = try daemon.command("explain", "/api/kept")
            let apparent = explained.output.firstMatch(of: /apparent_age = .* = ([0-9]+)\n/).flatMap { Int($0.1) }
            #expect(apparent.map { (0...300).contains($0) } == true, "\(explained.report)")
            // Expires lay a hundred minutes ahead of the last check, 90 of which are over.
            #expect(try daemon.command("clock", "advance", "11m").succeeded)
            #expect(try daemon.exchange("/api/expires").cacheStatus?.detail == "revalidated")
        }

        @Test func withoutLeaveItStays() throws {
            let origin = try Self.origin(Monitor(0))
            let settings = services(service("api", origin.url))
            let daemon = try Daemon(settings)
            _ = try daemon.exchange("/api/kept")
            for arguments in [["advance", "2h"], ["reset"]] {
                let refused = try Shell.run(
                    Daemon.binary(),
                    ["clock"] + arguments,
                    environment: ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"]
                )
                #expect(refused.end == .exited(1), "\(refused.report)")
                #expect(refused.errors.contains("clock: { movable: true }"), "\(refused.report)")
            }
            let answer = try RawClient(unix: daemon.home.adminSocket).exchange(
                "POST",
                "/v1/clock?advance=2h",
                body: []
            )
            expectProblem(answer, 403)
            #expect(try daemon.exchange("/api/kept").cacheStatus?.isHit == true)

            // A reload gives leave, and takes it and the advance away again.
            var other = settings
            other.rest += Self.movable
            try daemon.rewrite(other)
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.command("clock", "advance", "2h").succeeded)
            #expect(try daemon.command("status").output.contains("clock          2h ahead"))
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.command("status").output.contains("clock          the system's"))
            #expect(daemon.errors.contains("clock set back"), "\(daemon.errors)")
            #expect(try daemon.exchange("/api/kept").cacheStatus?.isHit == true)
            #expect(origin.requests() == 1)
        }

        @Test func itHasBoundsAndUnits() throws {
            var settings = services(service("api", "http://127.0.0.1:9"))
            settings.rest += Self.movable
            let daemon = try Daemon(settings)
            for wrong in ["2", "250ms", "-2h", "2 hours", "36501d"] {
                let refused = try daemon.command("clock", "advance", "--", wrong)
                #expect(refused.end == .exited(2), "\(refused.report)")
            }
            #expect(try daemon.command("clock", "advance", "24999d").succeeded)
            let far = try daemon.command("clock", "advance", "25h")
            #expect(far.end == .exited(1) && far.errors.contains("at most 25000d"), "\(far.report)")
            #expect(try daemon.command("clock", "advance", "24h").succeeded)
            #expect(try daemon.command("status").output.contains("clock          25000d ahead, 2"))
        }
    }
}
