// Looks once a second whether memory is short, for all caches of the process, and has them give way.

import CacheStore
import EventLoop
import FoundationEssentials
import Synchronization

/// One for the process. It looks as long as somebody wants to hear of it, and on a thread of its own: the kernel may
/// take its time, and so may those who give memory back.
///
/// Sendable: its state is under its own mutex; those who give way are called without it.
final class MemoryWatcher: Sendable {
    /// Gives memory back; told why.
    typealias GiveWay = @Sendable (_ reason: String) -> Void

    /// Somebody who gives way, until the last reference to this goes.
    final class Member: Sendable {
        private let watcher: MemoryWatcher
        private let number: Int

        fileprivate init(_ watcher: MemoryWatcher, _ number: Int) {
            self.watcher = watcher
            self.number = number
        }

        deinit { watcher.remove(number) }
    }

    private struct State {
        var members: [Int: GiveWay] = [:]
        var last = 0
        var gauge = PressureGauge()
        var isLooking = false
    }

    /// That of the process, which reads the files of its control group.
    static let shared = MemoryWatcher { [pressure = MemoryPressure(environment: ProcessInfo.processInfo.environment)] in
        pressure.read()
    }

    private let interval: Duration
    private let read: @Sendable () -> MemoryPressure.Reading
    private let state = Mutex(State())

    /// - Parameters:
    ///   - interval: from look to look.
    ///   - read: called on a thread of the watcher's own.
    init(
        every interval: Duration = .nanoseconds(Int64(MemoryPressure.interval)),
        read: @escaping @Sendable () -> MemoryPressure.Reading
    ) {
        self.interval = interval
        self.read = read
    }

    /// Begins to look where nobody has wanted it before.
    func add(_ giveWay: @escaping GiveWay) -> Member {
        let (number, begins) = state.withLock { state in
            state.last += 1
            state.members[state.last] = giveWay
            defer { state.isLooking = true }
            return (state.last, !state.isLooking)
        }
        if begins { Task.detached { await self.run() } }
        return Member(self, number)
    }

    private func remove(_ number: Int) {
        let removed = state.withLock { $0.members.removeValue(forKey: number) }
        // Let go of without the mutex.
        withExtendedLifetime(removed) {}
    }

    /// How many give way.
    var count: Int { state.withLock { $0.members.count } }

    private func run() async {
        repeat {
            await DetachedThread.wait { self.look() }
            // Never cancelled: nobody has this task.
            try? await Task.sleep(for: interval)
        } while goesOn()
    }

    /// - Returns: false where nobody is left; the next member begins anew.
    private func goesOn() -> Bool {
        state.withLock { state in
            state.isLooking = !state.members.isEmpty
            // What is compared lies one interval apart.
            if !state.isLooking { state.gauge = PressureGauge() }
            return state.isLooking
        }
    }

    /// Reads once, and has everybody give way where memory is short. Blocks.
    private func look() {
        let (reading, now) = (read(), Monotonic.now())
        let (reason, members) = state.withLock { state in
            (state.gauge.reason(for: reading, now: now), Array(state.members.values))
        }
        guard let reason else { return }
        for giveWay in members { giveWay(reason) }
    }
}
