// Answers for a resource by key: found in memory or on disk, checked with the origin, or fetched. This is the one type
// that puts these steps in order.

package import CacheStore
package import EventLoop
import HTTPCaching
package import HTTPWire

/// The download core. All loops share it; each request is answered on its own loop.
///
/// Sendable: all members are.
package final class DownloadCore: Sendable {
    package let cacheName: String
    /// The memory tier, for the fast path, whose lookup must not wait.
    package let memory: MemoryTier
    /// The tier whose open files the fast path answers from; nil if no tier has files.
    let files: (any FileTier)?
    package let clock: WallClock
    package let invalidations: Invalidations
    package let budget: BodyBudget
    /// The state that the parts of the core share with fetches that outlive their requests.
    let context: FetchContext
    let sharedFetches: SharedFetches

    // MARK: - The parts, which the modules above ask by themselves

    /// All tiers, with their statistics, listings and limits.
    package let store: TieredStore
    /// Makes answers from representations that are at hand, and from failures.
    package let answers: AnswerMaker
    /// Finds and explains what is stored for a request.
    package let lookup: Lookup
    /// Forwards requests without storing their answers.
    package let forwarder: Forwarder
    /// Invalidates, purges and pins stored responses, and ends fetches.
    package let housekeeping: Housekeeping
    /// Answers from seed folders.
    package let seeds: SeedAnswers

    /// Makes a core.
    /// - Parameters:
    ///   - cacheName: the name of this cache in Cache-Status.
    ///   - memoryMaxObject: the largest body of the memory tier, in bytes.
    ///   - tiers: the tiers behind memory, in the order in which they are asked; see ``TieredStore/close()``.
    ///   - diskMaxObject: the largest body of these tiers, in bytes.
    ///   - invalidations: the rules in force; nil for those of a tier that keeps them across restarts, or new ones if
    ///     no tier
    ///     does.
    ///   - headTimeout: the time for the answer to a validation by HEAD, in nanoseconds; a GET follows after it.
    ///   - report: called with events for the operator's log, on any thread.
    package init(
        cacheName: String,
        memory: MemoryTier,
        memoryMaxObject: Int,
        behind tiers: [any ResponseTier],
        diskMaxObject: Int,
        invalidations: Invalidations? = nil,
        budget: BodyBudget,
        clock: WallClock,
        headTimeout: UInt64 = 5_000_000_000,
        report: @escaping @Sendable (CoreEvent) -> Void = { _ in }
    ) {
        self.cacheName = cacheName
        self.budget = budget
        self.clock = clock
        let kept = invalidations ?? tiers.lazy.compactMap(\.keptGenerations).first
        self.invalidations = kept ?? Invalidations(pins: memory.pins)
        context = FetchContext(
            memory: memory,
            memoryMaxObject: memoryMaxObject,
            behind: tiers,
            diskMaxObject: diskMaxObject,
            invalidations: self.invalidations,
            budget: budget,
            clock: clock,
            headTimeout: headTimeout,
            report: report
        )
        self.memory = memory
        store = context.store
        files = context.store.files
        answers = AnswerMaker(cacheName: cacheName, clock: clock)
        seeds = SeedAnswers(context, answers)
        lookup = Lookup(context, answers, seeds)
        forwarder = Forwarder(context, answers)
        sharedFetches = SharedFetches(context, answers, forwarder)
        housekeeping = Housekeeping(context)
    }

    /// The counts of events since the start. Any thread.
    package var counts: CoreCounts { context.notes.counts }

    /// The number of shared fetches under way. A fetch counts until its response is stored or dropped.
    package var fillCount: Int { context.underWay.count }

    /// Waits until no fetch for the store is under way.
    /// - Parameter timeout: nanoseconds.
    /// - Returns: false if the time was up or the task was cancelled.
    @discardableResult
    package func settle(timeout: UInt64, on loop: isolated EventLoop) async -> Bool {
        await context.underWay.none(timeout: timeout, on: loop)
    }

    /// The statistics of incomplete responses.
    package var partialStatistics: PartialStatistics { context.partials.statistics }

    /// Whether the daemon is offline: no origin is contacted, a stored response answers at any age, and every other
    /// request gets a 504. Fetches under way continue. Any thread.
    package var isOffline: Bool {
        get { context.isOffline }
        set { context.isOffline = newValue }
    }

    // MARK: - Files that are ready

    /// The stored response of a GET that only has to be fresh: nothing of its key is in memory, the disk has exactly
    /// one response of it, whose file is open and unchanged, and no rule concerns it. Any thread; never waits for the
    /// disk.
    /// - Parameters:
    ///   - keyBytes: the key in the form of `CacheKey.bytes`.
    ///   - hash: `CacheKey.hash(keyBytes)`.
    ///   - selects: whether the request selects a response that varies.
    package func readyFile(
        _ keyBytes: UnsafeRawBufferPointer,
        hash: UInt64,
        where selects: (ResidentResponse) -> Bool
    ) -> ReadyFile? {
        guard let files, !memory.holds(keyBytes, hash: hash),
            let file = files.readyFile(keyBytes, where: selects),
            invalidations.verdict(file.response) == .valid
        else { return nil }
        return file
    }

    /// Counts an answer from a file. Any thread.
    package func noteUse(of file: ReadyFile) { files?.noteUse(of: file) }

    // MARK: - Answering

    /// Answers a GET or HEAD from the store, after a validation, from the origin, or with a placeholder or fallback.
    /// - Parameters:
    ///   - onInterim: called on the loop with each 1xx response of a fetch that this request starts.
    ///   - instead: called before the origin is contacted, with whether the request validates a stored response; if it
    ///     returns a
    ///     status, the answer is empty with that status, and the origin is not contacted.
    package func answer(
        _ ask: CacheRequest,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)? = nil,
        instead: ((_ isStored: Bool) -> Int?)? = nil,
        on loop: isolated EventLoop
    ) async -> Answer {
        let answer = await search(ask, from: source, onInterim: onInterim, instead: instead, on: loop)
        if answer.isUnasked { return answer }
        if servesOtherVariants(ask), let other = await lookup.others.answer(ask, insteadOf: answer, on: loop) {
            answer.reader?.close()
            return other
        }
        return withFallback(answer, ask, on: loop)
    }

    // Steps of an answer that never wait are separate functions, so that a waiting request has none of their variables
    // in its frames.

    @inline(never) private func servesOtherVariants(_ ask: CacheRequest) -> Bool { ask.policy.otherVariant == .serve }

    /// The answer, or the route's fallback if the fallback replaces it.
    @inline(never) private func withFallback(
        _ answer: Answer,
        _ ask: CacheRequest,
        on loop: isolated EventLoop
    ) -> Answer {
        guard let fallback = ask.phases?.fallback else { return answer }
        let status = answer.head.status
        // The fallback is not what a client that gets 412 or 416 has a part or a version of.
        let isOfRequest = status == 412 || status == 416
        let isFailure = ask.policy.success == nil ? status >= 500 : !isOfRequest && !ask.policy.isSuccess(status)
        guard answer.failure?.isOriginFailure ?? isFailure else { return answer }
        answer.reader?.close()
        context.notes.count { $0.fallbacks += 1 }
        var cacheStatus = answer.cacheStatus ?? CacheStatus(cacheName: cacheName)
        (cacheStatus.hit, cacheStatus.stored, cacheStatus.ttl) = (false, false, nil)
        cacheStatus.detail = CacheStatus.Detail.fallback.rawValue
        var result = answers.standIn(fallback, ask, cacheStatus, on: loop)
        result.originTime = answer.originTime
        result.cause = answer.failure?.description ?? "the origin answered \(status)"
        return result
    }

    /// The answer to a GET or HEAD from the store, after a check, or from the origin.
    private func search(
        _ ask: CacheRequest,
        from source: any FetchSource,
        onInterim: ((ResponseHead) -> Void)?,
        instead: ((_ isStored: Bool) -> Int?)?,
        on loop: isolated EventLoop
    ) async -> Answer {
        if let seed = seed(of: ask), let answer = await seeds.answer(ask, seed, on: loop) { return answer }
        if let forwardReason = bypass(ask) {
            if !isOffline, let status = instead?(false) { return answers.unasked(status) }
            return await forwarder.forward(ask, source, forwardReason, onInterim, on: loop)
        }
        let began = clock.now()
        // A fetch has ended in each turn since the last one; a request that then finds nothing fetches for itself.
        for turn in 0..<4 {
            switch await lookup.step(for: ask, source, since: began, on: loop) {
            case .answer(let answer): return answer
            case .refreshBehind(let answer, let stale):
                sharedFetches.refreshBehind(ask, source, stale, on: loop)
                return answer
            case .ask(let miss):
                if let status = instead?(miss.stale != nil) { return answers.unasked(status) }
                if let answer = await sharedFetches.askOrigin(miss, turn, onInterim, on: loop) { return answer }
            }
            if Task.isCancelled { return cancelled() }
        }
        return await forwarder.forward(ask, source, ForwardReason(.miss), onInterim, on: loop)
    }

    /// The seed folder that may answer the request; nil if none may.
    @inline(never) private func seed(of ask: CacheRequest) -> SeedFolder? { ask.content == nil ? ask.seed : nil }

    /// The reason why the request bypasses the store; nil if it does not.
    @inline(never) private func bypass(_ ask: CacheRequest) -> ForwardReason? {
        ask.policy.mode == .none ? ForwardReason(.bypass, StoreRefusal.cacheOff.rawValue) : nil
    }

    @inline(never) private func cancelled() -> Answer { answers.failure(.cancelled, ForwardReason(.uriMiss)) }
}

// MARK: - Answers that memory has ready

/// A whole stored response that is fresh for every plain GET that selects it: the answer of the daemon's hot path as an
/// ``Answer``.
package struct ReadyAnswer {
    /// The answer without a reader, because all of its body is in memory.
    package let answer: Answer
    private let response: ResidentResponse

    /// Finds the answer.
    /// - Parameters:
    ///   - key: the key of a GET without content and without a field of `HotPathWindow.disqualifying`.
    ///   - fields: the fields of that request, for responses that vary.
    ///   - headFormatID: as ``CacheRequest/headFormatID``; a response that was prepared under another format is not
    ///     found.
    /// - Returns: nil if ``DownloadCore/answer(_:from:onInterim:on:)`` has to decide.
    package init?(to key: CacheKey, _ fields: Fields, as headFormatID: UInt64, from core: DownloadCore) {
        guard !core.isOffline else { return nil }
        let found = key.bytes.withUnsafeBytes { bytes in
            core.memory.hit(bytes, hash: key.hash) { held in
                fields.areEndToEnd
                    && Caching.selectsPlainly(names: held.varyNames, stored: held.varyLines, fields)
            }
        }
        let now = core.clock.now()
        guard let found, let ready = found.ready, ready.answers(at: now, as: headFormatID) else { return nil }
        let head = found.head
        answer = Answer(
            head: ResponseHead(status: head.status, reason: head.reason, fields: head.fields),
            length: Int64(ready.body.count),
            age: ready.window.age(now: now),
            cacheStatus: CacheStatus(
                cacheName: core.cacheName,
                hit: true,
                ttl: ready.window.ttl(now: now),
                detail: CacheStatus.Detail.memory.rawValue
            )
        )
        response = found
    }

    /// The length of the body in bytes.
    package var count: Int { response.body.count }

    /// Calls `read` with the bytes of the body, which are valid during the call.
    package func withBody<Value>(_ read: (UnsafeRawBufferPointer) -> Value) -> Value {
        withExtendedLifetime(response) { read(response.body) }
    }
}
