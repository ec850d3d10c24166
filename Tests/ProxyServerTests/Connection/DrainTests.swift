// The end of the daemon: answers under way are finished, idle connections closed, and nothing is accepted any more.

import EventLoop
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct DrainTests {
    @Test(arguments: [1, 2])
    func `an answer under way is finished, with the connection's end announced`(loops: Int) async throws {
        let harness = try await ServerHarness(loops: loops)
        let busy = Monitor(Result<RawResponse, any Error>?.none)
        Threads.start {
            let result = Result {
                let client = try harness.client()
                return try client.exchange("/gate")
            }
            busy.update { $0 = result }
        }
        let idleClosed = Monitor(Bool?.none)
        let idleReady = Counter()
        Threads.start {
            let client = try? harness.client()
            _ = try? client?.exchange("/a")
            idleReady.add()
            let isClosed = try? client?.isClosedByServer()
            idleClosed.update { $0 = isClosed ?? false }
        }
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(harness.observations.seen.wait(120) { $0.waiting == 1 })
            #expect(idleReady.wait(for: 1))
        }
        let drained = Counter()
        let drain = Task(executorPreference: BlockingExecutor.shared) {
            await harness.server.drain(grace: 600_000_000_000)
            drained.add()
        }
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(idleClosed.wait(120) { $0 != nil })
            #expect(idleClosed.read { $0 } == true)
            #expect(drained.value == 0)
            #expect(throws: (any Error).self) { try RawClient(port: harness.port).exchange("/late") }
        }
        // Each loop hears of it by itself.
        for context in harness.server.contexts {
            #expect(await eventually { await context.run { context, _ in context.isDraining } == true })
        }
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            harness.gate.open()
            #expect(busy.wait(120) { $0 != nil })
        }
        let response = try #require(try busy.read { $0 }?.get())
        #expect(response.text == "opened")
        #expect(response.field("Connection") == "close")
        await drain.value
        #expect(harness.server.limits.open == 0)
        harness.loops.stop()
        harness.pool.stop()
    }

    @Test func `with patience an open connection may bring one more request, whose answer is its last`() async throws {
        let harness = try await ServerHarness()
        let clients = try await withTaskExecutorPreference(BlockingExecutor.shared) {
            let clients = try (0..<3).map { _ in try harness.client() }
            for client in clients { #expect(try client.exchange("/a").field("Connection") == nil) }
            return clients
        }
        // The last one never says anything again.
        let quiet = Counter()
        let settling = Task(executorPreference: BlockingExecutor.shared) {
            await harness.server.quiesce(patience: 600_000_000_000, keepsFiles: false)
            await harness.server.settle(grace: 600_000_000_000)
            quiet.add()
        }
        for context in harness.server.contexts {
            #expect(await eventually { await context.run { context, _ in context.isDraining } == true })
        }
        try await withTaskExecutorPreference(BlockingExecutor.shared) {
            for client in clients.prefix(2) {
                let answer = try client.exchange("/b")
                let isClosed = try client.isClosedByServer()
                #expect(answer.field("Connection") == "close" && isClosed)
            }
            // What it may bring could change the store.
            #expect(quiet.value == 0)
            clients[2].close()
            #expect(quiet.wait(for: 1))
        }
        await settling.value
        await harness.server.drain(grace: 0)
        harness.loops.stop()
        harness.pool.stop()
    }

    @Test func `idle connections are closed when the patience with them is over`() async throws {
        let harness = try await ServerHarness()
        let client = try await withTaskExecutorPreference(BlockingExecutor.shared) {
            let client = try harness.client()
            _ = try client.exchange("/a")
            return client
        }
        await harness.server.quiesce(patience: 20_000_000, keepsFiles: false)
        await harness.server.settle(grace: 600_000_000_000)
        let isClosed = try await withTaskExecutorPreference(BlockingExecutor.shared) { try client.isClosedByServer() }
        #expect(isClosed)
        await harness.server.drain(grace: 0)
        harness.loops.stop()
        harness.pool.stop()
    }

    @Test func `what may change the store after an answer of another loop is waited for as well`() async throws {
        let harness = try await ServerHarness(loops: 2)
        let posted = Counter()
        let client = try await withTaskExecutorPreference(BlockingExecutor.shared) {
            // An answer that says nothing of an end is under way on one loop, and a POST on the other one.
            let client = try harness.client(receiveBuffer: 4096)
            try client.send("GET /fixed/30000000 HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(blockUntil { harness.observations.seen.read { $0.targets.count } == 1 })
            Threads.start {
                _ = try? harness.client().exchange("POST", "/gate", body: [1])
                posted.add()
            }
            #expect(harness.observations.seen.wait(120) { $0.waiting == 1 })
            #expect(harness.loops.loops.map { $0.connections.current } == [1, 1])
            #expect(harness.comesToRest { UInt64(harness.observations.seen.read { $0.delivered }) })
            #expect(harness.observations.seen.read { $0.delivered } < 30_000_000, "the client has to read for the rest")
            return client
        }
        let settling = Task(executorPreference: BlockingExecutor.shared) {
            await harness.server.quiesce(patience: 600_000_000_000, keepsFiles: false)
            await harness.server.settle(grace: 600_000_000_000)
            return harness.observations.seen.read { $0.bodies }
        }
        for context in harness.server.contexts {
            #expect(await eventually { await context.run { context, _ in context.isDraining } == true })
        }
        try await withTaskExecutorPreference(BlockingExecutor.shared) {
            // The loop of the first answer has nothing to wait for yet.
            harness.turn()
            let answer = try client.readResponse()
            #expect(answer.body.count == 30_000_000 && answer.field("Connection") == nil)
            let before = harness.received
            try client.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
            #expect(blockUntil { harness.received > before })
            harness.gate.open()
            #expect(posted.wait(for: 1))
            // Whoever did not wait for the second POST is done by now.
            #expect(harness.comesToRest { harness.received })
            try? client.send("67890")
            #expect((try? client.readResponse())?.field("Connection") == "close")
        }
        #expect(await settling.value == [10])
        await harness.server.drain(grace: 0)
        harness.loops.stop()
        harness.pool.stop()
    }

    @Test func `only what may change the store is waited for before it is given away, and is cut in the end`()
        async throws
    {
        let harness = try await ServerHarness()
        let answers = Monitor<[String]>([])
        for (method, body) in [("GET", nil), ("POST", [UInt8]([1]))] {
            Threads.start {
                let answer = try? harness.client().exchange(method, "/gate", body: body)
                answers.update { $0.append("\(method) \(answer?.text ?? "none")") }
            }
        }
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(harness.observations.seen.wait(120) { $0.waiting == 2 })
        }
        await harness.server.quiesce(patience: 1, keepsFiles: false)
        await harness.server.settle(grace: 50_000_000)
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(answers.wait(120) { $0 == ["POST none"] })
        }
        harness.gate.open()
        let cut = await harness.server.drain(grace: 60_000_000_000)
        #expect(cut.map(\.request) == ["POST /gate"])
        #expect(answers.wait(120) { $0 == ["POST none", "GET opened"] })
        harness.loops.stop()
        harness.pool.stop()
    }

    @Test func `what is not finished in time is cut`() async throws {
        let harness = try await ServerHarness()
        let result = Monitor(Result<RawResponse, any Error>?.none)
        Threads.start {
            let outcome = Result {
                let client = try harness.client()
                return try client.exchange("/wait")
            }
            result.update { $0 = outcome }
        }
        // One whose head has not come whole, and one that wants nothing.
        let clients = try await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(harness.observations.seen.wait(120) { $0.waiting == 1 })
            let (begun, idle) = (try harness.client(), try harness.client())
            _ = try idle.exchange("/a")
            let before = harness.received
            try begun.send("GET /b HTTP/1.1\r\n")
            #expect(blockUntil { harness.received > before && harness.server.limits.open == 3 })
            return (begun, idle)
        }
        defer { withExtendedLifetime(clients) {} }
        let waiting = Monitor([[WaitedFor]]())
        let cut = await harness.server.drain(grace: 50_000_000) { found in waiting.update { $0.append(found) } }
        #expect(
            cut.contains {
                $0.kind == .request && $0.client == "127.0.0.1" && $0.request == "GET /wait" && $0.sent == 0
            }
        )
        #expect(waiting.read { $0.count } == 1, "all loops are told of at once")
        #expect(waiting.read { $0.first?.count } == 2 && cut.count == 2)
        #expect(cut.contains { $0.request == nil }, "its head has not come whole")
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(result.wait(120) { $0 != nil })
            #expect(harness.observations.seen.wait(120) { $0.cancelled == 1 })
        }
        #expect(throws: RawClientError.self) { try result.read { $0 }?.get() }
        harness.loops.stop()
        harness.pool.stop()
    }

    @Test func `what is waited for is counted by its kind`() {
        let all = [WaitedFor.Kind.request, .tunnel, .request, .command].map {
            WaitedFor(kind: $0, client: "127.0.0.1", since: .max)
        }
        #expect(WaitedFor.summary(all) == "2 requests, 1 tunnel and 1 command")
        #expect(WaitedFor.summary(Array(all[..<2])) == "1 request and 1 tunnel")
        #expect(WaitedFor.summary(Array(all[1..<2])) == "1 tunnel")
        #expect(all[0].description == "127.0.0.1 with a request that has not come whole, 0 s, 0 bytes sent")
        #expect(WaitedFor.text("GET", .string("/a\u{1b}b?token=x")) == "GET /a.b")
        #expect(WaitedFor.text("GET", .string("/" + String(repeating: "a", count: 300))).utf8.count == 204)
    }

    @Test func `connections are spread over the loops`() async throws {
        try await ServerHarness.run(loops: 3) { harness in
            let clients = try (0..<9).map { _ in try harness.client() }
            for client in clients { _ = try client.exchange("/a") }
            #expect(harness.loops.loops.map { $0.connections.current } == [3, 3, 3])
        }
    }
}
