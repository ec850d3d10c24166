// Queues of work: how much of it runs, in which order, and how it ends.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Synchronization
import TestSupport
import Testing

struct Broken: Error {}

/// What the works of a test have done, in order.
final class Journal: Sendable {
    private let lines = Mutex<[String]>([])

    func note(_ line: String) { lines.withLock { $0.append(line) } }

    var all: [String] { lines.withLock { $0 } }
}

@Suite struct TaskQueueTests {
    @Test func workRunsAndHasAValue() async throws {
        let task = WorkQueue().add(Work("answer") { 42 })
        #expect(try await task.value == 42)
        #expect(task.name == "answer")
        #expect(task.state.phase == .done && task.state.attempts == 1 && task.state.error == nil)
        #expect(task.state.isOver)
    }

    @Test func whatItThrowsIsItsFailure() async throws {
        let task = WorkQueue().add(Work<Int> { throw Broken() })
        let error = await #expect(throws: WorkError.self) { try await task.value }
        guard case .failed(let reason) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(reason is Broken)
        #expect(task.state.phase == .failed && task.state.error is Broken)
    }

    @Test func theSharedQueueHasNoLimit() async throws {
        #expect(WorkQueue.shared.maximumRunning == nil)
        #expect(try await WorkQueue.shared.run(Work { "done" }) == "done")
    }

    @Test func soManyRunAndNoMore() async throws {
        let queue = WorkQueue(maximumRunning: 3)
        let load = Mutex((now: 0, most: 0))
        let tasks = (0..<50).map { number in
            queue.add(
                Work {
                    load.withLock { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
                    await Task.yield()
                    load.withLock { $0.now -= 1 }
                    return number
                }
            )
        }
        for (number, task) in tasks.enumerated() { #expect(try await task.value == number) }
        #expect(load.withLock { $0.most } <= 3)
        #expect(queue.count == 0 && queue.runningCount == 0 && queue.queuedCount == 0)
    }

    @Test func theLimitChangesWhileItRuns() async throws {
        let (queue, work) = (WorkQueue(maximumRunning: 1), ManualClock())
        let tasks = (0..<4).map { _ in queue.add(Work { try await work.sleep(for: .seconds(1)) }) }
        try await work.waitForSleepers(1)
        #expect(queue.runningCount == 1 && queue.queuedCount == 3)
        queue.maximumRunning = 3
        try await work.waitForSleepers(3)
        #expect(queue.runningCount == 3 && queue.queuedCount == 1)
        queue.maximumRunning = nil
        try await work.waitForSleepers(4)
        work.advance(by: .seconds(1))
        for task in tasks { try await task.value }
    }

    @Test func withALimitOfZeroNothingBegins() async throws {
        let queue = WorkQueue(maximumRunning: 0)
        let task = queue.add(Work { 1 })
        #expect(task.state.phase == .queued && task.state.attempts == 0)
        queue.maximumRunning = 1
        #expect(try await task.value == 1)
    }

    @Test func theUrgentComeFirstAndInTheirOrder() async throws {
        let (queue, journal) = (WorkQueue(maximumRunning: 0), Journal())
        let priorities: [(String, DownloadOptions.Priority)] = [
            ("low 1", .low), ("normal 1", .normal), ("high 1", .high), ("low 2", .low), ("high 2", .high),
            ("normal 2", .normal),
        ]
        let tasks = priorities.map { name, priority in
            queue.add(Work(name, priority: priority) { journal.note(name) })
        }
        queue.maximumRunning = 1
        for task in tasks { try await task.value }
        // The fifth in a row is one of a lower priority.
        #expect(journal.all == ["high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2"])
    }

    @Test func nobodyStarves() async throws {
        let (queue, journal) = (WorkQueue(maximumRunning: 0), Journal())
        var tasks = [queue.add(Work("low", priority: .low) { journal.note("low") })]
        tasks += (0..<20).map { _ in queue.add(Work("high", priority: .high) { journal.note("high") }) }
        queue.maximumRunning = 1
        for task in tasks { try await task.value }
        #expect(journal.all.firstIndex(of: "low") == 4)
    }

    // MARK: - Cancelling

    @Test func oneThatWaitsNeverRuns() async throws {
        let (queue, journal) = (WorkQueue(maximumRunning: 0), Journal())
        let task = queue.add(Work { journal.note("ran") })
        #expect(task.cancel())
        #expect(!task.cancel())
        await #expect(throws: WorkError.self) { try await task.value }
        #expect(task.state.phase == .cancelled)
        queue.maximumRunning = 1
        _ = try await queue.run(Work { journal.note("another") })
        #expect(journal.all == ["another"])
    }

    @Test func oneThatRunsLeavesItsSlotAtOnce() async throws {
        let (queue, work) = (WorkQueue(maximumRunning: 1), ManualClock())
        let isStuck = Gate()
        defer { isStuck.open() }
        let first = queue.add(
            Work {
                try? await work.sleep(for: .seconds(1))
                #expect(Task.isCancelled)
                // It does not care, and holds nobody up.
                _ = await eventually { isStuck.isOpened }
                return "first"
            }
        )
        let second = queue.add(Work { "second" })
        try await work.waitForSleepers(1)
        first.cancel()
        #expect(try await second.value == "second")
        let error = await #expect(throws: WorkError.self) { try await first.value }
        guard case .cancelled = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(first.state.phase == .cancelled && first.state.attempts == 1)
    }

    @Test func whatEndsByACancellationIsCancelled() async throws {
        let queue = WorkQueue()
        for error in [CancellationError(), DownloadError.cancelled, WorkError.cancelled] as [any Error] {
            let task = queue.add(Work<Int>(retry: .immediate(count: 3)) { throw error })
            await #expect(throws: WorkError.self) { try await task.value }
            #expect(task.state.phase == .cancelled && task.state.attempts == 1)
        }
    }

    @Test func whoRunsAndIsCancelledCancelsIt() async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let caller = Task { try await queue.run(Work { try await work.sleep(for: .seconds(1)) }) }
        try await work.waitForSleepers(1)
        caller.cancel()
        await #expect(throws: WorkError.self) { try await caller.value }
        #expect(await eventually { queue.count == 0 && work.sleeperCount == 0 })
    }

    @Test func whoWaitsForAValueAndIsCancelledLeavesItAlone() async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let task = queue.add(
            Work {
                try await work.sleep(for: .seconds(1))
                return 1
            }
        )
        let waiting = Task { try await task.value }
        try await work.waitForSleepers(1)
        waiting.cancel()
        await #expect(throws: WorkError.self) { try await waiting.value }
        work.advance(by: .seconds(1))
        #expect(try await task.value == 1)
    }

    @Test func cancelAllEndsThemAllAndNoneBegins() async throws {
        let (queue, work, journal) = (WorkQueue(maximumRunning: 2), ManualClock(), Journal())
        let tasks = (0..<10).map { number in
            queue.add(
                Work {
                    journal.note("\(number)")
                    try await work.sleep(for: .seconds(1))
                }
            )
        }
        try await work.waitForSleepers(2)
        #expect(queue.cancelAll() == 10)
        for task in tasks { await #expect(throws: WorkError.self) { try await task.value } }
        #expect(Set(journal.all) == ["0", "1"])
        #expect(queue.count == 0)
        #expect(try await queue.run(Work { "goes on" }) == "goes on")
    }

    // MARK: - Its end

    @Test func closingWaitsForTheLastClosure() async throws {
        let (queue, work, journal) = (WorkQueue(maximumRunning: 1), ManualClock(), Journal())
        let running = queue.add(
            Work {
                try? await work.sleep(for: .seconds(1))
                for _ in 0..<100 { await Task.yield() }
                journal.note("returned")
            }
        )
        let waiting = queue.add(Work { journal.note("never") })
        try await work.waitForSleepers(1)
        await queue.close()
        #expect(journal.all == ["returned"])
        #expect(running.state.phase == .cancelled && waiting.state.phase == .cancelled)
        let late = queue.add(Work { 1 })
        let error = await #expect(throws: WorkError.self) { try await late.value }
        guard case .closed = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(late.state.phase == .failed && "\(WorkError.closed)".contains("another one"))
        await queue.close()
    }

    @Test func aQueueThatNobodyHoldsGoesOnToItsEnd() async throws {
        let work = ManualClock()
        var queue: WorkQueue? = WorkQueue(maximumRunning: 1)
        let first = queue?.add(Work { try await work.sleep(for: .seconds(1)) })
        let second = queue?.add(Work { "second" })
        queue = nil
        try await work.waitForSleepers(1)
        work.advance(by: .seconds(1))
        try await first?.value
        #expect(try await second?.value == "second")
    }

    @Test func whatATaskHasHeldIsReleasedAtItsEnd() async throws {
        final class Payload: Sendable {}
        let queue = WorkQueue()
        var payload: Payload? = Payload()
        weak let held = payload
        let task = queue.add(Work { [payload] in payload == nil })
        payload = nil
        #expect(try await task.value == false)
        // The closure is gone as soon as its Swift task is.
        #expect(await eventually { held == nil })
        #expect(task.state.phase == .done)
    }

    @Test func tenThousandTasksEachEndOnce() async throws {
        #if DRYDOCK_SANITIZED
            let count = 1000
        #else
            let count = 10_000
        #endif
        let queue = WorkQueue(maximumRunning: 0)
        let runs = Atomic<Int>(0)
        let before = residentMemory()
        let tasks = (0..<count).map { number in
            queue.add(
                Work("\(number)", priority: DownloadOptions.Priority.allCases[number % 3]) {
                    runs.wrappingAdd(1, ordering: .relaxed)
                    return number
                }
            )
        }
        #expect(queue.queuedCount == count)
        #if !DRYDOCK_SANITIZED
            // About 2 KB each; tests beside this one have their share in the number, too.
            #expect(residentMemory() - before < count * 20_000)
        #endif
        queue.maximumRunning = 8
        for (number, task) in tasks.enumerated() { #expect(try await task.value == number) }
        #expect(runs.load(ordering: .relaxed) == count)
        #expect(queue.count == 0)
    }

    /// What the process has in memory, in bytes.
    private func residentMemory() -> Int {
        let fields = readText("/proc/self/statm").split(separator: " ")
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * 4096
    }

    // MARK: - Works

    @Test func aWorkIsADescriptionThatMayBeUsedAgain() async throws {
        let runs = Atomic<Int>(0)
        let work = Work("again") { runs.wrappingAdd(1, ordering: .relaxed).newValue }
        let queue = WorkQueue()
        #expect(try await queue.run(work) == 1)
        #expect(try await queue.run(work) == 2)
    }

    @Test func aWorkMayBecomeOneOfAnotherType() async throws {
        let work = Work("number", priority: .high, method: .post) { 41 }.map { "\($0 + 1)" }
        #expect(work.name == "number" && work.priority == .high && work.method == .post)
        #expect(try await WorkQueue().run(work) == "42")
        let broken = Work { 1 }.map { _ -> Int in throw Broken() }
        await #expect(throws: WorkError.self) { try await WorkQueue().run(broken) }
    }

    @Test func aResourceIsLoadedByAQueue() async throws {
        try await withManager {
            .answer(to: $0, "of \($0.target)")
        } _: { manager, origin async throws in
            let loader = ServiceManager(transport: manager, base: origin.url("/api"))
            let work = Work(HTTPResource(Endpoint("/a?b=1", method: .put), .text), from: loader, priority: .high)
            #expect(work.name == "/a" && work.method == .put && work.priority == .high)
            #expect(try await WorkQueue().run(work).model == "of /api/a?b=1")
        }
    }
}
