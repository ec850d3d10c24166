// Makes answers from stored responses, arriving responses and failures, and decodes a body for a client that does not
// accept its content coding.

package import CacheStore
import Content
package import EventLoop
package import HTTPCaching
package import HTTPWire
import Upstream

/// Makes answers. All loops share it; each answer is for the loop that the caller names.
///
/// Sendable: immutable.
package final class AnswerMaker: Sendable {
    /// The name of this cache in Cache-Status.
    let cacheName: String
    private let clock: WallClock

    init(cacheName: String, clock: WallClock) {
        self.cacheName = cacheName
        self.clock = clock
    }

    /// The answer from a stored response: whole, or 304 if the request's conditions say so.
    func stored(
        _ ask: CacheRequest,
        _ response: StoredResponse,
        age: Int64,
        _ status: CacheStatus,
        on loop: isolated EventLoop
    ) -> Answer {
        at(hand: response.head, response.body, ask.request, age: age, status, on: loop)
    }

    /// The answer to GET or HEAD from a representation that the daemon itself has. It obeys conditions and ranges as an
    /// origin does (RFC 9110 section 13.2.2).
    /// - Parameter body: a complete body.
    package func own(
        _ request: RequestHead,
        _ head: ResponseHead,
        _ body: Body,
        on loop: isolated EventLoop
    ) -> Answer {
        let own = OwnRepresentation(head, length: body.knownLength, now: clock.now())
        guard let request = own.judged(request) else {
            return Answer(head: ResponseHead(status: 412), length: 0, cacheStatus: nil)
        }
        return at(hand: own.head, body, request, age: nil, nil, on: loop)
    }

    /// The answer from a response that is stored as a whole: all of it, parts of it, or a 304 if the request's
    /// conditions hold.
    private func at(
        hand head: StoredHead,
        _ body: Body,
        _ request: RequestHead,
        age: Int64?,
        _ status: CacheStatus?,
        on loop: isolated EventLoop
    ) -> Answer {
        switch Caching.answerConditional(request: request, stored: head) {
        case .notModified(let fields):
            return Answer(head: ResponseHead(status: 304, fields: fields), age: age, cacheStatus: status)
        case .full:
            if let answer = Answer.ranged(request, head, body, age: age, status, on: loop) { return answer }
            return Answer(
                head: ResponseHead(status: head.status, reason: head.reason, fields: head.fields),
                reader: request.method == .head ? nil : body.makeReader(on: loop),
                length: body.knownLength,
                age: age,
                cacheStatus: status
            )
        }
    }

    /// The answer from a response that is still arriving from the origin.
    func arriving(
        _ ask: CacheRequest,
        _ fetched: FetchedResponse,
        _ reader: BodyReader?,
        _ status: CacheStatus
    ) -> Answer {
        if fetched.status == 200 {
            switch Caching.answerConditional(request: ask.request, stored: fetched.described) {
            case .notModified(let fields):
                return Answer(head: ResponseHead(status: 304, fields: fields), cacheStatus: status)
            case .full: break
            }
            if let answer = Answer.arrivingPart(ask, fetched, reader, status) { return answer }
        }
        var answer = Answer(
            head: fetched.head,
            reader: reader,
            length: fetched.body.knownLength,
            cacheStatus: status
        )
        if status.stored { answer.storing = fetched.end.map { StoreCompletion(end: $0) } }
        return answer
    }

    /// The answer to a request whose origin gave none.
    /// - Parameter staleRefusal: the reason why the stale stored response, if there is one, may not be served instead.
    @inline(never) package func failure(
        _ error: FetchError,
        _ forwardReason: ForwardReason,
        isCollapsed: Bool = false,
        staleRefusal: StaleRefusal? = nil
    ) -> Answer {
        if case .offline = error {
            // The request was not forwarded, and it is no hit.
            let status = CacheStatus(cacheName: cacheName, detail: StaleAllowance.offline.rawValue)
            return Answer(head: ResponseHead(status: error.status), cacheStatus: status, failure: error)
        }
        return Answer(
            head: ResponseHead(status: error.status),
            cacheStatus: CacheStatus(
                cacheName: cacheName,
                forward: forwardReason.forward,
                collapsed: isCollapsed,
                detail: staleRefusal?.rawValue ?? error.proxyStatus
            ),
            failure: error
        )
    }

    /// The answer 504 to `only-if-cached` (RFC 9111 section 5.2.1.7).
    func gatewayTimeout(_ reason: String) -> Answer {
        let status = CacheStatus(cacheName: cacheName, detail: CacheStatus.Detail.onlyIfCached.rawValue)
        return Answer(head: ResponseHead(status: 504), cacheStatus: status, failure: .onlyIfCached(reason))
    }

    /// The empty answer in place of the origin's, which was not requested.
    package func unasked(_ status: Int) -> Answer {
        let detail = CacheStatus.Detail.fault.rawValue
        var answer = Answer(
            head: ResponseHead(status: status),
            cacheStatus: CacheStatus(cacheName: cacheName, detail: detail)
        )
        answer.isUnasked = true
        return answer
    }

    // MARK: - What is forwarded, and what stands in

    /// The Cache-Status of a forwarded answer.
    package func status(of forwardReason: ForwardReason, forwardStatus: Int) -> CacheStatus {
        CacheStatus(
            cacheName: cacheName,
            forward: forwardReason.forward,
            forwardStatus: forwardStatus,
            detail: forwardReason.reason
        )
    }

    /// The head of a forwarded answer, and the length of its body.
    func forwardedAnswer(_ head: ResponseHead, _ framing: BodyFraming, isHead: Bool, _ forwardReason: ForwardReason)
        -> Answer
    {
        var answer = head
        answer.fields = HopByHop.forwardable(answer.fields, isRequest: false)
        var result = Answer(head: answer, cacheStatus: status(of: forwardReason, forwardStatus: answer.status))
        switch framing {
        // The length is that of the body which HEAD and 304 leave out.
        case _ where isHead || answer.status == 304:
            result.length = answer.fields.first(.contentLength).flatMap { Int64($0) }
        case .none: result.length = 0
        case .length(let declared): result.length = Int64(clamping: declared)
        case .chunked, .untilClose: break
        }
        return result
    }

    /// The answer with a file in place of the origin's.
    func standIn(
        _ file: SubstituteResponse,
        _ ask: CacheRequest,
        _ status: CacheStatus,
        on loop: isolated EventLoop
    ) -> Answer {
        var answer = Answer(
            head: file.head,
            reader: ask.request.method == .head ? nil : file.body.makeReader(on: loop),
            length: file.body.knownLength,
            cacheStatus: status
        )
        answer.isStandIn = true
        return answer
    }
}

// MARK: - Ranges of a whole response

extension Answer {
    /// The parts of a complete response that a request wants; nil if it gets all of it.
    static func ranged(
        _ request: RequestHead,
        _ head: StoredHead,
        _ body: Body,
        age: Int64?,
        _ status: CacheStatus?,
        on loop: isolated EventLoop
    ) -> Answer? {
        guard let length = body.knownLength else { return nil }
        switch Caching.rangeAnswer(request: request, stored: head, length: length) {
        case .whole: return nil
        case .unsatisfiable: return unsatisfiable(length, status)
        case .parts(let ranges):
            var readers: [BodySequence.Part] = []
            for range in ranges {
                guard let reader = body.makeReader(range, on: loop) else { return nil }
                readers.append(.reader(reader))
            }
            return parts(ranges, of: head, length, readers, age: age, status, on: loop)
        }
    }

    /// The answer 206 with one part, or with several.
    /// - Parameter readers: the readers of the ranges, in order.
    static func parts(
        _ ranges: [Range<Int64>],
        of head: StoredHead,
        _ length: Int64,
        _ readers: [BodySequence.Part],
        age: Int64?,
        _ status: CacheStatus?,
        on loop: isolated EventLoop
    ) -> Answer {
        if ranges.count == 1 {
            return Answer(
                head: Caching.partHead(stored: head, range: ranges[0], length: length),
                reader: BodyReader(BodySequence(readers), on: loop),
                length: ranges[0].upperBound - ranges[0].lowerBound,
                age: age,
                cacheStatus: status
            )
        }
        let boundary = (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
        let multipart = Multipart(ranges: ranges, complete: length, stored: head.fields, boundary: boundary)
        let bytes = { (bytes: [UInt8]) in Body.complete(bytes).makeReader(on: loop).map { BodySequence.Part.reader($0) }
        }
        var sequence: [BodySequence.Part] = []
        for (index, reader) in readers.enumerated() {
            if let head = bytes(multipart.heads[index]) { sequence.append(head) }
            sequence.append(reader)
        }
        if let tail = bytes(multipart.tail) { sequence.append(tail) }
        return Answer(
            head: Caching.multipartHead(stored: head, multipart),
            reader: BodyReader(BodySequence(sequence), on: loop),
            length: multipart.length,
            age: age,
            cacheStatus: status
        )
    }

    /// The answer 416 (RFC 9110 section 15.5.17).
    static func unsatisfiable(_ length: Int64, _ status: CacheStatus?) -> Answer {
        var answer = Answer(head: Caching.unsatisfiableHead(length: length), length: 0, cacheStatus: status)
        answer.isUnsatisfiable = true
        return answer
    }

    /// The answer with one part of a response that is still arriving and being stored. Several parts would wait for one
    /// another in memory, so a request for them gets the whole response, and so does each request while the length is
    /// unknown.
    static func arrivingPart(
        _ ask: CacheRequest,
        _ fetched: FetchedResponse,
        _ reader: BodyReader?,
        _ status: CacheStatus
    ) -> Answer? {
        guard var head = fetched.stored, let length = fetched.body.knownLength else { return nil }
        switch Caching.rangeAnswer(request: ask.request, stored: head, length: length) {
        case .unsatisfiable:
            reader?.close()
            return unsatisfiable(length, status)
        case .parts(let ranges) where ranges.count == 1:
            reader?.narrow(to: ranges[0])
            head.fields = fetched.head.fields
            return Answer(
                head: Caching.partHead(stored: head, range: ranges[0], length: length),
                reader: reader,
                length: ranges[0].upperBound - ranges[0].lowerBound,
                cacheStatus: status
            )
        case .parts, .whole: return nil
        }
    }
}

// MARK: - Representations at hand

/// A representation that is answered with, and not stored.
package struct OwnRepresentation: Sendable {
    /// The head in the form that the rules of conditions and ranges take.
    package let head: StoredHead

    /// Describes a representation.
    /// - Parameters:
    ///   - head: the head of an answer with all of it.
    ///   - length: the length of its body in bytes; nil if it is unknown.
    ///   - now: Unix seconds.
    package init(_ head: ResponseHead, length: Int64?, now: Int64) {
        var fields = head.fields
        // Last-Modified is a strong validator only beside a later Date (RFC 9110 section 8.8.2.2).
        if !fields.contains(.date) { fields.append(.date, HTTPDate.format(now)) }
        // No field is removed, because nothing is stored.
        self.head = StoredHead(
            status: head.status,
            reason: head.reason,
            fields: fields,
            requestTime: now,
            responseTime: now,
            validatedAt: now,
            initialAge: 0,
            varyFields: Fields(),
            varyNames: [],
            bodyLength: length,
            requestMethod: .get,
            hadAuthorization: false
        )
    }

    /// The request with the conditions that count for this representation; nil if a precondition does not hold, which
    /// means 412.
    package func judged(_ request: RequestHead) -> RequestHead? {
        guard Caching.meetsPreconditions(request: request, stored: head) else { return nil }
        var request = request
        // Without Last-Modified, a date condition has nothing to be compared with.
        if !head.fields.contains(.lastModified) { request.fields.remove(.ifModifiedSince) }
        return request
    }
}

// MARK: - Decoded bodies

/// Reads coded bytes and writes decoded ones, as long as they have a reader. Loop-bound.
final class DecodedBody {
    /// The most decoded bytes that wait for the reader.
    private static let window = 256 * 1024
    /// The number of steps, of at most 32 KiB each, before other work of the loop gets its turn.
    private static let stepsAtOnce = 8

    private let source: BodyReader
    private let writer: BodyWriter
    private let decoder: ContentDecoder
    private var isAbandoned = false
    private var waiter: UnsafeContinuation<Void, Never>?

    private init(_ source: BodyReader, _ writer: BodyWriter, _ coding: ContentCoding) {
        self.source = source
        self.writer = writer
        decoder = ContentDecoder([coding])
    }

    /// A reader of the decoded body; nil if the coded one cannot be read from its start.
    static func reader(
        of body: Body,
        _ coding: ContentCoding,
        _ budget: BodyBudget,
        on loop: isolated EventLoop
    ) -> BodyReader? {
        guard let source = body.makeReader(on: loop) else { return nil }
        let options = GrowingBodyOptions(window: window, budget: budget, keepsStart: false)
        let (decoded, writer) = Body.growing(options, on: loop)
        guard let reader = decoded.makeReader(on: loop) else { return nil }
        let made = DecodedBody(source, writer, coding)
        writer.onDrain = { [weak made] in made?.wake() }
        writer.onAbandoned = { [weak made] in made?.abandon() }
        Task.immediate(executorPreference: loop.taskExecutor) { await made.run(on: loop) }
        return reader
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }

    private func abandon() {
        isAbandoned = true
        source.close()
        wake()
    }

    private func run(on loop: isolated EventLoop) async {
        defer { source.close() }
        do throws(BodyError) {
            var hasBegun = false
            while let piece = try await source.next(maxBytes: 64 * 1024, on: loop) {
                hasBegun = true
                let part = try await piece.load(on: loop)
                try await write(part.chunk, part.range, on: loop)
            }
            guard !hasBegun || decoder.isAtEnd else { throw .truncated }
            writer.finish()
        } catch {
            writer.fail(error)
        }
    }

    /// Decodes all of these bytes; waits if the reader is slow.
    private func write(_ chunk: Chunk, _ range: Range<Int>, on loop: isolated EventLoop) async throws(BodyError) {
        // The caller keeps the chunk alive.
        var isFull = try decode(UnsafeRawBufferPointer(rebasing: chunk.bytes[range]))
        while decoder.isStopped {
            if isFull, !isAbandoned {
                await withUnsafeContinuation { waiter = $0 }
            } else {
                await Task.yield()
            }
            if isAbandoned { throw .cancelled }
            // The rest of the chunk's bytes is in the decoder already.
            isFull = try decode(UnsafeRawBufferPointer(start: nil, count: 0))
        }
        if isAbandoned { throw .cancelled }
    }

    /// Decodes until the reader is behind, or until other work of the loop gets its turn.
    /// - Returns: whether the reader is behind.
    private func decode(_ bytes: UnsafeRawBufferPointer) throws(BodyError) -> Bool {
        var (isFull, steps) = (false, 0)
        do throws(ContentDecoder.Malformed) {
            try decoder.push(bytes) {
                isFull = writer.append($0) == .pause
                steps += 1
                return !isFull && steps < Self.stepsAtOnce
            }
        } catch {
            throw .source("the stored body is not in the coding that its Content-Encoding names")
        }
        return isFull
    }
}

@available(*, unavailable) extension DecodedBody: Sendable {}
