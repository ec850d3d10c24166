// Requests that go to the origin as they are: other methods, ranges, HEAD without a fresh stored response, caching
// switched off.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire
import Upstream

/// Passes requests on to their origins. It is shared by all loops.
///
/// Sendable: what it holds is.
final class Forwarder: Sendable {
    let context: FetchContext
    let answers: AnswerMaker

    init(_ context: FetchContext, _ answers: AnswerMaker) {
        self.context = context
        self.answers = answers
    }

    /// Passes one request on and its answer back; nothing is stored or shared.
    /// - Parameters:
    ///   - way: why it goes to the origin.
    ///   - key: by which an operator finds it; nil for what nobody may end.
    ///   - patience: for its head, in nanoseconds; nil leaves it to the source.
    func relay(
        _ request: FetchRequest,
        from source: any FetchSource,
        _ way: Way,
        key: CacheKey? = nil,
        patience: UInt64? = nil,
        onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        let began = Monotonic.now()
        let stream = FetchStream()
        let ticket = key.map { FetchTicket(context.fetches, $0, on: loop) { 1 } }
        // Whoever goes on with the ticket puts something else in its place.
        ticket?.onStop = { stream.cancel($0) }
        stream.onInterim = onInterim
        let head: FetchStream.Head
        do throws(FetchError) {
            head = try await context.start(stream, request, from: source, patience: patience, on: loop)
        } catch {
            return answers.failure(error, way)
        }
        stream.onInterim = nil
        var answer = relayed(head, stream, isHead: request.method == .head, way, ticket, on: loop)
        answer.originTime = Monotonic.now() &- began
        return answer
    }

    /// The answer to a request that has been passed on, from its head on.
    func relayed(
        _ head: FetchStream.Head,
        _ stream: FetchStream,
        isHead: Bool,
        _ way: Way,
        _ ticket: FetchTicket? = nil,
        on loop: isolated EventLoop
    ) -> Answer {
        var result = answers.passedOn(head.response, head.framing, isHead: isHead, way)
        if isHead || head.response.status == 304 {
            stream.flow(into: Discard(stream))
            return result
        }
        if let whole = stream.takeWhole() {
            result.reader = Body.complete(whole).makeReader(on: loop)
            return result
        }
        let options = FillOptions(budget: context.budget, keepsStart: false)
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

    func relay(
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ way: Way,
        patience: UInt64? = nil,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer {
        await relay(
            ask.fetchRequest(ask.request.method, ask.originFields),
            from: source,
            way,
            key: ask.key,
            patience: patience,
            onInterim: onInterim,
            on: loop
        )
    }
}
