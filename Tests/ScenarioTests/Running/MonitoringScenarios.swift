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

        /// The value of a series; nil if there is none.
        private static func value(_ series: String, in metrics: String) -> Double? {
            metrics.split(separator: "\n").first { $0.hasPrefix(series + " ") }
                .flatMap { Double($0.dropFirst(series.count + 1)) }
        }

        @Test func answersAreCountedByServiceEndpointOutcomeTierAndStatus() throws {
            let origin = try ScriptedOrigin { request in
                request.target.hasPrefix("/missing")
                    ? .answer(404, to: request, "none")
                    : .answer(to: request, fields: [("Cache-Control", "max-age=600")], "fine")
            }
            let api = service("api", origin.url, "endpoints: [{ name: users, path: \"/users/:id\" }]")
            var settings = services(api, service("away", "http://127.0.0.1:9"))
            settings.rest += "\nmetrics: \"127.0.0.1:0\"\n"
            let daemon = try Daemon(settings)
            let line = try #require(daemon.errors.firstMatch(of: #/metrics are told at 127\.0\.0\.1:(\d+)/#))
            let monitor = try RawClient(port: try #require(Int(line.output.1)))
            let client = try daemon.client()
            for _ in 0..<4 { #expect(try client.exchange("/api/users/1").text == "fine") }
            #expect(try client.exchange("/api/missing").status == 404)
            #expect(try client.exchange("/away/x").status == 502)
            #expect(try client.exchange("/nowhere").status == 404)
            let text = try monitor.exchange("/metrics").text
            func requests(_ labels: String) -> Double? { Self.value("drydock_requests_total{\(labels)}", in: text) }
            let users = "service=\"api\",endpoint=\"users\""
            #expect(requests("\(users),outcome=\"hit\",tier=\"memory\",status=\"2xx\"") == 3)
            #expect(requests("\(users),outcome=\"miss\",tier=\"none\",status=\"2xx\"") == 1)
            #expect(requests("service=\"api\",endpoint=\"\",outcome=\"miss\",tier=\"none\",status=\"4xx\"") == 1)
            #expect(requests("service=\"away\",endpoint=\"\",outcome=\"error\",tier=\"none\",status=\"5xx\"") == 1)
            #expect(requests("service=\"\",endpoint=\"\",outcome=\"error\",tier=\"none\",status=\"4xx\"") == 1)
            for name in ["first_byte", "request_duration"] {
                let hits = "drydock_\(name)_seconds_bucket{service=\"api\",outcome=\"hit\",le=\"+Inf\"}"
                #expect(Self.value(hits, in: text) == 3)
            }
            #expect(Self.value("drydock_answer_bytes_total{service=\"api\"}", in: text) == 20)
            #expect(Self.value("drydock_origin_bytes_total{service=\"api\"}", in: text) == 8)
            #expect(Self.value("drydock_origin_requests_total{service=\"api\",result=\"2xx\"}", in: text) == 1)
            #expect(Self.value("drydock_origin_requests_total{service=\"api\",result=\"4xx\"}", in: text) == 1)
            #expect(Self.value("drydock_origin_requests_total{service=\"away\",result=\"connection\"}", in: text) == 1)
            #expect(Self.value("drydock_origin_connect_seconds_count{service=\"api\"}", in: text) == 1)
            #expect(Self.value("drydock_origin_first_byte_seconds_count{service=\"api\"}", in: text) == 2)
            #expect(Self.value("drydock_folded_series", in: text) == 0)
            // The old names say the same.
            #expect(Self.value("drydock_cache_total{outcome=\"hit\"}", in: text) == 3)
            #expect(Self.value("drydock_answers_total{class=\"4xx\"}", in: text) == 2)
            for name in ["resident_memory_bytes", "virtual_memory_bytes", "open_fds", "max_fds", "cpu_seconds_total"] {
                #expect(try #require(Self.value("process_\(name)", in: text)) > 0, "\(name)")
            }
            let began = try #require(Self.value("process_start_time_seconds", in: text))
            #expect(abs(began - Date().timeIntervalSince1970) < 600)
            let open = try monitor.exchange(
                "/metrics",
                fields: [("Accept", "application/openmetrics-text;version=1.0.0")]
            )
            #expect(open.field("Content-Type") == "application/openmetrics-text; version=1.0.0; charset=utf-8")
            #expect(open.text.hasSuffix("\n# EOF\n") && open.text.contains("# TYPE drydock_requests counter\n"))
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
