// Requests that go to the origin as they are: other methods, ranges, HEAD without a fresh stored response, caching switched off.

import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire
import Upstream

extension DownloadCore {
    /// Passes one request on and its answer back; nothing is stored or shared.
    /// - Parameters:
    ///   - forward: why it goes to the origin.
    ///   - detail: what Cache-Status says besides.
    package func relay(
        _ request: FetchRequest,
        from source: any FetchSource,
        forward: CacheStatus.Forward,
        detail: String? = nil,
        onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        let began = Monotonic.now()
        let stream = FetchStream()
        stream.onInterim = onInterim
        let head: FetchStream.Head
        do throws(FetchError) {
            head = try await stream.start(request, from: source, on: loop)
        } catch {
            return failure(error, forward: forward)
        }
        stream.onInterim = nil
        var answer = head.response
        answer.fields = HopByHop.forwardable(answer.fields, isRequest: false)
        let status = CacheStatus(
            cacheName: cacheName,
            forward: forward,
            forwardStatus: answer.status,
            detail: detail
        )
        var result = Answer(head: answer, cacheStatus: status)
        result.originTime = Monotonic.now() &- began
        switch head.framing {
        case _ where request.method == .head || answer.status == 304:
            // The length is that of the body which is left out.
            result.length = answer.fields.first(.contentLength).flatMap { Int64($0) }
            stream.flow(into: Discard(stream))
            return result
        case .none: result.length = 0
        case .length(let declared): result.length = Int64(clamping: declared)
        case .chunked, .untilClose: break
        }
        let options = FillOptions(budget: budget, keepsStart: false)
        let (body, writer) = Body.growing(options, expectedLength: result.length, on: loop)
        result.reader = body.makeReader(on: loop)
        let pump = BodyPump(stream: stream, body: body, writer: writer) { trailers, writer in
            writer.finish(trailers: trailers)
        }
        stream.flow(into: pump)
        return result
    }

    func relay(
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ forward: CacheStatus.Forward,
        _ detail: String?,
        _ onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        await relay(
            request(ask),
            from: source,
            forward: forward,
            detail: detail,
            onInterim: onInterim,
            on: loop
        )
    }

    /// A client's HEAD goes on as HEAD; what it answers freshens the stored response, too (RFC 9111 section 4.3.5).
    func relayHead(
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ stale: StoredResponse?,
        _ forward: CacheStatus.Forward,
        on loop: isolated EventLoop
    ) async -> Answer {
        let generation = generations.note(ask.key)
        let requestTime = clock.now()
        let answer = await relay(request(ask), from: source, forward: forward, on: loop)
        guard let stale else { return answer }
        if let cause = staleCause(answer), mayServeStale(stale, ask, errorStatus: cause.errorStatus) {
            return settled(ask, .stale(stale, cause: cause), nil, forward, isCollapsed: false, on: loop)
        }
        guard answer.failure == nil, answer.head.status != 304 else { return answer }
        let verdict = Caching.judgeHead(
            stored: stale.head,
            headAnswer: answer.head,
            now: clock.now(),
            requestTime: requestTime,
            request: ask.request,
            policy: ask.policy
        )
        switch verdict {
        case .unchanged(let head):
            _ = await store.freshen(stale, head: head, ask: ask, token: generation, on: loop)
        case .changed(.etag), .changed(.lastModified), .changed(.length):
            store.remove(stale)
        case .changed, .gone, .unsupported, .failed: break
        }
        return answer
    }

    /// The origin could not be asked, or answered with an error that a stale response may replace.
    private func staleCause(_ answer: Answer) -> StaleCause? {
        if let failure = answer.failure { return failure.isOriginFailure ? .error(failure) : nil }
        return (500...599).contains(answer.head.status) ? .status(answer.head.status) : nil
    }

    private func request(_ ask: CacheAsk) -> FetchRequest {
        FetchRequest(
            method: ask.request.method,
            path: ask.path,
            fields: ask.originFields,
            clientHost: ask.request.fields.first(.host)
        )
    }
}
