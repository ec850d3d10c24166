// Queues, groups and caches under a program that does what it should not: closures that never return, members that come
// while a group ends, handlers that use what has called them.

import Drydock
import DrydockServices
import Foundation
import LibrarySupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HostileTaskTests {
    private struct Broken: Error {}

    @Test func aClosureThatNeverReturnsHasNoSlotOnceItIsCancelled() async throws {
        let (gate, running) = (Gate(), Counter())
        let queue = WorkQueue(maximumRunning: 1)
        let stuck = queue.add(
            Work<Int>("stuck") {
                running.add()
                await hang(until: gate)
                return 1
            }
        )
        let next = queue.add(Work("next") { 2 })
        #expect(await eventually { running.value == 1 })
        #expect(next.state.phase == .queued)
        stuck.cancel()
        #expect(try await next.value == 2)
        #expect(stuck.state.phase == .cancelled)
        let closing = Task { await queue.close() }
        let refused = queue.add(Work("late") { 3 })
        #expect(await eventually { refused.state.isOver })
        gate.open()
        await closing.value
        #expect(queue.count == 0)
    }

    @Test("Members come while a group ends: each runs, or was refused", arguments: [true, false])
    func membersComeAtTheEnd(isInOrder: Bool) async throws {
        for round in 0..<100 {
            let queue = WorkQueue(maximumRunning: 3)
            let ran = Counter()
            let group = WorkGroup(
                (0..<3).map { _ in Work<Int> { if round % 4 == 3 { throw Broken() } else { 0 } } },
                inOrder: isInOrder,
                stopsOnFailure: round % 2 == 0,
                queue: queue
            )
            let added = await withTaskGroup(of: Int.self) { adders in
                for _ in 0..<4 {
                    adders.addTask {
                        var added = 0
                        while group.add(
                            Work {
                                ran.add(); return 1
                            }
                        ) {
                            added += 1
                            if added == 50 { break }
                            await Task.yield()
                        }
                        return added
                    }
                }
                if round % 5 == 4 {
                    adders.addTask {
                        group.cancel(); return 0
                    }
                }
                return await adders.reduce(0, +)
            }
            let results = await group.results
            #expect(results.count == 3 + added && group.count == 3 + added)
            let succeeded = results.dropFirst(3).count { (try? $0?.get()) != nil }
            #expect(succeeded <= ran.value && ran.value <= added)
            if group.state == .done { #expect(ran.value == added) }
            #expect(!group.add(Work { 2 }), "it has ended")
            #expect(await eventually { queue.count == 0 && queue.runningCount == 0 })
        }
    }

    @Test("Tasks are cancelled at every moment, and each ends once", arguments: 0..<4)
    func cancelledAtEveryMoment(seed: Int) async throws {
        let queue = WorkQueue(maximumRunning: 4)
        let ends = Counter()
        let counting = Task { for await _ in queue.ends() { ends.add() } }
        let retry = RetryPolicy(count: 3, delay: .milliseconds(1), causes: [.content])
        struct Again: Error {}
        let tasks = (0..<400).map { number in
            var work = Work<Int>("\(number)", priority: number % 3 == 0 ? .high : .low, retry: retry) {
                await Task.yield()
                if number % 4 == 0 { throw Again() }
                return number
            }
            work.retryCause = { $0 is Again ? .content : nil }
            return queue.add(work)
        }
        for (number, task) in tasks.enumerated() {
            if (number + seed) % 2 == 0 { task.cancel() }
            if number % 50 == 0 { queue.maximumRunning = number % 100 == 0 ? 0 : 4 }
            if number % 7 == seed { await Task.yield() }
        }
        queue.maximumRunning = 4
        for task in tasks {
            _ = try? await task.value
            #expect(task.state.isOver)
        }
        #expect(await eventually { queue.count == 0 && queue.runningCount == 0 && queue.queuedCount == 0 })
        await queue.close()
        await counting.value
        #expect(queue.activity.count == 0)
    }

    @Test func aHandlerMayUseTheCacheThatHasCalledIt() {
        let reach = Mutex<MemoryCache<Int, Int>?>(nil)
        let calls = Counter()
        let cache = MemoryCache<Int, Int>(costLimit: 100, givesWayUnderPressure: false) { key, value in
            calls.add()
            guard let cache = reach.withLock({ $0 }) else { return }
            // What goes comes back, a few times.
            if value < 3 { cache.insert(value + 1, for: key, cost: 10) }
            _ = cache[key]
            cache.removeValue(for: key - 1)
        }
        reach.withLock { $0 = cache }
        for number in 0..<1000 { cache.insert(0, for: number, cost: number % 20) }
        #expect(cache.cost <= 100 && calls.value > 0)
        cache.shrink(toCost: 0)
        cache.costLimit = .min
        #expect(cache.cost == 0)
        _ = reach.withLock { $0.take() }
    }
}
