// Asking the origin: together with others where one answer may be for all, alone where it may not.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

extension DownloadCore {
    /// Nil: look again, something has been stored meanwhile.
    func askOrigin(
        _ question: Question,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let ask = question.ask
        if isOffline, question.source.opensSockets {
            return failure(.offline("nothing is stored for this request, \(FetchContext.offlineAdvice)"), question.way)
        }
        if ask.request.method == .head { return await relayHead(question, turn, onInterim, on: loop) }
        if Caching.hasPreconditions(ask.request) {
            // Only the origin may refuse for them (RFC 9111 section 4.3.2).
            let way = Way(question.way.forward, StaleReason.requestPrecondition.rawValue)
            return await relay(ask, question.source, way, onInterim, on: loop)
        }
        if let plan = question.plan, plan.needsKeeping, CacheControl(request: ask.request.fields).noStore {
            let way = Way(question.way.forward, StoreRefusal.requestNoStore.rawValue)
            return await relay(ask, question.source, way, onInterim, on: loop)
        }
        if let plan = question.plan, isUnstored(plan, ask) {
            return await relay(ask, question.source, Way(.bypass, "range"), onInterim, on: loop)
        }
        switch turn > 1 || isForItself(question) ? .full : inFlight.join(ask, known: question.newest) {
        case .leader(let fetch):
            return await lead(fetch, question, onInterim, on: loop)
        case .full:
            return await lead(inFlight.beginAlone(ask), question, onInterim, on: loop)
        case .waiter(let fetch):
            let waited = await wait(for: fetch, question, on: loop)
            inFlight.leave(fetch, isReading: waited.isReading)
            switch waited {
            case .answered(let answer): return answer
            case .inVain: return await lead(inFlight.beginAlone(ask), question, onInterim, on: loop)
            }
        }
    }

    /// What waiting for another's fetch came to.
    private enum Waited {
        /// Nil: look again.
        case answered(Answer?)
        /// It takes too long, or brings what is wanted too late.
        case inVain

        /// It reads the body, whose writer hears when it stops.
        var isReading: Bool {
            if case .answered(let answer?) = self { answer.reader != nil } else { false }
        }
    }

    private func wait(for fetch: SharedFetch, _ question: Question, on loop: isolated EventLoop) async -> Waited {
        let ask = question.ask
        if isWhole(fetch) {
            // All has come and is being stored: a moment later it is a hit.
            _ = await fetch.end.wait(patience: ask.collapse.wait, on: loop)
            return .answered(nil)
        }
        let patience = placeholderPatience(question) ?? .max
        let outcome = await fetch.outcome.wait(patience: min(ask.collapse.wait, patience), on: loop)
        guard let outcome else {
            if Task.isCancelled { return .answered(failure(.cancelled, question.way)) }
            guard patience <= ask.collapse.wait else { return .inVain }
            inFlight.send(.wanted, to: fetch)
            return .answered(placeholder(question, isCollapsed: true, on: loop))
        }
        if question.plan != nil, isFarAhead(ask, of: outcome) { return .inVain }
        let answer = joined(fetch, question, outcome, on: loop)
        noteUse(of: fetch, answer)
        return .answered(answer)
    }

    /// Who needs no body, or only a range of it, has not left: the fetch goes on as if all of it were read.
    private func noteUse(of fetch: SharedFetch, _ answer: Answer?) {
        guard let answer, answer.failure == nil, answer.reader?.isNarrowed ?? true else { return }
        inFlight.send(.wanted, to: fetch)
    }

    /// Whether the answer to another's fetch would be none for this request: waiting for it would be in vain.
    private func isForItself(_ question: Question) -> Bool {
        let ask = question.ask
        if Caching.isReload(ask.request) || ask.isForOne { return true }
        if notes.isUncacheable(ask) { return true }
        // In library mode one transfer serves all who wait.
        guard let stale = question.stale?.head, ask.policy.mode != .library else { return false }
        // What was not fresh for it when it arrived will not be the next time: each needs a check of its own.
        let onArrival = Caching.lookup(
            request: ask.request,
            stored: stale,
            policy: ask.policy,
            now: stale.responseTime
        )
        if case .fresh = onArrival { return false }
        return true
    }

    private func isWhole(_ fetch: SharedFetch) -> Bool {
        guard case .streaming(let response)? = fetch.outcome.value, case .complete = response.body.end else {
            return false
        }
        return true
    }

    private func lead(
        _ fetch: SharedFetch,
        _ question: Question,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let began = Monotonic.now()
        let runner = SharedFetchRunner(
            context: context,
            fetch: fetch,
            ask: question.ask,
            source: question.source,
            stale: question.stale,
            hasOthers: question.newest != nil,
            plan: question.plan
        )
        runner.onInterim = onInterim
        runner.hasHeadFailed = question.hasHeadFailed
        runner.start(on: loop)
        let outcome = await fetch.outcome.wait(patience: placeholderPatience(question), on: loop)
        runner.onInterim = nil
        let isPatient = outcome == nil && !Task.isCancelled
        if isPatient { runner.send(.wanted) }
        if outcome != nil || isPatient { runner.send(.leaderAnswered) }
        let (part, reader) = (runner.takeLeaderPart(), runner.takeLeaderReader())
        guard let outcome else {
            if isPatient { return placeholder(question, isCollapsed: false, on: loop) }
            runner.send(.leaderGone)
            return failure(.cancelled, question.way)
        }
        if case .again = outcome { return nil }
        if case .alone(let reason) = outcome {
            let way = Way(question.way.forward, reason ?? question.way.reason)
            return await relay(question.ask, question.source, way, onInterim, on: loop)
        }
        var answer = settled(question, outcome, reader, part, isCollapsed: false, on: loop)
        if !runner.ownCookies.isEmpty {
            answer.head.fields.remove(.setCookie)
            for cookie in runner.ownCookies { answer.head.fields.append(.setCookie, cookie) }
        }
        answer.originTime = Monotonic.now() &- began
        noteUse(of: fetch, answer)
        return answer
    }

    /// A waiter decides again with what came: nil where it has to look or fetch for itself.
    private func joined(
        _ fetch: SharedFetch,
        _ question: Question,
        _ outcome: FillOutcome,
        on loop: isolated EventLoop
    ) -> Answer? {
        let (ask, stale) = (question.ask, question.stale)
        switch outcome {
        case .streaming(let fetched):
            // What has been invalidated since the fetch began is not for whoever asks now.
            guard let head = fetched.stored, generations.isUnchanged(fetched.token), mayShare(head, question),
                let reader = fetched.body.makeReader(on: loop)
            else { return nil }
            inFlight.send(.readerOpened, to: fetch)
            return settled(question, outcome, reader, isCollapsed: true, on: loop)
        case .refreshed(let response, _, isShared: true)
        where ask.policy.mode == .library && mayShare(response.head, question):
            return settled(question, outcome, nil, isCollapsed: true, on: loop)
        case .refreshed, .failed(.cancelled), .part, .stalePart, .again, .alone: return nil
        case .stale(_, let cause):
            // The leader's stale response may be another variant: each uses its own, if it has one that it may use.
            guard let stale, context.mayServeStale(stale, ask, errorStatus: cause.errorStatus) else { return nil }
            return settled(question, .stale(stale, cause: cause), nil, isCollapsed: true, on: loop)
        case .failed(let error):
            guard let stale, error.isOriginFailure, context.mayServeStale(stale, ask, errorStatus: nil) else {
                return settled(question, outcome, nil, isCollapsed: true, on: loop)
            }
            return settled(question, .stale(stale, cause: .error(error)), nil, isCollapsed: true, on: loop)
        }
    }

    private func mayShare(_ head: StoredHead, _ question: Question) -> Bool {
        Caching.answersWaiting(
            request: question.ask.request,
            stored: head,
            policy: question.ask.policy,
            asked: question.began,
            now: clock.now()
        )
    }

    func settled(
        _ question: Question,
        _ outcome: FillOutcome,
        _ reader: BodyReader?,
        _ part: ArrivingPart? = nil,
        isCollapsed: Bool,
        on loop: isolated EventLoop
    ) -> Answer {
        let (ask, way) = (question.ask, question.way)
        var status = CacheStatus(cacheName: cacheName, forward: way.forward, collapsed: isCollapsed)
        let now = clock.now()
        switch outcome {
        case .streaming(let fetched):
            status.forwardStatus = fetched.status
            var storeReason: StoreReason?
            switch fetched.decision {
            case .store(let reason):
                storeReason = fetched.keepRefusal == nil ? reason : nil
                status.stored = fetched.keepRefusal == nil
                let replaced = fetched.replacesStale ? CacheStatus.Detail.replaced.rawValue : nil
                status.detail = fetched.keepRefusal?.rawValue ?? replaced ?? way.reason
            case .refuse(let refusal): status.detail = fetched.partRefusal ?? refusal.rawValue
            }
            var answer = arriving(ask, fetched, reader, status)
            answer.storeReason = storeReason
            // Some fields are for whoever's request has gone to the origin.
            if isCollapsed { answer.head.fields = Caching.shared(answer.head.fields, policy: ask.policy) }
            return answer
        case .refreshed(let response, let code, _):
            status.forwardStatus = code
            status.detail = CacheStatus.Detail.revalidated.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .stale(let response, let cause):
            if case .status(let code) = cause { status.forwardStatus = code }
            status.detail = CacheStatus.Detail.staleIfError.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .part(let partial, let head, let code):
            let staleness = Caching.staleness(head, policy: ask.policy, now: now)
            status.forwardStatus = code
            status.stored = code == 206 && generations.isUnchanged(partial.token)
            status.detail = code == 304 ? CacheStatus.Detail.revalidated.rawValue : way.reason
            if code == 304 { status.ttl = -staleness }
            let age = Caching.age(head, now: now)
            let isFirst = code == 206 && age == 0 && question.plan?.partial == nil
            var made = PartialAnswer(context, ask, question.source, partial, head)
            made.arriving = part
            return made.make(status, age: isFirst ? nil : age, on: loop)
        case .stalePart(let partial, let cause):
            if case .status(let code) = cause { status.forwardStatus = code }
            status.detail = CacheStatus.Detail.staleIfError.rawValue
            status.ttl = -Caching.staleness(partial.head, policy: ask.policy, now: now)
            let age = Caching.age(partial.head, now: now)
            return PartialAnswer(context, ask, question.source, partial).make(status, age: age, on: loop)
        case .again, .alone: return failure(.cancelled, way)
        case .failed(let error):
            var refusal: StaleRefusal?
            if let stale = question.stale, error.isOriginFailure,
                case .refused(let reason) = context.staleVerdict(stale.head, ask, errorStatus: nil)
            {
                refusal = reason
            }
            return failure(error, way, isCollapsed: isCollapsed, staleRefusal: refusal)
        }
    }
}
