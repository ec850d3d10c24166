// `latency: learned`: what an origin took is measured, kept, and played when demo mode is switched on.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct LearnedLatency {
        /// What answers of `/slow` take, in milliseconds.
        private static let pause = 60

        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                if request.target.hasSuffix("/slow") { Thread.sleep(forTimeInterval: Double(pause) / 1000) }
                return .answer("live")
            }
        }

        private static func configuration(_ origin: ScriptedOrigin, latency: String = "learned") -> String {
            """
            learned_latencies: ./latencies.json
            services:
              - name: shop
                match: { prefix: /shop }
                base_url: \(origin.url)
                cache: { mode: none }
                demo: { body: played, latency: "\(latency)" }
                endpoints:
                  - { name: slow, path: /slow, demo: { body: played } }
            """
        }

        private static func latency(of answer: RawResponse) throws -> Int {
            let text = try #require(answer.field("Drydock-Demo"))
            let part = try #require(text.components(separatedBy: "latency=").last?.components(separatedBy: "ms").first)
            return try #require(Int(part))
        }

        @Test func whatAnOriginTookIsPlayedAlsoByTheNextDaemon() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            let daemon = try Daemon(DaemonSettings(Self.configuration(origin)), at: home)
            #expect(daemon.errors.contains("learning how long the origin of shop/slow takes; nothing is known of it"))
            for _ in 0..<5 { #expect(try daemon.exchange("/shop/slow").text == "live") }
            for _ in 0..<5 { #expect(try daemon.exchange("/shop/fast").text == "live") }
            let status = try daemon.command("demo").output
            #expect(status.contains("learned of shop: 10 answers, median "), "\(status)")
            #expect(status.contains("learned of shop/slow: 5 answers, median "), "\(status)")
            #expect(try daemon.metric("drydock_learned_latencies") == 15)
            // What is learned is played from the moment when demo mode is switched on.
            #expect(try daemon.command("demo", "on").succeeded)
            let played = try daemon.exchange("/shop/slow")
            #expect(played.text == "played")
            #expect(try Self.latency(of: played) >= Self.pause - 1)
            try daemon.restart()
            // For the daemon's user alone, beside the configuration.
            let file = home.folder.file("latencies.json")
            let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            #expect(try daemon.command("demo").output.contains("learned of shop/slow: 5 answers"))
            #expect(try daemon.command("demo", "on").succeeded)
            #expect(try Self.latency(of: try daemon.exchange("/shop/slow")) >= Self.pause - 1)
            // What is known is forgotten by a command, in the file as well.
            let reset = try daemon.command("demo", "reset", "--latencies")
            #expect(reset.output.contains("15 latencies of origins forgotten"), "\(reset.report)")
            #expect(try daemon.metric("drydock_learned_latencies") == 0)
            #expect(!(try String(contentsOfFile: file, encoding: .utf8)).contains("shop"))
        }

        /// The same draw takes the same time however much is learned since, until the configuration is read again.
        @Test func drawsStayWhatTheyAreWhileMoreIsLearned() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            try home.folder.write(
                "latencies.json",
                #"{"version": 1, "latencies": {"shop/slow": {"20000000": 1}, "shop": {"40000000": 2}}}"#
            )
            let settings = DaemonSettings(Self.configuration(origin, latency: "learned(shop/slow, x2)"))
            let daemon = try Daemon(settings, at: home)
            #expect(try daemon.command("demo", "on", "shop/slow").succeeded)
            let first = try Self.latency(of: try daemon.exchange("/shop/slow"))
            #expect((39...41).contains(first), "\(first)")
            // Live traffic of the service goes on, and is learned of.
            for _ in 0..<9 { #expect(try daemon.exchange("/shop/fast").text == "live") }
            #expect(try Self.latency(of: try daemon.exchange("/shop/slow")) >= 39)
        }

        @Test func aFileThatIsNoneIsPutAside() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            try home.folder.write("latencies.json", "no latencies")
            let daemon = try Daemon(DaemonSettings(Self.configuration(origin)), at: home)
            #expect(daemon.errors.contains("latencies.json.broken now, and learning begins anew"))
            #expect(try daemon.exchange("/shop/slow").text == "live")
            #expect(daemon.end() == .exited(0))
            let aside = try String(contentsOfFile: home.folder.file("latencies.json.broken"), encoding: .utf8)
            #expect(aside == "no latencies")
            let kept = try String(contentsOfFile: home.folder.file("latencies.json"), encoding: .utf8)
            #expect(kept.contains("shop/slow"))
        }

        /// A configuration that is refused changes no file, and the next one in force has its own.
        @Test func aRefusedReloadLeavesTheFileAsItIs() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            let daemon = try Daemon(DaemonSettings(Self.configuration(origin)), at: home)
            #expect(try daemon.exchange("/shop/slow").text == "live")
            try home.folder.write("other.json", "no latencies")
            let other = Self.configuration(origin).replacing("./latencies.json", with: "./other.json")
            try daemon.rewrite(DaemonSettings(other + "\nnothing: 3"))
            #expect(!(try daemon.command("reload").succeeded))
            #expect(home.folder.text("other.json") == "no latencies")
            try daemon.rewrite(DaemonSettings(other))
            #expect(try daemon.command("reload").succeeded)
            #expect(home.folder.text("other.json.broken") == "no latencies")
            try daemon.restart()
            // What was learned before goes into the file that is in force.
            #expect(home.folder.text("other.json").contains("shop/slow"))
            #expect(try daemon.metric("drydock_learned_latencies") == 2)
        }

        /// Faults learn as well: hits become as slow as the origin.
        @Test func hitsMayBeAsSlowAsTheOrigin() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: shop
                        match: { prefix: /shop }
                        base_url: \(origin.url)
                        cache: { ttl: 1h }
                        faults: [{ name: slow, at: hit, latency: { learned: { otherwise: 7ms } } }]
                    """
                )
            )
            #expect(try daemon.exchange("/shop/slow").field("Drydock-Demo") == nil)
            #expect(try Self.latency(of: try daemon.exchange("/shop/slow")) == 7)
            #expect(try daemon.command("reload").succeeded)
            #expect(try Self.latency(of: try daemon.exchange("/shop/slow")) >= Self.pause - 1)
        }
    }
}
