// Requests that go to the origin as they are: other methods, ranges, HEAD without a fresh stored response, caching
// switched off.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Upstream

/// Passes requests on to their origins. It is shared by all loops.
///
/// Sendable: what it holds is.
final class Forwarder: Sendable {
    let context: FetchContext
    let answers: AnswerMaker
    // The context's, held here as well: a member of a member is retained with each use on the counted way.
    let clock: WallClock
    let store: TieredStore
    let partials: PartialTable
    let hitForMiss: ExpiringKeySet
    let fetches: FetchTable

    init(_ context: FetchContext, _ answers: AnswerMaker) {
        self.context = context
        self.answers = answers
        clock = context.clock
        store = context.store
        partials = context.partials
        hitForMiss = context.notes.hitForMiss
        fetches = context.fetches
    }

    /// Forwards one request and its answer; nothing is stored or shared.
    /// - Parameters:
    ///   - forwardReason: why the request goes to the origin.
    ///   - key: by which an operator can end the fetch; nil where an operator cannot.
    ///   - timeout: the limit for the head, in nanoseconds; nil leaves it to the source.
    func forward(
        _ request: FetchRequest,
        from source: any FetchSource,
        _ forwardReason: ForwardReason,
        key: CacheKey? = nil,
        timeout: UInt64? = nil,
        onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        let began = Monotonic.now()
        let stream = FetchStream()
        let ticket = key.map { FetchRegistration(fetches, $0, on: loop) { 1 } }
        // Code that takes over the registration replaces this closure.
        ticket?.onStop = { stream.cancel($0) }
        stream.onInterim = onInterim
        let head: FetchStream.Head
        do throws(FetchError) {
            head = try await context.start(stream, request, from: source, timeout: timeout, on: loop)
        } catch {
            return answers.failure(error, forwardReason)
        }
        let isHead = request.method == .head
        return forwarded(head, stream, isHead: isHead, forwardReason, ticket, since: began, on: loop)
    }

    /// Apart from the function that waits, which would have it in its frame.
    @inline(never) private func forwarded(
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        isHead: Bool,
        _ forwardReason: ForwardReason,
        _ ticket: FetchRegistration?,
        since began: UInt64,
        on loop: isolated EventLoop
    ) -> Answer {
        stream.onInterim = nil
        var answer = forwarded(head, stream, isHead: isHead, forwardReason, ticket, on: loop)
        answer.originTime = Monotonic.now() &- began
        return answer
    }

    /// The answer to a forwarded request, once its head has arrived.
    func forwarded(
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        isHead: Bool,
        _ forwardReason: ForwardReason,
        _ ticket: FetchRegistration? = nil,
        on loop: isolated EventLoop
    ) -> Answer {
        var result = answers.forwardedAnswer(head.response, head.framing, isHead: isHead, forwardReason)
        if isHead || head.response.status == 304 {
            stream.flow(into: BodyDrain(stream))
            return result
        }
        if let whole = stream.takeWhole() {
            result.reader = Body.complete(whole).makeReader(on: loop)
            return result
        }
        var options = GrowingBodyOptions(budget: context.budget, keepsStart: false)
        options.isAtHand = stream.isAtHand
        let (body, writer) = Body.growing(options, expectedLength: result.length, on: loop)
        result.reader = body.makeReader(on: loop)
        // The pump holds the ticket: both last as long as bytes may come.
        let pump = BodyPump(stream: stream, body: body, writer: writer) { [ticket] trailers, writer in
            ticket?.onStop = nil
            writer.finish(trailers: trailers, isProven: stream.isEndProven)
        }
        ticket?.onStop = { [weak pump] in pump?.stop($0) }
        stream.flow(into: pump)
        return result
    }

    @inline(never) func forward(
        _ ask: CacheRequest,
        _ source: any FetchSource,
        _ forwardReason: ForwardReason,
        timeout: UInt64? = nil,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer {
        await forward(
            ask.fetchRequest(ask.request.method, ask.originFields),
            from: source,
            forwardReason,
            key: ask.key,
            timeout: timeout,
            onInterim: onInterim,
            on: loop
        )
    }
}
