// Requests that go to the origin as they are: other methods, ranges, HEAD without a fresh stored response, caching switched off.

package import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire
import Upstream

extension DownloadCore {
    /// Passes one request on and its answer back; nothing is stored or shared.
    /// - Parameters:
    ///   - way: why it goes to the origin.
    ///   - key: by which an operator finds it; nil for what nobody may end.
    ///   - patience: for its head, in nanoseconds; nil leaves it to the source.
    package func relay(
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
        let ticket = key.map { FetchTicket(fetches, $0, on: loop) { 1 } }
        // Whoever goes on with the ticket puts something else in its place.
        ticket?.onStop = { stream.cancel($0) }
        stream.onInterim = onInterim
        let head: FetchStream.Head
        do throws(FetchError) {
            head = try await context.start(stream, request, from: source, patience: patience, on: loop)
        } catch {
            return failure(error, way)
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
        var result = passedOn(head.response, head.framing, isHead: isHead, way)
        if isHead || head.response.status == 304 {
            stream.flow(into: Discard(stream))
            return result
        }
        if let whole = stream.takeWhole() {
            result.reader = Body.complete(whole).makeReader(on: loop)
            return result
        }
        let options = FillOptions(budget: budget, keepsStart: false)
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

    /// What is said of an answer that is passed on.
    package func status(of way: Way, forwardStatus: Int) -> CacheStatus {
        CacheStatus(cacheName: cacheName, forward: way.forward, forwardStatus: forwardStatus, detail: way.reason)
    }

    /// The head of that answer, and how long its body is.
    func passedOn(_ head: ResponseHead, _ framing: BodyFraming, isHead: Bool, _ way: Way) -> Answer {
        var answer = head
        answer.fields = HopByHop.forwardable(answer.fields, isRequest: false)
        var result = Answer(head: answer, cacheStatus: status(of: way, forwardStatus: answer.status))
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

    func relay(
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ way: Way,
        patience: UInt64? = nil,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer {
        await relay(
            request(ask),
            from: source,
            way,
            key: ask.key,
            patience: patience,
            onInterim: onInterim,
            on: loop
        )
    }

    /// A client's HEAD goes on as HEAD; what it answers freshens stored responses or makes them stale, too (RFC 9111
    /// section 4.3.5), and removes none: what comes in their place does that.
    /// - Returns: nil: look again, something has been stored meanwhile.
    func relayHead(
        _ question: Question,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let ask = question.ask
        let generation = generations.note(ask.key)
        let requestTime = clock.now()
        // Only the origin may refuse for a condition, and only its own answer counts then.
        let isCheck = question.stale != nil && !Caching.hasPreconditions(ask.request)
        if isCheck, notes.habits[ask.key, requestTime].head == .refused {
            return await answerHeadByGet(question, turn, onInterim, on: loop)
        }
        let patience = isCheck ? context.headPatience : nil
        let answer = await relay(ask, question.source, question.way, patience: patience, onInterim, on: loop)
        if isCheck, isHeadFailure(answer, ask.policy) {
            var byGet = question
            byGet.hasHeadFailed = true
            return await answerHeadByGet(byGet, turn, onInterim, on: loop)
        }
        if let stale = question.stale, let cause = staleCause(answer),
            context.mayServeStale(stale, ask, errorStatus: cause.errorStatus)
        {
            notes.noteCheck(ask, .stale(stale, cause: cause))
            return settled(question, .stale(stale, cause: cause), nil, isCollapsed: false, on: loop)
        }
        if let failure = answer.failure {
            return settled(question, .failed(failure), nil, isCollapsed: false, on: loop)
        }
        judgeParts(ask, byHead: answer.head)
        guard question.newest != nil else { return answer }
        let known = Variants(ask, question.stale, await store.variants(ask, on: loop))
        let update = VariantUpdate(
            context,
            known,
            generation,
            answer.head,
            clock.times(since: requestTime)
        )
        _ = await update.byHead(asked(ask, answer.head), on: loop)
        return answer
    }

    /// Whether a HEAD has failed that a GET may answer.
    private func isHeadFailure(_ answer: Answer, _ policy: CachePolicy) -> Bool {
        answer.failure?.mayBeOfMethodAlone ?? policy.countsAsFailure(answer.head.status)
    }

    /// A client's HEAD that the origin fails at, answered by what a GET confirms or brings.
    private func answerHeadByGet(
        _ question: Question,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        var byGet = question
        byGet.ask.request.method = .get
        // Ranges are of GET alone (RFC 9110 section 14.2).
        for field in [KnownField.range, .ifRange] {
            byGet.ask.request.fields.remove(field)
            byGet.ask.originFields.remove(field)
        }
        guard var answer = await askOrigin(byGet, turn, onInterim, on: loop) else { return nil }
        answer.reader?.close()
        answer.reader = nil
        return answer
    }

    /// The client's own conditions, where a 304 to them tells which response it is about: without a validator in it, the
    /// condition names no more than one.
    private func asked(_ ask: CacheAsk, _ answer: ResponseHead) -> Revalidation? {
        guard answer.status == 304 else { return nil }
        let conditions = ask.originFields.conditions
        let isNamed = answer.fields.contains(.etag) || conditions.first(.ifNoneMatch)?.contains(",") != true
        return isNamed ? Revalidation(kind: .head, conditions: conditions) : nil
    }

    /// The origin could not be asked, or answered with an error that a stale response may perhaps replace.
    private func staleCause(_ answer: Answer) -> StaleCause? {
        if let failure = answer.failure { return failure.isOriginFailure ? .error(failure) : nil }
        return answer.head.status >= 400 ? .status(answer.head.status) : nil
    }

    private func request(_ ask: CacheAsk) -> FetchRequest { ask.fetchRequest(ask.request.method, ask.originFields) }
}

extension Fields {
    /// The conditions that a 304 may answer.
    fileprivate var conditions: Fields {
        var conditions = Fields()
        for field in [KnownField.ifNoneMatch, .ifModifiedSince] {
            if let value = combined(field) { conditions.set(field, value) }
        }
        return conditions
    }
}
