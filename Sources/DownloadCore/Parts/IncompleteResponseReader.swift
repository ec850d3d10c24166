// The answer to one request from stored parts: the bytes that it wants, those that are missing, and the order in which
// they are read.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

/// Makes the answer to one request from stored parts. Made and used on one loop.
struct IncompleteResponseReader {
    private enum Wanted {
        case whole
        case ranges([Range<Int64>])
        case unsatisfiable
        case notModified(Fields)
    }

    private let context: FetchContext
    private let ask: CacheRequest
    private let source: any FetchSource
    private let partial: IncompleteResponse
    private let head: StoredHead
    private let wanted: Wanted
    /// The part that this request fetched; its reader gets all of it, even if the part ends early.
    var arriving: RangeInFlight?

    /// Makes a reader.
    /// - Parameter fresh: the head for this request, if it differs from the stored one.
    init(
        _ context: FetchContext,
        _ ask: CacheRequest,
        _ source: any FetchSource,
        _ partial: IncompleteResponse,
        _ fresh: StoredHead? = nil
    ) {
        self.context = context
        self.ask = ask
        self.source = source
        self.partial = partial
        head = fresh ?? partial.head
        if case .notModified(let fields) = Caching.answerConditional(request: ask.request, stored: head) {
            wanted = .notModified(fields)
            return
        }
        switch Caching.rangeAnswer(request: ask.request, stored: head, length: partial.extents.length) {
        case .whole: wanted = .whole
        case .parts(let ranges): wanted = .ranges(ranges)
        case .unsatisfiable: wanted = .unsatisfiable
        }
    }

    /// The ranges of a representation that a request asks for; its other conditions are not evaluated here.
    static func wanted(_ ask: CacheRequest, _ partial: IncompleteResponse) -> [Range<Int64>] {
        let length = partial.extents.length
        return switch Caching.rangeAnswer(request: ask.request, stored: partial.head, length: length) {
        case .whole: [0..<length]
        case .parts(let ranges): ranges
        case .unsatisfiable: []
        }
    }

    /// The first bytes that the answer needs and that are neither stored nor arriving; nil if there are none.
    static func missing(_ ask: CacheRequest, _ partial: IncompleteResponse) -> Range<Int64>? {
        if case .notModified = Caching.answerConditional(request: ask.request, stored: partial.head) { return nil }
        return partial.extents.firstMissing(in: wanted(ask, partial))
    }

    /// The answer; missing bytes are fetched when the client reaches them.
    /// - Parameter status: the Cache-Status of a hit; it changes if bytes are still arriving for another request.
    func make(_ status: CacheStatus, age: Int64?, on loop: isolated EventLoop) -> Answer {
        let length = partial.extents.length
        switch wanted {
        case .notModified(let fields):
            return Answer(head: ResponseHead(status: 304, fields: fields), age: age, cacheStatus: status)
        case .unsatisfiable: return Answer.unsatisfiable(length, status)
        case .whole:
            let (readers, isArriving) = readers(0..<length, on: loop)
            var fields = head.fields
            fields.set(.contentLength, String(length))
            return Answer(
                head: ResponseHead(status: head.status, reason: head.reason, fields: fields),
                reader: readers,
                length: length,
                age: age,
                cacheStatus: isArriving ? joined(status) : status
            )
        case .ranges(let ranges):
            let all = ranges.map { readers($0, on: loop) }
            return Answer.parts(
                ranges,
                of: head,
                length,
                all.map { .reader($0.reader) },
                age: age,
                all.contains { $0.isArriving } ? joined(status) : status,
                on: loop
            )
        }
    }

    /// The Cache-Status of a request that gets some bytes from another request's fetch.
    private func joined(_ status: CacheStatus) -> CacheStatus {
        guard status.hit else { return status }
        return CacheStatus(cacheName: status.cacheName, forward: .partial, ttl: status.ttl, collapsed: true)
    }

    private func readers(
        _ range: Range<Int64>,
        on loop: isolated EventLoop
    ) -> (reader: BodyReader, isArriving: Bool) {
        let fetcher = PartFetcher(context, ask, source, partial)
        var isArriving = false
        for case .present(let body, _) in partial.extents.segments(range) where body.end == .open { isArriving = true }
        var parts: [BodySequence.Part] = []
        if let arriving, arriving.range.overlaps(range), !arriving.reader.isNarrowed {
            let (overlap, own) = (range.clamped(to: arriving.range), arriving.range.lowerBound)
            arriving.reader.narrow(to: overlap.lowerBound - own..<overlap.upperBound - own)
            parts = fetcher.found(range.lowerBound..<overlap.lowerBound, on: loop)
            parts.append(.reader(arriving.reader))
            parts += fetcher.found(overlap.upperBound..<range.upperBound, on: loop)
        } else {
            parts = fetcher.found(range, on: loop)
        }
        return (BodyReader(BodySequence(parts), on: loop), isArriving)
    }
}

/// Fetches missing bytes when a reader reaches them.
///
/// Loop-bound. Each fetch carries the validator of the stored parts: bytes of another representation end the reading.
final class PartFetcher: PartSource {
    private let context: FetchContext
    private let ask: CacheRequest
    private let source: any FetchSource
    private let partial: IncompleteResponse

    init(_ context: FetchContext, _ ask: CacheRequest, _ source: any FetchSource, _ partial: IncompleteResponse) {
        self.context = context
        self.ask = ask
        self.source = source
        self.partial = partial
    }

    /// Readers of the stored and arriving parts of a range, and the holes between them.
    func found(_ range: Range<Int64>, on loop: isolated EventLoop) -> [BodySequence.Part] {
        var position = range.lowerBound
        return partial.extents.segments(range).map { segment in
            switch segment {
            case .present(let body, let bytes):
                let start = position
                position += bytes.upperBound - bytes.lowerBound
                return body.makeReader(bytes, on: loop).map { .reader($0) } ?? .hole(start..<position, self)
            case .missing(let hole):
                position = hole.upperBound
                return .hole(hole, self)
            }
        }
    }

    func readers(
        for range: Range<Int64>,
        on loop: isolated EventLoop
    ) async throws(BodyError) -> [BodySequence.Part] {
        // In each turn this reader fetched the bytes, or waited until another fetch of them ended.
        for _ in 0..<4 {
            let parts = found(range, on: loop)
            guard case .hole(let hole, _)? = parts.first else { return parts }
            let claim = partial.claim(hole)
            if claim.isMine {
                defer { partial.release(claim.end) }
                if let own = try await fetch(hole, on: loop) {
                    return [.reader(own.reader)] + found(own.end..<range.upperBound, on: loop)
                }
            } else {
                _ = await claim.end.wait(timeout: ask.collapse.wait, on: loop)
            }
            if Task.isCancelled { throw .cancelled }
        }
        throw .source("the origin does not send the missing bytes \(range.lowerBound)-\(range.upperBound - 1)")
    }

    /// Fetches the first missing bytes of a range.
    /// - Returns: the part and its end if it is for this request alone; nil if it is among the stored parts.
    private func fetch(
        _ hole: Range<Int64>,
        on loop: isolated EventLoop
    ) async throws(BodyError) -> (reader: BodyReader, end: Int64)? {
        let plan = RangeFetchPlan(partial: partial, asked: hole.spec)
        let stream = FetchStream()
        let ticket = FetchRegistration(context.fetches, ask.key, on: loop) { 1 }
        ticket.onStop = { [weak stream] in stream?.cancel($0) }
        defer { withExtendedLifetime(ticket) {} }
        let requestTime = context.clock.now()
        let head: FetchStream.Head
        do throws(FetchError) {
            head = try await context.start(stream, ask.partRequest(plan), from: source, on: loop)
        } catch {
            throw error == .cancelled ? .cancelled : .source(error.description)
        }
        let answer = head.response
        let times = context.clock.times(since: requestTime)
        guard answer.status == 206, let content = try? Caching.checkPart(answer, asked: plan.asked),
            let range = content.range,
            Caching.joins(partial.head, part: answer, content: content, now: times.responseTime)
        else {
            stream.cancel()
            if !ask.mayBePrivateToRequest { context.partials.remove(partial) }
            throw .source("the origin has another representation now, or does not send the rest of this one")
        }
        let decision = Caching.decidePart(
            request: ask.request,
            response: answer,
            content: content,
            policy: ask.policy,
            times: times
        )
        if ask.mayBePrivateToRequest, case .refuse = decision {
            return passed(range.upperBound - range.lowerBound, stream, ticket, on: loop).map { ($0, range.upperBound) }
        }
        context.freshen(partial, by: answer, times, ask)
        do throws(FetchError) {
            try IncomingRange(context, ask, partial, range, stream).begin(on: loop)
        } catch {
            throw .cancelled
        }
        return nil
    }

    private func passed(
        _ count: Int64,
        _ stream: FetchStream,
        _ ticket: FetchRegistration,
        on loop: isolated EventLoop
    ) -> BodyReader? {
        let options = GrowingBodyOptions(budget: context.budget, keepsStart: false)
        let (body, writer) = Body.growing(options, expectedLength: count, on: loop)
        let reader = body.makeReader(on: loop)
        // A body that is too long fails at its end; the reader gets the bytes of its range before that.
        reader?.narrow(to: 0..<count)
        let pump = BodyPump(stream: stream, body: body, writer: writer) { [ticket] trailers, writer in
            ticket.onStop = nil
            writer.finish(trailers: trailers)
        }
        ticket.onStop = { [weak pump] in pump?.stop($0) }
        stream.flow(into: pump)
        return reader
    }
}

@available(*, unavailable) extension PartFetcher: Sendable {}
