// A client's HEAD: forwarded, and what it says about stored responses; a GET in its place where the origin fails at it.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension SharedFetches {
    /// Forwards a client's HEAD as HEAD. Its answer freshens stored responses or makes them stale (RFC 9111 section
    /// 4.3.5), and removes none: only a new response replaces them.
    /// - Returns: nil where a response was stored in the meantime: then search the store again.
    @inline(never) func relayHead(
        _ miss: MissContext,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let ask = miss.ask
        // Only the body of a mapped document tells its length and its entity tag.
        if ask.policy.mapping != nil, !Caching.hasPreconditions(ask.request) {
            return await answerHeadByGet(miss, turn, onInterim, on: loop)
        }
        let generation = context.invalidations.token(for: ask.key)
        let requestTime = context.clock.now()
        // A request with preconditions must get the origin's own answer, so its HEAD does not validate.
        let isCheck = miss.stale != nil && !Caching.hasPreconditions(ask.request)
        if isCheck, context.notes.capabilities[ask.key, requestTime].head == .refused {
            return await answerHeadByGet(miss, turn, onInterim, on: loop)
        }
        let timeout = isCheck ? context.headTimeout : nil
        let answer = await forwarder.forward(
            ask,
            miss.source,
            miss.forwardReason,
            timeout: timeout,
            onInterim,
            on: loop
        )
        if isCheck, isHeadFailure(answer, ask.policy) {
            return await answerHeadByGet(miss.asking(ask, hasHeadFailed: true), turn, onInterim, on: loop)
        }
        if let stale = miss.stale, let cause = staleCause(answer, ask.policy),
            context.mayServeStale(stale, ask, errorStatus: cause.errorStatus)
        {
            context.notes.noteCheck(ask, .stale(stale, cause: cause))
            return settled(miss, .stale(stale, cause: cause), nil, isCollapsed: false, on: loop)
        }
        if let failure = answer.failure {
            return settled(miss, .failed(failure), nil, isCollapsed: false, on: loop)
        }
        judgeParts(ask, byHead: answer.head)
        guard miss.newest != nil else { return answer }
        let known = RevalidationCandidates(ask, miss.stale, await context.store.variants(ask, on: loop))
        let update = VariantUpdate(
            context,
            known,
            generation,
            answer.head,
            context.clock.times(since: requestTime)
        )
        _ = await update.byHead(asked(ask, answer.head), on: loop)
        return answer
    }

    /// A client's HEAD may show that stored parts are no longer current (RFC 9111 section 4.3.5).
    private func judgeParts(_ ask: CacheRequest, byHead answer: ResponseHead) {
        guard answer.status == 200 else { return }
        for partial in context.partials.variants(ask.key)
        where Caching.selects(stored: partial.head, request: ask.request) {
            let verdict = Caching.judgeHead(stored: partial.head, headAnswer: answer, times: context.clock.times())
            switch verdict {
            case .changed(.etag), .changed(.lastModified), .changed(.length):
                var head = partial.head
                head.changedSince = head.changedSince ?? context.clock.now()
                partial.update(head)
            default: break
            }
        }
    }

    /// Whether a HEAD has failed that a GET may answer.
    private func isHeadFailure(_ answer: Answer, _ policy: CachePolicy) -> Bool {
        answer.failure?.mayBeOfMethodAlone ?? policy.countsAsFailure(answer.head.status)
    }

    /// Answers a client's HEAD by a GET, where the origin fails at HEAD.
    @inline(never) private func answerHeadByGet(
        _ miss: MissContext,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        var ask = miss.ask
        ask.request.method = .get
        // Ranges are of GET alone (RFC 9110 section 14.2).
        for field in [KnownField.range, .ifRange] {
            ask.request.fields.remove(field)
            ask.originFields.remove(field)
        }
        let byGet = miss.asking(ask, hasHeadFailed: miss.hasHeadFailed)
        guard var answer = await askOrigin(byGet, turn, onInterim, on: loop) else { return nil }
        answer.reader?.close()
        answer.reader = nil
        return answer
    }

    /// The client's own conditions, where a 304 identifies one stored response: if the 304 has no validator, the
    /// conditions must name a single one.
    private func asked(_ ask: CacheRequest, _ answer: ResponseHead) -> Revalidation? {
        guard answer.status == 304 else { return nil }
        let conditions = ask.originFields.conditions
        let isNamed = answer.fields.contains(.etag) || conditions.first(.ifNoneMatch)?.contains(",") != true
        return isNamed ? Revalidation(kind: .head, conditions: conditions) : nil
    }

    /// Why a stale response might replace the origin's answer: a failure or an error status; nil otherwise.
    private func staleCause(_ answer: Answer, _ policy: CachePolicy) -> StaleCause? {
        if let failure = answer.failure { return failure.isOriginFailure ? .error(failure) : nil }
        return policy.countsAsFailure(answer.head.status) ? .status(answer.head.status) : nil
    }
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
