// A resource by key: found in memory or on disk, checked with the origin, or fetched; the one place that puts these steps in order.

package import CacheStore
package import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization

/// The download core. It is shared by all loops; each question is answered on the loop that asks.
///
/// Sendable: what it holds is.
package final class DownloadCore: Sendable {
    package let cacheName: String
    package let memory: MemoryTier
    package let disk: DiskTier?
    package let clock: WallClock
    package let generations: Generations
    package let budget: FillBudget
    let store: TieredStore
    let partials: PartialTable
    let notes: KeyNotes
    let inFlight: SharedFetchTable
    let fetches: FetchTable
    /// What fetches for the store work with: all of the above, and more.
    let context: FetchContext
    /// Answers from seed folders.
    let seedAnswers = Atomic<Int>(0)
    /// Rules are being forgotten.
    private let isForgetting = Atomic<Bool>(false)
    /// The number of rules that there was no use in forgetting some of when it was last tried.
    private let crowd = Atomic<Int>(0)
    let hardPurged = Atomic<Int>(0)
    let softPurged = Atomic<Int>(0)

    /// - Parameters:
    ///   - cacheName: the pseudonym in Cache-Status.
    ///   - memoryMaxObject: bytes of one body that the memory tier takes at most.
    ///   - diskMaxObject: the same of the disk tier.
    ///   - generations: nil are those of the disk tier, which outlive the process; without a disk tier, new ones.
    ///   - headPatience: nanoseconds that the answer to a check by HEAD may take; then a GET asks.
    ///   - report: told what an operator may want to read of; any thread.
    package init(
        cacheName: String,
        memory: MemoryTier,
        memoryMaxObject: Int,
        disk: DiskTier?,
        diskMaxObject: Int,
        generations: Generations? = nil,
        budget: FillBudget,
        clock: WallClock,
        headPatience: UInt64 = 5_000_000_000,
        report: @escaping @Sendable (CoreReport) -> Void = { _ in }
    ) {
        self.cacheName = cacheName
        self.memory = memory
        self.disk = disk
        self.budget = budget
        self.clock = clock
        self.generations = generations ?? disk?.generations ?? Generations(pins: memory.pins)
        context = FetchContext(
            memory: memory,
            memoryMaxObject: memoryMaxObject,
            disk: disk,
            diskMaxObject: diskMaxObject,
            generations: self.generations,
            budget: budget,
            clock: clock,
            headPatience: headPatience,
            report: report
        )
        store = context.store
        partials = context.partials
        notes = context.notes
        inFlight = context.inFlight
        fetches = context.fetches
    }

    /// What has happened since the start. Any thread.
    package var counts: CoreCounts { notes.counts }

    /// Fetches for the store that are under way, until what they bring is stored or given up.
    package var fillCount: Int { context.underWay.count }

    /// Waits until no fetch for the store is under way.
    /// - Parameter patience: in nanoseconds.
    /// - Returns: false when the patience ended or the task was cancelled.
    @discardableResult
    package func settle(patience: UInt64, on loop: isolated EventLoop) async -> Bool {
        await context.underWay.none(patience: patience, on: loop)
    }

    /// What is stored of representations that are not whole.
    package var partialStatistics: PartialStatistics { partials.statistics }

    /// Nobody is asked: what is stored answers whatever its age, and everything else is 504. What is under way ends as it
    /// may. Any thread.
    package var isOffline: Bool {
        get { context.isOffline }
        set { context.isOffline = newValue }
    }

    /// Ends fetches: who waits for a head is answered with ``FetchError/stopped(_:)``, and who reads a body is cut off.
    /// What is stored stays, with its lifetime; requests that come later fetch anew. Any thread.
    ///
    /// Requests with other methods than GET and HEAD go on, since they may have had their effect already.
    /// - Parameter isMeant: by the key; called once for each fetch under way.
    package func cancel(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
        let result = fetches.cancel(isMeant)
        notes.count { $0.cancelled += result.fetches }
        return result
    }

    /// Removes what is stored under a key, and keeps fetches under way from being stored and from being joined: who asks
    /// after this gets nothing that is older than this.
    package func invalidate(_ key: CacheKey) {
        generations.bump(key)
        inFlight.forget(key)
        partials.remove(key)
        memory.remove(key)
        disk?.remove(key)
    }

    /// Invalidates what is stored for the URLs of these keys, in whatever service, and everything that the rules concern; what
    /// is on its way, too. When it returns, none of it comes back, however the process ends.
    /// - Parameter anyHost: keys in which any host may stand in the place of theirs: memory is walked for them.
    package func invalidate(
        _ keys: [CacheKey],
        _ rules: Set<InvalidationRule> = [],
        anyHost: [CacheKey] = []
    ) async {
        for key in keys { invalidate(key) }
        let hostless = anyHost.map { InvalidationRule.anyHost(of: $0) }
        let rules = Array(rules.union(keys.map { .url(of: $0) }).union(hostless))
        let number = generations.invalidate(rules)
        if !hostless.isEmpty {
            // The hot path asks no rule; a walk is too long for a loop.
            await Task { [memory] in memory.remove(concerned: Set(hostless), before: number) }.value
        }
        await disk?.keep(rules, number: number)
        forgetSpentRules()
    }

    /// Where there are many rules, those are forgotten that nothing stored is concerned by any more; behind, and one turn at
    /// a time.
    private func forgetSpentRules() {
        guard generations.isCrowded, generations.ruleCount > crowd.load(ordering: .relaxed),
            !isForgetting.exchange(true, ordering: .relaxed)
        else { return }
        Task { [self] in
            let newest = generations.newest
            if let disk {
                disk.sweep()
                await disk.settleSweep()
            }
            memory.removeInvalid(generations)
            generations.forgetSpent(upTo: newest)
            // While the folders are walked none can be: there is no use in trying again at once.
            crowd.store(generations.ruleCount + 1024, ordering: .relaxed)
            isForgetting.store(false, ordering: .relaxed)
        }
    }

    /// The answer to a GET or HEAD from the store, after a check, or from the origin.
    func search(
        _ ask: CacheAsk,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer {
        if ask.content == nil, let seed = ask.seed, let answer = await seeded(ask, seed, on: loop) { return answer }
        if ask.policy.mode == .none {
            return await relay(ask, source, Way(.bypass, StoreRefusal.cacheOff.rawValue), onInterim, on: loop)
        }
        let began = clock.now()
        // Each turn has seen a fetch end since the last one; who finds nothing after that fetches for itself.
        for turn in 0..<4 {
            var found = await store.find(ask, on: loop)
            if found.response == nil, let seed = ask.seed, await importSeeds(ask, seed) {
                found = await store.find(ask, on: loop)
            }
            let hasOthers = found.newest != nil
            let parts = found.response == nil ? partialStep(ask, source, hasOthers: hasOthers, on: loop) : nil
            let step = parts ?? decide(ask, found, on: loop)
            switch step {
            case .answer(let answer): return answer
            case .refreshBehind(let answer, let stale):
                refreshBehind(ask, source, stale, on: loop)
                return answer
            case .ask(let stale, let way, let plan):
                var question = Question(ask: ask, source: source, stale: stale, newest: found.newest, way: way)
                question.plan = plan
                question.began = began
                if let answer = await askOrigin(question, turn, onInterim, on: loop) { return answer }
            }
            if Task.isCancelled { return failure(.cancelled, Way(.uriMiss)) }
        }
        return await relay(ask, source, Way(.miss), onInterim, on: loop)
    }

    // MARK: - Deciding

    enum Step {
        case answer(Answer)
        case refreshBehind(Answer, StoredResponse)
        case ask(stale: StoredResponse?, Way, PartPlan? = nil)
    }

    private func decide(_ ask: CacheAsk, _ found: TieredStore.Found, on loop: isolated EventLoop) -> Step {
        guard let response = found.response else {
            if Caching.onlyIfCached(ask.request) {
                return .answer(gatewayTimeout("nothing is stored for this request"))
            }
            return .ask(stale: nil, Way(found.newest == nil ? .uriMiss : .varyMiss))
        }
        let decision = Caching.lookup(
            request: ask.request,
            stored: response.head,
            policy: ask.policy,
            now: clock.now(),
            isOffline: isOffline,
            failedCheck: notes.failedChecks.check(ask.key, now: clock.now())
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
        case .mismatch:
            if Caching.onlyIfCached(ask.request) {
                return .answer(gatewayTimeout("nothing is stored for this request"))
            }
            return .ask(stale: nil, Way(decision))
        case .stale: return .ask(stale: response, Way(decision))
        }
    }

    /// One refresh at a time, on whatever loop, for each variant.
    private func refreshBehind(
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
        if store.isSuperseded(stale) {
            // Who has joined meanwhile looks again.
            fetch.outcome.set(.failed(.cancelled))
            return inFlight.end(fetch)
        }
        let runner = SharedFetchRunner(context: context, fetch: fetch, ask: ask, source: source, stale: stale)
        runner.start(on: loop)
    }
}
