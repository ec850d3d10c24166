// Requests that are forwarded as they are: other methods, ranges, HEAD without a fresh stored response, and all if
// caching is off; and the pass-through, which handles such a request without a task.

package import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire
import Upstream

/// Forwards requests to their origins. All loops share it.
///
/// Sendable: all members are.
package final class Forwarder: Sendable {
    let context: FetchContext
    let answers: AnswerMaker
    // The clock of the context, held here as well, because a member of a member is retained at each use on the
    // pass-through.
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
    ///   - forwardReason: the reason why the request goes to the origin.
    ///   - key: the key by which an operator can end the fetch; nil if that is not possible.
    ///   - timeout: the limit for the head, in nanoseconds; nil leaves it to the source.
    package func forward(
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
        // The code that gets the registration later replaces this closure.
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

    /// A separate function, so that the one that waits has none of its variables in its frame.
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
        // The pump retains the registration: both last as long as bytes may come.
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

// MARK: - Pass-through

/// The policy by which forwarded answers are judged: an object, because copying the policy with every request takes
/// longer than a reference.
///
/// Sendable: immutable.
package final class PassThroughRules: Sendable {
    package let policy: CachePolicy

    package init(_ policy: CachePolicy) { self.policy = policy }
}

/// A request that is forwarded without a task: an object, because it is large and handed on often.
///
/// `@unchecked Sendable`: constant, as its superclass requires.
package final class PassThroughRequest: FetchEntry, @unchecked Sendable {  // protected as the comment above says
    package let method: Method
    /// The path and query on the origin.
    let path: String
    /// The fields that are sent to the origin, without those that the source adds.
    let fields: Fields
    /// The client's Host, if its service preserves that; else nil.
    private let clientHost: String?
    /// The client's end-to-end fields.
    let asked: Fields
    /// The rules that judge the answer; nil if nothing is stored or looked up.
    let rules: PassThroughRules?

    /// Makes a request.
    /// - Parameters:
    ///   - fields: the fields that are sent to the origin, without those that the source adds.
    ///   - asked: the client's end-to-end fields.
    ///   - key: the key of a GET of its target.
    ///   - rules: the rules that judge the answer; nil if nothing is stored or looked up.
    ///   - loop: the loop of the fetch.
    package init(
        _ method: Method,
        path: String,
        fields: Fields,
        clientHost: String?,
        asked: Fields,
        key: CacheKey,
        rules: PassThroughRules?,
        on loop: EventLoop
    ) {
        self.method = method
        self.path = path
        self.fields = fields
        self.clientHost = clientHost
        self.asked = asked
        self.rules = rules
        super.init(key, on: loop)
    }

    /// The request that is sent to the origin.
    package var request: FetchRequest {
        FetchRequest(method: method, path: path, fields: fields, clientHost: clientHost)
    }

    /// The reason why the request goes to the origin, as far as it is known before an answer.
    var forwardReason: ForwardReason {
        rules == nil ? ForwardReason(.bypass, StoreRefusal.cacheOff.rawValue) : ForwardReason(.uriMiss)
    }
}

extension Forwarder {
    /// Whether a key has no stored response and its last answer could not be stored: then its next request may be
    /// forwarded without a shared fetch.
    package func isKnownUncacheable(_ key: CacheKey, _ rules: PassThroughRules) -> Bool {
        hitForMiss.contains(key, now: clock.now())
            && !store.mayHold(key, rules.policy)
            && partials.peek(key).isEmpty
    }

    /// Lists a fetch for `drydock cancel` as long as the result lives.
    /// - Parameter fetch: not retained; it outlives the result.
    package func listing(of fetch: any ListedFetch, _ ask: PassThroughRequest) -> FetchListing {
        FetchListing(in: fetches, ask, fetch)
    }

    /// Judges a head from the origin: the reason why the request was forwarded, and the reason why the answer is not
    /// stored.
    package func forwardReason(of ask: PassThroughRequest, _ head: ResponseHead) -> ForwardReason {
        var forwardReason = ask.forwardReason
        if let rules = ask.rules { forwardReason.reason = judge(head, ask, rules) }
        return forwardReason
    }

    /// The answer for a head from the origin, without its body.
    /// - Parameter forwardReason: the result of ``forwardReason(of:_:)``.
    package func answer(
        _ ask: PassThroughRequest,
        _ head: ResponseHead,
        _ framing: BodyFraming,
        _ forwardReason: ForwardReason
    )
        -> Answer
    {
        answers.forwardedAnswer(head, framing, isHead: ask.method == .head, forwardReason)
    }

    /// Judges a forwarded answer, which is never stored itself. If it could have been, the key is no longer remembered
    /// as uncacheable, so that its next response is stored.
    /// - Returns: the reason why it is not stored.
    private func judge(_ head: ResponseHead, _ ask: PassThroughRequest, _ rules: PassThroughRules) -> String {
        let times = clock.times()
        let decision = Caching.decideStore(
            ask.method,
            ask.asked,
            response: head,
            policy: rules.policy,
            times: times
        )
        switch decision {
        case .refuse(.status206) where !ask.fields.contains(.range): return PartMismatch.unasked.detail
        case .refuse(let refusal):
            if refusal.isLasting(status: head.status) {
                hitForMiss.note(ask.key, now: times.responseTime)
            }
            return refusal.rawValue
        case .store:
            hitForMiss.forget(ask.key)
            return CacheStatus.Detail.uncacheable.rawValue
        }
    }

    /// The answer to a request whose origin gave none.
    package func failure(_ error: FetchError, _ ask: PassThroughRequest) -> Answer {
        answers.failure(error, ask.forwardReason)
    }
}

// MARK: - Reasons

/// The `fwd` of Cache-Status, and the reason for it.
package struct ForwardReason: Sendable, Equatable {
    package var forward: CacheStatus.Forward
    /// The raw value of the reason that decided; nil if `forward` says it all.
    package var reason: String?

    package init(_ forward: CacheStatus.Forward, _ reason: String? = nil) {
        self.forward = forward
        self.reason = reason
    }

    /// The reason for which a decision sends a request to the origin.
    init(_ decision: ReuseDecision) {
        switch decision {
        case .stale(_, _, let reason): self.init(decision.forward ?? .stale, reason.rawValue)
        case .mismatch(.vary): self.init(.varyMiss)
        case .mismatch(let reason): self.init(decision.forward ?? .miss, reason.rawValue)
        case .fresh, .staleAllowed, .onlyIfCachedMiss: self.init(.miss)
        }
    }
}
