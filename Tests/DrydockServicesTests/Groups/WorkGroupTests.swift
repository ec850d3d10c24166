// Groups of works, serial and concurrent: what begins, what fails, what is added, and what is left.

import Drydock
import DrydockTesting
import Foundation
import LibrarySupport
import Logging
import MetricsTestKit
import TestSupport
import Testing

@testable import DrydockServices

@Suite struct WorkGroupTests {
    @Test func aSerialGroupGoesInItsOrder() async throws {
        let journal = Journal()
        let works = (0..<5).map { number in
            Work {
                journal.note("begins \(number)")
                await Task.yield()
                journal.note("ends \(number)")
                return number
            }
        }
        let group = WorkGroup(works, mode: .serial, queue: TaskQueue())
        #expect(try await group.values == [0, 1, 2, 3, 4])
        #expect(journal.all == (0..<5).flatMap { ["begins \($0)", "ends \($0)"] })
        #expect(group.state == .finished && group.mode == .serial && group.count == 5 && group.tasks.isEmpty)
    }

    @Test func aConcurrentGroupGoesAtOnce() async throws {
        let work = ManualClock()
        let works = (0..<5).map { number in
            Work {
                try await work.sleep(for: .seconds(5 - number))
                return number
            }
        }
        let group = WorkGroup(works, mode: .concurrent, queue: TaskQueue())
        try await work.waitForSleepers(5)
        #expect(group.tasks.count == 5 && group.state == .running)
        work.advance(by: .seconds(5))
        #expect(try await group.values == [0, 1, 2, 3, 4])
    }

    @Test func aConcurrentGroupKeepsToTheLimitOfItsQueue() async throws {
        let (queue, work) = (TaskQueue(maximumRunning: 2), ManualClock())
        let works = (0..<4).map { _ in Work { try await work.sleep(for: .seconds(1)) } }
        let group = WorkGroup(works, mode: .concurrent, queue: queue)
        try await work.waitForSleepers(2)
        #expect(queue.runningCount == 2 && queue.queuedCount == 2)
        work.advance(by: .seconds(1))
        try await work.waitForSleepers(2)
        work.advance(by: .seconds(1))
        #expect(await group.report.state == .finished)
    }

    @Test(arguments: WorkGroupMode.allCases) func anEmptyGroupIsDone(mode: WorkGroupMode) async throws {
        let group = WorkGroup<Int>([], mode: mode)
        #expect(group.state == .finished)
        #expect(try await group.values.isEmpty)
        #expect(!group.add(Work { 1 }) && group.count == 0)
    }

    @Test func theFirstErrorEndsASerialGroup() async throws {
        let journal = Journal()
        let works = (0..<4).map { number in
            Work {
                journal.note("\(number)")
                if number == 1 { throw Broken() }
            }
        }
        let group = WorkGroup(works, mode: .serial, queue: TaskQueue())
        let error = await #expect(throws: TaskQueueError.self) { try await group.values }
        guard case .failed(let reason) = error, reason is Broken else { return #expect(Bool(false), "\(error as Any)") }
        #expect(journal.all == ["0", "1"])
        let report = await group.report
        #expect(report.state == .failed && report.results.count == 4)
        #expect(report.results.map { $0 == nil } == [false, false, true, true])
        guard case .success = report.results[0] else { return #expect(Bool(false), "the first one has succeeded") }
    }

    @Test func theFirstErrorCancelsTheRestOfAConcurrentGroup() async throws {
        let work = ManualClock()
        let works = (0..<4).map { number in
            Work {
                try await work.sleep(for: .seconds(number == 2 ? 1 : 60))
                if number == 2 { throw Broken() }
            }
        }
        let queue = TaskQueue()
        let group = WorkGroup(works, mode: .concurrent, queue: queue)
        try await work.waitForSleepers(4)
        work.advance(by: .seconds(1))
        let report = await group.report
        #expect(report.state == .failed)
        guard case .failed(let reason) = report.firstError, reason is Broken else {
            return #expect(Bool(false), "\(report.firstError as Any)")
        }
        for index in [0, 1, 3] {
            guard case .failure(.cancelled) = report.results[index] else { return #expect(Bool(false), "\(index)") }
        }
        #expect(queue.count == 0)
        #expect(await eventually { work.sleeperCount == 0 })
    }

    @Test(arguments: WorkGroupMode.allCases) func othersMayGoOn(mode: WorkGroupMode) async throws {
        let works = (0..<4).map { number in
            Work {
                if number % 2 == 0 { throw Broken() }
                return number
            }
        }
        let group = WorkGroup(works, mode: mode, onFailure: .continue, queue: TaskQueue())
        let report = await group.report
        #expect(report.state == .failed && report.firstError != nil)
        #expect(report.results.map { try? $0?.get() } == [nil, 1, nil, 3])
        #expect(report.results.allSatisfy { $0 != nil })
        await #expect(throws: TaskQueueError.self) { try await group.values }
    }

    @Test func retriesHappenWithinTheTurnOfAMember() async throws {
        let (clock, journal) = (ManualClock(), Journal())
        let error = DownloadError.origin(OriginFailure(kind: .timeout, detail: ""))
        let works = [
            Work(retry: .docker(count: 1)) {
                journal.note("first")
                if journal.all.count == 1 { throw error }
            },
            Work { journal.note("second") },
        ]
        let group = WorkGroup(works, mode: .serial, queue: TaskQueue(clock: clock))
        try await clock.waitForSleepers(1)
        #expect(group.tasks.first?.state.phase == .waitingForRetry)
        clock.advance(by: .seconds(3))
        #expect(await group.report.state == .finished)
        #expect(journal.all == ["first", "first", "second"])
    }

    @Test(arguments: WorkGroupMode.allCases) func membersAreAddedWhileItRuns(mode: WorkGroupMode) async throws {
        let work = ManualClock()
        let group = WorkGroup(
            [
                Work {
                    try await work.sleep(for: .seconds(1))
                    return 0
                }
            ],
            mode: mode,
            queue: TaskQueue()
        )
        try await work.waitForSleepers(1)
        #expect(group.add(Work { 1 }) && group.add(Work { 2 }))
        #expect(group.count == 3)
        work.advance(by: .seconds(1))
        #expect(try await group.values == [0, 1, 2])
        #expect(!group.add(Work { 3 }))
    }

    @Test func groupsAreLoggedAndCounted() async throws {
        struct Refusal: Error {}
        let (metrics, log) = (TestMetrics(), RecordedLog())
        let queue = TaskQueue(maximumRunning: nil, clock: ManualClock(), logger: log.logger, metrics)
        _ = await WorkGroup([Work { 0 }, Work { 1 }], mode: .serial, queue: queue).report
        _ = await WorkGroup([Work<Int> { throw Refusal() }, Work { 1 }], mode: .serial, queue: queue).report
        let waiting = WorkGroup([Work { try await Task.sleep(for: .seconds(3600)) }], mode: .concurrent, queue: queue)
        waiting.cancel()
        _ = await waiting.report
        #expect(await eventually { queue.statistics.groups == 3 })
        #expect(log.count(.debug, "group ended end=finished error= members=2") == 1)
        #expect(log.count(.debug, "group ended end=failed error=Refusal() members=2") == 1)
        #expect(log.count(.debug, "group ended end=cancelled error=the task was cancelled members=1") == 1)
        for end in ["finished", "failed", "cancelled"] {
            #expect(metrics.counterTotal(label: "drydock_task_groups_total", dimensions: [("end", end)]) == 1)
        }
        #expect(queue.statistics.done == 2 && queue.statistics.failed == 1 && queue.statistics.cancelled == 1)
    }

    @Test func aMemberMayAddAnother() async throws {
        let group = WorkGroup([Work { 0 }], mode: .serial, queue: TaskQueue(maximumRunning: 0))
        let queue = TaskQueue(maximumRunning: 0)
        let outer = WorkGroup([Work { group.add(Work { 1 }) }], mode: .serial, queue: queue)
        queue.maximumRunning = 1
        #expect(try await outer.values == [true])
        #expect(group.count == 2)
        group.cancel()
    }

    @Test(arguments: WorkGroupMode.allCases)
    func aMemberThatIsCancelledFromOutsideEndsIt(mode: WorkGroupMode) async throws {
        let (queue, work) = (TaskQueue(), ManualClock())
        let works = (0..<3).map { _ in Work { try await work.sleep(for: .seconds(1)) } }
        let group = WorkGroup(works, mode: mode, queue: queue)
        try await work.waitForSleepers(mode == .serial ? 1 : 3)
        group.tasks.first?.cancel()
        let report = await group.report
        #expect(report.state == .failed)
        guard case .cancelled = report.firstError else { return #expect(Bool(false), "\(report)") }
        #expect(queue.count == 0)
    }

    @Test(arguments: WorkGroupMode.allCases) func aGroupIsCancelled(mode: WorkGroupMode) async throws {
        let (queue, work) = (TaskQueue(), ManualClock())
        let works = (0..<3).map { _ in Work { try await work.sleep(for: .seconds(1)) } }
        let group = WorkGroup(works, mode: mode, queue: queue)
        try await work.waitForSleepers(mode == .serial ? 1 : 3)
        group.cancel()
        let report = await group.report
        #expect(report.state == .cancelled && group.state == .cancelled)
        #expect(report.results.count { $0 == nil } == (mode == .serial ? 2 : 0))
        let error = await #expect(throws: TaskQueueError.self) { try await group.values }
        guard case .cancelled = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(queue.count == 0)
    }

    @Test func itsStatesAreToldToWhoComesLateToo() async throws {
        let (queue, work) = (TaskQueue(), ManualClock())
        let works = [
            Work<Void> { throw Broken() },
            Work {
                try await work.sleep(for: .seconds(1))
            },
        ]
        let group = WorkGroup(works, mode: .concurrent, onFailure: .continue, queue: queue)
        try await work.waitForSleepers(1)
        // One has failed, and the other is under way: that is where the group is.
        #expect(await eventually { group.state == .failed })
        #expect(await group.states.first { _ in true } == .failed)
        work.advance(by: .seconds(1))
        _ = await group.report
        var states: [WorkGroupState] = []
        for await state in group.states { states.append(state) }
        #expect(states == [.failed])
    }

    @Test func oneOfAClosedQueueEndsHoweverLongItIs() async throws {
        let queue = TaskQueue()
        await queue.close()
        let works = (0..<10_000).map { number in Work { number } }
        let group = WorkGroup(works, mode: .serial, onFailure: .continue, queue: queue)
        let report = await group.report
        #expect(report.state == .failed && report.results.count == 10_000)
        guard case .closed = report.firstError else { return #expect(Bool(false), "\(report.firstError as Any)") }
    }

    @Test func worksOfSeveralTypesAreMembersOfOneGroup() async throws {
        let works = [Work { 1 }.map { "\($0)" }, Work { true }.map { "\($0)" }, Work { "text" }]
        #expect(try await WorkGroup(works, mode: .concurrent).values == ["1", "true", "text"])
    }
}
