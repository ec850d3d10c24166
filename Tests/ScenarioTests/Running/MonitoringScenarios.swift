// The listener for monitors: what it tells to whoever reaches it, and that it can do nothing.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct Monitoring {
        /// A daemon that tells its metrics, the port where it does, and its origin.
        private static func start(_ rest: String = "") throws -> (daemon: Daemon, port: Int, origin: ScriptedOrigin) {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "fine") }
            var settings = services(service("api", origin.url))
            settings.rest += "\nmetrics: \"127.0.0.1:0\"\n\(rest)"
            let daemon = try Daemon(settings)
            let line = try #require(daemon.errors.firstMatch(of: #/metrics are told at 127\.0\.0\.1:(\d+)/#))
            return (daemon, try #require(Int(line.output.1)), origin)
        }

        @Test func itTellsTheStateAndTheMetricsAndNothingElse() throws {
            let (daemon, port, origin) = try Self.start()
            #expect(try daemon.exchange("/api/a").text == "fine")
            let client = try RawClient(port: port)
            // The name that a monitor on another machine knows it by, which no service answers for.
            let host = "cache.example:9090"
            #expect(try client.exchange("GET", "/healthz", host: host).text == "ok\n")
            #expect(try client.exchange("GET", "/readyz", host: host).text == "ready\n")
            let metrics = try client.exchange("GET", "/metrics", host: host)
            #expect(metrics.status == 200 && metrics.text.contains("drydock_build_info{version="))
            #expect(metrics.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            let whole = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            let names = { (text: String) in text.split(separator: "\n").filter { $0.hasPrefix("# TYPE") } }
            #expect(names(metrics.text) == names(whole))
            let head = try client.exchange("HEAD", "/readyz", host: host)
            #expect(head.status == 200 && head.text.isEmpty)
            for path in ["/v1/status", "/v1/config", "/v1/explain?url=/api/a", "/api/a", "/", "/ui/"] {
                let answer = try client.exchange("GET", path, host: host)
                #expect(answer.status == 404 && answer.text.contains("/metrics, /healthz, /readyz"), "\(path)")
                #expect(!answer.text.contains("/v1/status,"), "\(answer.text)")
            }
            for (method, path) in [("POST", "/v1/reload"), ("DELETE", "/v1/entries?all"), ("POST", "/metrics")] {
                let status = try client.exchange(method, path, host: host, body: []).status
                #expect(status == (path == "/metrics" ? 405 : 404), "\(method) \(path)")
            }
            #expect(try daemon.command("list").output.contains("/a"))
            origin.stop()
        }

        @Test func theProxyDoesNotLeadThere() throws {
            let (daemon, port, origin) = try Self.start("forward: { allow: [\"*\", 127.0.0.1] }\n")
            let client = try daemon.client()
            let answer = try client.exchange("GET", "http://127.0.0.1:\(port)/metrics", host: "127.0.0.1:\(port)")
            #expect(answer.status == 508, "\(answer.text)")
            origin.stop()
        }

        @Test func monitorsAreNoClients() throws {
            let (daemon, port, origin) = try Self.start("limits: { connections: 1 }\n")
            let only = try daemon.client()
            #expect(try only.exchange("/api/a").text == "fine")
            // All connections of clients are taken; those of monitors are not, and have an end of their own.
            var monitors: [RawClient] = []
            for _ in 0..<64 {
                let monitor = try RawClient(port: port)
                #expect(try monitor.exchange("/readyz").status == 200)
                monitors.append(monitor)
            }
            let further = try RawClient(port: port)
            #expect(throws: (any Error).self) { try further.exchange("/readyz") }
            #expect(eventually { daemon.errors.contains("all 64 connections for metrics are taken") })
            #expect(try only.exchange("/api/a").text == "fine")
            monitors.removeAll()
            #expect(eventually { (try? RawClient(port: port).exchange("/readyz").status) == 200 })
            origin.stop()
        }

        @Test func anAddressThatIsTakenIsNoStart() throws {
            let (first, port, origin) = try Self.start()
            let home = try DaemonHome()
            try home.folder.write("drydock.yaml", "listen: \"127.0.0.1:0\"\nmetrics: \"127.0.0.1:\(port)\"\n")
            let result = try Shell.run(Daemon.binary(), ["serve", "-c", home.configuration])
            #expect(!result.succeeded && result.errors.contains("'metrics'"), "\(result.report)")
            #expect(try first.exchange("/api/a").text == "fine")
            origin.stop()
        }
    }
}
