// Caps and deadlines, with short ones in the configuration; durations are held to lower bounds only.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Limits {
        static func daemon(_ origin: ScriptedOrigin, limits: String = "{}", _ more: String...) throws -> Daemon {
            let lines =
                ["- name: api", "  match: { prefix: /api }", "  base_url: \(origin.url)"] + more.map { "  \($0)" }
            let service = lines.map { "  \($0)\n" }.joined()
            return try Daemon("limits: \(limits)\nservices:\n\(service)")
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

        @Test func aHeadHasADeadlineThatDripsDoNotExtend() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin, limits: "{ head_timeout: 1s, idle: 60s }")
            let client = try daemon.client()
            let begin = ContinuousClock.now
            for byte in Array("GET /api/x HT".utf8) {
                guard (try? client.send([byte])) != nil else { break }
                usleep(150_000)
            }
            let status = try statusAtTheEnd(client)
            #expect(status == 408 || status == nil)
            #expect(begin.duration(to: .now) >= .seconds(1))
            #expect(origin.requests() == 0)
        }

        @Test func anIdleConnectionIsEnded() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin, limits: "{ idle: 1s }")
            let client = try daemon.client()
            _ = try client.exchange("/api/x")
            let begin = ContinuousClock.now
            #expect(try client.isClosedByServer())
            #expect(begin.duration(to: .now) >= .milliseconds(900))
        }

        @Test func aBodyHasALeastRate() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin, limits: "{ idle: 60s, body_rate: 64KiB }")
            let client = try daemon.client(seconds: 40)
            try client.send("POST /api/in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nslow")
            let begin = ContinuousClock.now
            let status = try statusAtTheEnd(client)
            #expect(status == 408 || status == nil)
            // The grace is ten seconds.
            #expect(begin.duration(to: .now) >= .seconds(9))
            #expect(origin.log.count { $0.isComplete } == 0)
        }

        @Test(arguments: ["first_byte", "total"])
        func aSilentOriginIs504(_ deadline: String) throws {
            let origin = try ScriptedOrigin { _ in .never }
            let daemon = try Self.daemon(origin, "timeout: { \(deadline): 500ms }")
            let begin = ContinuousClock.now
            let answer = try daemon.exchange("/api/x")
            expectProblem(answer, 504)
            #expect(answer.field("Proxy-Status")?.contains("timeout") == true)
            #expect(begin.duration(to: .now) >= .milliseconds(500))
        }

        @Test func anOriginThatStopsInTheMiddleIsCutOff() throws {
            let origin = try ScriptedOrigin { _ in
                OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "100"), ("Cache-Control", "max-age=60")]),
                    .pattern(50, from: 0), .hang,
                ])
            }
            let daemon = try Self.daemon(origin, "timeout: { idle: 500ms }")
            let answer = try daemon.exchange("/api/x")
            #expect(answer.status == 200)
            #expect(answer.end == .cut)
            #expect(answer.body.count <= 50)
        }

        @Test func eventStreamsAreNotCutOffByTheIdleDeadline() throws {
            let origin = try ScriptedOrigin { _ in
                OriginReply([
                    OriginReply.head(
                        200,
                        fields: [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
                    ),
                    OriginReply.text("9\r\ndata: 1\n\n\r\n"), .pause(milliseconds: 1500),
                    OriginReply.text("9\r\ndata: 2\n\n\r\n0\r\n\r\n"),
                ])
            }
            let daemon = try Self.daemon(origin, limits: "{ idle: 500ms }", "timeout: { idle: 500ms }")
            let client = try daemon.client()
            try client.request("GET", "/api/events")
            #expect(try client.readHead().status == 200)
            var text = [UInt8]()
            #expect(try client.readBody(upTo: 9) { text += $0 } == nil)
            #expect(String(decoding: text, as: UTF8.self) == "data: 1\n\n")
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
            let daemon = try Self.daemon(origin, "max_concurrent: 2", "max_queue: { length: 3, wait: 30s }")
            Threads.start("conductor") {
                _ = working.wait(for: 2)
                rest(1)
                gate.open()
            }
            let statuses = try Threads.run(8) { try daemon.exchange("/api/\($0)").status }
            #expect(statuses.count { $0 == 200 } == 5)
            #expect(statuses.count { $0 == 503 } == 3)
            #expect(most.read { $0 } <= 2)
        }

        /// Nobody reads such an answer: it must end, and give its place back, however long it is.
        @Test(arguments: ["Cache-Control: no-store", "Content-Type: text/event-stream"])
        func anAnswerWhoseClientLeftBeforeItsHeadHoldsNoPlace(_ field: String) throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                guard request.target == "/first" else { return .answer("fine") }
                gate.wait()
                // Chunked, and more than a window holds.
                let head = "HTTP/1.1 200 OK\r\n\(field)\r\nTransfer-Encoding: chunked\r\n\r\n400000\r\n"
                return OriginReply([OriginReply.text(head), .pattern(4 << 20, from: 0), .hang])
            }
            var settings = services(
                service("api", origin.url, "max_concurrent: 1", "max_queue: { length: 10, wait: 10s }")
            )
            settings.disk = nil
            let daemon = try Daemon(settings)
            let first = try daemon.client()
            try first.request("GET", "/api/first")
            #expect(origin.waitForRequests(1))
            first.reset()
            rest(0.3)
            gate.open()
            #expect(try daemon.exchange("/api/second").text == "fine")
        }

        @Test func whoWaitsTooLongInTheQueueIsToldSo() throws {
            let origin = try ScriptedOrigin { _ in .never }
            let daemon = try Self.daemon(origin, "max_concurrent: 1", "max_queue: { length: 10, wait: 300ms }")
            let first = try daemon.client()
            try first.request("GET", "/api/first")
            #expect(origin.waitForRequests(1))
            expectProblem(try daemon.exchange("/api/second"), 503)
            #expect(origin.requests() == 1)
        }
    }
}
