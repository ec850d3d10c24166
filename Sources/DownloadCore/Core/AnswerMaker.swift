// How a stored response, an arriving one, or a failure becomes an answer.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Upstream

/// Sendable: nothing in it changes.
final class AnswerMaker: Sendable {
    /// The pseudonym in Cache-Status.
    let cacheName: String
    private let clock: WallClock

    init(cacheName: String, clock: WallClock) {
        self.cacheName = cacheName
        self.clock = clock
    }

    /// An answer from a stored response: whole, or 304 where the request's conditions say so.
    func stored(
        _ ask: CacheRequest,
        _ response: StoredResponse,
        age: Int64,
        _ status: CacheStatus,
        on loop: isolated EventLoop
    ) -> Answer {
        at(hand: response.head, response.body, ask.request, age: age, status, on: loop)
    }

    /// ``DownloadCore/own(_:_:_:on:)``
    func own(
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

    /// An answer from a response that is stored as a whole: all of it, parts of it, or a 304 where the
    /// request's conditions hold.
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

    /// An answer that is still on its way from the origin.
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

    /// No answer from the origin.
    /// - Parameter staleRefusal: why the stale stored response, if there is one, may not be served instead.
    @inline(never) func failure(
        _ error: FetchError,
        _ forwardReason: ForwardReason,
        isCollapsed: Bool = false,
        staleRefusal: StaleRefusal? = nil
    ) -> Answer {
        if case .offline = error {
            // It did not go forward, and it is no hit.
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

    /// 504 to `only-if-cached` (RFC 9111 section 5.2.1.7).
    func gatewayTimeout(_ reason: String) -> Answer {
        let status = CacheStatus(cacheName: cacheName, detail: CacheStatus.Detail.onlyIfCached.rawValue)
        return Answer(head: ResponseHead(status: 504), cacheStatus: status, failure: .onlyIfCached(reason))
    }

    /// An empty answer in the place of the origin's, which was not asked.
    func unasked(_ status: Int) -> Answer {
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
    func status(of forwardReason: ForwardReason, forwardStatus: Int) -> CacheStatus {
        CacheStatus(
            cacheName: cacheName,
            forward: forwardReason.forward,
            forwardStatus: forwardStatus,
            detail: forwardReason.reason
        )
    }

    /// The head of that answer, and how long its body is.
    func forwardedAnswer(_ head: ResponseHead, _ framing: BodyFraming, isHead: Bool, _ forwardReason: ForwardReason)
        -> Answer
    {
        var answer = head
        answer.fields = HopByHop.forwardable(answer.fields, isRequest: false)
        var result = Answer(head: answer, cacheStatus: status(of: forwardReason, forwardStatus: answer.status))
        switch framing {
        // The length is that of the body which is left out.
        case _ where isHead || answer.status == 304:
            result.length = answer.fields.first(.contentLength).flatMap { Int64($0) }
        case .none: result.length = 0
        case .length(let declared): result.length = Int64(clamping: declared)
        case .chunked, .untilClose: break
        }
        return result
    }

    /// A file in the place of an answer from the origin.
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
