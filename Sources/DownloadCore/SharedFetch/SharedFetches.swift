// The way of requests to the origin: one fetch for several requests if they may share the response, otherwise one fetch
// each; and the answers from their outcomes.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

/// The way of requests to the origin. All loops share it; each request is answered on its own loop.
///
/// Sendable: all members are.
final class SharedFetches: Sendable {
    let context: FetchContext
    let answers: AnswerMaker
    let forwarder: Forwarder
    var inFlight: SharedFetchTable { context.inFlight }

    init(_ context: FetchContext, _ answers: AnswerMaker, _ forwarder: Forwarder) {
        self.context = context
        self.answers = answers
        self.forwarder = forwarder
    }

    // Each function that waits is separate from its callers, because otherwise their frames would have the variables of
    // all of them.

    /// Answers a miss from the origin; nil if a response was stored in the meantime, so that the store is searched
    /// again.
    @inline(never) func askOrigin(
        _ miss: MissContext,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        switch way(miss, turn) {
        case .offline: return await offline(miss, on: loop)
        case .head: return await relayHead(miss, turn, onInterim, on: loop)
        case .forward(let forwardReason):
            return await forwarder.forward(miss.ask, miss.source, forwardReason, onInterim, on: loop)
        case .lead(let fetch): return await lead(fetch, miss, onInterim, on: loop)
        case .wait(let fetch):
            switch await wait(for: fetch, miss, on: loop) {
            case .answered(let answer): return answer
            case .inVain: return await lead(inFlight.beginAlone(miss.ask), miss, onInterim, on: loop)
            }
        }
    }

    /// The way in which a request goes to the origin.
    private enum Way {
        /// The request does not go to the origin, because the daemon is offline.
        case offline
        case head
        case forward(ForwardReason)
        case lead(SharedFetch)
        /// Another request's fetch may answer it.
        case wait(SharedFetch)
    }

    /// Chooses the way. A separate function, as all that never waits, so that a waiting request has none of its
    /// variables in its frames.
    @inline(never) private func way(_ miss: MissContext, _ turn: Int) -> Way {
        let ask = miss.ask
        if context.isOffline, miss.source.opensSockets { return .offline }
        if ask.request.method == .head { return .head }
        if Caching.hasPreconditions(ask.request) {
            // Only the origin may decide about the request's preconditions (RFC 9111 section 4.3.2).
            return .forward(ForwardReason(miss.forwardReason.forward, StaleReason.requestPrecondition.rawValue))
        }
        if let plan = miss.plan, plan.needsKeeping, CacheControl(request: ask.request.fields).noStore {
            return .forward(ForwardReason(miss.forwardReason.forward, StoreRefusal.requestNoStore.rawValue))
        }
        if let plan = miss.plan, context.isUnstored(plan, ask) { return .forward(ForwardReason(.bypass, "range")) }
        switch turn > 1 || mustFetchAlone(miss) ? .full : inFlight.join(ask, known: miss.newest) {
        case .leader(let fetch): return .lead(fetch)
        case .full: return .lead(inFlight.beginAlone(ask))
        case .waiter(let fetch): return .wait(fetch)
        }
    }

    @inline(never) private func offline(_ miss: MissContext, on loop: isolated EventLoop) async -> Answer {
        let others = OtherVariants(context, answers)
        let why = miss.newest == nil ? OtherVariants.nothingStored : await others.refusal(miss.ask, on: loop)
        return answers.failure(.offline("\(why), \(FetchError.offlineAdvice)"), miss.forwardReason)
    }

    /// The result of waiting for another request's fetch.
    private enum Waited {
        /// The wait gave an answer; nil to search the store again.
        case answered(Answer?)
        /// The fetch takes too long, or brings the wanted bytes too late.
        case inVain

        /// Whether the request reads the body, whose writer learns when it stops.
        var isReading: Bool {
            if case .answered(let answer?) = self { answer.reader != nil && !answer.isStandIn } else { false }
        }
    }

    @inline(never) private func wait(for fetch: SharedFetch, _ miss: MissContext, on loop: isolated EventLoop) async
        -> Waited
    {
        let lift = Lift(fetch.urgency, by: miss.ask.urgency)
        if isWhole(fetch) {
            // All of the body has arrived and is being stored: a moment later the request is a hit.
            _ = await fetch.end.wait(timeout: miss.ask.collapse.wait, on: loop)
            return left(fetch, lift, .answered(nil))
        }
        let timeout = context.placeholderDelay(miss) ?? .max
        let outcome = await fetch.outcome.wait(timeout: min(miss.ask.collapse.wait, timeout), on: loop)
        return left(fetch, lift, heard(outcome, of: fetch, miss, timeout: timeout, on: loop))
    }

    @inline(never) private func left(_ fetch: SharedFetch, _ lift: Lift?, _ waited: Waited) -> Waited {
        lift?.end()
        inFlight.leave(fetch, isReading: waited.isReading)
        return waited
    }

    @inline(never) private func heard(
        _ outcome: FillOutcome?,
        of fetch: SharedFetch,
        _ miss: MissContext,
        timeout: UInt64,
        on loop: isolated EventLoop
    ) -> Waited {
        let ask = miss.ask
        guard let outcome else {
            if Task.isCancelled { return .answered(answers.failure(.cancelled, miss.forwardReason)) }
            guard timeout <= ask.collapse.wait else { return .inVain }
            inFlight.send(.wanted, to: fetch)
            return .answered(placeholder(miss, isCollapsed: true, on: loop))
        }
        if miss.plan != nil, isFarAhead(ask, of: outcome) { return .inVain }
        let answer = joined(fetch, miss, outcome, on: loop)
        noteUse(of: fetch, answer)
        return .answered(answer)
    }

    /// Keeps the fetch going for a request that needs no body, or only a range: it has not abandoned the fetch.
    private func noteUse(of fetch: SharedFetch, _ answer: Answer?) {
        guard let answer, answer.failure == nil, answer.reader?.isNarrowed ?? true else { return }
        inFlight.send(.wanted, to: fetch)
    }

    /// Whether this request cannot use the response to another request's fetch, so that it must not wait for it.
    private func mustFetchAlone(_ miss: MissContext) -> Bool {
        let ask = miss.ask
        if ask.isAlone || Caching.isReload(ask.request) || ask.isPrivateToRequest { return true }
        if context.notes.isUncacheable(ask) { return true }
        // In library mode one transfer serves all waiting requests.
        guard let stale = miss.stale?.head, ask.policy.mode != .library else { return false }
        // If the stored response was not fresh for this request even on arrival, the next one will not be either: such
        // requests validate for themselves.
        let onArrival = Caching.lookup(
            request: ask.request,
            stored: stale,
            policy: ask.policy,
            now: stale.responseTime
        )
        if case .fresh = onArrival { return false }
        return true
    }

    @inline(never) private func isWhole(_ fetch: SharedFetch) -> Bool {
        guard case .streaming(let response)? = fetch.outcome.value, case .complete = response.body.end else {
            return false
        }
        return true
    }

    @inline(never) private func lead(
        _ fetch: SharedFetch,
        _ miss: MissContext,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let began = Monotonic.now()
        let runner = run(fetch, miss, onInterim, on: loop)
        let outcome = await fetch.outcome.wait(timeout: context.placeholderDelay(miss), on: loop)
        switch led(runner, outcome, miss, since: began, on: loop) {
        case .answered(let answer): return answer
        case .alone(let forwardReason):
            return await forwarder.forward(miss.ask, miss.source, forwardReason, onInterim, on: loop)
        }
    }

    /// The result of leading a fetch.
    private enum Led {
        /// The fetch gave an answer; nil to search the store again.
        case answered(Answer?)
        /// The response is not for this request, which is forwarded alone.
        case alone(ForwardReason)
    }

    @inline(never) private func run(
        _ fetch: SharedFetch,
        _ miss: MissContext,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) -> SharedFetchRunner {
        let runner = SharedFetchRunner(
            context: context,
            fetch: fetch,
            ask: miss.ask,
            source: miss.source,
            stale: miss.stale,
            hasOtherVariants: miss.newest != nil,
            plan: miss.plan
        )
        runner.onInterim = onInterim
        runner.hasHeadFailed = miss.hasHeadFailed
        runner.start(on: loop)
        return runner
    }

    @inline(never) private func led(
        _ runner: SharedFetchRunner,
        _ outcome: FillOutcome?,
        _ miss: MissContext,
        since began: UInt64,
        on loop: isolated EventLoop
    ) -> Led {
        runner.onInterim = nil
        let isPatient = outcome == nil && !Task.isCancelled
        if isPatient { runner.send(.wanted) }
        if outcome != nil || isPatient { runner.send(.leaderAnswered) }
        let (part, reader) = (runner.takeLeaderPart(), runner.takeLeaderReader())
        guard let outcome else {
            if isPatient { return .answered(placeholder(miss, isCollapsed: false, on: loop)) }
            runner.send(.leaderGone)
            return .answered(answers.failure(.cancelled, miss.forwardReason))
        }
        if case .again = outcome { return .answered(nil) }
        if case .alone(let reason) = outcome {
            return .alone(ForwardReason(miss.forwardReason.forward, reason ?? miss.forwardReason.reason))
        }
        var answer = settled(miss, outcome, reader, part, isCollapsed: false, on: loop)
        if !runner.ownCookies.isEmpty {
            answer.head.fields.remove(.setCookie)
            for cookie in runner.ownCookies { answer.head.fields.append(.setCookie, cookie) }
        }
        answer.originTime = Monotonic.now() &- began
        noteUse(of: runner.fetch, answer)
        return .answered(answer)
    }

    /// The answer to a request that has waited as long as its placeholder allows; the fetch continues for later
    /// requests.
    private func placeholder(_ miss: MissContext, isCollapsed: Bool, on loop: isolated EventLoop) -> Answer? {
        guard let file = miss.ask.phases?.placeholder else { return nil }
        context.notes.count { $0.placeholders += 1 }
        let status = CacheStatus(
            cacheName: answers.cacheName,
            forward: miss.forwardReason.forward,
            collapsed: isCollapsed,
            detail: CacheStatus.Detail.placeholder.rawValue
        )
        return answers.standIn(file, miss.ask, status, on: loop)
    }

    /// Refreshes a stored response in the background; at most one refresh of each variant is under way on all loops.
    func refreshBehind(
        _ ask: CacheRequest,
        _ source: any FetchSource,
        _ stale: StoredResponse,
        on loop: isolated EventLoop
    ) {
        // The stored response answers GET, so the refresh is a GET even if a HEAD request started it.
        var ask = ask
        ask.request.method = .get
        // The client that caused the refresh has its answer.
        if ask.urgency == nil { ask.urgency = FetchUrgency(.revalidation) }
        guard let fetch = inFlight.beginBehind(ask, known: stale.head) else { return }
        // Another refresh may have ended since the response was found.
        if context.store.isSuperseded(stale) {
            // A request that joined in the meantime searches the store again.
            fetch.outcome.set(.failed(.cancelled))
            return inFlight.end(fetch)
        }
        let runner = SharedFetchRunner(context: context, fetch: fetch, ask: ask, source: source, stale: stale)
        runner.start(on: loop)
    }
}

// MARK: - HEAD

extension SharedFetches {
    /// Forwards a client's HEAD as HEAD. Its answer freshens stored responses or makes them stale (RFC 9111 section
    /// 4.3.5), and removes none: only a new response replaces them.
    /// - Returns: nil if a response was stored in the meantime, so that the store is searched again.
    @inline(never) func relayHead(
        _ miss: MissContext,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let ask = miss.ask
        // Only the body of a mapped document shows its length and its entity tag.
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

    /// Whether the answer to a HEAD is a failure that a GET may not have.
    private func isHeadFailure(_ answer: Answer, _ policy: CachePolicy) -> Bool {
        answer.failure?.mayBeOfMethodAlone ?? policy.countsAsFailure(answer.head.status)
    }

    /// Answers a client's HEAD by a GET if the origin fails at HEAD.
    @inline(never) private func answerHeadByGet(
        _ miss: MissContext,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        var ask = miss.ask
        ask.request.method = .get
        // Ranges are defined for GET alone (RFC 9110 section 14.2).
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

    /// The client's own conditions, if a 304 identifies one stored response: if the 304 has no validator, the
    /// conditions must name a single one.
    private func asked(_ ask: CacheRequest, _ answer: ResponseHead) -> Revalidation? {
        guard answer.status == 304 else { return nil }
        let conditions = ask.originFields.conditions
        let isNamed = answer.fields.contains(.etag) || conditions.first(.ifNoneMatch)?.contains(",") != true
        return isNamed ? Revalidation(kind: .head, conditions: conditions) : nil
    }

    /// The reason why a stale response might replace the origin's answer: a failure or an error status; nil otherwise.
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

// MARK: - Outcomes

extension SharedFetches {
    /// The answer to a waiting request from the response that arrived; nil if the request must search the store or
    /// fetch for itself.
    func joined(
        _ fetch: SharedFetch,
        _ miss: MissContext,
        _ outcome: FillOutcome,
        on loop: isolated EventLoop
    ) -> Answer? {
        let (ask, stale) = (miss.ask, miss.stale)
        switch outcome {
        case .streaming(let fetched):
            // A response that was invalidated since its fetch began must not answer a request that came after the
            // invalidation.
            guard let head = fetched.stored, context.invalidations.isUnchanged(fetched.token), mayShare(head, miss),
                !ask.mayReadSlowly || fetched.placementRefusal == nil,
                let reader = fetched.body.makeReader(on: loop)
            else { return nil }
            inFlight.send(.readerOpened, to: fetch)
            return settled(miss, outcome, reader, isCollapsed: true, on: loop)
        case .refreshed(let response, _, isShared: true)
        where ask.policy.mode == .library && mayShare(response.head, miss)
            // The response was stored before this request came, and may have been purged since.
            && context.invalidations.verdict(response) == .valid:
            return settled(miss, outcome, nil, isCollapsed: true, on: loop)
        case .refreshed, .failed(.cancelled), .part, .stalePart, .again, .alone: return nil
        case .stale(_, let cause):
            // The leader's stale response may be another variant: each request uses its own, if it may use one.
            guard let stale, context.mayServeStale(stale, ask, errorStatus: cause.errorStatus) else { return nil }
            return settled(miss, .stale(stale, cause: cause), nil, isCollapsed: true, on: loop)
        case .failed(let error):
            guard let stale, error.isOriginFailure, context.mayServeStale(stale, ask, errorStatus: nil) else {
                return settled(miss, outcome, nil, isCollapsed: true, on: loop)
            }
            return settled(miss, .stale(stale, cause: .error(error)), nil, isCollapsed: true, on: loop)
        }
    }

    private func mayShare(_ head: StoredHead, _ miss: MissContext) -> Bool {
        Caching.answersWaiting(
            request: miss.ask.request,
            stored: head,
            policy: miss.ask.policy,
            asked: miss.began,
            now: context.clock.now()
        )
    }

    /// Whether a fetch of the whole, which another request has begun, brings the wanted bytes too late.
    func isFarAhead(_ ask: CacheRequest, of outcome: FillOutcome) -> Bool {
        guard case .streaming(let fetched) = outcome, let head = fetched.stored, let length = fetched.body.knownLength,
            case .parts(let ranges) = Caching.rangeAnswer(request: ask.request, stored: head, length: length)
        else { return false }
        // Several parts of a body that is still arriving would wait for one another.
        return ranges.count > 1 || ranges[0].lowerBound - fetched.body.arrived > 8 << 20
    }

    func settled(
        _ miss: MissContext,
        _ outcome: FillOutcome,
        _ reader: BodyReader?,
        _ part: RangeInFlight? = nil,
        isCollapsed: Bool,
        on loop: isolated EventLoop
    ) -> Answer {
        let (ask, forwardReason) = (miss.ask, miss.forwardReason)
        var status = CacheStatus(cacheName: answers.cacheName, forward: forwardReason.forward, collapsed: isCollapsed)
        let now = context.clock.now()
        switch outcome {
        case .streaming(let fetched):
            status.forwardStatus = fetched.status
            var storeReason: StoreReason?
            switch fetched.decision {
            case .store(let reason):
                storeReason = fetched.placementRefusal == nil ? reason : nil
                status.stored = fetched.placementRefusal == nil
                let replaced = fetched.replacesStale ? CacheStatus.Detail.replaced.rawValue : nil
                status.detail = fetched.placementRefusal?.rawValue ?? replaced ?? forwardReason.reason
            case .refuse(let refusal): status.detail = fetched.partRefusal ?? refusal.rawValue
            }
            var answer = answers.arriving(ask, fetched, reader, status)
            answer.storeReason = storeReason
            // Some fields, such as Set-Cookie, are only for the client whose request went to the origin.
            if isCollapsed { answer.head.fields = Caching.shared(answer.head.fields, policy: ask.policy) }
            return answer
        case .refreshed(let response, let code, _):
            status.forwardStatus = code
            status.detail = CacheStatus.Detail.revalidated.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return answers.stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .stale(let response, let cause):
            if case .status(let code) = cause { status.forwardStatus = code }
            status.detail = CacheStatus.Detail.staleIfError.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return answers.stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .part(let partial, let head, let code):
            let staleness = Caching.staleness(head, policy: ask.policy, now: now)
            status.forwardStatus = code
            status.stored = code == 206 && context.invalidations.isUnchanged(partial.token)
            status.detail = code == 304 ? CacheStatus.Detail.revalidated.rawValue : forwardReason.reason
            if code == 304 { status.ttl = -staleness }
            let age = Caching.age(head, now: now)
            let isFirst = code == 206 && age == 0 && miss.plan?.partial == nil
            var made = IncompleteResponseReader(context, ask, miss.source, partial, head)
            made.arriving = part
            return made.make(status, age: isFirst ? nil : age, on: loop)
        case .stalePart(let partial, let cause):
            if case .status(let code) = cause { status.forwardStatus = code }
            status.detail = CacheStatus.Detail.staleIfError.rawValue
            status.ttl = -Caching.staleness(partial.head, policy: ask.policy, now: now)
            let age = Caching.age(partial.head, now: now)
            return IncompleteResponseReader(context, ask, miss.source, partial).make(status, age: age, on: loop)
        case .again, .alone: return answers.failure(.cancelled, forwardReason)
        case .failed(let error):
            var refusal: StaleRefusal?
            if let stale = miss.stale, error.isOriginFailure,
                case .refused(let reason) = context.staleVerdict(stale.head, ask, errorStatus: nil)
            {
                refusal = reason
            }
            return answers.failure(error, forwardReason, isCollapsed: isCollapsed, staleRefusal: refusal)
        }
    }
}
