// Work that is repeated at fixed distances, never twice at a time.

package import EventLoop
import Synchronization

/// Work that is done once in each interval. A turn that comes while the last one still runs is left out, and the others
/// keep their times. The intervals go by the monotonic clock, which `drydock clock` does not move.
///
/// Sendable: its task is under a mutex.
package final class Schedule: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var isCancelled = false
    }

    private let state = Mutex(State())

    /// Begins at once. Any thread.
    /// - Parameters:
    ///   - every: nanoseconds from turn to turn, at least 1 ms.
    ///   - atStart: true if the first turn is now, false if it is after `every`.
    ///   - loop: the loop that waits for the time, and on which `work` begins.
    ///   - work: one turn; it returns when the turn is over, and ``cancel()`` cancels its task.
    package init(
        every: UInt64,
        atStart: Bool = false,
        on loop: EventLoop,
        _ work: @escaping @Sendable (isolated EventLoop) async -> Void
    ) {
        loop.submit { [self] loop in
            let task = Task.immediate(executorPreference: loop.taskExecutor) {
                await run(max(every, 1_000_000), atStart, work, on: loop)
            }
            let isCancelled = state.withLock { state in
                state.task = task
                return state.isCancelled
            }
            if isCancelled { task.cancel() }
        }
    }

    /// Ends the schedule, also in the middle of a turn. Any thread.
    package func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    private func run(
        _ every: UInt64,
        _ atStart: Bool,
        _ work: @Sendable (isolated EventLoop) async -> Void,
        on loop: isolated EventLoop
    ) async {
        var next = Monotonic.now()
        if !atStart { next = Self.turn(after: next, every, now: next) }
        while true {
            let now = Monotonic.now()
            do { try await loop.sleep(nanoseconds: next > now ? next - now : 0) } catch { return }
            await work(loop)
            if Task.isCancelled { return }
            next = Self.turn(after: next, every, now: Monotonic.now())
        }
    }

    /// The time of the first turn that is still to come.
    static func turn(after last: UInt64, _ every: UInt64, now: UInt64) -> UInt64 {
        let passed = now > last ? (now - last) / every : 0
        let (distance, overflow) = every.multipliedReportingOverflow(by: passed + 1)
        return overflow ? .max : last &+ min(distance, .max - last)
    }
}

/// The schedules that a configuration asks for; a reload leaves those running that it does not change.
///
/// Sendable: the running schedules are under a mutex.
package final class Schedules: Sendable {
    /// A schedule that a configuration asks for.
    package struct Plan: Sendable {
        /// All settings of the schedule as one text: a running schedule with the same text stays.
        package var identity: String
        /// Nanoseconds from turn to turn.
        package var every: UInt64
        package var atStart: Bool
        package var work: @Sendable (isolated EventLoop) async -> Void

        package init(
            identity: String,
            every: UInt64,
            atStart: Bool,
            work: @escaping @Sendable (isolated EventLoop) async -> Void
        ) {
            self.identity = identity
            self.every = every
            self.atStart = atStart
            self.work = work
        }
    }

    private let loop: EventLoop
    private let running = Mutex<[String: Schedule]>([:])

    package init(on loop: EventLoop) { self.loop = loop }

    /// Ends the schedules that are not in the list, and begins those that are new.
    package func update(_ plans: [Plan]) {
        let unwanted = running.withLock { running in
            let wanted = Set(plans.map(\.identity))
            let unwanted = running.filter { !wanted.contains($0.key) }
            for identity in unwanted.keys { running[identity] = nil }
            for plan in plans where running[plan.identity] == nil {
                running[plan.identity] = Schedule(every: plan.every, atStart: plan.atStart, on: loop, plan.work)
            }
            return unwanted
        }
        // Schedules are cancelled without the mutex: a cancellation runs the code of the task that waits.
        for schedule in unwanted.values { schedule.cancel() }
    }
}
