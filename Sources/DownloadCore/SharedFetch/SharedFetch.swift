// A fetch that several requests may wait for, what came of it, and the table of such fetches by key.

package import CacheStore
import EventLoop
package import HTTPCaching
package import HTTPWire
import Policies
import Synchronization

/// What a shared fetch came to, as soon as that is known. One reference, since many wait for it.
package indirect enum FillOutcome: Sendable {
    /// A response is arriving.
    case streaming(FetchedResponse)
    /// A validation confirmed the stored response; with the status of its answer, and whether other requests
    /// may share the updated head.
    case refreshed(StoredResponse, status: Int, isShared: Bool)
    /// The check or the fetch failed, and the stale stored response may be used.
    case stale(StoredResponse, cause: StaleCause)
    /// A part is arriving, or stored parts were checked and are good; with the head of the whole, as this request may
    /// see it, and the status of the answer.
    case part(IncompleteResponse, StoredHead, status: Int)
    /// The check failed, and the stale stored parts may be used.
    case stalePart(IncompleteResponse, cause: StaleCause)
    /// The stored responses have changed: search the store again.
    case again
    /// The response is for one request alone and incomplete: that request is forwarded as it is, for the given reason.
    case alone(String?)
    /// Nothing came.
    case failed(FetchError)
}

/// Why a stale response is answered.
package enum StaleCause: Sendable {
    /// The origin answered with this status.
    case status(Int)
    /// The origin could not be asked.
    case error(FetchError)

    /// The status of the origin's answer; nil without an answer.
    package var errorStatus: Int? {
        if case .status(let status) = self { status } else { nil }
    }
}

/// A response on its way.
package struct FetchedResponse: Sendable {
    /// End-to-end fields only.
    package let head: ResponseHead
    package let body: Body
    /// Whether it is being stored, and why or why not.
    package let decision: StoreDecision
    /// The head as it would be stored; a request's conditions are evaluated against it.
    package let described: StoredHead
    /// The described response if it is being stored, else nil.
    package var stored: StoredHead? { if case .store = decision { described } else { nil } }
    /// Why no tier takes the response although it may be stored; nil where one does, if all of it comes.
    package let placementRefusal: UnstoredReason?
    /// A stored response was checked before and found to be changed.
    package let replacesStale: Bool
    /// Why a forwarded 206 is not stored.
    var partRefusal: String?
    /// The invalidation token of the time when the fetch began, for what the head says.
    let token: InvalidationToken
    /// Set when it is stored, or will never be, with the reason why no tier has it.
    var end: Latch<UnstoredReason?>?
    /// The status that the origin answered.
    package var status: Int { head.status }
}

/// One fetch that others may join. Any loop.
///
/// Sendable: `state` is under its mutex. Nothing is called and no other lock is taken while it is held.
final class SharedFetch: Sendable {
    let key: CacheKey
    /// The request that began it.
    let request: RequestHead
    /// How urgent it is; nil where a client began it.
    let urgency: FetchUrgency?
    /// Set as soon as it is known what the origin says.
    let outcome = Latch<FillOutcome>()
    /// Set when the last byte has come and what is to be stored is stored, or when the fetch has failed; with the
    /// reason why no tier has what its head said would be stored.
    let end = Latch<UnstoredReason?>()
    private let guarded: Mutex<Guarded>

    private struct Guarded {
        var state: SharedFetchState
        /// Tells the runner what it has to do, on its loop.
        var tellRunner: (@Sendable (SharedFetchState.Actions) -> Void)?
    }

    /// - Parameters:
    ///   - isLed: the request waits for it; else it goes on by itself.
    ///   - isListed: others may join.
    init(_ ask: CacheRequest, isLed: Bool, isListed: Bool) {
        key = ask.key
        request = ask.request
        urgency = ask.urgency
        let endsUnawaited = !ask.onClientAbort.goesOn(received: 0, length: nil)
        let state = SharedFetchState(isLed: isLed, isListed: isListed, endsUnawaited: endsUnawaited)
        guarded = Mutex(Guarded(state: state))
    }

    /// The state at this moment.
    var state: SharedFetchState { guarded.withLock { $0.state } }

    /// - Returns: what the caller does now; the table does its part in ``SharedFetchTable/send(_:to:)``.
    func handle(_ event: SharedFetchState.Event) -> SharedFetchState.Actions {
        guarded.withLock { $0.state.handle(event) }
    }

    /// - Parameter tell: called on any thread when somebody who has left leaves the runner something to do.
    func connect(_ tell: @escaping @Sendable (SharedFetchState.Actions) -> Void) {
        let old = guarded.withLock { guarded in
            defer { guarded.tellRunner = tell }
            return guarded.tellRunner
        }
        withExtendedLifetime(old) {}
    }

    /// Leaves it to the runner, on its loop, to do what actions say.
    func tellRunner(_ actions: SharedFetchState.Actions) { guarded.withLock { $0.tellRunner }?(actions) }

    /// Whether `request` may be answered by what this fetch brings, as far as anybody can tell (RFC 9111 section 4.1).
    /// - Parameter known: a stored response of the same key: what it varies by, the next one probably varies by, too.
    func maySelect(_ request: RequestHead, known: StoredHead?) -> Bool {
        if case .streaming(let response)? = outcome.value {
            return response.stored.map { Caching.selects(stored: $0, request: request) } ?? true
        }
        guard var expected = known, !expected.varyNames.isEmpty else { return true }
        expected.varyFields = expected.selectingFields(of: self.request)
        return Caching.selects(stored: expected, request: request)
    }

    /// Requests that wait for the outcome, or read what came of it.
    var audience: Int {
        guard let outcome = outcome.value else {
            let state = state
            return state.waiters + (state.isLed ? 1 : 0)
        }
        if case .streaming(let response) = outcome { return response.body.readerCount }
        return 0
    }
}

extension StoredHead {
    /// The lines of `request` that select this response.
    func selectingFields(of request: RequestHead) -> Fields {
        var fields = Fields()
        for name in varyNames {
            for value in request.fields.all(name) { _ = fields.append(name, value) }
        }
        return fields
    }
}

// MARK: - The table of fetches that requests may join

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
