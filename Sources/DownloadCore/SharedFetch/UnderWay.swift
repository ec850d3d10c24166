// Counts the shared fetches under way, and lets a caller wait until there is none.

import EventLoop
import Synchronization

/// Sendable: the number is atomic, and who waits is under a mutex.
final class UnderWay: Sendable {
    private let number = Atomic<Int>(0)
    private let waiters = Mutex<[Latch<Void>]>([])

    var count: Int { number.load(ordering: .relaxed) }

    /// Any thread.
    func begin() { number.wrappingAdd(1, ordering: .relaxed) }

    /// A fetch is over: its response is stored, or storing it has failed. Any thread.
    func end() {
        guard number.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        for waiter in waiters.exchange([]) { waiter.set(()) }
    }

    /// Waits until no fetch is under way; it does not wait for fetches that begin at that moment.
    /// - Parameter timeout: in nanoseconds.
    /// - Returns: false when the patience ended or the task was cancelled.
    func none(timeout: UInt64, on loop: isolated EventLoop) async -> Bool {
        let waiter = Latch<Void>()
        waiters.withLock { $0.append(waiter) }
        // The last one may have ended before it could know of the waiter.
        if count == 0 { waiter.set(()) }
        let isOver = await waiter.wait(timeout: timeout, on: loop) != nil
        let left = waiters.withLock { waiters in
            waiters.firstIndex { $0 === waiter }.map { waiters.remove(at: $0) }
        }
        withExtendedLifetime(left) {}
        return isOver
    }
}
