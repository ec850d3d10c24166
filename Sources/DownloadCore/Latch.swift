// A value that is set once and that tasks on any loop may wait for.

internal import EventLoop
import Synchronization

/// Sendable: its state is under its own mutex; waiters are resumed outside it, on their own loops.
final class Latch<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiters: [(id: UInt64, continuation: UnsafeContinuation<Value?, Never>)] = []
        var lastWaiter: UInt64 = 0
        /// Waiters whose patience ended before they were in the list.
        var expired: Set<UInt64> = []
    }

    private let state = Mutex(State())

    var value: Value? { state.withLock { $0.value } }

    /// The first value counts.
    func set(_ value: Value) {
        let waiters = state.withLock { state in
            guard state.value == nil else { return state.waiters.prefix(0) }
            state.value = value
            defer { state.waiters = [] }
            return state.waiters[...]
        }
        for waiter in waiters { waiter.continuation.resume(returning: value) }
    }

    /// Waits for the value.
    /// - Parameter patience: in nanoseconds; nil waits as long as it takes.
    /// - Returns: nil when the patience ended or the task was cancelled.
    func wait(patience: UInt64?, on loop: isolated EventLoop) async -> Value? {
        if let value { return value }
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        var timer: LoopTimer?
        if let patience {
            timer = LoopTimer(on: loop) { [self] in expire(id) }
            timer?.start(after: patience)
        }
        defer {
            if let timer {
                timer.cancel()
                state.withLock { _ = $0.expired.remove(id) }
            }
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in add(id, continuation) }
        } onCancel: {
            leave(id)
        }
    }

    private func add(_ id: UInt64, _ continuation: UnsafeContinuation<Value?, Never>) {
        let ready: Value?? = state.withLock { state in
            if let value = state.value { return .some(value) }
            if Task.isCancelled || state.expired.contains(id) { return .some(nil) }
            state.waiters.append((id, continuation))
            return nil
        }
        if let ready { continuation.resume(returning: ready) }
    }

    /// The loop may turn before the waiter is in the list: a short patience must not be lost then.
    private func expire(_ id: UInt64) {
        state.withLock { _ = $0.expired.insert(id) }
        leave(id)
    }

    private func leave(_ id: UInt64) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: nil)
    }
}
