// A fetch that is answered by a recording.

import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Upstream

/// Gives a sink the answer of a recording, as fast as it takes it. Loop-bound.
final class ReplayedFetch: FetchHandle {
    /// Says of an answer that a recording gave it, and of which age: `replayed; recorded=…`.
    static let fieldName = "Drydock-Recording"
    /// Bytes at a time.
    private static let piece = 64 << 10

    private let head: ResponseHead
    /// What is sent of the recording's content; nil where the answer has none.
    private let content: ArraySlice<UInt8>?
    private var sink: (any FetchSink)?
    private var sent = 0
    private var isPaused = false
    /// A call of the sink is under way: it must not begin another.
    private var isGiving = false

    /// - Parameters:
    ///   - request: as the client made it. One range of a 200 is obeyed. Conditions are not looked at: a person may have
    ///     changed the content, and its ETag is that of before.
    ///   - now: Unix seconds.
    init(_ recording: Recording, _ request: RequestHead, now: Int64, sink: any FetchSink) {
        var head = recording.head(now: now)
        head.fields.set(Self.fieldName, "replayed; recorded=\"\(HTTPDate.format(recording.recordedAt))\"")
        var content: ArraySlice<UInt8>? = recording.content[...]
        if request.method == .head || recording.status == 204 { content = nil }
        let whole = OwnRepresentation(head, length: Int64(recording.content.count), now: now).head
        let length = Int64(recording.content.count)
        if !request.fields.contains(.ifRange) {
            switch Caching.rangeAnswer(request: request, stored: whole, length: length) {
            case .parts(let ranges) where ranges.count == 1:
                head = Caching.partHead(stored: whole, range: ranges[0], length: length)
                content = recording.content[Int(ranges[0].lowerBound)..<Int(ranges[0].upperBound)]
            case .unsatisfiable:
                let said = head.fields.combined(Self.fieldName)
                head = Caching.unsatisfiableHead(length: length)
                if let said { head.fields.set(Self.fieldName, said) }
                content = nil
            default: break
            }
        }
        self.head = head
        self.content = content
        self.sink = sink
    }

    func begin(on loop: isolated EventLoop) { answer() }

    /// The same within a call of another fetch of the loop.
    func answer() {
        sink?.received(head, framing: content.map { .length(UInt64($0.count)) } ?? .none)
        give()
    }

    private func give() {
        guard !isGiving else { return }
        isGiving = true
        let content = content ?? []
        while let sink, !isPaused, sent < content.count {
            let part = content.dropFirst(sent).prefix(Self.piece)
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
