// The spans that wait for their collector, bounded, and the counts of those that were sent and dropped.

import Synchronization

/// Where spans are sent, and of how many requests.
package struct TracingSettings: Sendable, Equatable {
    /// The collector; nil if tracing is off.
    package var collector: OriginAddress?
    /// The share of the requests without a traceparent that are traced, 0...1.
    package var sample: Double

    package static let off = TracingSettings()

    package init(collector: OriginAddress? = nil, sample: Double = 0) {
        self.collector = collector
        self.sample = sample
    }
}

/// Called when a batch of spans is there.
private final class SpanListener: Sendable {
    let batchIsFull: @Sendable () -> Void

    init(_ batchIsFull: @escaping @Sendable () -> Void) { self.batchIsFull = batchIsFull }
}

/// The spans of all loops that wait to be sent.
///
/// Sendable: the mutable state is under one mutex, which is held for the copy of a span or of a batch.
package final class SpanQueue: Sendable {
    /// The most spans that wait; further ones are dropped.
    package static let capacity = 2048
    /// The most spans that are sent together.
    package static let batch = 512

    private struct State {
        var settings: TracingSettings
        var waiting: [TraceSpan] = []
        var sent = 0
        var dropped = 0
        var listener: SpanListener?
    }

    private let state: Mutex<State>

    package init(_ settings: TracingSettings = .off) { state = Mutex(State(settings: settings)) }

    package var settings: TracingSettings { state.withLock { $0.settings } }
    /// The number of spans that a collector has taken.
    package var sentCount: Int { state.withLock { $0.sent } }
    /// The number of spans that no collector has got.
    package var droppedCount: Int { state.withLock { $0.dropped } }

    /// Takes over other settings. The spans of before are for the new collector, or dropped if there is none.
    package func update(_ settings: TracingSettings) { state.withLock { $0.settings = settings } }

    /// Sets who is called when a batch is full, in place of whoever was.
    package func listen(_ batchIsFull: @escaping @Sendable () -> Void) {
        let listener = SpanListener(batchIsFull)
        let before = state.withLock { state in
            defer { state.listener = listener }
            return state.listener
        }
        withExtendedLifetime(before) {}
    }

    /// Adds a span, or drops it if too many wait.
    package func put(_ span: TraceSpan) {
        let listener = state.withLock { state -> SpanListener? in
            guard state.waiting.count < Self.capacity else {
                state.dropped += 1
                return nil
            }
            state.waiting.append(span)
            return state.waiting.count % Self.batch == 0 ? state.listener : nil
        }
        listener?.batchIsFull()
    }

    /// Takes the oldest spans out, a batch at most. Whoever takes them says by ``sent(_:)`` or ``dropped(_:)`` what became
    /// of them.
    package func take() -> [TraceSpan] {
        state.withLock { state in
            let batch = Array(state.waiting.prefix(Self.batch))
            state.waiting.removeFirst(batch.count)
            return batch
        }
    }

    /// Whether a whole batch waits.
    package var hasBatch: Bool { state.withLock { $0.waiting.count >= Self.batch } }

    /// Counts spans that a collector has taken.
    package func sent(_ count: Int) { state.withLock { $0.sent += count } }

    /// Counts spans that no collector has got.
    package func dropped(_ count: Int) { state.withLock { $0.dropped += count } }
}
