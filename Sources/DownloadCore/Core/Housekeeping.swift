// Invalidates, purges and pins stored responses, and ends fetches.

package import CacheStore
package import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization

/// Changes what is stored and what is being fetched, as an operator or an unsafe request demands.
///
/// Sendable: all members are.
package final class Housekeeping: Sendable {
    let context: FetchContext
    /// Whether spent rules are being removed now.
    private let isForgetting = Atomic<Bool>(false)
    /// The number of rules up to which no attempt is made to remove spent ones, because the last attempt failed.
    private let crowd = Atomic<Int>(0)
    let hardPurged = Atomic<Int>(0)
    let softPurged = Atomic<Int>(0)
    /// The requests under way whose answer may invalidate what is stored (RFC 9111 section 4.4).
    let changing = Atomic<Int>(0)

    /// Whether a request is under way whose answer may invalidate what is stored, if only for the store: its client may have
    /// left. Any thread.
    package var isChanging: Bool { changing.load(ordering: .acquiring) > 0 }

    init(_ context: FetchContext) { self.context = context }

    /// Ends fetches: requests that wait for a head get ``FetchError/stopped(_:)``, and readers of a body are cut off.
    /// Stored responses stay as they are; later requests fetch anew. Any thread.
    ///
    /// Requests with other methods than GET and HEAD go on, because they may have had their effect already.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    package func cancel(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
        let result = context.fetches.cancel(isMeant)
        context.notes.count { $0.cancelled += result.fetches }
        return result
    }

    /// Drops the requests that wait for the head of a shared fetch: they get ``FetchError/stopped(_:)``, and the fetch
    /// goes on for the store. Later requests may join it. Requests that read a body go on, and so does a fetch for one
    /// request alone. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    /// - Returns: the number of fetches that go on, and of the requests that were dropped.
    package func dropWaiters(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches { context.fetches.dropWaiters(isMeant) }

    /// Keeps shared fetches going for the store even if all their clients leave. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    package func keepGoing(_ isMeant: (CacheKey) -> Bool) { context.fetches.keepGoing(isMeant) }

    /// Removes what is stored under a key, and prevents that fetches under way are stored or joined, so that no later
    /// request gets an older response.
    package func invalidate(_ key: CacheKey) {
        context.invalidations.invalidate(key)
        context.inFlight.forget(key)
        context.partials.remove(key)
        context.store.remove(key)
    }

    /// Invalidates the stored and the arriving responses of the URLs of these keys, in every service, and all that the
    /// rules match. After it has returned, no crash can bring one of them back.
    /// - Parameter anyHost: keys that match with any host in place of their own; to find these, the memory tier is
    ///   searched.
    package func invalidate(
        _ keys: [CacheKey],
        _ rules: Set<InvalidationRule> = [],
        anyHost: [CacheKey] = []
    ) async {
        for key in keys { invalidate(key) }
        let hostless = anyHost.map { InvalidationRule.anyHost(of: $0) }
        let rules = Array(rules.union(keys.map { .url(of: $0) }).union(hostless))
        let number = context.invalidations.invalidate(rules)
        if !hostless.isEmpty {
            // The hot path applies no rules, so the responses leave memory; the search takes too long for a loop.
            await Task { [store = context.store] in store.memory.remove(concerned: Set(hostless), before: number) }
                .value
        }
        await context.store.invalidateBehind(rules, number: number)
        forgetSpentRules()
    }

    /// Removes rules that match no stored response any more, if there are many rules. It runs in the background, at
    /// most once at a time.
    private func forgetSpentRules() {
        guard context.invalidations.isCrowded, context.invalidations.ruleCount > crowd.load(ordering: .relaxed),
            !isForgetting.exchange(true, ordering: .relaxed)
        else { return }
        Task { [self] in
            let newest = context.invalidations.newest
            await context.store.removeInvalid()
            context.invalidations.forgetSpent(upTo: newest)
            // No rule can be removed while the folders are being searched, so the next attempt waits until there are
            // many more rules.
            crowd.store(context.invalidations.ruleCount + 1024, ordering: .relaxed)
            isForgetting.store(false, ordering: .relaxed)
        }
    }
}

// MARK: - Purges

/// A shortcoming of a purge.
package enum PurgeError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The purge is in force, but a restart may undo it, because it could not be written.
    case notWritten(SystemError)
    /// The daemon is shutting down.
    case ended

    package var description: String {
        switch self {
        case .notWritten(let error):
            "the purge is in force until the daemon ends, but it could not be written: \(error); make room on the disk, or its folder writable, and purge again"
        case .ended: "the daemon is ending, and purges nothing any more"
        }
    }
}

extension Housekeeping {
    /// The largest number of hard purges whose files are not removed yet.
    private static let maximumUnswept = 512

    /// The number of stored responses that purges have removed or made stale.
    package var purgeCounts: (hard: Int, soft: Int) {
        (hardPurged.load(ordering: .relaxed), softPurged.load(ordering: .relaxed))
    }

    /// Puts purges in force. After it has returned, no tier answers with a purged response (after a soft purge: with it
    /// as a fresh one), no fetch that began before can store one, and a restart changes neither. The files are deleted
    /// later.
    /// - Parameter pool: the threads of blocking calls.
    /// - Returns: the number of stored responses that were removed, or made stale.
    package func purge(_ rules: [PurgeRule], on pool: IOPool) async throws(PurgeError) -> Int {
        guard !rules.isEmpty else { return 0 }
        if context.invalidations.unsweptCount > Self.maximumUnswept { await context.store.settleSweep() }
        let now = context.clock.now()
        let number = context.invalidations.purge(rules, now: now, isCountedFirst: true)
        let work = { @Sendable [self] () -> (SystemError?, Int) in
            var failure: SystemError?
            do throws(SystemError) {
                try context.invalidations.persist(rules, number: number, now: now)
            } catch {
                failure = error
            }
            let alone = context.store.purgeMemory(rules, number: number, now: now)
            return (failure, alone + context.partials.removeInvalid(context.invalidations))
        }
        guard let (failure, inMemory) = try? await pool.run(work) else {
            context.invalidations.endCount(number)
            throw .ended
        }
        let behind = await context.store.purgeBehind(rules, number: number)
        if let failure { throw .notWritten(failure) }
        // All rules of one call have the same kind.
        let count = inMemory + behind
        if rules[0].isSoft {
            softPurged.wrappingAdd(count, ordering: .relaxed)
        } else {
            hardPurged.wrappingAdd(count, ordering: .relaxed)
        }
        return count
    }
}

extension PartialTable {
    /// Removes the responses that a rule has invalidated.
    /// - Returns: their number.
    fileprivate func removeInvalid(_ invalidations: Invalidations) -> Int {
        let gone = all.filter { !invalidations.isUnchanged($0.token) }
        for partial in gone { remove(partial) }
        return gone.count
    }
}

// MARK: - Pins

extension Housekeeping {
    /// Pins a URL, for responses that are stored and for later ones; returns when the pin is on the disk.
    /// - Parameter pool: the threads of blocking calls.
    /// - Returns: false if the URL was pinned already.
    package func pin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await change(url, on: pool) { (pins, url) throws(PinError) in try pins.add(url) }
    }

    /// Removes the pin of a URL.
    /// - Returns: false if the URL was not pinned.
    package func unpin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await change(url, on: pool) { (pins, url) throws(PinError) in try pins.remove(url) }
    }

    private func change(
        _ url: String,
        on pool: IOPool,
        _ change: @escaping @Sendable (Pins, String) throws(PinError) -> Bool
    ) async throws(PinError) -> Bool {
        let url = PurgeRule.normalised(url)
        let work = { @Sendable [self] () -> Result<Bool, PinError> in
            let result = Result { () throws(PinError) in try change(context.invalidations.pins, url) }
            context.store.memory.takeOverPins()
            return result
        }
        let result = try? await pool.run(work)
        for tier in context.store.tiers { await tier.takeOverPin(url) }
        guard let result else { throw .ended }
        return try result.get()
    }
}
