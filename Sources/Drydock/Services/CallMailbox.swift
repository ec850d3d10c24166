// What somebody has still to hear of a call: all of it, but of several progresses in a row the last.

import Synchronization

/// The events of one call. Sendable: the list is under its own mutex; the bell is rung outside of it.
final class CallMailbox<Model: Sendable>: Sendable {
    private struct State {
        var events: [CallEvent<Model>] = []
        var isOver = false
    }

    private let state = Mutex(State())
    private let bell: AsyncStream<Void>
    private let ring: AsyncStream<Void>.Continuation

    init() { (bell, ring) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func add(_ event: CallEvent<Model>) {
        let old = state.withLock { state -> CallEvent<Model>? in
            // Nobody who is slow finds more than the last of them.
            let last: CallEvent<Model>? =
                if event.replaces(state.events.last) { state.events.removeLast() } else { nil }
            state.events.append(event)
            if case .ended = event { state.isOver = true }
            return last
        }
        withExtendedLifetime(old) {}
        ring.yield()
        if case .ended = event { ring.finish() }
    }

    /// The next event; nil behind the last one, and where the task is cancelled.
    func next() async -> CallEvent<Model>? {
        while true {
            let (event, isOver) = state.withLock { state -> (CallEvent<Model>?, Bool) in
                (state.events.isEmpty ? nil : state.events.removeFirst(), state.isOver)
            }
            if event != nil || isOver { return event }
            var bell = bell.makeAsyncIterator()
            if await bell.next() == nil, Task.isCancelled { return nil }
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
