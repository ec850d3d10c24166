// Managers and queues that are busy or idle, for those who show it.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import LibrarySupport
import TestSupport
import Testing

@Suite struct ActivityStreamTests {
    @Test func aQueueIsBusyAsLongAsATaskHasNotEnded() async throws {
        let (queue, work) = (WorkQueue(maximumRunning: 1), ManualClock())
        var activity = ActivityStream(of: [queue.activity], minimumBusy: .zero).makeAsyncIterator()
        #expect(await activity.next(isolation: #isolation) == false)
        let tasks = (0..<3).map { _ in queue.add(Work { try await work.sleep(for: .seconds(1)) }) }
        #expect(await activity.next(isolation: #isolation) == true)
        #expect(queue.activity.count == 3)
        for task in tasks {
            try await work.waitForSleepers(1)
            work.advance(by: .seconds(1))
            try await task.value
        }
        #expect(await activity.next(isolation: #isolation) == false)
        #expect(queue.activity.count == 0)
    }

    @Test func whoWaitsForARetryIsBusy() async throws {
        let clock = ManualClock()
        let queue = WorkQueue(clock: clock)
        let error = DownloadError.origin(OriginFailure(kind: .timeout, detail: ""))
        let task = queue.add(Work<Void>(retry: .steady(count: 1)) { throw error })
        try await clock.waitForSleepers(1)
        #expect(queue.runningCount == 0 && queue.activity.count == 1)
        task.cancel()
        #expect(queue.activity.count == 0)
    }

    @Test func shortWorkIsShownForTheMinimum() async throws {
        let (queue, clock) = (WorkQueue(), ManualClock())
        var activity = ActivityStream(of: [queue.activity], minimumBusy: .seconds(1), clock: clock).makeAsyncIterator()
        #expect(await activity.next(isolation: #isolation) == false)
        // It is over before anybody looks.
        _ = try await queue.run(Work { 1 })
        #expect(await activity.next(isolation: #isolation) == true)
        let advancing = Task {
            try await clock.waitForSleepers(1)
            #expect(clock.nextDeadline?.offset == .seconds(1))
            clock.advance(by: .seconds(1))
        }
        #expect(await activity.next(isolation: #isolation) == false)
        try await advancing.value
    }

    @Test func aManagerIsBusyWhileItDownloads() async throws {
        let gate = Gate()
        try await withManager { request in
            gate.wait()
            return .answer(to: request, "there")
        } _: { manager, origin async throws in
            var activity = ActivityStream(of: [manager.activity], minimumBusy: .zero).makeAsyncIterator()
            #expect(await activity.next(isolation: #isolation) == false)
            async let result = manager.download(origin.url())
            #expect(await activity.next(isolation: #isolation) == true)
            #expect(manager.activity.count == 1)
            gate.open()
            #expect(try await result.text == "there")
            #expect(await activity.next(isolation: #isolation) == false)
            #expect(manager.activity.count == 0 && manager.downloadCount == 0)
        }
    }

    @Test func aServiceManagerIsBusyWhileItCalls() async throws {
        let (clock, transport) = (ManualClock(), ScriptedTransport())
        transport.answerAll { _ throws(DownloadError) in
            do { try await clock.sleep(for: .seconds(1)) } catch { throw .cancelled }
            return .text("there")
        }
        let services = ServiceManager(transport: transport)
        var activity = ActivityStream(of: [services.activity], minimumBusy: .zero).makeAsyncIterator()
        #expect(await activity.next(isolation: #isolation) == false)
        let call = services.start(HTTPResource("http://a.test/", .text))
        #expect(await activity.next(isolation: #isolation) == true)
        #expect(services.activity.count == 1)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        _ = try await call.value
        #expect(await activity.next(isolation: #isolation) == false)
    }

    @Test func severalAreBusyWhereOneOfThemIs() async throws {
        let (first, second, own) = (WorkQueue(), WorkQueue(), ActivityCounter())
        let all = [first.activity, second.activity, ActivityStream(counters: [own])]
        var activity = ActivityStream(of: all, minimumBusy: .zero).makeAsyncIterator()
        #expect(await activity.next(isolation: #isolation) == false)
        own.change(by: 1).tell()
        #expect(await activity.next(isolation: #isolation) == true)
        // What begins meanwhile changes nothing, and neither does the end of one of them.
        _ = try await first.run(Work {})
        own.change(by: -1).tell()
        _ = try await second.run(Work {})
        #expect(await activity.next(isolation: #isolation) == false)
    }

    /// The work of a program itself counts where a queue runs it.
    @Test func aProgramCountsItsOwnWork() async throws {
        let queue = WorkQueue()
        let value = try await queue.run(
            Work {
                #expect(queue.activity.count == 1)
                return try await queue.run(Work { queue.activity.count })
            }
        )
        #expect(value == 2 && queue.activity.count == 0)
        await #expect(throws: WorkError.self) { try await queue.run(Work<Void> { throw Broken() }) }
        #expect(queue.activity.count == 0)
    }

    @Test func oneEndTooManyCountsForNothing() {
        let counter = ActivityCounter()
        counter.change(by: -1).tell()
        #expect(counter.count == 0)
        counter.change(by: 1).tell()
        #expect(counter.count == 1)
    }

    @Test func itEndsWithTheTaskThatListens() async throws {
        let clock = ManualClock()
        let counter = ActivityCounter()
        counter.change(by: 1).tell()
        let listening = Task {
            var seen: [Bool] = []
            for await isBusy in ActivityStream(counters: [counter], minimumBusy: .seconds(1), clock: clock) {
                seen.append(isBusy)
                counter.change(by: -1).tell()
            }
            return seen
        }
        try await clock.waitForSleepers(1)
        listening.cancel()
        #expect(await listening.value == [true])
        // Nobody sleeps for who has left.
        #expect(await eventually { clock.sleeperCount == 0 })
    }
}
