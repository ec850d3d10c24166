// The clock of programs' tests: who sleeps wakes when the test says so, and never before.

import DrydockTesting
import Testing

@Suite struct ManualClockTests {
    @Test func whoSleepsWakesWhenTheTimeHasCome() async throws {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(3)) }
        try await clock.waitForSleepers()
        #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(3)))
        clock.advance(by: .seconds(2))
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .seconds(1))
        try await sleeper.value
        #expect(clock.sleeperCount == 0)
        #expect(clock.nextDeadline == nil)
        #expect(clock.now.offset == .seconds(3))
    }

    @Test func aTimeThatHasComeIsNotWaitedFor() async throws {
        let clock = ManualClock()
        clock.advance(by: .seconds(5))
        try await clock.sleep(until: ManualClock.Instant(offset: .seconds(5)))
        clock.advance(to: ManualClock.Instant(offset: .seconds(1)))
        #expect(clock.now.offset == .seconds(5))
    }

    @Test func onlyThoseWakeWhoseTimeHasCome() async throws {
        let clock = ManualClock()
        await withTaskGroup { group in
            for number in [3, 1, 2] {
                group.addTask {
                    try? await clock.sleep(for: .seconds(number))
                    return number
                }
            }
            try? await clock.waitForSleepers(3)
            for number in 1...3 {
                clock.advance(by: .seconds(1))
                #expect(await group.next() == number)
                #expect(clock.sleeperCount == 3 - number)
            }
        }
    }

    @Test func aCancelledSleeperThrows() async throws {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(3)) }
        try await clock.waitForSleepers()
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        #expect(clock.sleeperCount == 0)
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await clock.sleep(for: .seconds(3))
        }
        await #expect(throws: CancellationError.self) { try await late.value }
        #expect(clock.sleeperCount == 0)
    }

    @Test func whoWaitsForSleepersCanBeCancelled() async throws {
        let clock = ManualClock()
        let watcher = Task { try await clock.waitForSleepers(1) }
        watcher.cancel()
        await #expect(throws: CancellationError.self) { try await watcher.value }
    }
}
