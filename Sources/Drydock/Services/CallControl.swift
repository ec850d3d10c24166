// The strings of one call: it is cancelled, parked and repeated by those who do not know its model.

import Synchronization

/// The strings of one call. Sendable: its state is under its own mutex, and nothing is resumed or cancelled under it.
final class CallControl: Sendable {
    private struct State {
        /// Cancels its task.
        var cancel: (@Sendable () -> Void)?
        var isCancelled = false
        var parked: CheckedContinuation<Bool, Never>?
    }

    private let state = Mutex(State())

    /// It runs in a task; where it was cancelled before, so is the task now.
    func begin(cancel: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.cancel = cancel
            return state.isCancelled
        }
        if isCancelled { cancel() }
    }

    func cancel() {
        let (cancel, parked) = state.withLock { state in
            state.isCancelled = true
            defer { state.parked = nil }
            return (state.cancel, state.parked)
        }
        cancel?()
        parked?.resume(returning: false)
    }

    var isParked: Bool { state.withLock { $0.parked != nil } }

    /// Waits until it is repeated or cancelled.
    /// - Parameter onParked: it can be repeated from now on; not called where it has been cancelled.
    /// - Returns: whether it is repeated.
    func park(onParked: () -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let isCancelled = state.withLock { state in
                if !state.isCancelled { state.parked = continuation }
                return state.isCancelled
            }
            if isCancelled { continuation.resume(returning: false) } else { onParked() }
        }
    }

    /// - Returns: whether it was parked.
    func repeatParked() -> Bool {
        let parked = state.withLock { state in
            defer { state.parked = nil }
            return state.parked
        }
        parked?.resume(returning: true)
        return parked != nil
    }
}
