// A fetch that several requests may wait for, its outcome, and the table of such fetches by key.

package import CacheStore
import EventLoop
package import HTTPCaching
package import HTTPWire
import Policies
import Synchronization

/// The outcome of a shared fetch, published as soon as it is known. It takes one reference, because many requests wait
/// for it.
package indirect enum FillOutcome: Sendable {
    /// A response is arriving.
    case streaming(FetchedResponse)
    /// A validation confirmed the stored response; with the status of its answer, and whether other requests may share
    /// the updated head.
    case refreshed(StoredResponse, status: Int, isShared: Bool)
    /// The check or the fetch failed, and the stale stored response may be used.
    case stale(StoredResponse, cause: StaleCause)
    /// A part is arriving, or stored parts were checked and are current; with the head of the whole as this request may
    /// see it, and the status of the answer.
    case part(IncompleteResponse, StoredHead, status: Int)
    /// The check failed, and the stale stored parts may be used.
    case stalePart(IncompleteResponse, cause: StaleCause)
    /// The stored responses have changed, so that the request searches the store again.
    case again
    /// The response is incomplete and for one request alone: that request is forwarded as it is, for the given reason.
    case alone(String?)
    /// The fetch failed without an answer.
    case failed(FetchError)
}

/// The reason why a stale response answers.
package enum StaleCause: Sendable {
    /// The origin answered with this status.
    case status(Int)
    /// The origin could not be contacted.
    case error(FetchError)

    /// The status of the origin's answer; nil without an answer.
    package var errorStatus: Int? {
        if case .status(let status) = self { status } else { nil }
    }
}

/// A response that is arriving.
package struct FetchedResponse: Sendable {
    /// The head with end-to-end fields only.
    package let head: ResponseHead
    package let body: Body
    /// The decision whether it is stored, with its reason.
    package let decision: StoreDecision
    /// The head as it would be stored; a request's conditions are evaluated against it.
    package let described: StoredHead
    /// The head as it is being stored; nil if it is not stored.
    package var stored: StoredHead? { if case .store = decision { described } else { nil } }
    /// The reason why no tier takes the response although it may be stored; nil if a tier takes it when all of it has
    /// arrived.
    package let placementRefusal: UnstoredReason?
    /// Whether a stored response was checked before and has changed.
    package let replacesStale: Bool
    /// The reason why a forwarded 206 is not stored.
    var partRefusal: String?
    /// The invalidation token of the fetch's start, with the rules that match the head.
    let token: InvalidationToken
    /// Set when the response is stored, or will never be, with the reason why no tier has it.
    var end: Latch<UnstoredReason?>?
    /// The status of the origin's answer.
    package var status: Int { head.status }
}

/// One fetch that others may join. Any loop.
///
/// Sendable: `state` is under its mutex. Nothing is called and no other lock is taken while it is held.
final class SharedFetch: Sendable {
    let key: CacheKey
    /// The request that began the fetch.
    let request: RequestHead
    /// The urgency of the fetch; nil if a client began it.
    let urgency: FetchUrgency?
    /// Set as soon as the outcome is known.
    let outcome = Latch<FillOutcome>()
    /// Set after the last byte when storing has ended, or when the fetch has failed; with the reason why no tier has a
    /// response whose head said that it would be stored.
    let end = Latch<UnstoredReason?>()
    private let guarded: Mutex<Guarded>

    private struct Guarded {
        var state: SharedFetchState
        /// Hands actions to the runner, on its loop.
        var tellRunner: (@Sendable (SharedFetchState.Actions) -> Void)?
    }

    /// Makes a fetch.
    /// - Parameters:
    ///   - isLed: whether the request waits for it; if not, it goes on by itself.
    ///   - isListed: whether others may join.
    init(_ ask: CacheRequest, isLed: Bool, isListed: Bool) {
        key = ask.key
        request = ask.request
        urgency = ask.urgency
        let endsUnawaited = !ask.onClientAbort.goesOn(received: 0, length: nil)
        let state = SharedFetchState(isLed: isLed, isListed: isListed, endsUnawaited: endsUnawaited)
        guarded = Mutex(Guarded(state: state))
    }

    /// The present state.
    var state: SharedFetchState { guarded.withLock { $0.state } }

    /// Applies an event to the state.
    /// - Returns: the actions for the caller; the table does its part of them in ``SharedFetchTable/send(_:to:)``.
    func handle(_ event: SharedFetchState.Event) -> SharedFetchState.Actions {
        guarded.withLock { $0.state.handle(event) }
    }

    /// Connects the runner.
    /// - Parameter tell: called on any thread with actions for the runner, when a request that leaves causes some.
    func connect(_ tell: @escaping @Sendable (SharedFetchState.Actions) -> Void) {
        let old = guarded.withLock { guarded in
            defer { guarded.tellRunner = tell }
            return guarded.tellRunner
        }
        withExtendedLifetime(old) {}
    }

    /// Hands actions to the runner, which takes them on its loop.
    func tellRunner(_ actions: SharedFetchState.Actions) { guarded.withLock { $0.tellRunner }?(actions) }

    /// Whether `request` may be answered by the response of this fetch, as far as that can be known (RFC 9111 section
    /// 4.1).
    /// - Parameter known: a stored response of the same key, because the next one probably varies by the same fields.
    func maySelect(_ request: RequestHead, known: StoredHead?) -> Bool {
        if case .streaming(let response)? = outcome.value {
            return response.stored.map { Caching.selects(stored: $0, request: request) } ?? true
        }
        guard var expected = known, !expected.varyNames.isEmpty else { return true }
        expected.varyFields = expected.selectingFields(of: self.request)
        return Caching.selects(stored: expected, request: request)
    }

    /// The number of requests that wait for the outcome, or read the body.
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
/// Sendable: sharded, each shard under its own mutex. A shard is an index: the state of a fetch, read under the shard's
/// mutex, says whether it may be joined.
final class SharedFetchTable: Sendable {
    /// The result of joining a fetch.
    enum Admission {
        /// The fetch is new, and the caller runs it.
        case leader(SharedFetch)
        /// The fetch is under way; the caller calls ``SharedFetchTable/leave(_:isReading:)`` when it has waited.
        case waiter(SharedFetch)
        /// The fetch has the largest number of waiting requests.
        case full
    }

    private final class Shard: Sendable {
        let fetches = Mutex<[CacheKey: [SharedFetch]]>([:])
    }

    private let shards: [Shard] = (0..<16).map { _ in Shard() }
    private let underWay: UnderWay

    /// Makes a table.
    /// - Parameter underWay: counts the fetches that have not ended, listed or not.
    init(_ underWay: UnderWay) { self.underWay = underWay }

    private func make(_ ask: CacheRequest, isLed: Bool, isListed: Bool) -> SharedFetch {
        underWay.begin()
        return SharedFetch(ask, isLed: isLed, isListed: isListed)
    }

    private func shard(_ key: CacheKey) -> Shard { shards[Int(truncatingIfNeeded: key.hash & 15)] }

    // MARK: - Beginning and joining

    /// Finds a fetch whose answer may serve this request, or begins one.
    /// - Parameter known: a stored response of the same key, if there is one.
    func join(_ ask: CacheRequest, known: StoredHead?) -> Admission {
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

    /// Begins a fetch that no request waits for; nil if one is under way whose answer may serve this request.
    func beginBehind(_ ask: CacheRequest, known: StoredHead?) -> SharedFetch? {
        shard(ask.key).fetches.withLock { fetches in
            let others = fetches[ask.key] ?? []
            if others.contains(where: { $0.state.isListed && $0.maySelect(ask.request, known: known) }) { return nil }
            let fetch = make(ask, isLed: false, isListed: true)
            fetches[ask.key] = others + [fetch]
            return fetch
        }
    }

    /// Begins a fetch that no other request can find.
    func beginAlone(_ ask: CacheRequest) -> SharedFetch { make(ask, isLed: true, isListed: false) }

    // MARK: - Events

    /// Applies an event to a fetch, and does the table's part of the actions.
    /// - Returns: the actions; the caller does the rest of them.
    @discardableResult
    func send(_ event: SharedFetchState.Event, to fetch: SharedFetch) -> SharedFetchState.Actions {
        let actions = fetch.handle(event)
        carryOut(actions, on: fetch)
        return actions
    }

    /// Does the table's part of actions.
    func carryOut(_ actions: SharedFetchState.Actions, on fetch: SharedFetch) {
        if actions.contains(.unlist) { remove(fetch) }
        if actions.contains(.endUnderWay) { underWay.end() }
    }

    /// Called when a request that the table counted as waiting does not wait any more.
    /// - Parameter isReading: whether it reads the body; then its ``SharedFetchState/Event/readerOpened`` was sent.
    func leave(_ fetch: SharedFetch, isReading: Bool) {
        let actions = send(.waiterLeft(isReading: isReading), to: fetch)
        if !actions.isDisjoint(with: [.cancel, .checkReaders]) { fetch.tellRunner(actions) }
    }

    /// Ends a fetch for an operator: waiting requests are answered at once, and later ones begin a fetch of their own.
    /// Any thread.
    func stop(_ fetch: SharedFetch, _ error: FetchError) {
        // Set before the event: otherwise the runner, which may see at once that the fetch stops, would set another
        // outcome first.
        fetch.outcome.set(.failed(error))
        send(.stopped, to: fetch)
    }

    /// Drops the requests that wait for a fetch, for an operator: they are answered at once, and the fetch goes on for
    /// the store. Later requests may join it. Any thread.
    /// - Returns: the number of dropped requests; nil if the fetch has its outcome.
    func dropWaiters(of fetch: SharedFetch, _ error: FetchError) -> Int? {
        // Sent before the requests are answered: the fetch must not end because the last of them leaves.
        guard send(.waitersDropped, to: fetch).contains(.dropWaiters) else { return nil }
        return fetch.outcome.release(.failed(error))
    }

    /// Ends a fetch whose response is stored, or will never be. Any thread.
    /// - Parameter reason: the reason why no tier has a response whose head said that it would be stored; nil
    ///   otherwise.
    func end(_ fetch: SharedFetch, unstored reason: UnstoredReason? = nil) {
        let actions = fetch.handle(.ended)
        carryOut(actions.intersection(.unlist), on: fetch)
        fetch.end.set(reason)
        // This is the last step: when no fetch is under way any more, the loops may be stopped.
        carryOut(actions.intersection(.endUnderWay), on: fetch)
    }

    /// Removes the fetches of a key from the table; requests that wait for them go on waiting.
    func forget(_ key: CacheKey) {
        let forgotten = shard(key).fetches.withLock { fetches in
            let forgotten = fetches.removeValue(forKey: key) ?? []
            for fetch in forgotten { _ = fetch.handle(.forgotten) }
            return forgotten
        }
        // Released outside the mutex, because a fetch holds its body, and the body its file.
        withExtendedLifetime(forgotten) {}
    }

    private func remove(_ fetch: SharedFetch) {
        shard(fetch.key).fetches.withLock { fetches in
            guard var left = fetches[fetch.key] else { return }
            left.removeAll { $0 === fetch }
            fetches[fetch.key] = left.isEmpty ? nil : left
        }
    }

    /// The number of fetches of a key that can be joined.
    func count(of key: CacheKey) -> Int { shard(key).fetches.withLock { $0[key]?.count ?? 0 } }
}
