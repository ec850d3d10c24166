// How a stored response, an arriving one, or a failure becomes an answer.

internal import CacheStore
internal import EventLoop
package import HTTPCaching
internal import HTTPWire
internal import Upstream

extension DownloadCore {
    /// An answer from a stored response: whole, or 304 where the request's conditions say so.
    func stored(
        _ ask: CacheAsk,
        _ response: StoredResponse,
        age: Int64,
        _ status: CacheStatus,
        on loop: isolated EventLoop
    ) -> Answer {
        let head = response.head
        switch Caching.answerConditional(request: ask.request, stored: head) {
        case .notModified(let fields):
            return Answer(head: ResponseHead(status: 304, fields: fields), age: age, cacheStatus: status)
        case .full:
            if let answer = ranged(ask, response, age: age, status, on: loop) { return answer }
            let answerHead = ResponseHead(status: head.status, reason: head.reason, fields: head.fields)
            return Answer(
                head: answerHead,
                reader: ask.request.method == .head ? nil : response.body.makeReader(on: loop),
                length: response.body.knownLength,
                age: age,
                cacheStatus: status
            )
        }
    }

    /// An answer that is still on its way from the origin.
    func arriving(
        _ ask: CacheAsk,
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
            if let answer = arrivingPart(ask, fetched, reader, status) { return answer }
        }
        var answer = Answer(
            head: fetched.head,
            reader: reader,
            length: fetched.body.knownLength,
            cacheStatus: status
        )
        if status.stored { answer.storing = fetched.end.map { Storing(end: $0) } }
        return answer
    }

    /// No answer from the origin.
    /// - Parameter staleRefusal: why the stale stored response, if there is one, may not stand in.
    package func failure(
        _ error: FetchError,
        _ way: Way,
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
                forward: way.forward,
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
}
