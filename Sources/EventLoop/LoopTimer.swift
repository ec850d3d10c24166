// Timers on a loop, one-shot or repeating, never early, behind one timer of the kernel; and the tasks that wait for a
// time.

import CLibevent
import CLinux
import Glibc

/// A timer; loop-bound. It may be started again while it runs (the old time is dropped) and cancelled at any time.
package final class LoopTimer {
    private let queue: TimerQueue
    /// The event that fires in this turn; it is activated and never added, so libevent keeps no timer for it.
    private let storage: UnsafeMutablePointer<event>
    private let handler: () -> Void
    private var interval: UInt64?
    private var isActive = false
    /// The position in the queue, which only the queue changes; nil if the timer does not run.
    var index: Int?

    /// - Parameter handler: called on the loop; it should not capture the timer's owner strongly.
    package convenience init(on loop: isolated EventLoop, handler: @escaping () -> Void) {
        self.init(base: loop.base, handler: handler)
    }

    /// Makes a timer for objects that are bound to the loop and not isolated to it, such as those that libevent calls:
    /// on another thread than the loop's, this ends the process.
    /// - Parameter handler: called on the loop; it should not capture the timer's owner strongly.
    package convenience init(onThreadOf loop: EventLoop, handler: @escaping () -> Void) {
        loop.checkThread()
        self.init(base: loop.base, handler: handler)
    }

    /// Makes a timer; called on the loop's thread.
    private init(base: LoopBase, handler: @escaping () -> Void) {
        self.handler = handler
        queue = base.timers
        storage = .allocate(capacity: 1)
        storage.initialize(to: event())
        event_assign(
            storage,
            base.raw,
            -1,
            0,
            { _, _, context in
                // Unretained: `deinit` removes the event before the object is freed.
                guard let context else { return }
                Unmanaged<LoopTimer>.fromOpaque(context).takeUnretainedValue().activated()
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    deinit {
        cancel()
        storage.deallocate()
    }

    /// Fires once, at least `nanoseconds` from now; for 0 that is the loop's next turn.
    package func start(after nanoseconds: UInt64) {
        interval = nil
        wait(nanoseconds)
    }

    /// Fires once in this turn, after the callbacks that are due already, without a timer or a system call.
    package func startInThisTurn() {
        interval = nil
        leave()
        isActive = true
        event_active(storage, Int32(EV_TIMEOUT), 1)
    }

    /// Fires every `nanoseconds`, from now on.
    package func start(every nanoseconds: UInt64) {
        interval = nanoseconds
        wait(nanoseconds)
    }

    package func cancel() {
        isActive = false
        leave()
        event_del(storage)
    }

    private func wait(_ nanoseconds: UInt64) {
        isActive = false
        leave()
        let now = Monotonic.now()
        // The sum saturates: an infinite wait must not wrap around into the past.
        queue.add(self, at: now &+ min(nanoseconds, .max - now))
    }

    private func leave() {
        guard let index else { return }
        queue.remove(at: index)
        self.index = nil
    }

    private func activated() {
        guard isActive else { return }
        isActive = false
        handler()
    }

    /// Fires the timer, which the queue has removed.
    func fired() {
        if let interval { wait(interval) }
        handler()
    }
}

@available(*, unavailable) extension LoopTimer: Sendable {}

// MARK: - The queue of timers

/// The timers of one loop behind one timer of the kernel, which is set only if an earlier time is needed. Loop-bound,
/// one per base. libevent has no timers of its own here: it would tell the kernel of the next one with every turn.
final class TimerQueue {
    /// A timer that waits for its time; the queue does not hold it.
    private struct Entry {
        let deadline: UInt64
        /// The order of timers with the same deadline: the lower number fires first.
        let number: UInt64
        // Unretained: a timer leaves the queue before it is freed.
        let timer: Unmanaged<LoopTimer>

        func isBefore(_ other: Entry) -> Bool { (deadline, number) < (other.deadline, other.number) }
    }

    /// A binary heap: no entry is due before its parent, which is at half its index.
    private var entries: [Entry] = []
    private var last: UInt64 = 0
    private let descriptor: Int32
    // The event of the descriptor; freed in deinit, after `close`.
    private let storage: UnsafeMutablePointer<event>
    /// The latest time at which the kernel's timer fires; `.max` if it is not set.
    private var setTo = UInt64.max

    /// - Parameter base: the libevent base, which outlives this object.
    init(base: OpaquePointer) throws(SystemError) {
        descriptor = c_linux_timer()
        guard descriptor >= 0 else { throw SystemError("timerfd_create") }
        storage = .allocate(capacity: 1)
        storage.initialize(to: event())
        event_assign(
            storage,
            base,
            descriptor,
            Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                // Unretained: the base holds this object until the event is removed.
                guard let context else { return }
                Unmanaged<TimerQueue>.fromOpaque(context).takeUnretainedValue().ready()
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        event_add(storage, nil)
    }

    deinit { storage.deallocate() }

    /// Frees the kernel's timer before the base is freed, which this object may outlive.
    func close() {
        event_del(storage)
        Glibc.close(descriptor)
    }

    /// Adds a timer.
    /// - Parameter deadline: monotonic nanoseconds.
    func add(_ timer: LoopTimer, at deadline: UInt64) {
        last += 1
        entries.append(Entry(deadline: deadline, number: last, timer: .passUnretained(timer)))
        moveUp(entries.count - 1)
        if deadline < setTo { set(deadline) }
    }

    /// Removes a timer.
    /// - Parameter index: from ``LoopTimer/index``, which the caller clears.
    func remove(at index: Int) {
        let moved = entries.removeLast()
        guard index < entries.count else { return }
        put(moved, at: index)
        moveDown(index)
        moveUp(index)
    }

    // MARK: - The kernel's timer

    private func set(_ deadline: UInt64) {
        setTo = deadline
        c_linux_timer_set(descriptor, UInt(deadline))
    }

    /// Fires the due timers; timers that they start fire in a later turn.
    private func ready() {
        var count: UInt64 = 0
        guard Glibc.read(descriptor, &count, MemoryLayout<UInt64>.size) > 0 else { return }
        setTo = .max
        let now = Monotonic.now()
        let newest = last
        while let first = entries.first, first.deadline <= now, first.number <= newest {
            // The timer is retained from here on, because its handler may release it.
            let timer = first.timer.takeUnretainedValue()
            remove(at: 0)
            timer.index = nil
            timer.fired()
        }
        if let first = entries.first, first.deadline < setTo { set(first.deadline) }
    }

    // MARK: - The heap

    private func put(_ entry: Entry, at index: Int) {
        entries[index] = entry
        entry.timer._withUnsafeGuaranteedRef { $0.index = index }
    }

    private func moveUp(_ start: Int) {
        let entry = entries[start]
        var index = start
        while index > 0, entry.isBefore(entries[(index - 1) / 2]) {
            put(entries[(index - 1) / 2], at: index)
            index = (index - 1) / 2
        }
        put(entry, at: index)
    }

    private func moveDown(_ start: Int) {
        let entry = entries[start]
        var index = start
        while true {
            var child = 2 * index + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].isBefore(entries[child]) { child += 1 }
            guard entries[child].isBefore(entry) else { break }
            put(entries[child], at: index)
            index = child
        }
        put(entry, at: index)
    }
}

@available(*, unavailable) extension TimerQueue: Sendable {}

// MARK: - Tasks that wait

/// The tasks of one loop that wait for a time. Loop-bound: only the actor that owns it uses it.
final class Sleepers {
    private struct Sleeper {
        let timer: LoopTimer
        let waiter: UnsafeContinuation<Void, any Error>
    }

    private var sleepers: [UInt64: Sleeper] = [:]
    private var last: UInt64 = 0

    func nextIdentifier() -> UInt64 {
        last += 1
        return last
    }

    func add(_ id: UInt64, timer: LoopTimer, _ waiter: UnsafeContinuation<Void, any Error>) {
        sleepers[id] = Sleeper(timer: timer, waiter: waiter)
    }

    func start(_ id: UInt64, after nanoseconds: UInt64) { sleepers[id]?.timer.start(after: nanoseconds) }

    /// Resumes the waiter once; later calls for the same identifier do nothing.
    func wake(_ id: UInt64, result: Result<Void, any Error>) {
        guard let sleeper = sleepers.removeValue(forKey: id) else { return }
        sleeper.timer.cancel()
        sleeper.waiter.resume(with: result)
    }
}

@available(*, unavailable) extension Sleepers: Sendable {}
