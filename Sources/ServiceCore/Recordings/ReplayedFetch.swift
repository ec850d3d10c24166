// A fetch that is answered by a recording.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Upstream

/// Gives the answer of a recording to a sink, as fast as the sink takes it, a small part in memory at a time.
/// Loop-bound.
final class ReplayedFetch: EndHandle {
    /// The field that marks a replayed answer, with the time of the recording: `replayed; recorded=…`.
    static let fieldName = "Drydock-Recording"
    /// The most bytes that are given to the sink at a time.
    private static let piece = 64 << 10

    private let head: ResponseHead
    /// Reads the content, or the range that is asked for; nil if the answer has no content.
    private let reader: BodyReader?
    private let length: Int64
    private let request: String
    private var sink: (any FetchSink)?
    private var isPaused = false
    private var waiter: UnsafeContinuation<Void, Never>?

    /// - Parameters:
    ///   - request: the request as the client made it. A single range is applied to a 200. Conditions are ignored: a
    ///     person may have changed the content, and its ETag is that of the original.
    ///   - now: seconds since 1970.
    init(_ found: OpenRecording, _ request: RequestHead, now: Int64, sink: any FetchSink, on loop: EventLoop) {
        let (recording, whole) = (found.recording, found.length)
        var head = recording.head(now: now, length: whole)
        head.fields.set(Self.fieldName, "replayed; recorded=\"\(HTTPDate.format(recording.recordedAt))\"")
        var range: Range<Int64>? = 0..<whole
        if request.method == .head || recording.status == 204 { range = nil }
        if !request.fields.contains(.ifRange) {
            let stored = OwnRepresentation(head, length: whole, now: now).head
            switch Caching.rangeAnswer(request: request, stored: stored, length: whole) {
            case .parts(let ranges) where ranges.count == 1:
                head = Caching.partHead(stored: stored, range: ranges[0], length: whole)
                range = ranges[0]
            case .unsatisfiable:
                let said = head.fields.combined(Self.fieldName)
                head = Caching.unsatisfiableHead(length: whole)
                if let said { head.fields.set(Self.fieldName, said) }
                range = nil
            default: break
            }
        }
        self.head = head
        self.request = recording.key.request
        self.sink = sink
        reader = range.flatMap { _ in found.content.makeReader(on: loop) }
        if let range, range != 0..<whole { reader?.narrow(to: range) }
        length = range.map { $0.upperBound - $0.lowerBound } ?? 0
    }

    /// Sends the answer; returns when the sink has all of it, or wants no more.
    func run(on loop: isolated EventLoop) async {
        defer { reader?.close() }
        sink?.received(head, framing: reader == nil ? .none : .length(UInt64(length)))
        do throws(BodyError) {
            // No content is in memory while the sink is paused.
            while try await givePiece(on: loop) { await waitForResume(on: loop) }
            end { $0.finished(trailers: Fields()) }
        } catch {
            let detail = "the content of the recording of '\(request)' cannot be read: \(error); record it again"
            end { $0.failed(.unrecorded(detail)) }
        }
    }

    /// Gives the next piece to the sink.
    /// - Returns: false at the end of the content, or if the sink wants no more.
    private func givePiece(on loop: isolated EventLoop) async throws(BodyError) -> Bool {
        guard sink != nil, let piece = try await reader?.next(maxBytes: Self.piece, on: loop) else { return false }
        let part = try await piece.load(on: loop)
        let flow = sink?.received(UnsafeRawBufferPointer(rebasing: part.chunk.bytes[part.range]))
        if flow == .pause { isPaused = true }
        return true
    }

    private func waitForResume(on loop: isolated EventLoop) async {
        while isPaused, sink != nil { await withUnsafeContinuation { waiter = $0 } }
    }

    private func end(_ tell: (any FetchSink) -> Void) {
        let sink = sink
        self.sink = nil
        if let sink { tell(sink) }
    }

    private func wake() {
        let waiter = waiter
        self.waiter = nil
        waiter?.resume()
    }

    func resume() {
        isPaused = false
        wake()
    }

    func pause() { isPaused = true }

    var isAtHand: Bool { true }

    // There is nothing to do: the content of the request was read before its recording was found.
    func bodyAvailable() {}

    func cancel() {
        sink = nil
        wake()
    }
}

@available(*, unavailable) extension ReplayedFetch: Sendable {}
