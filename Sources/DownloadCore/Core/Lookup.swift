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

    /// What is found, and what follows from it.
    /// - Parameter began: when the request arrived, Unix seconds.
    // Not in the frame of a search, which waits for the origin behind it.
    @inline(never) func step(
        for ask: CacheRequest,
        _ source: any FetchSource,
        since began: Int64,
        on loop: isolated EventLoop
    ) async -> Step {
        var found = await context.store.find(ask, on: loop)
        if found.response == nil, let seed = ask.seed, await seeds.imports(ask, seed) {
            found = await context.store.find(ask, on: loop)
        }
        let parts = partialStep(ask, source, found, since: began, on: loop)
        if asksOthers(parts, found, source), let answer = await others.answer(ask, on: loop) { return .answer(answer) }
        return parts ?? decide(ask, source, found, since: began, on: loop)
    }

    /// Nothing answers the request, and nobody may be asked: another variant may have to do.
    @inline(never) private func asksOthers(
        _ parts: Step?,
        _ found: TieredStore.Found,
        _ source: any FetchSource
    ) -> Bool {
        if case .answer? = parts { return false }
        return found.newest != nil && found.response == nil && context.isOffline && source.opensSockets
    }

    enum Step {
        case answer(Answer)
        case refreshBehind(Answer, StoredResponse)
        case ask(MissContext)
    }

    @inline(never) private func decide(
        _ ask: CacheRequest,
        _ source: any FetchSource,
        _ found: TieredStore.Found,
        since began: Int64,
        on loop: isolated EventLoop
    ) -> Step {
        func miss(_ stale: StoredResponse?, _ forwardReason: ForwardReason) -> Step {
            .ask(
                MissContext(
                    ask: ask,
                    source: source,
                    stale: stale,
                    newest: found.newest,
                    forwardReason: forwardReason,
                    began: began
                )
            )
        }
        guard let response = found.response else {
            if Caching.onlyIfCached(ask.request) {
                return .answer(answers.gatewayTimeout("nothing is stored for this request"))
            }
            return miss(nil, ForwardReason(found.newest == nil ? .uriMiss : .varyMiss))
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
            return miss(nil, ForwardReason(decision))
        case .stale: return miss(response, ForwardReason(decision))
        }
    }
}
