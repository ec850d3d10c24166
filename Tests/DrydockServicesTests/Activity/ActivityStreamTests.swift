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
        let (queue, work) = (TaskQueue(maximumRunning: 1), ManualClock())
        var activity = ActivityStream(of: [queue], minimumBusy: .zero).makeAsyncIterator()
        #expect(await activity.next() == .idle)
        let tasks = (0..<3).map { _ in queue.add(Work { try await work.sleep(for: .seconds(1)) }) }
        #expect(await activity.next() == .busy)
        #expect(queue.activity.count == 3)
        for task in tasks {
            try await work.waitForSleepers(1)
            work.advance(by: .seconds(1))
            try await task.value
        }
        #expect(await activity.next() == .idle)
        #expect(queue.activity.count == 0)
    }

    @Test func whoWaitsForARetryIsBusy() async throws {
        let clock = ManualClock()
        let queue = TaskQueue(clock: clock)
        let error = DownloadError.origin(OriginFailure(kind: .timeout, detail: ""))
        let task = queue.add(Work<Void>(retry: .docker(count: 1)) { throw error })
        try await clock.waitForSleepers(1)
        #expect(queue.runningCount == 0 && queue.activity.count == 1)
        task.cancel()
        #expect(queue.activity.count == 0)
    }

    @Test func shortWorkIsShownForTheMinimum() async throws {
        let (queue, clock) = (TaskQueue(), ManualClock())
        var activity = ActivityStream(of: [queue], minimumBusy: .seconds(1), clock: clock).makeAsyncIterator()
        #expect(await activity.next() == .idle)
        // It is over before anybody looks.
        _ = try await queue.run(Work { 1 })
        #expect(await activity.next() == .busy)
        let advancing = Task {
            try await clock.waitForSleepers(1)
            #expect(clock.nextDeadline?.offset == .seconds(1))
            clock.advance(by: .seconds(1))
        }
        #expect(await activity.next() == .idle)
        try await advancing.value
    }

    @Test func aManagerIsBusyWhileItDownloads() async throws {
        let gate = Gate()
        try await withManager { request in
            gate.wait()
            return .answer(to: request, "there")
        } _: { manager, origin async throws in
            var activity = ActivityStream(of: [manager], minimumBusy: .zero).makeAsyncIterator()
            #expect(await activity.next() == .idle)
            async let result = manager.download(origin.url())
            #expect(await activity.next() == .busy)
            #expect(manager.activity.count == 1)
            gate.open()
            #expect(try await result.text == "there")
            #expect(await activity.next() == .idle)
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
        var activity = ActivityStream(of: [services], minimumBusy: .zero).makeAsyncIterator()
        #expect(await activity.next() == .idle)
        let call = services.start(HTTPResource("http://a.test/", .text))
        #expect(await activity.next() == .busy)
        #expect(services.activity.count == 1)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        _ = try await call.value
        #expect(await activity.next() == .idle)
    }

    @Test func severalAreBusyWhereOneOfThemIs() async throws {
        let (first, second, own) = (TaskQueue(), TaskQueue(), ActivityCounter())
        var activity = ActivityStream(of: [first, second, own], minimumBusy: .zero).makeAsyncIterator()
        #expect(await activity.next() == .idle)
        own.begin()
        #expect(await activity.next() == .busy)
        // What begins meanwhile changes nothing, and neither does the end of one of them.
        _ = try await first.run(Work {})
        own.end()
        _ = try await second.run(Work {})
        #expect(await activity.next() == .idle)
    }

    @Test func aProgramCountsItsOwnWork() async throws {
        let counter = ActivityCounter()
        let value = await counter.during {
            #expect(counter.count == 1)
            return await counter.during { counter.count }
        }
        #expect(value == 2 && counter.count == 0)
        await #expect(throws: Broken.self) { try await counter.during { throw Broken() } }
        // One end too many counts for nothing.
        counter.end()
        #expect(counter.count == 0)
    }

    @Test func itEndsWithTheTaskThatListens() async throws {
        let clock = ManualClock()
        let counter = ActivityCounter()
        counter.begin()
        let listening = Task {
            var seen: [Activity] = []
            for await activity in ActivityStream(of: [counter], minimumBusy: .seconds(1), clock: clock) {
                seen.append(activity)
                counter.end()
            }
            return seen
        }
        try await clock.waitForSleepers(1)
        listening.cancel()
        #expect(await listening.value == [.busy])
        // Nobody sleeps for who has left.
        #expect(await eventually { clock.sleeperCount == 0 })
    }
}
