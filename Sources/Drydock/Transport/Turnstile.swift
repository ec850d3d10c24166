// One reader of a body at a time, whoever else has it.

import Synchronization

/// Lets one task in at a time; the others wait in the order in which they came.
///
/// Sendable: its state is under its own mutex, and nobody is resumed under it.
final class Turnstile: Sendable {
    private typealias Waiter = CheckedContinuation<Bool, Never>

    private struct State {
        var isTaken = false
        var last: UInt64 = 0
        var waiters: [(number: UInt64, waiter: Waiter)] = []
    }

    private let state = Mutex(State())

    /// Waits for its turn; ``leave()`` ends it.
    /// - Returns: false where the task was cancelled before, and has no turn.
    func enter() async -> Bool {
        let number = state.withLock { state -> UInt64? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            state.last += 1
            return state.last
        }
        guard let number else { return true }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isIn = state.withLock { state -> Bool? in
                    // A task that is cancelled from here on is found in the list.
                    if Task.isCancelled { return false }
                    guard state.isTaken else {
                        state.isTaken = true
                        return true
                    }
                    state.waiters.append((number, waiter))
                    return nil
                }
                if let isIn { waiter.resume(returning: isIn) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let place = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
                return state.waiters.remove(at: place).waiter
            }
            waiter?.resume(returning: false)
        }
    }

    func leave() {
        let next = state.withLock { state -> Waiter? in
            state.isTaken = !state.waiters.isEmpty
            return state.waiters.isEmpty ? nil : state.waiters.removeFirst().waiter
        }
        next?.resume(returning: true)
    }
}
