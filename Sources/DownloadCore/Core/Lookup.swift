// What is stored for a question, and whether it answers: as it is, after a check, or not at all.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

/// Sendable: what it holds is.
final class Lookup: Sendable {
    let context: FetchContext
    let answers: AnswerMaker
    private let seeds: SeedAnswers
    let others: OtherVariants

    init(_ context: FetchContext, _ answers: AnswerMaker, _ seeds: SeedAnswers) {
        self.context = context
        self.answers = answers
        self.seeds = seeds
        others = OtherVariants(context, answers)
    }

    /// What is found, and the newest stored response of the key, whoever selects it.
    func step(
        for ask: CacheRequest,
        _ source: any FetchSource,
        on loop: isolated EventLoop
    ) async -> (step: Step, newest: StoredHead?) {
        var found = await context.store.find(ask, on: loop)
        if found.response == nil, let seed = ask.seed, await seeds.imports(ask, seed) {
            found = await context.store.find(ask, on: loop)
        }
        let hasOtherVariants = found.newest != nil
        let parts = found.response == nil ? partialStep(ask, source, hasOtherVariants: hasOtherVariants, on: loop) : nil
        let isAnswered = if case .answer? = parts { true } else { false }
        if hasOtherVariants, found.response == nil, !isAnswered, context.isOffline, source.opensSockets,
            let answer = await others.answer(ask, on: loop)
        {
            return (.answer(answer), found.newest)
        }
        return (parts ?? decide(ask, found, on: loop), found.newest)
    }

    enum Step {
        case answer(Answer)
        case refreshBehind(Answer, StoredResponse)
        case ask(stale: StoredResponse?, ForwardReason, RangeFetchPlan? = nil)
    }

    private func decide(_ ask: CacheRequest, _ found: TieredStore.Found, on loop: isolated EventLoop) -> Step {
        guard let response = found.response else {
            if Caching.onlyIfCached(ask.request) {
                return .answer(answers.gatewayTimeout("nothing is stored for this request"))
            }
            return .ask(stale: nil, ForwardReason(found.newest == nil ? .uriMiss : .varyMiss))
        }
        let decision = Caching.lookup(
            request: ask.request,
            stored: response.head,
            policy: ask.policy,
            now: context.clock.now(),
            isOffline: context.isOffline,
            failedCheck: context.notes.failedChecks.check(ask.key, now: context.clock.now())
        )
        switch decision {
        case .fresh(let age, let ttl):
            let status = CacheStatus(cacheName: answers.cacheName, hit: true, ttl: ttl, detail: found.tier.rawValue)
            return .answer(answers.stored(ask, response, age: age, status, on: loop))
        case .staleAllowed(let age, let by, let allowance):
            let status = CacheStatus(cacheName: answers.cacheName, hit: true, ttl: -by, detail: allowance.rawValue)
            let answer = answers.stored(ask, response, age: age, status, on: loop)
            return allowance == .whileRevalidate ? .refreshBehind(answer, response) : .answer(answer)
        case .onlyIfCachedMiss(let reason):
            return .answer(answers.gatewayTimeout("the stored response needs a check (\(reason.rawValue))"))
        case .mismatch:
            if Caching.onlyIfCached(ask.request) {
                return .answer(answers.gatewayTimeout("nothing is stored for this request"))
            }
            return .ask(stale: nil, ForwardReason(decision))
        case .stale: return .ask(stale: response, ForwardReason(decision))
        }
    }
}
