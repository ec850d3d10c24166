// Demo mode: reproducible outcomes over connections and restarts, honest latency, and waiting without threads.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Demo {
        static let count = 10_000

        /// One answer as the client saw it.
        struct Outcome: Sendable, Equatable {
            var status: Int
            var stated: String
            var milliseconds: Int
            var tookAtLeastThat: Bool
            var bodyFits: Bool
            var isFailure: Bool { status == 503 }
        }

        static func settings(_ home: DaemonHome, chance: Int, seed: Int, latency: String) throws -> DaemonSettings {
            try home.folder.write("demo/user.json", #"{"name": "Ada"}"#)
            try home.folder.write("demo/error.json", #"{"error": "unavailable"}"#)
            return DaemonSettings(
                """
                limits: { connections: 5000, per_client: 5000 }
                services:
                  - name: people
                    match: { prefix: /people }
                    base_url: http://127.0.0.1:9
                    demo:
                      enabled: true
                      files: \(home.folder.file("demo"))
                      latency: \(latency)
                      failure: { chance: \(chance)%, status: 503, file: error.json }
                      random_seed: \(seed)
                    endpoints:
                      - { name: user, method: GET, path: "/users/:id" }
                """
            )
        }

        static func daemon(chance: Int = 20, seed: Int = 42, latency: String = "0ms..2ms") throws -> Daemon {
            let home = try DaemonHome()
            return try Daemon(settings(home, chance: chance, seed: seed, latency: latency), at: home)
        }

        static func read(_ client: RawClient, since sent: ContinuousClock.Instant) throws -> Outcome {
            let response = try client.readResponse()
            let stated = response.field("Drydock-Demo") ?? "none"
            let latency = Int(stated.split(separator: "latency=").last?.prefix { $0.isNumber } ?? "") ?? -1
            let expected = response.status == 503 ? #"{"error": "unavailable"}"# : #"{"name": "Ada"}"#
            return Outcome(
                status: response.status,
                stated: stated,
                milliseconds: latency,
                tookAtLeastThat: hasPassed(.milliseconds(latency), since: sent),
                bodyFits: response.text == expected
            )
        }

        /// Asks for `/people/users/0` to `/people/users/9999` over so many connections; outcomes by number.
        static func play(_ daemon: Daemon, connections: Int, _ count: Int = Self.count) throws -> [Outcome] {
            let shares = try Threads.run(connections) { index in
                let client = try daemon.client()
                return try stride(from: index, to: count, by: connections).map { number -> (Int, Outcome) in
                    let sent = ContinuousClock.now
                    try client.request("GET", "/people/users/\(number)")
                    return (number, try read(client, since: sent))
                }
            }
            return shares.joined().sorted { $0.0 < $1.0 }.map(\.1)
        }

        static func expectSane(_ outcomes: [Outcome], chance: Double) {
            #expect(outcomes.count == count)
            #expect(outcomes.allSatisfy { [200, 503].contains($0.status) && $0.bodyFits })
            #expect(outcomes.allSatisfy { $0.tookAtLeastThat })
            #expect(outcomes.allSatisfy { (0...2).contains($0.milliseconds) })
            #expect(outcomes.allSatisfy { $0.stated.contains($0.isFailure ? "outcome=failure" : "outcome=success") })
            let interval = Statistics.binomialInterval(count, chance: chance)
            #expect(interval.contains(outcomes.count { $0.isFailure }))
        }

        @Test func tenThousandOutcomesHangOnTheSeedAlone() throws {
            let daemon = try Self.daemon()
            // One connection takes its time: a tenth of them.
            let one = try Self.play(daemon, connections: 1, Self.count / 10)
            try daemon.restart()
            let many = try Self.play(daemon, connections: 64)
            Self.expectSane(many, chance: 0.2)
            #expect(many.prefix(one.count).map(\.stated) == one.map(\.stated))
            try daemon.restart(SIGKILL)
            let again = try Self.play(daemon, connections: 64)
            #expect(again.map(\.stated) == many.map(\.stated))
            // Without a restart the same keys have a second ordinal, and so other draws.
            let second = try Self.play(daemon, connections: 64)
            #expect(second.map(\.isFailure) != many.map(\.isFailure))
            Self.expectSane(second, chance: 0.2)
        }

        @Test func anotherSeedGivesOthersAndAHigherChanceOnlyAddsFailures() throws {
            let low = try Self.play(Self.daemon(), connections: 64)
            let other = try Self.play(Self.daemon(seed: 43), connections: 64)
            #expect(low.map(\.isFailure) != other.map(\.isFailure))
            Self.expectSane(other, chance: 0.2)
            let high = try Self.play(Self.daemon(chance: 30), connections: 64)
            Self.expectSane(high, chance: 0.3)
            #expect(zip(low, high).count { $0.isFailure && !$1.isFailure } == 0)
            #expect(zip(low, high).allSatisfy { $0.milliseconds == $1.milliseconds })
        }

        @Test func aThousandWaitAtOnceWithoutThreads() throws {
            allowManyFiles()
            let daemon = try Self.daemon(latency: "600ms..1600ms")
            _ = try daemon.exchange("/people/users/warm")
            let threads = daemon.threads
            let memory = daemon.anonymousMemory
            let clients = try (0..<1000).map { _ in try daemon.client() }
            let sent = ContinuousClock.now
            let requests = clients.indices.map { "GET /people/users/\($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }
            try daemon.waitUntilRead(requests.reduce(0) { $0 + $1.utf8.count }) {
                for (client, request) in zip(clients, requests) { try client.send(request) }
            }
            #expect(
                daemon.threads <= threads + 4,
                "\(threads) threads before, \(daemon.threads) with a thousand waiting"
            )
            #expect(daemon.anonymousMemory - memory < 64 << 20)
            let outcomes = try clients.map { try Self.read($0, since: sent) }
            #expect(outcomes.allSatisfy { $0.bodyFits })
            #expect(outcomes.allSatisfy { $0.tookAtLeastThat })
            // Stated latencies are whole milliseconds, rounded down: take the middle of each.
            let distance = Statistics.distanceFromUniform(
                outcomes.map { Double($0.milliseconds) + 0.5 },
                over: 600...1600
            )
            #expect(distance < Statistics.criticalDistance(1000), "Kolmogorov-Smirnov distance \(distance)")
        }

        @Test func oneEndpointMayBeDemoOverALiveService() throws {
            let origin = try ScriptedOrigin { _ in .answer("live") }
            let home = try DaemonHome()
            try home.folder.write("demo/user.json", "{}")
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: api
                        match: { prefix: /api }
                        base_url: \(origin.url)
                        demo: { files: \(home.folder.file("demo")) }
                        endpoints:
                          - name: user
                            path: "/users/:id"
                            demo: { enabled: true, status: 201, headers: { X-Mock: "yes" } }
                    """
                ),
                at: home
            )
            let demo = try daemon.exchange("/api/users/7")
            #expect(demo.status == 201)
            #expect(demo.text == "{}")
            #expect(demo.field("X-Mock") == "yes")
            #expect(demo.field("Content-Type") == "application/json")
            #expect(demo.field("Drydock-Demo")?.hasPrefix("endpoint=user;") == true)
            let live = try daemon.exchange("/api/other")
            #expect(live.text == "live")
            #expect(live.field("Drydock-Demo") == nil)
            #expect(origin.requests() == 1)
            // It is called by both.
            let status = try daemon.command("status")
            #expect(status.output.contains("service        api /api -> demo and \(origin.url)\n"), "\(status.report)")
            let document = try daemon.command("status", "--json").output
            #expect(document.contains("\"is_demo\":true,\"is_partly_demo\":true"), "\(document)")
        }

        @Test("a service is partly demo where some of its requests still go to an origin")
        func partlyDemo() throws {
            let home = try DaemonHome()
            let file = try home.folder.write("a.json", "{}")
            func service(_ name: String, _ more: String) -> String {
                "  - { name: \(name), match: { prefix: /\(name) }, \(more) }\n"
            }
            let on = "demo: { enabled: true, file: \"\(file)\" }"
            let off = "demo: { enabled: false }"
            let base = "base_url: http://127.0.0.1:9"
            let text =
                "services:\n" + service("whole", "\(base), \(on)")
                + service("listed", "\(base), unlisted: 404, endpoints: [{ name: a, path: /a, \(on) }]")
                + service("hole", "\(base), \(on), endpoints: [{ name: a, path: /a, \(off) }]")
                + service("rest", "\(base), endpoints: [{ name: a, path: /a, \(on) }]")
                + service("own", "\(on), endpoints: [{ name: a, path: /a, \(on) }]") + service("live", base)
            let daemon = try Daemon(DaemonSettings(text), at: home)
            let status = try daemon.command("status").output
            let both = "demo and http://127.0.0.1:9"
            for (name, goal) in [
                ("whole", "demo"), ("listed", "demo"), ("hole", both), ("rest", both), ("own", "demo"),
                ("live", "http://127.0.0.1:9"),
            ] {
                #expect(
                    status.contains("service        \(name) /\(name) -> \(goal)\n") || status.hasSuffix("-> \(goal)\n"),
                    "\(status)"
                )
            }
        }

        @Test("demo answers obey conditions and ranges as nginx does for the same file")
        func asStaticFiles() throws {
            let home = try DaemonHome()
            let bytes = Pattern.bytes(0..<1000)
            let nginx = try NginxOrigin()
            try nginx.write("data.bin", bytes)
            let file = "\(nginx.root)/data.bin"
            let down = try home.folder.write("down.txt", "down")
            let demo = "file: \"\(file)\", headers: { Last-Modified: \"Sun, 06 Nov 1994 08:49:37 GMT\" }"
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: own
                        match: { prefix: /own }
                        demo: { enabled: true, file: "\(file)" }
                        endpoints:
                          - { name: dated, path: /dated, demo: { \(demo) } }
                          - { name: late, path: /late, demo: { file: "\(file)", latency: 1ms } }
                          - { name: made, path: /made, demo: { file: "\(file)", status: 201 } }
                          - { name: fails, path: /fails, demo: { file: "\(file)", failure: { chance: 100%, file: "\(down)" } } }
                          - { name: tagged, path: /tagged, demo: { file: "\(file)", headers: { ETag: "W/\\"mine\\"" } } }
                    """
                ),
                at: home
            )
            let served = try RawClient(port: nginx.port).exchange("/data.bin")
            let (modified, theirs) = (try #require(served.field("Last-Modified")), try #require(served.field("ETag")))
            // The first request makes the host known: what follows is answered on the hot path where that can be.
            let whole = try daemon.exchange("/own/data")
            let tag = try #require(whole.field("ETag"))
            #expect(whole.body == bytes && tag.hasPrefix("\"") && whole.field("Accept-Ranges") == "bytes")
            #expect(try daemon.exchange("/own/other").field("ETag") == tag)
            let client = try daemon.client()
            func own(_ path: String, _ fields: [(String, String)], _ method: String = "GET") throws -> RawResponse {
                try client.exchange(method, path, host: "127.0.0.1:\(daemon.port)", fields: fields, body: nil)
            }
            let cases: [(String, [(String, String)])] = [
                ("GET", []), ("GET", [("If-None-Match", "TAG")]), ("HEAD", [("If-None-Match", "TAG")]),
                ("GET", [("If-None-Match", "\"x\", W/TAG")]), ("GET", [("If-None-Match", "*")]),
                ("GET", [("If-None-Match", "\"x\"")]), ("GET", [("If-Match", "\"x\"")]), ("GET", [("If-Match", "TAG")]),
                ("GET", [("Range", "bytes=0-9")]), ("GET", [("Range", "bytes=990-2000")]),
                ("GET", [("Range", "bytes=-5")]),
                ("GET", [("Range", "bytes=1000-")]), ("GET", [("Range", "items=0-9")]),
                ("HEAD", [("Range", "bytes=0-9")]),
                ("GET", [("Range", "bytes=0-9"), ("If-Range", "TAG")]),
                ("GET", [("Range", "bytes=0-9"), ("If-Range", "\"x\"")]),
                ("GET", [("Range", "bytes=0-9"), ("If-None-Match", "TAG")]),
            ]
            for path in ["/own/data", "/own/late"] {
                for (method, fields) in cases {
                    func named(_ tag: String) -> [(String, String)] {
                        fields.map { ($0.0, $0.1.replacing("TAG", with: tag)) }
                    }
                    let wanted = try RawClient(port: nginx.port).exchange(
                        method,
                        "/data.bin",
                        host: "127.0.0.1:\(nginx.port)",
                        fields: named(theirs),
                        body: nil
                    )
                    // nginx takes the size of a HEAD's part, which is not defined (RFC 9110 section 14.2).
                    let isPartOfHead = method == "HEAD" && wanted.status == 206
                    let got = try own(path, named(tag), method)
                    #expect(
                        got.status == (isPartOfHead ? 200 : wanted.status),
                        "\(path) \(method) \(fields): \(got.head)"
                    )
                    #expect(got.field("Content-Range") == (isPartOfHead ? nil : wanted.field("Content-Range")))
                    if got.status < 400 {
                        #expect((got.field("ETag") == nil) == (wanted.field("ETag") == nil), "\(got.head)")
                    }
                    if got.status < 300 { #expect(got.body == wanted.body, "\(path) \(fields)") }
                    #expect(got.field("Drydock-Demo")?.contains("status=200") == true, "\(got.head)")
                }
            }
            let parts = try own("/own/data", [("Range", "bytes=0-1,10-11")])
            #expect(parts.status == 206)
            #expect(parts.field("Content-Type")?.hasPrefix("multipart/byteranges; boundary=") == true)
            // The date is that of the file, as nginx says it, unless the rule brings one.
            #expect(try own("/own/dated", [("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")]).status == 304)
            #expect(try own("/own/dated", [("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")]).status == 200)
            #expect(try own("/own/data", []).field("Last-Modified") == modified)
            #expect(try own("/own/data", [("If-Modified-Since", modified)]).status == 304)
            #expect(try own("/own/data", [("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")]).status == 200)
            // What is no success, or no representation, has neither.
            for (path, status) in [("/own/made", 201), ("/own/fails", 503)] {
                let got = try own(path, [("If-None-Match", "*"), ("Range", "bytes=0-0")])
                #expect(got.status == status && got.field("ETag") == nil && got.field("Accept-Ranges") == nil)
            }
            #expect(try own("/own/tagged", [("If-None-Match", "\"mine\"")]).status == 304)
            #expect(try own("/own/tagged", []).field("ETag") == "W/\"mine\"")
            let posted = try client.exchange(
                "POST",
                "/own/data",
                host: "127.0.0.1:\(daemon.port)",
                fields: [("If-None-Match", "*")],
                body: []
            )
            #expect(posted.status == 200 && posted.field("ETag") == nil)
        }

        /// The one call that may be under way waits for its origin, and no other may wait for its turn.
        @Test func demoAnswersWaitInNoQueue() throws {
            let gate = Monitor(false)
            let origin = try ScriptedOrigin { _ in
                _ = gate.wait(120, until: { $0 })
                return .answer("live")
            }
            let played = "endpoints: [{ name: played, path: /played, demo: { enabled: true, body: played } }]"
            let keys = "base_url: \"\(origin.url)\", max_concurrent: 1, max_queue: { length: 0 }, cache: { mode: none }"
            let daemon = try Daemon("services: [{ name: api, match: { prefix: /api }, \(keys), \(played) }]")
            let first = try daemon.client()
            try first.request("GET", "/api/live")
            #expect(origin.waitForRequests(1))
            #expect(try daemon.exchange("/api/other").status == 503)
            #expect(try daemon.exchange("/api/played").text == "played")
            gate.update { $0 = true }
            #expect(try first.readHead().status == 200)
        }

        @Test func aServiceMayStandBeforeADemoService() throws {
            let home = try DaemonHome()
            var settings = try Self.settings(home, chance: 0, seed: 1, latency: "0ms")
            settings.rest += "\n" + service("front", "service:people", "cache: { ttl: 1h }")
            let daemon = try Daemon(settings, at: home)
            let miss = try daemon.exchange("/front/users/1")
            #expect(miss.text == #"{"name": "Ada"}"#)
            #expect(miss.cacheStatus?.isStored == true)
            let hit = try daemon.exchange("/front/users/1")
            #expect(hit.cacheStatus?.isHit == true)
            #expect(hit.text == #"{"name": "Ada"}"#)
        }
    }
}
