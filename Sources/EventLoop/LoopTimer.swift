// A timer on a loop: one-shot or repeating, restartable, never early.

internal import CLibevent
import Glibc

/// Loop-bound. It may be started again while it runs (the old time is dropped) and cancelled at any time.
package final class LoopTimer {
    private let storage: UnsafeMutablePointer<event>
    private let handler: () -> Void
    private var deadline: UInt64 = 0
    private var interval: UInt64?
    private var isPending = false

    /// - Parameter handler: called on the loop; it should not capture the timer's owner strongly.
    package init(on loop: isolated EventLoop, handler: @escaping () -> Void) {
        self.handler = handler
        storage = .allocate(capacity: 1)
        storage.initialize(to: event())
        event_assign(
            storage,
            loop.base.raw,
            -1,
            0,
            { _, _, context in
                // Unretained: `deinit` removes the event before the object goes.
                guard let context else { return }
                Unmanaged<LoopTimer>.fromOpaque(context).takeUnretainedValue().fired()
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    deinit {
        event_del(storage)
        storage.deallocate()
    }

    /// Fires once, at least `nanoseconds` from now; for 0 that is the loop's next turn.
    package func start(after nanoseconds: UInt64) {
        interval = nil
        let now = Monotonic.now()
        arm(Self.deadline(nanoseconds, now: now), now: now)
    }

    /// Fires once, behind the callbacks that are due in this turn already: no timer is set, the kernel is not asked.
    package func startInThisTurn() {
        interval = nil
        deadline = 0
        isPending = true
        event_active(storage, Int32(EV_TIMEOUT), 1)
    }

    /// Fires every `nanoseconds`, from now on.
    package func start(every nanoseconds: UInt64) {
        interval = nanoseconds
        let now = Monotonic.now()
        arm(Self.deadline(nanoseconds, now: now), now: now)
    }

    package func cancel() {
        isPending = false
        event_del(storage)
    }

    /// Saturates: a wait without an end must not come round to the past.
    private static func deadline(_ nanoseconds: UInt64, now: UInt64) -> UInt64 {
        now &+ min(nanoseconds, .max - now)
    }

    private func arm(_ deadline: UInt64, now: UInt64) {
        self.deadline = deadline
        isPending = true
        let wait = deadline > now ? deadline - now : 0
        var time = timeval(tv_sec: Int(wait / 1_000_000_000), tv_usec: Int((wait % 1_000_000_000 + 999) / 1000))
        if time.tv_usec >= 1_000_000 { time = timeval(tv_sec: time.tv_sec + 1, tv_usec: 0) }
        event_add(storage, &time)
    }

    private func fired() {
        guard isPending else { return }
        // libevent counts from its cached time, which can lie in the past: whoever waits is promised the full wait.
        let now = Monotonic.now()
        guard now >= deadline else { return arm(deadline, now: now) }
        isPending = false
        if let interval { arm(Self.deadline(interval, now: now), now: now) }
        handler()
    }
}

@available(*, unavailable) extension LoopTimer: Sendable {}
