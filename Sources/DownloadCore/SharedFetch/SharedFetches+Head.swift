// A client's HEAD: passed on, and what it says about stored responses; a GET in its place where the origin fails at it.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension SharedFetches {
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
        let generation = context.generations.note(ask.key)
        let requestTime = context.clock.now()
        // Only the origin may refuse for a condition, and only its own answer counts then.
        let isCheck = question.stale != nil && !Caching.hasPreconditions(ask.request)
        if isCheck, context.notes.habits[ask.key, requestTime].head == .refused {
            return await answerHeadByGet(question, turn, onInterim, on: loop)
        }
        let patience = isCheck ? context.headPatience : nil
        let answer = await forwarder.relay(ask, question.source, question.way, patience: patience, onInterim, on: loop)
        if isCheck, isHeadFailure(answer, ask.policy) {
            var byGet = question
            byGet.hasHeadFailed = true
            return await answerHeadByGet(byGet, turn, onInterim, on: loop)
        }
        if let stale = question.stale, let cause = staleCause(answer),
            context.mayServeStale(stale, ask, errorStatus: cause.errorStatus)
        {
            context.notes.noteCheck(ask, .stale(stale, cause: cause))
            return settled(question, .stale(stale, cause: cause), nil, isCollapsed: false, on: loop)
        }
        if let failure = answer.failure {
            return settled(question, .failed(failure), nil, isCollapsed: false, on: loop)
        }
        judgeParts(ask, byHead: answer.head)
        guard question.newest != nil else { return answer }
        let known = Variants(ask, question.stale, await context.store.variants(ask, on: loop))
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
    private func judgeParts(_ ask: CacheAsk, byHead answer: ResponseHead) {
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

    /// The client's own conditions, where a 304 to them tells which response it is about: without a validator in it,
    /// the condition names no more than one.
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
