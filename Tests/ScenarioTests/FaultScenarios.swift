// Faults as real clients see them: curl, Python's http.client, and a bare socket; and that they are drawn alike in every
// run.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Faults {
        /// Every service is a demo service, whose body has 16 bytes.
        private static func daemon(_ services: [(name: String, faults: String)], more: String = "") throws -> Daemon {
            let home = try DaemonHome()
            try home.folder.write("body.txt", "0123456789abcdef")
            let lines = services.map { service in
                """
                  - name: \(service.name)
                    match: { prefix: /\(service.name) }
                    demo: { enabled: on, file: \(home.folder.file("body.txt")) }
                    faults: \(service.faults)
                """
            }
            return try Daemon(DaemonSettings("\(more)\nservices:\n" + lines.joined(separator: "\n")), at: home)
        }

        /// A fault, how curl ends, which exception Python's client has, and how the connection of a bare socket ends.
        struct Case: Sendable {
            let name: String
            let fault: String
            let curl: Set<Int32>
            let python: String
            let socket: String

            /// For how long a client waits: only where nothing more comes does its deadline count.
            var patience: String { fault.contains("stalled") ? "0.3" : "120" }
        }

        /// curl: 1 is HTTP/0.9, 8 a strange head, 18 a partial body, 28 a timeout, 52 an empty reply, 56 a failed read.
        static let cases = [
            Case(name: "reset", fault: "reset", curl: [56], python: "ConnectionResetError", socket: "0 reset"),
            Case(
                name: "reset-late",
                fault: "{ reset: { after: 4B } }",
                curl: [56],
                python: "ConnectionResetError IncompleteRead",
                socket: "4 reset"
            ),
            Case(name: "empty", fault: "empty", curl: [52], python: "RemoteDisconnected", socket: "0 end"),
            Case(
                name: "close",
                fault: "{ close: { after: 4B } }",
                curl: [18],
                python: "IncompleteRead",
                socket: "4 end"
            ),
            Case(
                name: "bad-chunk",
                fault: "{ bad_chunk: { after: 4B } }",
                curl: [56],
                python: "IncompleteRead ValueError",
                socket: "18 end"
            ),
            Case(
                name: "stalled-head",
                fault: "stalled_head",
                curl: [28],
                python: "TimeoutError timeout",
                socket: "0 timeout"
            ),
            Case(
                name: "stalled-body",
                fault: "{ stalled_body: { after: 4B } }",
                curl: [28],
                python: "TimeoutError timeout",
                socket: "4 timeout"
            ),
            // The answer is whole: who waits for its length has it at once, and who waits for the end has it later.
            Case(
                name: "slow-close",
                fault: "{ slow_close: { for: 50ms } }",
                curl: [0],
                python: "none",
                socket: "16 end"
            ),
            Case(name: "garbage", fault: "garbage", curl: [1], python: "BadStatusLine", socket: "0 end"),
            Case(
                name: "garbage-late",
                fault: "{ garbage: { after: status_line } }",
                curl: [8, 52, 56],
                python: "HTTPException IncompleteRead none",
                socket: "0 end"
            ),
            Case(
                name: "longer",
                fault: "{ wrong_length: { by: 9 } }",
                curl: [18],
                python: "IncompleteRead",
                socket: "16 end"
            ),
            // A client that believes Content-Length sees a shorter body, and may not reuse the connection.
            Case(name: "shorter", fault: "{ wrong_length: { by: -9 } }", curl: [0], python: "none", socket: "16 end"),
        ]

        /// Prints the exception of each of Python's clients, by the path's name. Each name has its patience behind it.
        private static let python = """
            import http.client, sys
            for name, patience in zip(sys.argv[2::2], sys.argv[3::2]):
                client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=float(patience))
                try:
                    client.request("GET", "/" + name + "/x")
                    client.getresponse().read()
                    print(name, "none")
                except Exception as error:
                    print(name, type(error).__name__)
                client.close()
            """

        /// How many bytes come behind a head, and how the connection ends. The patience begins with the last byte that is
        /// to come: four are, where a body stalls.
        private static let socket = """
            import socket, sys
            for name, patience in zip(sys.argv[2::2], sys.argv[3::2]):
                s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=120)
                s.sendall(("GET /" + name + "/x HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n").encode())
                data, end = b"", "end"
                try:
                    while True:
                        if name != "stalled-body" or len(data.partition(b"\\r\\n\\r\\n")[2]) >= 4:
                            s.settimeout(float(patience))
                        piece = s.recv(65536)
                        if not piece: break
                        data += piece
                except ConnectionResetError:
                    end = "reset"
                except socket.timeout:
                    end = "timeout"
                head, gap, body = data.partition(b"\\r\\n\\r\\n")
                print(name, len(body) if gap else 0, end)
                s.close()
            """

        @Test func eachFaultIsWhatClientsKnowItAs() throws {
            let daemon = try Self.daemon(Self.cases.map { ($0.name, "{ fault: \($0.fault) }") })
            for one in Self.cases {
                let arguments = ["-sS", "-o", "/dev/null", "-m", one.patience, "\(daemon.url)/\(one.name)/x"]
                let run = try Shell.run("curl", arguments)
                #expect(one.curl.contains { run.end == .exited($0) }, "\(one.name): \(run.report)")
            }
            let names = [String(daemon.port)] + Self.cases.flatMap { [$0.name, $0.patience] }
            let exceptions = try Shell.must("python3", ["-c", Self.python] + names).split(separator: "\n")
            #expect(exceptions.count == Self.cases.count)
            for (one, said) in zip(Self.cases, exceptions) {
                let name = said.split(separator: " ").last.map(String.init) ?? ""
                #expect(one.python.split(separator: " ").map(String.init).contains(name), "\(said)")
            }
            let ends = try Shell.must("python3", ["-c", Self.socket] + names).split(separator: "\n").map(String.init)
            #expect(ends == Self.cases.map { "\($0.name) \($0.socket)" })
        }

        /// Each word of the page's table has a row above.
        @Test func eachFaultOfThePageIsSeenByClients() {
            let page = readText(ExamplePage.root + "/Documentation/reference/faults.md")
            let rows = page.split(separator: "\n").drop { $0 != "| `fault` | what the client sees |" }.prefix {
                $0.hasPrefix("|")
            }
            let words = rows.dropFirst(2).compactMap { $0.firstMatch(of: #/`(?:{ )?([a-z_]+)/#).map { String($0.1) } }
            #expect(words.count >= 8, "\(rows)")
            for word in words {
                #expect(
                    Self.cases.contains { $0.fault.firstMatch(of: #/[a-z_]+/#).map { $0.0 == word } ?? false },
                    "\(word)"
                )
            }
        }

        /// Neither a rule of demo mode nor an endpoint is for them.
        @Test func requestsThatNothingIsForHaveFaultsToo() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, "live") }
            let daemon = try Daemon(
                """
                services:
                  - name: api
                    match: { prefix: /api }
                    base_url: "\(origin.url)"
                    demo: { enabled: true, unmatched: pass, rules: [{ name: a, when: { path: /a }, body: played }] }
                    endpoints: [{ name: users, path: /users/:id, demo: { enabled: false } }]
                    faults: [{ name: busy, at: miss, every: 2, status: 503 }, { name: slow, at: demo, latency: 3ms }]
                """
            )
            let played = try (0..<2).map { _ in try daemon.exchange("/api/a") }
            #expect(played.map(\.text) == ["played", "played"])
            #expect(played.allSatisfy { $0.field("Drydock-Demo")?.contains("fault=slow; latency=3ms") == true })
            let passed = try (0..<2).map { _ in try daemon.exchange("/api/b", fields: [("Cache-Control", "no-cache")]) }
            #expect(passed.map(\.status) == [200, 503])
            #expect(passed[1].field("Drydock-Demo")?.hasPrefix("fault=busy; status=503") == true)
            // The fault has come before the origin was asked.
            #expect(origin.requests(target: "/b") == 1)
        }

        /// The names of the faults of the n-th requests of eight paths, over so many connections.
        private static func drawn(_ daemon: Daemon, connections: Int) throws -> [[String]] {
            let shares = try Threads.run(connections) { index in
                try stride(from: index, to: 64, by: connections).map { path -> (Int, [String]) in
                    let client = try daemon.client()
                    let said = try (0..<20).map { _ in
                        let answer = try client.exchange("/flaky/\(path)")
                        return "\(answer.status) \(answer.field("Drydock-Demo") ?? "none")"
                    }
                    return (path, said)
                }
            }
            return shares.joined().sorted { $0.0 < $1.0 }.map(\.1)
        }

        @Test func everyRunHasTheSameFaults() throws {
            let faults =
                "[{ name: slow, chance: 30%, latency: 0ms..2ms }, { name: busy, chance: 20%, status: 503, retry_after: 1s..9s }]"
            let alone = try Self.drawn(Self.daemon([("flaky", faults)]), connections: 1)
            let crowd = try Self.drawn(Self.daemon([("flaky", faults)]), connections: 64)
            #expect(alone == crowd)
            let all = alone.joined()
            #expect(all.contains { $0.contains("fault=slow; latency=") } && all.contains { $0.contains("status=503") })
            // What is drawn for a path is drawn for it alone.
            #expect(Set(alone).count == alone.count)
        }

        /// Requests of one target that come at the same time get the draws of those that come one by one, and none that is
        /// made of two of them.
        @Test func requestsThatRaceMixNoDraws() throws {
            let text = """
                services:
                  - name: flaky
                    match: { prefix: /flaky }
                    demo: { enabled: true, body: fine, latency: 0ms..2ms, failure: { chance: 30% } }
                    faults:
                      - { name: slow, chance: 40%, latency: 0ms..2ms }
                      - { name: busy, chance: 20%, status: 503, retry_after: 1s..9s }
                      - { name: seventh, every: 7, status: 502 }
                """
            let count = Thoroughness.attempts(1920)
            func drawn(_ connections: Int) throws -> [String] {
                let daemon = try Daemon(DaemonSettings(text))
                let shares = try Threads.run(connections) { index in
                    let client = try daemon.client()
                    return try stride(from: index, to: count, by: connections).map { _ in
                        let answer = try client.exchange("/flaky/one")
                        return "\(answer.status) \(answer.field("Drydock-Demo") ?? "none")"
                    }
                }
                return shares.joined().sorted()
            }
            let alone = try drawn(1)
            #expect(alone.count == count && Set(alone).count == count)
            #expect(try drawn(32) == alone)
        }

        /// Rules that act on one answer leave out what another has said before them.
        @Test func drawsOfSeveralRulesAreRepeated() throws {
            let daemon = try Self.daemon([("two", "[{ name: a, latency: 1ms..3ms, status: 500 }, overloaded]")])
            let members = try (0..<Thoroughness.attempts(60)).flatMap { _ in
                try #require(try daemon.exchange("/two/x").field("Drydock-Demo")).components(separatedBy: ", ")
            }
            let said = members.filter { $0.hasPrefix("fault=") }
            #expect(said.contains { $0.hasPrefix("fault=a; latency=") })
            #expect(said.contains { $0.hasPrefix("fault=overloaded; draw=") })
            for member in said {
                let again = try daemon.command("demo", "replay", "--service", "two", member)
                #expect(again.succeeded, "\(member): \(again.report)")
            }
            let slow = try #require(said.first { $0.hasPrefix("fault=a; latency=") })
            let lie = slow.replacing(#/latency=\d+ms/#, with: "latency=9ms")
            #expect(try daemon.command("demo", "replay", lie).end == .exited(1))
        }

        /// The daemon does not wait for what would never come.
        @Test(arguments: ["fault: stalled_body", "fault: stalled_head, latency: 1ms"])
        func aStallEndsWithTheDaemon(fault: String) throws {
            let daemon = try Self.daemon([("stalled", "{ \(fault) }")], more: "shutdown: 10m")
            let client = try daemon.client()
            try client.request("GET", "/stalled/x")
            let kind = fault.hasSuffix("body") ? "stalled_body" : "stalled_head"
            #expect(try eventually { try daemon.metric("drydock_faults_total{fault=\"\(kind)\"}") == 1 })
            daemon.signal(SIGTERM)
            // The daemon ends the connection first; it would linger for a client that does not end it, too.
            _ = try client.readToEnd()
            client.close()
            #expect(daemon.process.waitForEnd() == .exited(0))
        }

        @Test func clientsThatComeBackEarlyAreInTheStatus() throws {
            let nginx = try NginxOrigin()
            let daemon = try Daemon(
                """
                services:
                  - name: api
                    match: { prefix: /api }
                    base_url: \(nginx.url)
                    rate_limit: { limit: 1, window: 1h }
                """
            )
            let statuses = try (0..<3).map { _ in try daemon.client().exchange("/api/x").status }
            #expect(statuses.dropFirst() == [429, 429])
            let status = try daemon.command("status")
            #expect(status.output.contains("(1 before Retry-After)"), "\(status.report)")
            #expect(try daemon.metric("drydock_rate_limited_total") == 2)
            #expect(try daemon.metric("drydock_rate_limited_early_total") == 1)
        }

        @Test func profiles() throws {
            let own = "fault_profiles: { teapot: { status: 418 }, cut: [{ first: 1, fault: empty }, { status: 502 }] }"
            let daemon = try Self.daemon([("tea", "teapot"), ("two", "[teapot, cut]"), ("slow", "3g")], more: own)
            #expect(try daemon.client().exchange("/tea/x").status == 418)
            #expect(throws: RawClientError.self) { try daemon.client().exchange("/two/x") }
            #expect(try daemon.client().exchange("/two/x").status == 418)
            let slow = try daemon.client().exchange("/slow/x")
            #expect(slow.text == "0123456789abcdef")
            #expect(slow.field("Drydock-Demo")?.contains("fault=3g; latency=") == true)
            #expect(try daemon.metric("drydock_faults_total{fault=\"empty\"}") == 1)
            #expect(try daemon.metric("drydock_faults_total{fault=\"pace\"}") == 1)
            #expect(daemon.end() == .exited(0))
            let log = daemon.accessLog
            #expect(log.count { $0.contains("\"aborted\":true,\"fault\":\"empty\"") } == 1, "\(log)")
            #expect(log.count { $0.contains("\"aborted\":false,\"fault\":\"status\"") } == 2, "\(log)")
        }
    }
}
