// Calls that wait for an origin that is away, as clients and operators see them.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct Parking {
        private static func metric(_ daemon: Daemon, _ name: String) throws -> Int? {
            let text = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            let line = text.split(separator: "\n").first { $0.hasPrefix("drydock_\(name) ") }
            return line.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
        }

        private static func parked(_ daemon: Daemon, _ count: Int) throws -> Bool {
            try eventually { try daemon.metric("drydock_parked_calls") == count }
        }

        /// A client whose call is under way.
        private static func call(
            _ daemon: Daemon,
            _ method: String,
            _ target: String,
            body: [UInt8]? = nil
        ) throws -> RawClient {
            let client = try daemon.client()
            try client.request(method, target, host: "127.0.0.1:\(daemon.port)", body: body)
            return client
        }

        private static func echo() throws -> ScriptedOrigin {
            try ScriptedOrigin { .answer(to: $0, "got \(String(decoding: $0.body, as: UTF8.self))") }
        }

        @Test func aThousandCallsAreEachSentOnce() throws {
            let most = Monitor((now: 0, most: 0))
            let origin = try ScriptedOrigin { request in
                most.update {
                    $0.now += 1
                    $0.most = max($0.most, $0.now)
                }
                defer { most.update { $0.now -= 1 } }
                return .answer(to: request, "got \(String(decoding: request.body, as: UTF8.self))")
            }
            origin.stop()
            // A thousand connections of one address are as many as there may be by default.
            let queue = "max_queue: { length: 1000, wait: 10m }"
            var settings = services(service("api", origin.url, "park: 10m", "max_concurrent: 8", queue))
            settings.rest += "limits: { per_client: 2000 }\n"
            let daemon = try Daemon(settings)
            let clients = try (0..<1000).map {
                try Self.call(daemon, "POST", "/api/\($0)", body: Array("call \($0)".utf8))
            }
            #expect(try Self.parked(daemon, 1000))
            // One more than may be is answered at once.
            #expect(try daemon.exchange("POST", "/api/more", body: [1]).status == 502)
            try origin.restart()
            for (number, client) in clients.enumerated() {
                let answer = try client.readResponse(method: "POST")
                #expect(answer.status == 200 && answer.text == "got call \(number)")
            }
            #expect(origin.requests(method: "POST") == 1000)
            #expect(Set(origin.log.map(\.target)).count == 1000)
            #expect(most.read { $0.most } <= 8)
            #expect(try Self.parked(daemon, 0))
            #expect(try daemon.metric("drydock_parked_bytes") == 0)
            for (name, count) in [
                ("total", 1000), ("replayed_total", 1000), ("refused_total", 1), ("dropped_total", 0),
            ] {
                #expect(try daemon.metric("drydock_parked_\(name)") == count, "\(name)")
            }
        }

        @Test func whoWaitsForTheSameResourceSharesOneFetch() throws {
            let origin = try ScriptedOrigin {
                .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "fine")
            }
            origin.stop()
            let daemon = try Daemon(services(service("api", origin.url, "park: 10m")))
            let clients = try (0..<50).map { _ in try Self.call(daemon, "GET", "/api/a") }
            #expect(try Self.parked(daemon, 50))
            try origin.restart()
            for client in clients { #expect(try client.readResponse().text == "fine") }
            #expect(origin.requests() == 1)
        }

        @Test func whatIsStoredServesWithoutAWait() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=1")], "old") }
            var settings = services(service("api", origin.url, "park: 10m", "cache: { stale_if_error: 1h }"))
            settings.rest += "clock: { movable: true }\n"
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/api/a").text == "old")
            origin.stop()
            #expect(try daemon.command("clock", "advance", "10s").succeeded)
            #expect(try daemon.exchange("/api/a").text == "old")
            #expect(try daemon.metric("drydock_parked_total") == 0)
        }

        @Test func onlyWhatMayBeRepeatedIsParked() throws {
            let statuses = Monitor([503, 504, 502, 200])
            let origin = try ScriptedOrigin { request in
                if request.method == "POST" { return .answer(503, to: request, "no") }
                return .answer(statuses.update { $0.count > 1 ? $0.removeFirst() : $0[0] }, to: request, "answer")
            }
            let daemon = try Daemon(services(service("api", origin.url, "park: 10m", "cache: { mode: none }")))
            // It was sent, and the origin may have acted on it.
            #expect(try daemon.exchange("POST", "/api/a", body: Array("once".utf8)).status == 503)
            #expect(origin.requests(method: "POST") == 1)
            #expect(try daemon.exchange("/api/b").status == 200)
            #expect(origin.requests(method: "GET") == 4)
            #expect(try daemon.metric("drydock_parked_total") == 1)
            #expect(daemon.errors.contains("GET /api/b is parked as 1 for 600 s at most, since the status was 503"))
            #expect(daemon.errors.contains("GET /api/b, parked as 1, was replayed after"))
        }

        @Test func contentIsBounded() throws {
            let origin = try Self.echo()
            origin.stop()
            // Each call counts with 36 KiB besides its head and content.
            let daemon = try Daemon(services(service("api", origin.url, "park: { time: 10m, size: 76KiB }")))
            let small = try Self.call(daemon, "POST", "/api/small", body: [UInt8](repeating: 97, count: 2000))
            #expect(try Self.parked(daemon, 1))
            #expect(try daemon.exchange("PUT", "/api/large", body: [UInt8](repeating: 98, count: 3000)).status == 502)
            #expect(
                daemon.errors.contains("PUT /api/large is not parked, since calls that wait would have more than 77824")
            )
            try origin.restart()
            #expect(try small.readResponse(method: "POST").text == "got " + String(repeating: "a", count: 2000))
            #expect(origin.requests() == 1)
        }

        @Test func aCallWaitsNoLongerThanItMay() throws {
            let origin = try Self.echo()
            origin.stop()
            let daemon = try Daemon(services(service("api", origin.url, "park: 1s")))
            let begin = ContinuousClock.now
            let answer = try daemon.exchange("/api/a?secret=1")
            #expect(hasPassed(.seconds(1), since: begin))
            #expect(answer.status == 504)
            #expect(answer.text.contains("the origin was away for 1 s, as long as a request waits for it (park)"))
            #expect(answer.field("Proxy-Status")?.contains("error=destination_unavailable") == true)
            #expect(try daemon.metric("drydock_parked_expired_total") == 1)
            #expect(daemon.errors.contains("GET /api/a, parked as 1, waited"))
        }

        @Test func aClientThatLeavesIsDropped() throws {
            let origin = try Self.echo()
            origin.stop()
            let daemon = try Daemon(services(service("api", origin.url, "park: 10m")))
            var leaving: RawClient? = try Self.call(daemon, "POST", "/api/left", body: [1])
            let staying = try Self.call(daemon, "POST", "/api/stays", body: Array("b".utf8))
            #expect(try Self.parked(daemon, 2))
            withExtendedLifetime(leaving) {}
            leaving = nil
            #expect(try Self.parked(daemon, 1))
            try origin.restart()
            #expect(try staying.readResponse(method: "POST").text == "got b")
            #expect(origin.log.map(\.target) == ["/stays"])
            #expect(try daemon.metric("drydock_parked_dropped_total") == 1)
        }

        @Test func anOperatorListsReplaysAndCancels() throws {
            let origin = try Self.echo()
            origin.stop()
            let daemon = try Daemon(services(service("api", origin.url, "park: 10m")))
            let first = try Self.call(daemon, "POST", "/api/first?secret=1", body: Array("a".utf8))
            #expect(try Self.parked(daemon, 1))
            let second = try Self.call(daemon, "GET", "/api/second")
            #expect(try Self.parked(daemon, 2))
            #expect(try daemon.command("status").output.contains("2 parked"))
            let list = try daemon.command("parked").output.split(separator: "\n")
            #expect(list.count == 2 && !list.contains { $0.contains("secret") })
            #expect(list.first?.contains("api  POST /api/first  ") == true)
            let json = try daemon.command("parked", "list", "--json").output
            #expect(json.contains(#""path":"/api/second""#) && json.contains(#""service":"api""#))
            let id = String(list[1].prefix { $0 != " " })
            #expect(try daemon.command("parked", "cancel", id).output.contains("1 call ended"))
            let cancelled = try second.readResponse()
            #expect(cancelled.status == 503 && cancelled.text.contains("Cancelled"))
            let gone = try daemon.command("parked", "cancel", id)
            #expect(gone.end == .exited(1) && gone.errors.contains("no call \(id) is parked"))
            #expect(try daemon.command("parked", "cancel", "nosuch").end == .exited(1))
            #expect(try daemon.command("parked", "cancel").end == .exited(2))
            try origin.restart()
            // A probe may have come before the order.
            #expect(try daemon.command("parked", "replay", "--all").succeeded)
            #expect(try first.readResponse(method: "POST").text == "got a")
            #expect(origin.requests() == 1)
        }

        @Test func aReloadThatTakesTheOriginAwayEndsTheWait() throws {
            let origin = try Self.echo()
            origin.stop()
            var settings = services(service("api", origin.url, "park: 10m"), service("other", origin.url, "park: 10m"))
            let daemon = try Daemon(settings)
            let gone = try Self.call(daemon, "GET", "/api/a")
            let stays = try Self.call(daemon, "GET", "/other/a")
            #expect(try Self.parked(daemon, 2))
            settings.rest = services(service("other", origin.url, "park: 20m")).rest
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            let answer = try gone.readResponse()
            #expect(answer.status == 503 && answer.text.contains("a reload has removed its service"))
            #expect(try daemon.metric("drydock_parked_calls") == 1)
            try origin.restart()
            #expect(try stays.readResponse().status == 200)
        }

        @Test func theEndOfTheDaemonEndsTheWait() throws {
            let origin = try Self.echo()
            origin.stop()
            let daemon = try Daemon(services(service("api", origin.url, "park: 10m")))
            let client = try Self.call(daemon, "GET", "/api/a")
            #expect(try Self.parked(daemon, 1))
            daemon.signal(SIGTERM)
            let answer = try client.readResponse()
            #expect(answer.status == 503 && answer.text.contains("the daemon ends"))
            #expect(daemon.process.waitForEnd() == .exited(0))
        }

        @Test func anOpenBreakerIsAnOriginThatIsAway() throws {
            let origin = try Self.echo()
            origin.stop()
            let daemon = try Daemon(
                services(
                    service("long", origin.url, "park: 10m", "breaker: { failures: 1, open: 1h }"),
                    service("api", origin.url, "park: 10m", "breaker: { failures: 1, open: 1s }")
                )
            )
            let failed = try Self.call(daemon, "POST", "/long/a", body: Array("a".utf8))
            #expect(try Self.parked(daemon, 1))
            let refused = try Self.call(daemon, "POST", "/long/b", body: Array("b".utf8))
            #expect(try Self.parked(daemon, 2))
            #expect(try daemon.command("parked").output.contains("the circuit breaker of \(origin.url) is open"))
            let first = try Self.call(daemon, "POST", "/api/a", body: Array("a".utf8))
            #expect(try Self.parked(daemon, 3))
            let second = try Self.call(daemon, "POST", "/api/b", body: Array("b".utf8))
            #expect(try Self.parked(daemon, 4))
            try origin.restart()
            #expect(try first.readResponse(method: "POST").text == "got a")
            #expect(try second.readResponse(method: "POST").text == "got b")
            #expect(origin.requests() == 2)
            withExtendedLifetime((failed, refused)) {}
        }

        @Test func nobodyIsParkedWhileTheDaemonIsOffline() throws {
            let origin = try Self.echo()
            let daemon = try Daemon(services(service("api", origin.url, "park: 10m")))
            #expect(try daemon.command("offline", "on").succeeded)
            #expect(try daemon.exchange("/api/a").status == 504)
            #expect(try daemon.metric("drydock_parked_total") == 0)
        }
    }
}
