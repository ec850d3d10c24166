// A resource by key: found in memory or on disk, checked with the origin, or fetched; the one place that puts these steps in order.

package import CacheStore
package import EventLoop
import HTTPCaching
package import HTTPWire

/// The download core. It is shared by all loops; each question is answered on the loop that asks.
///
/// Sendable: what it holds is.
package final class DownloadCore: Sendable {
    package let cacheName: String
    package let memory: MemoryTier
    package let disk: DiskTier?
    package let clock: WallClock
    package let generations: Generations
    /// Bytes of one body that the memory tier takes at most.
    let memoryMaxObject: Int
    /// The same of the disk tier.
    let diskMaxObject: Int
    package let budget: FillBudget
    let store: TieredStore
    let fills = FillTable()
    let uncacheable = UncacheableKeys()
    let headRefusers = HeadRefusers()

    /// - Parameters:
    ///   - cacheName: the pseudonym in Cache-Status.
    ///   - memoryMaxObject: bytes of one body that the memory tier takes at most.
    ///   - diskMaxObject: the same of the disk tier.
    package init(
        cacheName: String,
        memory: MemoryTier,
        memoryMaxObject: Int,
        disk: DiskTier?,
        diskMaxObject: Int,
        generations: Generations = Generations(),
        budget: FillBudget,
        clock: WallClock
    ) {
        self.cacheName = cacheName
        self.memory = memory
        self.disk = disk
        self.budget = budget
        self.clock = clock
        self.memoryMaxObject = memoryMaxObject
        self.diskMaxObject = diskMaxObject
        self.generations = generations
        store = TieredStore(memory: memory, disk: disk, generations: generations)
    }

    /// Fills under way that others may join.
    package var fillCount: Int { fills.count }

    /// Removes what is stored under a key, and keeps fills under way from being stored and from being joined: who asks
    /// after this gets nothing that is older than this.
    package func invalidate(_ key: CacheKey) {
        generations.bump(key)
        fills.forget(key)
        memory.remove(key)
        disk?.remove(key)
    }

    /// Answers a GET or HEAD from the store, after a check, or from the origin.
    /// - Parameter onInterim: hears 1xx answers of a fetch that this question starts, on its loop.
    package func answer(
        _ ask: CacheAsk,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        if ask.policy.mode == .none {
            return await relay(ask, source, .bypass, StoreRefusal.cacheOff.rawValue, on: loop)
        }
        // Each turn has seen a fill end since the last one; who finds nothing after that fetches for itself.
        for turn in 0..<4 {
            let found = await store.find(ask, on: loop)
            let step = decide(ask, found, on: loop)
            switch step {
            case .answer(let answer): return answer
            case .refreshBehind(let answer, let stale):
                refreshBehind(ask, source, stale, on: loop)
                return answer
            case .ask(let stale, let forward):
                if let answer = await askOrigin(ask, source, stale, forward, turn, onInterim, on: loop) {
                    return answer
                }
            }
            if Task.isCancelled { return failure(.cancelled, forward: .uriMiss) }
        }
        return await relay(ask, source, .miss, nil, on: loop)
    }

    /// A fill is over: what it brought is stored, or will never be. Any thread.
    func finish(_ fill: Fill) {
        fills.remove(fill)
        fill.end.set(())
    }

    // MARK: - Deciding

    private enum Step {
        case answer(Answer)
        case refreshBehind(Answer, StoredResponse)
        case ask(stale: StoredResponse?, CacheStatus.Forward)
    }

    private func decide(_ ask: CacheAsk, _ found: TieredStore.Found, on loop: isolated EventLoop) -> Step {
        guard let response = found.response else {
            if Caching.onlyIfCached(ask.request) {
                return .answer(gatewayTimeout("nothing is stored for this request"))
            }
            return .ask(stale: nil, found.hasOthers ? .varyMiss : .uriMiss)
        }
        let decision = Caching.lookup(
            request: ask.request,
            stored: response.head,
            policy: ask.policy,
            now: clock.now()
        )
        switch decision {
        case .fresh(let age, let ttl):
            let status = CacheStatus(cacheName: cacheName, hit: true, ttl: ttl, detail: found.tier.rawValue)
            return .answer(stored(ask, response, age: age, status, on: loop))
        case .staleAllowed(let age, let by, let allowance):
            let status = CacheStatus(cacheName: cacheName, hit: true, ttl: -by, detail: allowance.rawValue)
            let answer = stored(ask, response, age: age, status, on: loop)
            return allowance == .whileRevalidate ? .refreshBehind(answer, response) : .answer(answer)
        case .onlyIfCachedMiss(let reason):
            return .answer(gatewayTimeout("the stored response needs a check (\(reason.rawValue))"))
        case .stale, .mismatch:
            if case .mismatch = decision { return .ask(stale: nil, decision.forward ?? .miss) }
            return .ask(stale: response, decision.forward ?? .stale)
        }
    }

    private func refreshBehind(
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ stale: StoredResponse,
        on loop: isolated EventLoop
    ) {
        guard let fill = fills.lead(ask.key) else { return }
        // A HEAD may have found it stale; what is stored is the answer to GET.
        var ask = ask
        ask.request.method = .get
        let runner = FillRunner(core: self, fill: fill, ask: ask, source: source, stale: stale)
        runner.start(on: loop)
    }

    // MARK: - Asking the origin

    /// Nil: look again, something has been stored meanwhile.
    private func askOrigin(
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ stale: StoredResponse?,
        _ forward: CacheStatus.Forward,
        _ turn: Int,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer? {
        let fields = ask.request.fields
        if ask.request.method == .head { return await relayHead(ask, source, stale, forward, on: loop) }
        if Caching.hasPreconditions(ask.request) {
            // Only the origin may refuse for them (RFC 9111 section 4.3.2).
            let reason = StaleReason.requestPrecondition.rawValue
            return await relay(ask, source, forward, reason, onInterim, on: loop)
        }
        if fields.contains(.range) { return await relay(ask, source, .bypass, "range", onInterim, on: loop) }
        let isAlone =
            turn > 1 || Caching.isReload(ask.request) || fields.contains(.authorization)
            || CacheControl(request: fields).noStore || uncacheable.contains(ask.key, now: clock.now())
        switch isAlone ? .full : fills.join(ask.key, maxWaiters: ask.collapse.waiters) {
        case .leader(let fill):
            return await lead(fill, ask, source, stale, forward, onInterim, on: loop)
        case .full:
            return await lead(Fill(key: ask.key), ask, source, stale, forward, onInterim, on: loop)
        case .waiter(let fill):
            defer { fill.leave() }
            if isWhole(fill) {
                // All has come and is being stored: a moment later it is a hit.
                _ = await fill.end.wait(patience: ask.collapse.wait, on: loop)
                return nil
            }
            guard let outcome = await fill.outcome.wait(patience: ask.collapse.wait, on: loop) else {
                if Task.isCancelled { return failure(.cancelled, forward: forward) }
                return await lead(Fill(key: ask.key), ask, source, stale, forward, onInterim, on: loop)
            }
            return joined(ask, outcome, stale, forward, on: loop)
        }
    }

    private func isWhole(_ fill: Fill) -> Bool {
        guard case .streaming(let response)? = fill.outcome.value, case .complete = response.body.end else {
            return false
        }
        return true
    }

    private func lead(
        _ fill: Fill,
        _ ask: CacheAsk,
        _ source: any FetchSource,
        _ stale: StoredResponse?,
        _ forward: CacheStatus.Forward,
        _ onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer {
        let began = Monotonic.now()
        let runner = FillRunner(core: self, fill: fill, ask: ask, source: source, stale: stale)
        runner.onInterim = onInterim
        runner.hasLeader = true
        runner.start(on: loop)
        let outcome = await fill.outcome.wait(patience: nil, on: loop)
        runner.onInterim = nil
        let reader = runner.takeLeaderReader()
        guard let outcome else {
            // The client has left. Others may wait on a shared fill, and what is stored serves the next one.
            if !fills.contains(fill), fill.waiters == 0 { runner.cancel() }
            return failure(.cancelled, forward: forward)
        }
        var answer = settled(ask, outcome, reader, forward, isCollapsed: false, on: loop)
        answer.originTime = Monotonic.now() &- began
        return answer
    }

    /// A waiter decides again with what came: nil where it has to look or fetch for itself.
    private func joined(
        _ ask: CacheAsk,
        _ outcome: FillOutcome,
        _ stale: StoredResponse?,
        _ forward: CacheStatus.Forward,
        on loop: isolated EventLoop
    ) -> Answer? {
        switch outcome {
        case .streaming(let fetched):
            guard let head = fetched.stored,
                case .fresh = Caching.lookup(
                    request: ask.request,
                    stored: head,
                    policy: ask.policy,
                    now: clock.now()
                ),
                let reader = fetched.body.makeReader(on: loop)
            else { return nil }
            return settled(ask, outcome, reader, forward, isCollapsed: true, on: loop)
        case .refreshed, .failed(.cancelled): return nil
        case .stale(_, let cause):
            // The leader's stale response may be another variant: each uses its own, if it has one that it may use.
            guard let stale, mayServeStale(stale, ask, errorStatus: cause.errorStatus) else { return nil }
            return settled(ask, .stale(stale, cause: cause), nil, forward, isCollapsed: true, on: loop)
        case .failed(let error):
            guard let stale, error.isOriginFailure, mayServeStale(stale, ask, errorStatus: nil) else {
                return settled(ask, outcome, nil, forward, isCollapsed: true, on: loop)
            }
            return settled(ask, .stale(stale, cause: .error(error)), nil, forward, isCollapsed: true, on: loop)
        }
    }

    /// Whether a stale response may stand in for an answer with `errorStatus`, or for none (RFC 9111 section 4.2.4).
    func mayServeStale(_ stale: StoredResponse, _ ask: CacheAsk, errorStatus: Int?) -> Bool {
        Caching.mayServeStale(
            stored: stale.head,
            policy: ask.policy,
            staleness: Caching.staleness(stale.head, policy: ask.policy, now: clock.now()),
            request: ask.request,
            errorStatus: errorStatus
        ).isAllowed
    }

    func settled(
        _ ask: CacheAsk,
        _ outcome: FillOutcome,
        _ reader: BodyReader?,
        _ forward: CacheStatus.Forward,
        isCollapsed: Bool,
        on loop: isolated EventLoop
    ) -> Answer {
        var status = CacheStatus(cacheName: cacheName, forward: forward, collapsed: isCollapsed)
        let now = clock.now()
        switch outcome {
        case .streaming(let fetched):
            status.forwardStatus = fetched.status
            switch fetched.decision {
            case .store:
                status.stored = fetched.isKept
                if fetched.replacesStale { status.detail = CacheStatus.Detail.replaced.rawValue }
            case .refuse(let refusal): status.detail = refusal.rawValue
            }
            return arriving(ask, fetched, reader, status)
        case .refreshed(let response, let code):
            status.forwardStatus = code
            status.detail = CacheStatus.Detail.revalidated.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .stale(let response, let cause):
            if case .status(let code) = cause { status.forwardStatus = code }
            status.detail = CacheStatus.Detail.staleIfError.rawValue
            status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
            return stored(ask, response, age: Caching.age(response.head, now: now), status, on: loop)
        case .failed(let error):
            return failure(error, forward: forward, isCollapsed: isCollapsed)
        }
    }
}
