// How many fetches of one service may run at once, and the bounded queue in front of them.

package import EventLoop
import Synchronization

/// Why a fetch was not admitted.
package enum AdmissionRefusal: Error, Sendable, Equatable {
    /// The queue holds as many as it may.
    case queueFull(length: Int)
    /// No slot came free in time.
    case waitedTooLong(nanoseconds: UInt64)
    /// The task that waited for the slot was cancelled.
    case cancelled
}

/// Limits of one service; a reload changes them in place.
package struct AdmissionLimits: Sendable, Equatable {
    /// Fetches at once; nil: no limit.
    package var concurrent: Int?
    /// Fetches that may wait.
    package var queueLength: Int
    /// How long one may wait, in nanoseconds.
    package var wait: UInt64

    package init(concurrent: Int? = nil, queueLength: Int = 100, wait: UInt64 = 5_000_000_000) {
        self.concurrent = concurrent
        self.queueLength = queueLength
        self.wait = wait
    }
}

/// A counting gate: first come, first served. It counts fetches, not clients.
///
/// Sendable: all state is under one mutex; waiters are resumed outside it.
package final class Admission: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: UnsafeContinuation<AdmissionRefusal?, Never>
    }

    private struct State {
        var limits: AdmissionLimits
        var running = 0
        var waiting: [Waiter] = []
        var lastID: UInt64 = 0
    }

    private let state: Mutex<State>

    package init(_ limits: AdmissionLimits) { state = Mutex(State(limits: limits)) }

    /// The limits in force.
    package var limits: AdmissionLimits { state.withLock { $0.limits } }
    package var running: Int { state.withLock { $0.running } }
    package var waiting: Int { state.withLock { $0.waiting.count } }

    /// Takes over new limits; a wider one admits waiters at once.
    package func update(_ limits: AdmissionLimits) {
        let admitted = state.withLock { state in
            state.limits = limits
            return Self.admit(&state)
        }
        for waiter in admitted { waiter.continuation.resume(returning: nil) }
    }

    /// Takes a slot that is free now; a caller that gets one calls ``release()`` once.
    package func takeFreeSlot() -> Bool {
        state.withLock { state in
            guard state.waiting.isEmpty, state.running < state.limits.concurrent ?? .max else { return false }
            state.running += 1
            return true
        }
    }

    /// Waits for a slot. A caller that gets one calls ``release()`` once.
    /// - Throws: `AdmissionRefusal`, with no slot taken.
    package func acquire(on loop: isolated EventLoop) async throws(AdmissionRefusal) {
        if takeFreeSlot() { return }
        let (id, wait) = state.withLock { state in
            state.lastID += 1
            return (state.lastID, state.limits.wait)
        }
        let timer = LoopTimer(on: loop) { [self] in refuse(id, .waitedTooLong(nanoseconds: wait)) }
        defer { timer.cancel() }
        timer.start(after: wait)
        let refusal = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in enqueue(Waiter(id: id, continuation: continuation)) }
        } onCancel: {
            refuse(id, .cancelled)
        }
        if let refusal { throw refusal }
    }

    /// Gives a slot back; the first in the queue gets it.
    package func release() {
        let admitted = state.withLock { state in
            state.running -= 1
            return Self.admit(&state)
        }
        for waiter in admitted { waiter.continuation.resume(returning: nil) }
    }

    private func enqueue(_ waiter: Waiter) {
        let answer: AdmissionRefusal?? = state.withLock { state in
            if Task.isCancelled { return .some(.cancelled) }
            if state.running < state.limits.concurrent ?? .max, state.waiting.isEmpty {
                state.running += 1
                return .some(nil)
            }
            if state.waiting.count >= state.limits.queueLength {
                return .some(.queueFull(length: state.limits.queueLength))
            }
            state.waiting.append(waiter)
            return nil
        }
        if let answer { waiter.continuation.resume(returning: answer) }
    }

    private func refuse(_ id: UInt64, _ refusal: AdmissionRefusal) {
        let waiter = state.withLock { state in
            state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: refusal)
    }

    private static func admit(_ state: inout State) -> [Waiter] {
        var admitted: [Waiter] = []
        while !state.waiting.isEmpty, state.running < state.limits.concurrent ?? .max {
            state.running += 1
            admitted.append(state.waiting.removeFirst())
        }
        return admitted
    }
}
