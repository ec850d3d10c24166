// The events of a demo answer, each in its time, until there are no more, the client leaves or the daemon ends.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPWire

/// Bytes of a body that come by a timer. Between two events it has the timer and a few words.
///
/// Loop-bound.
final class DemoEventStream: PartSource {
    private let events: DemoEvents
    private let first: UInt64
    private var place: UInt64
    private let began = Monotonic.now()
    private var isEnding = false
    private var waiter: UnsafeContinuation<Void, Never>?

    /// - Parameter place: of the first event that is sent.
    init(_ events: DemoEvents, from place: UInt64) {
        self.events = events
        self.place = place
        first = place
    }

    /// All of them as a body.
    func reader(on loop: isolated EventLoop) -> BodyReader { BodyReader(BodySequence([rest]), on: loop) }

    /// Ends the body behind the event that was sent last.
    func end() {
        isEnding = true
        wake()
    }

    private var rest: BodySequence.Part { .hole(0..<Int64.max, self) }

    /// The next event, when its time has come.
    func readers(
        for range: Range<Int64>,
        on loop: isolated EventLoop
    ) async throws(BodyError) -> [BodySequence.Part] {
        if isEnding || events.isEnd(place) { return [] }
        // Counted from the beginning, so that no delay adds to another.
        let (due, now) = (began &+ events.interval &* (place - first), Monotonic.now())
        if due > now { await wait(due - now, on: loop) }
        if Task.isCancelled { throw .cancelled }
        if isEnding { return [] }
        let bytes = events.bytes(at: place)
        place += 1
        guard let event = Body.complete(Chunk(bytes)).makeReader(on: loop) else { return [] }
        return [.reader(event), rest]
    }

    private func wait(_ nanoseconds: UInt64, on loop: isolated EventLoop) async {
        let timer = LoopTimer(on: loop) { [weak self] in self?.wake() }
        timer.start(after: nanoseconds)
        let box = LoopBox(self, on: loop)
        await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter = $0 }
        } onCancel: {
            box.submit { stream, _ in stream.wake() }
        }
        timer.cancel()
    }

    private func wake() {
        let waiter = waiter
        self.waiter = nil
        waiter?.resume()
    }
}

@available(*, unavailable) extension DemoEventStream: Sendable {}

extension DemoEventStream {
    /// The answer to a call whose draw has events.
    /// - Parameters:
    ///   - lastID: what the client says that it has seen.
    ///   - now: seconds since 1970.
    static func answer(
        _ events: DemoEvents,
        _ draw: DemoDraw,
        behind lastID: String?,
        to call: ServiceCall,
        now: Int64,
        on loop: isolated EventLoop
    ) -> ServiceAnswer {
        var (draw, fields) = (draw, draw.fields)
        let place = events.place(behind: lastID)
        // A browser that gets 204 does not connect again.
        if events.isEnd(place) {
            draw.status = 204
            fields.remove(.contentType)
        } else if !fields.contains(.cacheControl) {
            fields.append(.cacheControl, "no-store")
        }
        var answer = Answer(
            head: ResponseHead(status: draw.status, reason: ReasonPhrase.reason(draw.status), fields: fields),
            cacheStatus: nil
        )
        if draw.status != 204, call.head.method != .head {
            let stream = DemoEventStream(events, from: place)
            answer.reader = stream.reader(on: loop)
            // Nothing may be written for long, so that nothing else would tell.
            call.endWithClient?()
            call.whenEnding? { [weak stream] in stream?.end() }
        }
        var misconduct = DemoMisconduct(draw)
        misconduct.spoil(&answer, call.head.method, now: now)
        return ServiceAnswer(answer: answer, demo: misconduct.said)
    }
}
