// A value that is set once and that tasks on any loop can wait for, and its uses: the moment when a response has
// reached the store, and the moment when no shared fetch is under way.

package import EventLoop
import Synchronization

/// A value that is set once and can be waited for. Sendable: its state is under its own mutex; waiting tasks are
/// resumed outside it, on their own loops.
final class Latch<Value: Sendable>: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: UnsafeContinuation<Value?, Never>
    }

    private struct State {
        var value: Value?
        /// The first waiting task: usually there is only one, which needs no array.
        var first: Waiter?
        var others: [Waiter] = []
        var lastWaiter: UInt64 = 0
        /// The numbers of tasks whose time was up before they were in the list.
        var expired: Set<UInt64> = []
    }

    private let state = Mutex(State())

    var value: Value? { state.withLock { $0.value } }

    /// Sets the value and resumes all waiting tasks; later calls have no effect.
    func set(_ value: Value) {
        let (first, others): (Waiter?, [Waiter]) = state.withLock { state in
            guard state.value == nil else { return (nil, []) }
            state.value = value
            defer {
                state.first = nil
                state.others = []
            }
            return (state.first, state.others)
        }
        first?.continuation.resume(returning: value)
        for waiter in others { waiter.continuation.resume(returning: value) }
    }

    /// Resumes the tasks that wait now, with a value that later ones do not get.
    /// - Returns: their number.
    func release(_ value: Value) -> Int {
        let (first, others): (Waiter?, [Waiter]) = state.withLock { state in
            defer {
                state.first = nil
                state.others = []
            }
            return (state.first, state.others)
        }
        first?.continuation.resume(returning: value)
        for waiter in others { waiter.continuation.resume(returning: value) }
        return others.count + (first == nil ? 0 : 1)
    }

    /// Waits for the value.
    /// - Parameter timeout: nanoseconds; nil for no limit.
    /// - Returns: nil if the time was up or the task was cancelled.
    func wait(timeout: UInt64?, on loop: isolated EventLoop) async -> Value? {
        let (value, id) = state.withLock { state in
            state.lastWaiter += 1
            return (state.value, state.lastWaiter)
        }
        if let value { return value }
        var timer: LoopTimer?
        if let timeout {
            timer = LoopTimer(on: loop) { [self] in expire(id) }
            timer?.start(after: timeout)
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
            let waiter = Waiter(id: id, continuation: continuation)
            if state.first == nil { state.first = waiter } else { state.others.append(waiter) }
            return nil
        }
        if let ready { continuation.resume(returning: ready) }
    }

    /// Ends the wait of a task. Its time may be up before it is in the list, so that its number is remembered.
    private func expire(_ id: UInt64) {
        state.withLock { _ = $0.expired.insert(id) }
        leave(id)
    }

    private func leave(_ id: UInt64) {
        let waiter: Waiter? = state.withLock { state in
            if let first = state.first, first.id == id {
                state.first = nil
                return first
            }
            return state.others.firstIndex { $0.id == id }.map { state.others.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: nil)
    }
}

// MARK: - Until a response is stored

/// Waits for the end of storing an answer. Sendable: the latch is.
package struct StoreCompletion: Sendable {
    let end: Latch<UnstoredReason?>

    /// Whether the answer is stored, or will never be.
    package var isOver: Bool { end.value != nil }

    /// Waits until the answer is stored or its storing has failed; cancelling the task ends the wait.
    /// - Returns: the reason why it is not stored; nil if it is, or if the wait was cancelled.
    @discardableResult
    package func wait(on loop: isolated EventLoop) async -> UnstoredReason? {
        await end.wait(timeout: nil, on: loop) ?? nil
    }
}

// MARK: - Until no fetch is under way

/// The number of fetches under way. Sendable: the number is atomic, and the waiting tasks are under a mutex.
final class UnderWay: Sendable {
    private let number = Atomic<Int>(0)
    private let waiters = Mutex<[Latch<Void>]>([])

    var count: Int { number.load(ordering: .relaxed) }

    /// Counts a fetch that begins. Any thread.
    func begin() { number.wrappingAdd(1, ordering: .relaxed) }

    /// Counts a fetch that has ended: its response is stored, or storing it has failed. Any thread.
    func end() {
        guard number.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        for waiter in waiters.exchange([]) { waiter.set(()) }
    }

    /// Waits until no fetch is under way, except fetches that begin at that moment.
    /// - Parameter timeout: nanoseconds.
    /// - Returns: false if the time was up or the task was cancelled.
    func none(timeout: UInt64, on loop: isolated EventLoop) async -> Bool {
        let waiter = Latch<Void>()
        waiters.withLock { $0.append(waiter) }
        // The last fetch may have ended before the waiter was in the list.
        if count == 0 { waiter.set(()) }
        let isOver = await waiter.wait(timeout: timeout, on: loop) != nil
        let left = waiters.withLock { waiters in
            waiters.firstIndex { $0 === waiter }.map { waiters.remove(at: $0) }
        }
        withExtendedLifetime(left) {}
        return isOver
    }
}
