// What is done to the store besides answering: invalidating, purging, pinning, ending fetches.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire
internal import Synchronization

/// Sendable: what it holds is.
final class Housekeeping: Sendable {
    let context: FetchContext
    /// Rules are being forgotten.
    private let isForgetting = Atomic<Bool>(false)
    /// The number of rules that there was no use in forgetting some of when it was last tried.
    private let crowd = Atomic<Int>(0)
    let hardPurged = Atomic<Int>(0)
    let softPurged = Atomic<Int>(0)

    init(_ context: FetchContext) { self.context = context }

    /// ``DownloadCore/cancel(_:)``
    func cancel(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
        let result = context.fetches.cancel(isMeant)
        context.notes.count { $0.cancelled += result.fetches }
        return result
    }

    /// ``DownloadCore/invalidate(_:)``
    func invalidate(_ key: CacheKey) {
        context.generations.bump(key)
        context.inFlight.forget(key)
        context.partials.remove(key)
        context.store.remove(key)
    }

    /// ``DownloadCore/invalidate(_:_:anyHost:)``
    func invalidate(
        _ keys: [CacheKey],
        _ rules: Set<InvalidationRule> = [],
        anyHost: [CacheKey] = []
    ) async {
        for key in keys { invalidate(key) }
        let hostless = anyHost.map { InvalidationRule.anyHost(of: $0) }
        let rules = Array(rules.union(keys.map { .url(of: $0) }).union(hostless))
        let number = context.generations.invalidate(rules)
        if !hostless.isEmpty {
            // The hot path asks no rule; a walk is too long for a loop.
            await Task { [store = context.store] in store.memory.remove(concerned: Set(hostless), before: number) }
                .value
        }
        await context.store.invalidateBehind(rules, number: number)
        forgetSpentRules()
    }

    /// Where there are many rules, those are forgotten that nothing stored is concerned by any more; behind, and one
    /// turn at a time.
    private func forgetSpentRules() {
        guard context.generations.isCrowded, context.generations.ruleCount > crowd.load(ordering: .relaxed),
            !isForgetting.exchange(true, ordering: .relaxed)
        else { return }
        Task { [self] in
            let newest = context.generations.newest
            await context.store.removeInvalid()
            context.generations.forgetSpent(upTo: newest)
            // While the folders are walked none can be: there is no use in trying again at once.
            crowd.store(context.generations.ruleCount + 1024, ordering: .relaxed)
            isForgetting.store(false, ordering: .relaxed)
        }
    }
}
