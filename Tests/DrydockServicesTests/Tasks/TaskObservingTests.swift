// Who listens to tasks and to queues, early or late.

import Drydock
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Logging
import MetricsTestKit
import TestSupport
import Testing

@testable import DrydockServices

@Suite struct TaskObservingTests {
    @Test func aQueueLogsAndCounts() async throws {
        struct Refusal: Error {}
        let (metrics, log) = (TestMetrics(), RecordedLog())
        let queue = WorkQueue(maximumRunning: nil, clock: ManualClock(), logger: log.logger, metrics)
        #expect(queue.statistics == WorkStatistics())
        let failed = ServiceError.status(
            DownloadResult(
                url: try #require(URL(string: "https://api.test/a?key=secret")),
                outcome: .downloadFailed,
                head: HTTPResponse(status: .badGateway)
            ),
            failure: nil
        )
        let attempts = Monitor(0)
        let users = Work("users", retry: .immediate(count: 1)) {
            if attempts.next == 1 { throw failed }
        }
        try await queue.run(users)
        _ = try? await queue.run(Work("refused", method: .post) { throw Refusal() })
        queue.add(Work("cancelled") { try await Task.sleep(for: .seconds(3600)) }).cancel()
        var expected = queue.statistics
        (expected.done, expected.failed, expected.cancelled, expected.retries) = (1, 1, 1, 1)
        #expect(queue.statistics == expected)
        #expect(queue.doneCount == 1 && queue.failedCount == 1 && queue.cancelledCount == 1 && queue.groupCount == 0)
        #expect(queue.retries == 1 && queue.refusedRetries == 0)
        #expect(
            log.all.filter { !$0.contains("task=cancelled") } == [
                "debug task is tried again attempts=1 error=https://api.test/a answered 502 method=GET task=users "
                    + "wait=0.0 seconds",
                "debug task ended attempts=2 end=done method=GET task=users",
                "debug task ended attempts=1 end=failed error=Refusal() method=POST task=refused",
            ]
        )
        #expect(log.count(.debug, "task ended ") == 3 && log.count(.debug, "end=cancelled") == 1)
        for end in ["done", "failed", "cancelled"] {
            #expect(metrics.counterTotal(label: "drydock_tasks_total", dimensions: [("end", end)]) == 1)
        }
        #expect(metrics.counterTotal(label: "drydock_task_retries_total") == 1)
    }

    private static let timeout = DownloadError.origin(OriginFailure(kind: .timeout, detail: "too late"))

    private func phases(_ states: some AsyncSequence<WorkState, Never>) async -> [String] {
        var phases: [String] = []
        for await state in states { phases.append("\(state.phase) \(state.attempts)") }
        return phases
    }

    @Test func theStatesOfATaskAreToldInTheirOrder() async throws {
        let (clock, work) = (ManualClock(), ManualClock())
        let queue = WorkQueue(maximumRunning: 0, clock: clock)
        let task = queue.add(
            Work(retry: .steady(count: 1)) {
                try await work.sleep(for: .seconds(1))
                if work.now.offset < .seconds(2) { throw Self.timeout }
            }
        )
        var states = task.states.makeAsyncIterator()
        queue.maximumRunning = 1
        try await work.waitForSleepers(1)
        work.advance(by: .seconds(1))
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(3))
        try await work.waitForSleepers(1)
        #expect(task.state.error as? DownloadError == Self.timeout)
        work.advance(by: .seconds(1))
        try await task.value
        var told: [String] = []
        while let state = await states.next(isolation: nil) { told.append("\(state.phase) \(state.attempts)") }
        #expect(told == ["queued 0", "running 1", "waitingForRetry 1", "queued 1", "running 2", "done 2"])
        #expect(task.state.error == nil)
    }

    @Test func whoComesLateIsToldTheLatestState() async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let task = queue.add(Work { try await work.sleep(for: .seconds(1)) })
        try await work.waitForSleepers(1)
        #expect(await task.states.first { _ in true }?.phase == .running)
        work.advance(by: .seconds(1))
        try await task.value
        for _ in 0..<2 { #expect(await phases(task.states) == ["done 1"]) }
    }

    @Test func manyListenToOneTask() async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let task = queue.add(Work { try await work.sleep(for: .seconds(1)) })
        try await work.waitForSleepers(1)
        await withTaskGroup(of: String?.self) { group in
            for _ in 0..<10 { group.addTask { await phases(task.states).last } }
            work.advance(by: .seconds(1))
            for await last in group { #expect(last == "done 1") }
        }
    }

    @Test func whoIsSlowHearsTheEndAllTheSame() async throws {
        let queue = WorkQueue(clock: ManualClock())
        let retry = RetryPolicy(count: 9, delay: .zero)
        let task = queue.add(Work<Void>(retry: retry) { throw Self.timeout })
        var states = task.states.makeAsyncIterator()
        _ = await states.next(isolation: nil)
        await #expect(throws: WorkError.self) { try await task.value }
        var last: WorkState?
        while let state = await states.next(isolation: nil) { last = state }
        #expect(last?.phase == .failed && last?.attempts == 10)
    }

    @Test func theEndsOfAQueueAreToldByName() async throws {
        let queue = WorkQueue(maximumRunning: 1)
        let (all, users) = (queue.ends(), queue.ends(named: "users"))
        for name in ["users", "photos", "users"] { try await queue.run(Work(name) {}) }
        _ = try? await queue.run(Work<Void>("users") { throw Broken() })
        queue.maximumRunning = 0
        queue.add(Work("photos") {}).cancel()
        await queue.close()
        var told: [String] = []
        for await end in users { told.append("\(end.name) \(end.state.phase)") }
        #expect(told == ["users done", "users done", "users failed"])
        told = []
        for await end in all { told.append("\(end.name) \(end.state.phase)") }
        #expect(told == ["users done", "photos done", "users done", "users failed", "photos cancelled"])
    }

    /// Whoever waits for an endpoint hears of it whatever is filled into it, and of no other method.
    @Test func theEndsOfAQueueAreToldByEndpoint() async throws {
        let transport = ScriptedTransport()
        transport.answerAll { _ in .text("x") }
        let loader = ServiceManager(transport: transport, base: URL(string: "https://api.test"))
        let queue = WorkQueue(maximumRunning: 1)
        let users = queue.ends(at: "/users/:id?full=1")
        let created = queue.ends(at: .post("/users"))
        for endpoint: Endpoint in [
            .get("/users/:id", path: ["id": 7]), "/users", .post("/users"),
            .get("/users/:id", path: ["id": 8], query: ["fields": "name"]), .delete("/users/:id", path: ["id": 7]),
        ] {
            _ = try await queue.run(Work(HTTPResource(endpoint, .text), from: loader))
        }
        await queue.close()
        var told: [String] = []
        for await end in users { told.append("\(end.method.rawValue) \(end.name) \(end.state.phase)") }
        #expect(told == ["GET /users/:id done", "GET /users/:id done"])
        told = []
        for await end in created { told.append("\(end.method.rawValue) \(end.name)") }
        #expect(told == ["POST /users"])
        #expect(
            transport.requests.map(\.head.path) == [
                "/users/7", "/users", "/users", "/users/8?fields=name", "/users/7",
            ]
        )
    }

    @Test func theEndsOfAQueueAreToldByType() async throws {
        let queue = WorkQueue()
        let (numbers, named) = (queue.ends(of: Int.self), queue.ends(of: Int.self, named: "b"))
        let untyped = queue.ends(named: "text")
        _ = try await queue.run(Work("text") { "a" })
        _ = try await queue.run(Work("a") { 1 })
        _ = try await queue.run(Work("b") { 2 })
        _ = try? await queue.run(Work<Int>("c") { throw Broken() })
        await queue.close()
        var values: [Int?] = []
        for await end in numbers { values.append(try? end.result.get()) }
        #expect(values == [1, 2, nil])
        values = []
        for await end in named { values.append(try end.result.get()) }
        #expect(values == [2])
        for await end in untyped { #expect(try end.result.get() as? String == "a") }
    }

    @Test func whoHasLeftIsToldNothingAndTakesNoMemory() async throws {
        let queue = WorkQueue()
        for _ in 0..<1000 { _ = queue.ends() }
        let ends = queue.ends()
        try await queue.run(Work("a") {})
        await queue.close()
        var count = 0
        for await _ in ends { count += 1 }
        #expect(count == 1)
    }

    @Test func whoIsSlowMissesTheOldestEnds() async throws {
        let queue = WorkQueue()
        let ends = queue.ends(of: Int.self)
        for number in 0..<300 { _ = try await queue.run(Work { number }) }
        await queue.close()
        var values: [Int] = []
        for await end in ends { values.append(try end.result.get()) }
        #expect(values == Array(44..<300))
    }

    @Test func aTaskThatListensEndsWhereItIsCancelled() async throws {
        let queue = WorkQueue()
        let listening = Task {
            for await _ in queue.ends() {}
            return true
        }
        listening.cancel()
        #expect(await listening.value)
    }

    @Test func endsAreToldInTheirOrderThoughOneTaskBeginsWithTheEndOfAnother() async throws {
        let queue = WorkQueue(maximumRunning: 1)
        let ends = queue.ends(of: Int.self)
        let tasks = (0..<2000).map { number in queue.add(Work { number }) }
        for task in tasks { _ = try await task.value }
        await queue.close()
        var told: [Int] = []
        for await end in ends { told.append(try end.result.get()) }
        // Who is slow misses the earliest.
        #expect(told == told.sorted() && !told.isEmpty)
    }
}
