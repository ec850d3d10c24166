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
        let group = WorkGroup(works, inOrder: true, queue: WorkQueue())
        #expect(try await group.values == [0, 1, 2, 3, 4])
        #expect(journal.all == (0..<5).flatMap { ["begins \($0)", "ends \($0)"] })
        #expect(group.state == .done && group.isInOrder && group.count == 5 && group.tasks.isEmpty)
    }

    @Test func aConcurrentGroupGoesAtOnce() async throws {
        let work = ManualClock()
        let works = (0..<5).map { number in
            Work {
                try await work.sleep(for: .seconds(5 - number))
                return number
            }
        }
        let group = WorkGroup(works, inOrder: false, queue: WorkQueue())
        try await work.waitForSleepers(5)
        #expect(group.tasks.count == 5 && group.state == .running)
        work.advance(by: .seconds(5))
        #expect(try await group.values == [0, 1, 2, 3, 4])
    }

    @Test func aConcurrentGroupKeepsToTheLimitOfItsQueue() async throws {
        let (queue, work) = (WorkQueue(maximumRunning: 2), ManualClock())
        let works = (0..<4).map { _ in Work { try await work.sleep(for: .seconds(1)) } }
        let group = WorkGroup(works, inOrder: false, queue: queue)
        try await work.waitForSleepers(2)
        #expect(queue.runningCount == 2 && queue.queuedCount == 2)
        work.advance(by: .seconds(1))
        try await work.waitForSleepers(2)
        work.advance(by: .seconds(1))
        #expect(await group.results.isEmpty == false && group.state == .done)
    }

    @Test(arguments: [true, false]) func anEmptyGroupIsDone(isInOrder: Bool) async throws {
        let group = WorkGroup<Int>([], inOrder: isInOrder)
        #expect(group.state == .done)
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
        let group = WorkGroup(works, inOrder: true, queue: WorkQueue())
        let error = await #expect(throws: WorkError.self) { try await group.values }
        guard case .failed(let reason) = error, reason is Broken else { return #expect(Bool(false), "\(error as Any)") }
        #expect(journal.all == ["0", "1"])
        let results = await group.results
        #expect(group.state == .failed && results.count == 4)
        #expect(results.map { $0 == nil } == [false, false, true, true])
        guard case .success = results[0] else { return #expect(Bool(false), "the first one has succeeded") }
    }

    @Test func theFirstErrorCancelsTheRestOfAConcurrentGroup() async throws {
        let work = ManualClock()
        let works = (0..<4).map { number in
            Work {
                try await work.sleep(for: .seconds(number == 2 ? 1 : 60))
                if number == 2 { throw Broken() }
            }
        }
        let queue = WorkQueue()
        let group = WorkGroup(works, inOrder: false, queue: queue)
        try await work.waitForSleepers(4)
        work.advance(by: .seconds(1))
        let results = await group.results
        #expect(group.state == .failed)
        guard case .failed(let reason) = group.firstError, reason is Broken else {
            return #expect(Bool(false), "\(group.firstError as Any)")
        }
        for index in [0, 1, 3] {
            guard case .failure(.cancelled) = results[index] else { return #expect(Bool(false), "\(index)") }
        }
        #expect(queue.count == 0)
        #expect(await eventually { work.sleeperCount == 0 })
    }

    @Test(arguments: [true, false]) func othersMayGoOn(isInOrder: Bool) async throws {
        let works = (0..<4).map { number in
            Work {
                if number % 2 == 0 { throw Broken() }
                return number
            }
        }
        let group = WorkGroup(works, inOrder: isInOrder, stopsOnFailure: false, queue: WorkQueue())
        let results = await group.results
        #expect(group.state == .failed && group.firstError != nil)
        #expect(results.map { try? $0?.get() } == [nil, 1, nil, 3])
        #expect(results.allSatisfy { $0 != nil })
        await #expect(throws: WorkError.self) { try await group.values }
    }

    @Test func retriesHappenWithinTheTurnOfAMember() async throws {
        let (clock, journal) = (ManualClock(), Journal())
        let error = DownloadError.origin(OriginFailure(kind: .timeout, detail: ""))
        let works = [
            Work(retry: .steady(count: 1)) {
                journal.note("first")
                if journal.all.count == 1 { throw error }
            },
            Work { journal.note("second") },
        ]
        let group = WorkGroup(works, inOrder: true, queue: WorkQueue(clock: clock))
        try await clock.waitForSleepers(1)
        #expect(group.tasks.first?.state.phase == .waitingForRetry)
        clock.advance(by: .seconds(3))
        #expect(await group.results.isEmpty == false && group.state == .done)
        #expect(journal.all == ["first", "first", "second"])
    }

    @Test(arguments: [true, false]) func membersAreAddedWhileItRuns(isInOrder: Bool) async throws {
        let work = ManualClock()
        let group = WorkGroup(
            [
                Work {
                    try await work.sleep(for: .seconds(1))
                    return 0
                }
            ],
            inOrder: isInOrder,
            queue: WorkQueue()
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
        let queue = WorkQueue(maximumRunning: nil, clock: ManualClock(), logger: log.logger, metrics)
        _ = await WorkGroup([Work { 0 }, Work { 1 }], inOrder: true, queue: queue).results
        _ = await WorkGroup([Work<Int> { throw Refusal() }, Work { 1 }], inOrder: true, queue: queue).results
        let waiting = WorkGroup([Work { try await Task.sleep(for: .seconds(3600)) }], inOrder: false, queue: queue)
        waiting.cancel()
        _ = await waiting.results
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
        let group = WorkGroup([Work { 0 }], inOrder: true, queue: WorkQueue(maximumRunning: 0))
        let queue = WorkQueue(maximumRunning: 0)
        let outer = WorkGroup([Work { group.add(Work { 1 }) }], inOrder: true, queue: queue)
        queue.maximumRunning = 1
        #expect(try await outer.values == [true])
        #expect(group.count == 2)
        group.cancel()
    }

    @Test(arguments: [true, false])
    func aMemberThatIsCancelledFromOutsideEndsIt(isInOrder: Bool) async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let works = (0..<3).map { _ in Work { try await work.sleep(for: .seconds(1)) } }
        let group = WorkGroup(works, inOrder: isInOrder, queue: queue)
        try await work.waitForSleepers(isInOrder ? 1 : 3)
        group.tasks.first?.cancel()
        let results = await group.results
        #expect(group.state == .failed)
        guard case .cancelled = group.firstError else { return #expect(Bool(false), "\(results)") }
        #expect(queue.count == 0)
    }

    @Test(arguments: [true, false]) func aGroupIsCancelled(isInOrder: Bool) async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let works = (0..<3).map { _ in Work { try await work.sleep(for: .seconds(1)) } }
        let group = WorkGroup(works, inOrder: isInOrder, queue: queue)
        try await work.waitForSleepers(isInOrder ? 1 : 3)
        group.cancel()
        let results = await group.results
        #expect(group.state == .cancelled && group.state == .cancelled)
        #expect(results.count { $0 == nil } == (isInOrder ? 2 : 0))
        let error = await #expect(throws: WorkError.self) { try await group.values }
        guard case .cancelled = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(queue.count == 0)
    }

    @Test func itsStatesAreToldToWhoComesLateToo() async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let works = [
            Work<Void> { throw Broken() },
            Work {
                try await work.sleep(for: .seconds(1))
            },
        ]
        let group = WorkGroup(works, inOrder: false, stopsOnFailure: false, queue: queue)
        try await work.waitForSleepers(1)
        // One has failed, and the other is under way: that is where the group is.
        #expect(await eventually { group.state == .failed })
        #expect(await group.states.first { _ in true } == .failed)
        work.advance(by: .seconds(1))
        _ = await group.results
        var states: [WorkState.Phase] = []
        for await state in group.states { states.append(state) }
        #expect(states == [.failed])
    }

    @Test func oneOfAClosedQueueEndsHoweverLongItIs() async throws {
        let queue = WorkQueue()
        await queue.close()
        let works = (0..<10_000).map { number in Work { number } }
        let group = WorkGroup(works, inOrder: true, stopsOnFailure: false, queue: queue)
        let results = await group.results
        #expect(group.state == .failed && results.count == 10_000)
        guard case .closed = group.firstError else { return #expect(Bool(false), "\(group.firstError as Any)") }
    }

    @Test func worksOfSeveralTypesAreMembersOfOneGroup() async throws {
        let works = [Work { 1 }.map { "\($0)" }, Work { true }.map { "\($0)" }, Work { "text" }]
        #expect(try await WorkGroup(works, inOrder: false).values == ["1", "true", "text"])
    }
}
