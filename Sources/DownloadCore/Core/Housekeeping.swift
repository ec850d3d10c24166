// What is done to the store besides answering: invalidating, purging, pinning, ending fetches.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization

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

    /// ``DownloadCore/dropWaiters(_:)``
    func dropWaiters(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches { context.fetches.dropWaiters(isMeant) }

    /// ``DownloadCore/keepGoing(_:)``
    func keepGoing(_ isMeant: (CacheKey) -> Bool) { context.fetches.keepGoing(isMeant) }

    /// ``DownloadCore/invalidate(_:)``
    func invalidate(_ key: CacheKey) {
        context.invalidations.invalidate(key)
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
        let number = context.invalidations.invalidate(rules)
        if !hostless.isEmpty {
            // The hot path asks no rule; a walk is too long for a loop.
            await Task { [store = context.store] in store.memory.remove(concerned: Set(hostless), before: number) }
                .value
        }
        await context.store.invalidateBehind(rules, number: number)
        forgetSpentRules()
    }

    /// Drops the rules that match no stored response any more, where there are many rules. It runs in the
    /// background, never twice at once.
    private func forgetSpentRules() {
        guard context.invalidations.isCrowded, context.invalidations.ruleCount > crowd.load(ordering: .relaxed),
            !isForgetting.exchange(true, ordering: .relaxed)
        else { return }
        Task { [self] in
            let newest = context.invalidations.newest
            await context.store.removeInvalid()
            context.invalidations.forgetSpent(upTo: newest)
            // No rule can be dropped while the folders are being walked: the next attempt waits until
            // there are many more rules.
            crowd.store(context.invalidations.ruleCount + 1024, ordering: .relaxed)
            isForgetting.store(false, ordering: .relaxed)
        }
    }
}
