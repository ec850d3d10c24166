// Fetches from the origin: one fetch for several requests where they may share the response, otherwise one fetch each.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies

/// The way of questions to the origin. It is shared by all loops; each question is answered on the loop that asks.
///
/// Sendable: what it holds is.
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

    // Each function that waits is apart from those that call it: their frames would have what all of them need.

    /// Nil where a response was stored in the meantime: then search the store again.
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

    /// How a question goes to the origin.
    private enum Way {
        /// Not at all.
        case offline
        case head
        case forward(ForwardReason)
        case lead(SharedFetch)
        /// Another question's fetch may answer it.
        case wait(SharedFetch)
    }

    /// On its own, as all that never waits: a request that waits has nothing of it in its frames.
    @inline(never) private func way(_ miss: MissContext, _ turn: Int) -> Way {
        let ask = miss.ask
        if context.isOffline, miss.source.opensSockets { return .offline }
        if ask.request.method == .head { return .head }
        if Caching.hasPreconditions(ask.request) {
            // Only the origin may refuse for them (RFC 9111 section 4.3.2).
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

    /// What waiting for another's fetch came to.
    private enum Waited {
        /// Nil: look again.
        case answered(Answer?)
        /// It takes too long, or brings what is wanted too late.
        case inVain

        /// It reads the body, whose writer hears when it stops.
        var isReading: Bool {
            if case .answered(let answer?) = self { answer.reader != nil && !answer.isStandIn } else { false }
        }
    }

    @inline(never) private func wait(for fetch: SharedFetch, _ miss: MissContext, on loop: isolated EventLoop) async
        -> Waited
    {
        let lift = Lift(fetch.urgency, by: miss.ask.urgency)
        if isWhole(fetch) {
            // All has come and is being stored: a moment later it is a hit.
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

    /// A request that needs no body, or only a range, has not abandoned the fetch: the fetch continues as if
    /// the whole body were read.
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

    /// What leading a fetch came to.
    private enum Led {
        /// Nil: look again.
        case answered(Answer?)
        /// The response is for somebody else.
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

    /// The answer to a request that has waited long enough; the fetch continues for later requests.
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
        // The stored response answers GET, so the refresh is a GET even where a HEAD request started it.
        var ask = ask
        ask.request.method = .get
        // The client that caused it has its answer.
        if ask.urgency == nil { ask.urgency = FetchUrgency(.revalidation) }
        guard let fetch = inFlight.beginBehind(ask, known: stale.head) else { return }
        // Another one may have ended since this one was looked up.
        if context.store.isSuperseded(stale) {
            // A request that joined in the meantime searches the store again.
            fetch.outcome.set(.failed(.cancelled))
            return inFlight.end(fetch)
        }
        let runner = SharedFetchRunner(context: context, fetch: fetch, ask: ask, source: source, stale: stale)
        runner.start(on: loop)
    }
}
