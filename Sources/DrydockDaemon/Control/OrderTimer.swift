// A timer for the end of what an operator has ordered for a time.

import EventLoop
import Synchronization

/// Runs an order once at a time; a later time replaces the earlier one.
///
/// Sendable: the task that waits is under a mutex.
final class OrderTimer: Sendable {
    private let waiting = Mutex<Task<Void, Never>?>(nil)

    /// Runs the order at `end`, in place of what was set before.
    /// - Parameter end: monotonic nanoseconds; nil: nothing is run.
    func set(_ end: UInt64?, on loop: EventLoop, _ order: @escaping @Sendable () async -> Void) {
        let next = end.map { end in
            Task(executorPreference: loop.taskExecutor) {
                await Self.sleep(until: end, on: loop)
                if !Task.isCancelled { await order() }
            }
        }
        let before = waiting.exchange(next)
        before?.cancel()
    }

    /// Runs nothing any more that was set before.
    func cancel() {
        let task = waiting.exchange(nil)
        task?.cancel()
    }

    private static func sleep(until end: UInt64, on loop: isolated EventLoop) async {
        let now = Monotonic.now()
        try? await loop.sleep(nanoseconds: end > now ? end - now : 0)
    }
}
