// Schedules: when turns come, that none comes while the last one runs, and what a reload leaves running.

import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5)))
struct ScheduleTests {
    @Test(
        "the next turn is the first that is still to come",
        arguments: [
            (UInt64(100), UInt64(10), UInt64(100), UInt64(110)), (100, 10, 109, 110), (100, 10, 110, 120),
            (100, 10, 155, 160), (100, 10, 90, 110), (100, .max, 200, .max),
        ]
    )
    func turns(_ last: UInt64, _ every: UInt64, _ now: UInt64, _ next: UInt64) {
        #expect(Schedule.turn(after: last, every, now: now) == next)
    }

    @Test("turns come again and again, until it is cancelled")
    func again() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let turns = Mutex(0)
        let schedule = Schedule(every: 2_000_000, on: loop) { _ in turns.withLock { $0 += 1 } }
        #expect(await eventually { turns.withLock { $0 } >= 3 })
        schedule.cancel()
        // The loop takes what is submitted in order: the cancelled sleep is over by the second round.
        for _ in 0..<3 { await withCheckedContinuation { done in loop.submit { _ in done.resume() } } }
        let now = turns.withLock { $0 }
        // One beside it, as often, has its turns.
        let others = Mutex(0)
        let other = Schedule(every: 2_000_000, on: loop) { _ in others.withLock { $0 += 1 } }
        #expect(await eventually { others.withLock { $0 } >= 5 })
        other.cancel()
        #expect(turns.withLock { $0 } == now)
    }

    @Test("no turn begins while the last one runs; one in progress hears that it is cancelled")
    func never() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let counts = Mutex((running: 0, most: 0, turns: 0, cancelled: 0))
        let schedule = Schedule(every: 1_000_000, atStart: true, on: loop) { loop in
            counts.withLock { counts in
                counts.running += 1
                counts.turns += 1
                counts.most = max(counts.most, counts.running)
            }
            do {
                try await loop.sleep(nanoseconds: counts.withLock { $0.turns } < 3 ? 5_000_000 : 600_000_000_000)
            } catch {
                counts.withLock { $0.cancelled += 1 }
            }
            counts.withLock { $0.running -= 1 }
        }
        #expect(await eventually { counts.withLock { $0.turns } == 3 })
        schedule.cancel()
        #expect(await eventually { counts.withLock { $0.cancelled } == 1 })
        #expect(counts.withLock { $0.most } == 1 && counts.withLock { $0.turns } == 3)
    }

    @Test("a reload ends what is gone, begins what is new, and leaves the rest alone")
    func reload() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let begun = Mutex<[String]>([])
        let plan = { (name: String) in
            Schedules.Plan(identity: name, every: 600_000_000_000, atStart: true) { loop in
                begun.withLock { $0.append(name) }
                do { try await loop.sleep(nanoseconds: 600_000_000_000) } catch {
                    begun.withLock { $0.append("-\(name)") }
                }
            }
        }
        let schedules = Schedules(on: loop)
        schedules.update([plan("a"), plan("b")])
        #expect(await eventually { begun.withLock { $0.count } == 2 })
        schedules.update([plan("b"), plan("c")])
        #expect(await eventually { begun.withLock { $0.count } == 4 })
        #expect(begun.withLock { $0.sorted() } == ["-a", "a", "b", "c"])
        schedules.update([])
        #expect(await eventually { begun.withLock { $0.sorted() } == ["-a", "-b", "-c", "a", "b", "c"] })
    }
}
