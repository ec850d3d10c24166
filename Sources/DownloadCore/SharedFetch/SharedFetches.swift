// Asking the origin: together with others where one answer may be for all, alone where it may not.

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

    /// Nil: look again, something has been stored meanwhile.
    func askOrigin(
        _ question: Question,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let ask = question.ask
        if context.isOffline, question.source.opensSockets {
            return answers.failure(
                .offline("nothing is stored for this request, \(FetchContext.offlineAdvice)"),
                question.way
            )
        }
        if ask.request.method == .head { return await relayHead(question, turn, onInterim, on: loop) }
        if Caching.hasPreconditions(ask.request) {
            // Only the origin may refuse for them (RFC 9111 section 4.3.2).
            let way = Way(question.way.forward, StaleReason.requestPrecondition.rawValue)
            return await forwarder.relay(ask, question.source, way, onInterim, on: loop)
        }
        if let plan = question.plan, plan.needsKeeping, CacheControl(request: ask.request.fields).noStore {
            let way = Way(question.way.forward, StoreRefusal.requestNoStore.rawValue)
            return await forwarder.relay(ask, question.source, way, onInterim, on: loop)
        }
        if let plan = question.plan, context.isUnstored(plan, ask) {
            return await forwarder.relay(ask, question.source, Way(.bypass, "range"), onInterim, on: loop)
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
            if case .answered(let answer?) = self { answer.reader != nil && !answer.isStandIn } else { false }
        }
    }

    private func wait(for fetch: SharedFetch, _ question: Question, on loop: isolated EventLoop) async -> Waited {
        let ask = question.ask
        if isWhole(fetch) {
            // All has come and is being stored: a moment later it is a hit.
            _ = await fetch.end.wait(patience: ask.collapse.wait, on: loop)
            return .answered(nil)
        }
        let patience = context.placeholderPatience(question) ?? .max
        let outcome = await fetch.outcome.wait(patience: min(ask.collapse.wait, patience), on: loop)
        guard let outcome else {
            if Task.isCancelled { return .answered(answers.failure(.cancelled, question.way)) }
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
        if context.notes.isUncacheable(ask) { return true }
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
        let outcome = await fetch.outcome.wait(patience: context.placeholderPatience(question), on: loop)
        runner.onInterim = nil
        let isPatient = outcome == nil && !Task.isCancelled
        if isPatient { runner.send(.wanted) }
        if outcome != nil || isPatient { runner.send(.leaderAnswered) }
        let (part, reader) = (runner.takeLeaderPart(), runner.takeLeaderReader())
        guard let outcome else {
            if isPatient { return placeholder(question, isCollapsed: false, on: loop) }
            runner.send(.leaderGone)
            return answers.failure(.cancelled, question.way)
        }
        if case .again = outcome { return nil }
        if case .alone(let reason) = outcome {
            let way = Way(question.way.forward, reason ?? question.way.reason)
            return await forwarder.relay(question.ask, question.source, way, onInterim, on: loop)
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

    /// The answer of a request that has waited long enough; the fetch goes on for those who come later.
    private func placeholder(_ question: Question, isCollapsed: Bool, on loop: isolated EventLoop) -> Answer? {
        guard let file = question.ask.phases?.placeholder else { return nil }
        context.notes.count { $0.placeholders += 1 }
        let status = CacheStatus(
            cacheName: answers.cacheName,
            forward: question.way.forward,
            collapsed: isCollapsed,
            detail: CacheStatus.Detail.placeholder.rawValue
        )
        return answers.standIn(file, question.ask, status, on: loop)
    }

    /// One refresh at a time, on whatever loop, for each variant.
    func refreshBehind(
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ stale: StoredResponse,
        on loop: isolated EventLoop
    ) {
        // A HEAD may have found it stale; what is stored is the answer to GET.
        var ask = ask
        ask.request.method = .get
        guard let fetch = inFlight.beginBehind(ask, known: stale.head) else { return }
        // Another one may have ended since this one was looked up.
        if context.store.isSuperseded(stale) {
            // Who has joined meanwhile looks again.
            fetch.outcome.set(.failed(.cancelled))
            return inFlight.end(fetch)
        }
        let runner = SharedFetchRunner(context: context, fetch: fetch, ask: ask, source: source, stale: stale)
        runner.start(on: loop)
    }
}
