// A timer on a loop: one-shot or repeating, restartable, never early.

import CLibevent
import Glibc

/// Loop-bound. It may be started again while it runs (the old time is dropped) and cancelled at any time.
package final class LoopTimer {
    private let queue: TimerQueue
    /// The event that fires in this turn; it is activated and never added, so libevent keeps no timer for it.
    private let storage: UnsafeMutablePointer<event>
    private let handler: () -> Void
    private var interval: UInt64?
    private var isActive = false
    /// Its position in the queue, which only the queue changes.
    var place: Int?

    /// - Parameter handler: called on the loop; it should not capture the timer's owner strongly.
    package convenience init(on loop: isolated EventLoop, handler: @escaping () -> Void) {
        self.init(base: loop.base, handler: handler)
    }

    /// The same for objects that are bound to the loop and not isolated to it, such as those that libevent calls: on
    /// another thread than the loop's, this ends the process.
    /// - Parameter handler: called on the loop; it should not capture the timer's owner strongly.
    package convenience init(onThreadOf loop: EventLoop, handler: @escaping () -> Void) {
        loop.checkThread()
        self.init(base: loop.base, handler: handler)
    }

    /// On the loop's thread.
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
                // Unretained: `deinit` removes the event before the object goes.
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
        // Saturates: an infinite wait must not wrap around into the past.
        queue.add(self, at: now &+ min(nanoseconds, .max - now))
    }

    private func leave() {
        guard let place else { return }
        queue.remove(at: place)
        self.place = nil
    }

    private func activated() {
        guard isActive else { return }
        isActive = false
        handler()
    }

    /// Its time has come; the queue has let it go.
    func fired() {
        if let interval { wait(interval) }
        handler()
    }
}

@available(*, unavailable) extension LoopTimer: Sendable {}
