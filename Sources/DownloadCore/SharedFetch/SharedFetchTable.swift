// The fetches that requests may join, by key.

import CacheStore
import HTTPCaching
import Policies
import Synchronization

/// The shared fetches under way: one for each selection of request fields that is known to make a difference.
///
/// Sendable: sharded, each shard under its own mutex. A shard is an index: whether a fetch may be joined, its state
/// says, which is asked under the shard's mutex.
final class SharedFetchTable: Sendable {
    /// What joining came to.
    enum Place {
        /// A new fetch: the caller runs it.
        case leader(SharedFetch)
        /// A fetch that is under way; the caller calls ``SharedFetchTable/leave(_:isReading:)`` when it has waited.
        case waiter(SharedFetch)
        /// The fetch has as many waiters as it may have.
        case full
    }

    private final class Shard: Sendable {
        let fetches = Mutex<[CacheKey: [SharedFetch]]>([:])
    }

    private let shards: [Shard] = (0..<16).map { _ in Shard() }
    private let underWay: UnderWay

    /// - Parameter underWay: counts the fetches that are not over, whether or not they can be found.
    init(_ underWay: UnderWay) { self.underWay = underWay }

    private func make(_ ask: CacheRequest, isLed: Bool, isListed: Bool) -> SharedFetch {
        underWay.begin()
        return SharedFetch(ask, isLed: isLed, isListed: isListed)
    }

    private func shard(_ key: CacheKey) -> Shard { shards[Int(truncatingIfNeeded: key.hash & 15)] }

    // MARK: - Beginning and joining

    /// Finds a fetch whose answer may be this request's, or begins one.
    /// - Parameter known: a stored response of the same key, if there is one.
    func join(_ ask: CacheRequest, known: StoredHead?) -> Place {
        shard(ask.key).fetches.withLock { fetches in
            for fetch in fetches[ask.key] ?? [] where fetch.maySelect(ask.request, known: known) {
                let actions = fetch.handle(.joined(limit: ask.collapse.waiters))
                if actions.contains(.wait) { return .waiter(fetch) }
                if actions.contains(.turnAway) { return .full }
            }
            let fetch = make(ask, isLed: true, isListed: true)
            fetches[ask.key, default: []].append(fetch)
            return .leader(fetch)
        }
    }

    /// Begins a fetch that no request waits for; nil where one is under way whose answer may be this request's.
    func beginBehind(_ ask: CacheRequest, known: StoredHead?) -> SharedFetch? {
        shard(ask.key).fetches.withLock { fetches in
            let others = fetches[ask.key] ?? []
            if others.contains(where: { $0.state.isListed && $0.maySelect(ask.request, known: known) }) { return nil }
            let fetch = make(ask, isLed: false, isListed: true)
            fetches[ask.key] = others + [fetch]
            return fetch
        }
    }

    /// Begins a fetch that nobody else can find.
    func beginAlone(_ ask: CacheRequest) -> SharedFetch { make(ask, isLed: true, isListed: false) }

    // MARK: - Events

    /// Tells a fetch of an event, and does the table's part of what follows.
    /// - Returns: what is to be done; the caller does the rest.
    @discardableResult
    func send(_ event: SharedFetchState.Event, to fetch: SharedFetch) -> SharedFetchState.Actions {
        let actions = fetch.handle(event)
        carryOut(actions, on: fetch)
        return actions
    }

    /// The table's part of actions.
    func carryOut(_ actions: SharedFetchState.Actions, on fetch: SharedFetch) {
        if actions.contains(.unlist) { remove(fetch) }
        if actions.contains(.endUnderWay) { underWay.end() }
    }

    /// A request that the table counted as a waiter waits no longer.
    /// - Parameter isReading: it reads the body, and its ``SharedFetchState/Event/readerOpened`` was sent.
    func leave(_ fetch: SharedFetch, isReading: Bool) {
        let actions = send(.waiterLeft(isReading: isReading), to: fetch)
        if !actions.isDisjoint(with: [.cancel, .checkReaders]) { fetch.tellRunner(actions) }
    }

    /// An operator ends a fetch: who waits is answered at once, and who comes now begins a fetch of its own. Any
    /// thread.
    func stop(_ fetch: SharedFetch, _ error: FetchError) {
        // Before the event: the runner, which may find the fetch stopping at that moment, would set another outcome
        // first.
        fetch.outcome.set(.failed(error))
        send(.stopped, to: fetch)
    }

    /// An operator drops those who wait for a fetch: they are answered at once, and the fetch goes on for the store.
    /// Who comes now may join it. Any thread.
    /// - Returns: how many were dropped; nil where the fetch has its outcome.
    func dropWaiters(of fetch: SharedFetch, _ error: FetchError) -> Int? {
        // Before they are told: the fetch must not end because the last of them leaves.
        guard send(.waitersDropped, to: fetch).contains(.dropWaiters) else { return nil }
        return fetch.outcome.release(.failed(error))
    }

    /// What the fetch brought is stored, or will never be. Any thread.
    /// - Parameter reason: why no tier has what its head said would be stored.
    func end(_ fetch: SharedFetch, unstored reason: UnstoredReason? = nil) {
        let actions = fetch.handle(.ended)
        carryOut(actions.intersection(.unlist), on: fetch)
        fetch.end.set(reason)
        // This comes last: when no fetch is under way any more, the loops may be stopped.
        carryOut(actions.intersection(.endUnderWay), on: fetch)
    }

    /// Keeps later requests from joining the fetches of a key; those that wait for them go on waiting.
    func forget(_ key: CacheKey) {
        let forgotten = shard(key).fetches.withLock { fetches in
            let forgotten = fetches.removeValue(forKey: key) ?? []
            for fetch in forgotten { _ = fetch.handle(.forgotten) }
            return forgotten
        }
        // Let go of without the mutex: a fetch holds its body, and that its file.
        withExtendedLifetime(forgotten) {}
    }

    private func remove(_ fetch: SharedFetch) {
        shard(fetch.key).fetches.withLock { fetches in
            guard var left = fetches[fetch.key] else { return }
            left.removeAll { $0 === fetch }
            fetches[fetch.key] = left.isEmpty ? nil : left
        }
    }

    /// Fetches of a key that can be joined.
    func count(of key: CacheKey) -> Int { shard(key).fetches.withLock { $0[key]?.count ?? 0 } }
}
