// What somebody has still to hear of a call: all of it, but of several progresses in a row the last.

import Synchronization

/// The events of one call. Sendable: its state is under its own mutex, and nobody is resumed under it.
final class CallMailbox<Model: Sendable>: Sendable {
    private struct State {
        var events: [CallEvent<Model>] = []
        var isOver = false
        /// Of the next listener that waits.
        var number: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    /// Events that are kept for who does not listen.
    private static var limit: Int { 256 }

    /// Nobody can listen: nothing is kept.
    private let isUnheard: Bool
    private let state = Mutex(State())

    init(isUnheard: Bool) { self.isUnheard = isUnheard }

    func add(_ event: CallEvent<Model>) {
        if isUnheard { return }
        let (old, waiters) = state.withLock { state in
            var old: CallEvent<Model>?
            if event.replaces(state.events.last) {
                old = state.events.removeLast()
            } else if state.events.count == Self.limit {
                old = state.events.removeFirst()
            }
            state.events.append(event)
            if case .ended = event { state.isOver = true }
            defer { state.waiters = [:] }
            return (old, state.waiters)
        }
        withExtendedLifetime(old) {}
        for waiter in waiters.values { waiter.resume() }
    }

    /// The next event; nil behind the last one, and where the task is cancelled.
    func next() async -> CallEvent<Model>? {
        while true {
            let (event, isOver) = state.withLock { state in
                (state.events.isEmpty ? nil : state.events.removeFirst(), state.isOver)
            }
            if event != nil || isOver || Task.isCancelled { return event }
            await waitForMore()
        }
    }

    /// Returns when there may be an event, or the task is cancelled.
    private func waitForMore() async {
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // A task that is cancelled from here on is found in the table.
                let isReady = state.withLock { state in
                    if !state.events.isEmpty || state.isOver || Task.isCancelled { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}

extension CallEvent {
    /// It says more of the same.
    fileprivate func replaces(_ last: CallEvent?) -> Bool {
        switch (self, last) {
        case (.sent, .sent?), (.received, .received?): true
        default: false
        }
    }
}
