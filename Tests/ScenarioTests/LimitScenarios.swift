// Caps and deadlines, with short ones in the configuration; durations are held to lower bounds only.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Limits {
        static func daemon(_ origin: ScriptedOrigin, limits: String = "{}", _ more: String...) throws -> Daemon {
            let lines =
                ["- name: api", "  match: { prefix: /api }", "  base_url: \(origin.url)"] + more.map { "  \($0)" }
            let service = lines.map { "  \($0)\n" }.joined()
            return try Daemon("limits: \(limits)\nservices:\n\(service)")
        }

        /// Uses a new connection; and another one where the deadline of idle connections was over before it was used.
        private func connected<Result>(to daemon: Daemon, _ use: (RawClient) throws -> Result) throws -> Result {
            var result: Result?
            _ = try eventually {
                do {
                    result = try use(daemon.client())
                    return true
                } catch RawClientError.closedWithoutAnswer {
                    return false
                } catch TestSupportError.system(_, let code) where code == EPIPE || code == ECONNRESET {
                    return false
                }
            }
            return try #require(result)
        }

        /// Blocks until the daemon ends the connection; what it answered before, if anything.
        private func statusAtTheEnd(_ client: RawClient) throws -> Int? {
            do {
                let answer = try client.readResponse()
                #expect(try client.isClosedByServer())
                return answer.status
            } catch RawClientError.closedWithoutAnswer {
                return nil
            }
        }

        @Test(arguments: ["{ connections: 4 }", "{ per_client: 4 }"])
        func connectionsOverTheCapAreToldSo(_ limits: String) throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin, limits: limits)
            var clients = [RawClient]()
            for _ in 0..<4 {
                let client = try daemon.client()
                #expect(try client.exchange("/api/x").text == "fine")
                clients.append(client)
            }
            let fifth = try daemon.client()
            try? fifth.request("GET", "/api/x")
            #expect(try statusAtTheEnd(fifth) == 503)
            #expect(try clients[0].exchange("/api/y").text == "fine")
            clients.removeLast().close()
            #expect(eventually { (try? daemon.exchange("/api/z").text) == "fine" })
        }

        @Test func connectionsAreHeldAgainstTheOpenFiles() throws {
            allowManyFiles()
            let origin = try ScriptedOrigin { _ in .answer("fine", fields: [("Cache-Control", "no-store")]) }
            let home = try DaemonHome()
            let daemon = try Daemon(
                text: DaemonSettings("services: [{ name: api, match: { prefix: /api }, base_url: \(origin.url) }]")
                    .text(at: home),
                at: home,
                launcher: ["sh", "-c", "ulimit -Sn 100 && ulimit -Hn 256 && exec \"$@\"", "sh"]
            )
            #expect(
                daemon.errors.contains(
                    "limits.connections is 10000, and 256 open files are enough for 48, which is the limit now; "
                        + "raise the limit of open files to 28272 (LimitNOFILE of the unit, ulimit -n), or lower limits.connections"
                )
            )
            var clients = [RawClient]()
            for _ in 0..<48 {
                let client = try daemon.client()
                #expect(try client.exchange("/api/x").text == "fine")
                clients.append(client)
            }
            // Far more than there are descriptors for, which neither say nor read anything.
            let others = try (0..<400).map { _ in try daemon.client() }
            #expect(try daemon.command("status").succeeded)
            for client in clients { #expect(try client.exchange("/api/y").text == "fine") }
            #expect(!daemon.errors.contains("Too many open files"))
            for client in others + clients { client.close() }
            #expect(eventually { (try? daemon.exchange("/api/z").text) == "fine" })
        }

        @Test func aHeadHasADeadlineThatDripsDoNotExtend() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin, limits: "{ head_timeout: 500ms, idle: 10m }")
            let begin = ContinuousClock.now
            let client = try daemon.client()
            try client.send("GET /api/")
            // A byte now and then, until the daemon says something or ends the connection.
            #expect(
                eventually {
                    guard client.isIdle else { return true }
                    try? client.send("x")
                    return false
                }
            )
            let status = try statusAtTheEnd(client)
            #expect(status == 408 || status == nil)
            #expect(hasPassed(.milliseconds(500), since: begin))
            #expect(origin.requests() == 0)
        }

        @Test func anIdleConnectionIsEnded() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin, limits: "{ idle: 300ms, head_timeout: 2m }")
            let begin = ContinuousClock.now
            let client = try connected(to: daemon) { client throws in
                #expect(try client.exchange("/api/x").status == 200)
                return client
            }
            #expect(try client.isClosedByServer())
            #expect(hasPassed(.milliseconds(300), since: begin))
        }

        @Test func aBodyHasALeastRate() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin, limits: "{ idle: 10m, body_rate: 64KiB }")
            let client = try daemon.client()
            let begin = ContinuousClock.now
            try client.send("POST /api/in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nslow")
            let status = try statusAtTheEnd(client)
            #expect(status == 408 || status == nil)
            // The grace is ten seconds.
            #expect(hasPassed(.seconds(9), since: begin))
            #expect(origin.log.count { $0.isComplete } == 0)
        }

        @Test(arguments: ["first_byte", "total"])
        func aSilentOriginIs504(_ deadline: String) throws {
            let origin = try ScriptedOrigin { _ in .never }
            let daemon = try Self.daemon(origin, "timeout: { \(deadline): 200ms }")
            let begin = ContinuousClock.now
            let answer = try daemon.exchange("/api/x")
            expectProblem(answer, 504)
            #expect(answer.field("Proxy-Status")?.contains("timeout") == true)
            #expect(hasPassed(.milliseconds(200), since: begin))
        }

        @Test func anOriginThatStopsInTheMiddleIsCutOff() throws {
            let origin = try ScriptedOrigin { _ in
                OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "100"), ("Cache-Control", "max-age=60")]),
                    .pattern(50, from: 0), .hang,
                ])
            }
            let daemon = try Self.daemon(origin, "timeout: { idle: 200ms }")
            let answer = try daemon.exchange("/api/x")
            #expect(answer.status == 200)
            #expect(answer.end == .cut)
            #expect(answer.body.count <= 50)
        }

        @Test func eventStreamsAreNotCutOffByTheIdleDeadline() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                switch request.target {
                case "/fine": return .answer("fine")
                case "/stops":
                    return OriginReply([
                        OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0), .hang,
                    ])
                default:
                    let fields = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
                    return OriginReply([
                        OriginReply.head(200, fields: fields), OriginReply.text("9\r\ndata: 1\n\n\r\n"), .wait(gate),
                        OriginReply.text("9\r\ndata: 2\n\n\r\n0\r\n\r\n"),
                    ])
                }
            }
            let daemon = try Self.daemon(origin, limits: "{ idle: 300ms }", "timeout: { idle: 300ms }")
            let client = try connected(to: daemon) { client throws in
                try client.request("GET", "/api/events")
                #expect(try client.readHead().status == 200)
                return client
            }
            var text = [UInt8]()
            #expect(try client.readBody(upTo: 9) { text += $0 } == nil)
            #expect(String(decoding: text, as: UTF8.self) == "data: 1\n\n")
            // Both deadlines are over for others that began to be silent later.
            let idle = try connected(to: daemon) { client throws in
                #expect(try client.exchange("/api/fine").status == 200)
                return client
            }
            #expect(try idle.isClosedByServer())
            #expect(try connected(to: daemon) { try $0.exchange("/api/stops").end } == .cut)
            gate.open()
            #expect(try client.readBody { text += $0 } == .complete)
            #expect(String(decoding: text, as: UTF8.self) == "data: 1\n\ndata: 2\n\n")
        }

        @Test func maxConcurrentHoldsAndItsQueueIsBounded() throws {
            let (gate, working, most) = (Gate(), Counter(), Monitor(0))
            let origin = try ScriptedOrigin { _ in
                working.add()
                most.update { $0 = max($0, working.value) }
                gate.wait()
                working.add(-1)
                return .answer("fine", fields: [("Cache-Control", "no-store")])
            }
            let daemon = try Self.daemon(origin, "max_concurrent: 2", "max_queue: { length: 3, wait: 10m }")
            let refused = Counter()
            Threads.start("conductor") {
                // Whoever is not refused works then, or waits for a slot.
                refused.wait(for: 3)
                working.wait(for: 2)
                gate.open()
            }
            let statuses = try Threads.run(8) { index in
                let status = try daemon.exchange("/api/\(index)").status
                if status == 503 { refused.add() }
                return status
            }
            #expect(statuses.count { $0 == 200 } == 5)
            #expect(statuses.count { $0 == 503 } == 3)
            #expect(most.read { $0 } <= 2)
        }

        /// Nobody reads such an answer: it must end, and give its slot back, however long it is.
        @Test(arguments: ["Cache-Control: no-store", "Content-Type: text/event-stream"])
        func anAnswerWhoseClientLeftBeforeItsHeadHoldsNoSlot(_ field: String) throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                guard request.target == "/first" else { return .answer("fine") }
                gate.wait()
                // Chunked, and more than a window holds.
                let head = "HTTP/1.1 200 OK\r\n\(field)\r\nTransfer-Encoding: chunked\r\n\r\n400000\r\n"
                return OriginReply([OriginReply.text(head), .pattern(4 << 20, from: 0), .hang])
            }
            var settings = services(
                service("api", origin.url, "max_concurrent: 1", "max_queue: { length: 10, wait: 10m }")
            )
            settings.disk = nil
            let daemon = try Daemon(settings)
            let first = try daemon.client()
            try first.request("GET", "/api/first")
            #expect(origin.waitForRequests(1))
            first.reset()
            #expect(try eventually { try daemon.metric("drydock_errors_total{kind=\"aborted\"}") == 1 })
            gate.open()
            #expect(try daemon.exchange("/api/second").text == "fine")
        }

        @Test func whoWaitsTooLongInTheQueueIsToldSo() throws {
            let origin = try ScriptedOrigin { _ in .never }
            let daemon = try Self.daemon(
                origin,
                "max_concurrent: 1",
                "max_queue: { length: 10, wait: 300ms }",
                "timeout: { first_byte: none }"
            )
            let first = try daemon.client()
            try first.request("GET", "/api/first")
            #expect(origin.waitForRequests(1))
            expectProblem(try daemon.exchange("/api/second"), 503)
            #expect(origin.requests() == 1)
        }
    }
}
