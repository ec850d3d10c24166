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
            #expect(harness.observations.seen.wait(10) { $0.waiting == 1 })
            #expect(idleReady.wait(for: 1, seconds: 10))
        }
        let drained = Counter()
        let drain = Task {
            await harness.server.drain(grace: 20_000_000_000)
            drained.add()
        }
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(idleClosed.wait(10) { $0 != nil })
            #expect(idleClosed.read { $0 } == true)
            #expect(drained.value == 0)
            #expect(throws: (any Error).self) { try RawClient(port: harness.port).exchange("/late") }
            harness.gate.open()
            #expect(busy.wait(10) { $0 != nil })
        }
        let response = try #require(try busy.read { $0 }?.get())
        #expect(response.text == "opened")
        #expect(response.field("Connection") == "close")
        await drain.value
        #expect(harness.server.limits.open == 0)
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
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(harness.observations.seen.wait(10) { $0.waiting == 1 })
        }
        await harness.server.drain(grace: 50_000_000)
        await withTaskExecutorPreference(BlockingExecutor.shared) {
            #expect(result.wait(10) { $0 != nil })
            #expect(harness.observations.seen.wait(10) { $0.cancelled == 1 })
        }
        #expect(throws: RawClientError.self) { try result.read { $0 }?.get() }
        harness.loops.stop()
        harness.pool.stop()
    }

    @Test func `connections are spread over the loops`() async throws {
        try await ServerHarness.run(loops: 3) { harness in
            let clients = try (0..<9).map { _ in try harness.client() }
            for client in clients { _ = try client.exchange("/a") }
            #expect(harness.loops.loops.map { $0.connections.current } == [3, 3, 3])
        }
    }
}
