// The timers of one loop behind one timer of the kernel's, which is set only where an earlier one
// comes first: mostly never.

import CLibevent
import CLinux
import Glibc

/// Loop-bound, one per base. libevent knows no time itself: it would tell the kernel of its next timer with every turn.
final class TimerQueue {
    /// What waits for its time; the queue does not hold it.
    private struct Entry {
        let deadline: UInt64
        /// Of two with one deadline the first goes first.
        let number: UInt64
        // Unretained: a timer leaves the queue before it goes.
        let timer: Unmanaged<LoopTimer>

        func isBefore(_ other: Entry) -> Bool { (deadline, number) < (other.deadline, other.number) }
    }

    /// A binary heap: no entry is due before its parent, which is at half its index.
    private var entries: [Entry] = []
    private var last: UInt64 = 0
    private let descriptor: Int32
    // The descriptor's event; freed in deinit, after `close`.
    private let storage: UnsafeMutablePointer<event>
    /// When the kernel's timer fires, at the latest; `.max`: it is not set.
    private var setTo = UInt64.max

    /// - Parameter base: outlives this object.
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

    /// Before the base goes, which this object may outlive.
    func close() {
        event_del(storage)
        Glibc.close(descriptor)
    }

    /// - Parameter deadline: monotonic nanoseconds.
    func add(_ timer: LoopTimer, at deadline: UInt64) {
        last += 1
        entries.append(Entry(deadline: deadline, number: last, timer: .passUnretained(timer)))
        moveUp(entries.count - 1)
        if deadline < setTo { set(deadline) }
    }

    /// - Parameter place: from ``LoopTimer/place``, which the caller clears.
    func remove(at place: Int) {
        let moved = entries.removeLast()
        guard place < entries.count else { return }
        put(moved, at: place)
        moveDown(place)
        moveUp(place)
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
            // Retained from here on, because its handler may release it.
            let timer = first.timer.takeUnretainedValue()
            remove(at: 0)
            timer.place = nil
            timer.fired()
        }
        if let first = entries.first, first.deadline < setTo { set(first.deadline) }
    }

    // MARK: - The heap

    private func put(_ entry: Entry, at place: Int) {
        entries[place] = entry
        entry.timer._withUnsafeGuaranteedRef { $0.place = place }
    }

    private func moveUp(_ start: Int) {
        let entry = entries[start]
        var place = start
        while place > 0, entry.isBefore(entries[(place - 1) / 2]) {
            put(entries[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        put(entry, at: place)
    }

    private func moveDown(_ start: Int) {
        let entry = entries[start]
        var place = start
        while true {
            var child = 2 * place + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].isBefore(entries[child]) { child += 1 }
            guard entries[child].isBefore(entry) else { break }
            put(entries[child], at: place)
            place = child
        }
        put(entry, at: place)
    }
}

@available(*, unavailable) extension TimerQueue: Sendable {}
