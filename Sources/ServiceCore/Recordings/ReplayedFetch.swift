// A fetch that is answered by a recording.

import DownloadCore
import EventLoop
import HTTPWire
import Upstream

/// Gives a sink the answer of a recording, as fast as it takes it. Loop-bound.
final class ReplayedFetch: FetchHandle {
    /// Says of an answer that a recording gave it, and of which age: `replayed; recorded=…`.
    static let fieldName = "Drydock-Recording"
    /// Bytes at a time.
    private static let piece = 64 << 10

    private let recording: Recording
    private let isHead: Bool
    private let now: Int64
    private var sink: (any FetchSink)?
    private var sent = 0
    private var isPaused = false
    /// A call of the sink is under way: it must not begin another.
    private var isGiving = false

    /// - Parameter now: Unix seconds.
    init(_ recording: Recording, isHead: Bool, now: Int64, sink: any FetchSink) {
        self.recording = recording
        self.isHead = isHead
        self.now = now
        self.sink = sink
    }

    /// The head of the answer.
    private var head: ResponseHead {
        var head = recording.head(now: now)
        head.fields.set(Self.fieldName, "replayed; recorded=\"\(HTTPDate.format(recording.recordedAt))\"")
        return head
    }

    func begin(on loop: isolated EventLoop) { answer() }

    /// The same within a call of another fetch of the loop.
    func answer() {
        let hasContent = !isHead && recording.status != 204
        sink?.received(head, framing: hasContent ? .length(UInt64(recording.content.count)) : .none)
        if !hasContent { sent = recording.content.count }
        give()
    }

    private func give() {
        guard !isGiving else { return }
        isGiving = true
        while let sink, !isPaused, sent < recording.content.count {
            let part = recording.content[sent..<min(sent + Self.piece, recording.content.count)]
            sent += part.count
            if part.withUnsafeBytes({ sink.received($0) }) == .pause { isPaused = true }
        }
        isGiving = false
        guard !isPaused, let sink else { return }
        self.sink = nil
        sink.finished(trailers: Fields())
    }

    func resume() {
        isPaused = false
        give()
    }

    func pause() { isPaused = true }

    // The content of the request was read before its recording was found.
    func bodyAvailable() {}

    func cancel() { sink = nil }
}

@available(*, unavailable) extension ReplayedFetch: Sendable {}
