// A resource by key: found in memory or on disk, checked with the origin, or fetched; the one place that puts these
// steps in order.

package import CacheStore
package import EventLoop
import HTTPCaching
package import HTTPWire

/// The download core. It is shared by all loops; each question is answered on the loop that asks.
///
/// Sendable: what it holds is.
package final class DownloadCore: Sendable {
    package let cacheName: String
    package let clock: WallClock
    package let generations: Generations
    package let budget: FillBudget
    /// What the parts of the core, and the fetches that outlive requests, work with: all of the above, and more.
    let context: FetchContext
    let answers: AnswerMaker
    let lookup: Lookup
    let sharedFetches: SharedFetches
    let forwarder: Forwarder
    let housekeeping: Housekeeping
    let seeds: SeedAnswers

    /// - Parameters:
    ///   - cacheName: the pseudonym in Cache-Status.
    ///   - memoryMaxObject: bytes of one body that the memory tier takes at most.
    ///   - tiers: behind memory, in the order in which they are asked; see ``closeStore()``.
    ///   - diskMaxObject: bytes of one body that they take at most.
    ///   - generations: nil are those that a tier keeps, which outlive the process; where none does, new ones.
    ///   - headPatience: nanoseconds that the answer to a check by HEAD may take; then a GET asks.
    ///   - report: told what an operator may want to read of; any thread.
    package init(
        cacheName: String,
        memory: MemoryTier,
        memoryMaxObject: Int,
        behind tiers: [any ResponseTier],
        diskMaxObject: Int,
        generations: Generations? = nil,
        budget: FillBudget,
        clock: WallClock,
        headPatience: UInt64 = 5_000_000_000,
        report: @escaping @Sendable (CoreReport) -> Void = { _ in }
    ) {
        self.cacheName = cacheName
        self.budget = budget
        self.clock = clock
        let kept = generations ?? tiers.lazy.compactMap(\.keptGenerations).first
        self.generations = kept ?? Generations(pins: memory.pins)
        context = FetchContext(
            memory: memory,
            memoryMaxObject: memoryMaxObject,
            behind: tiers,
            diskMaxObject: diskMaxObject,
            generations: self.generations,
            budget: budget,
            clock: clock,
            headPatience: headPatience,
            report: report
        )
        answers = AnswerMaker(cacheName: cacheName, clock: clock)
        seeds = SeedAnswers(context, answers)
        lookup = Lookup(context, answers, seeds)
        forwarder = Forwarder(context, answers)
        sharedFetches = SharedFetches(context, answers, forwarder)
        housekeeping = Housekeeping(context)
    }

    /// What has happened since the start. Any thread.
    package var counts: CoreCounts { context.notes.counts }

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
    package var partialStatistics: PartialStatistics { context.partials.statistics }

    /// Nobody is asked: what is stored answers whatever its age, and everything else is 504. What is under way ends as
    /// it may. Any thread.
    package var isOffline: Bool {
        get { context.isOffline }
        set { context.isOffline = newValue }
    }

    // MARK: - Answering

    /// Answers a GET or HEAD from the store, after a check, from the origin, or with what stands in for its answer.
    /// - Parameter onInterim: hears 1xx answers of a fetch that this question starts, on its loop.
    package func answer(
        _ ask: CacheAsk,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        let answer = await search(ask, from: source, onInterim: onInterim, on: loop)
        guard let fallback = ask.phases?.fallback else { return answer }
        let hasFailed = answer.failure?.isOriginFailure ?? (answer.head.status >= 500)
        guard hasFailed else { return answer }
        answer.reader?.close()
        context.notes.count { $0.fallbacks += 1 }
        var status = answer.cacheStatus ?? CacheStatus(cacheName: cacheName)
        (status.hit, status.stored, status.ttl) = (false, false, nil)
        status.detail = CacheStatus.Detail.fallback.rawValue
        var result = answers.standIn(fallback, ask, status, on: loop)
        result.originTime = answer.originTime
        result.cause = answer.failure?.description ?? "the origin answered \(answer.head.status)"
        return result
    }

    /// The answer to a GET or HEAD from the store, after a check, or from the origin.
    private func search(
        _ ask: CacheAsk,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)?,
        on loop: isolated EventLoop
    ) async -> Answer {
        if ask.content == nil, let seed = ask.seed, let answer = await seeds.answer(ask, seed, on: loop) {
            return answer
        }
        if ask.policy.mode == .none {
            let way = Way(.bypass, StoreRefusal.cacheOff.rawValue)
            return await forwarder.relay(ask, source, way, onInterim, on: loop)
        }
        let began = clock.now()
        // Each turn has seen a fetch end since the last one; who finds nothing after that fetches for itself.
        for turn in 0..<4 {
            let (step, newest) = await lookup.step(for: ask, source, on: loop)
            switch step {
            case .answer(let answer): return answer
            case .refreshBehind(let answer, let stale):
                sharedFetches.refreshBehind(ask, source, stale, on: loop)
                return answer
            case .ask(let stale, let way, let plan):
                var question = Question(ask: ask, source: source, stale: stale, newest: newest, way: way)
                question.plan = plan
                question.began = began
                if let answer = await sharedFetches.askOrigin(question, turn, onInterim, on: loop) { return answer }
            }
            if Task.isCancelled { return answers.failure(.cancelled, Way(.uriMiss)) }
        }
        return await forwarder.relay(ask, source, Way(.miss), onInterim, on: loop)
    }
}
