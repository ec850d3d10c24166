// A resource by key: found in memory or on disk, checked with the origin, or fetched; the one place that puts these
// steps in order, and the parts that take them.

package import CacheStore
package import EventLoop
import HTTPCaching
package import HTTPWire

/// The download core. All loops share it; each request is answered on its own loop.
///
/// Sendable: everything it holds is.
package final class DownloadCore: Sendable {
    package let cacheName: String
    /// The memory tier, for the fast path, whose lookup must not wait.
    package let memory: MemoryTier
    /// The tier whose open files the fast path answers from.
    let files: (any FileTier)?
    package let clock: WallClock
    package let invalidations: Invalidations
    package let budget: BodyBudget
    /// What the parts of the core, and the fetches that outlive requests, work with: all of the above, and more.
    let context: FetchContext
    let sharedFetches: SharedFetches

    // MARK: - The parts, which the modules above ask by themselves

    /// All tiers: their numbers, listings and limits.
    package let store: TieredStore
    /// Makes answers of representations that are at hand, and of failures.
    package let answers: AnswerMaker
    /// Finds and explains what is stored for a request.
    package let lookup: Lookup
    /// Passes requests on without storing their answers.
    package let forwarder: Forwarder
    /// Invalidates, purges and pins stored responses, and ends fetches.
    package let housekeeping: Housekeeping
    /// Answers from seed folders.
    package let seeds: SeedAnswers

    /// - Parameters:
    ///   - cacheName: the pseudonym in Cache-Status.
    ///   - memoryMaxObject: the largest body of the memory tier, in bytes.
    ///   - tiers: behind memory, in the order in which they are asked; see ``TieredStore/close()``.
    ///   - diskMaxObject: bytes of one body that they take at most.
    ///   - invalidations: nil are those that a tier keeps, which outlive the process; where none does, new ones.
    ///   - headTimeout: nanoseconds that the answer to a validation by HEAD may take; then a GET follows.
    ///   - report: called with events for the operator's log; any thread.
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

    /// What has happened since the start. Any thread.
    package var counts: CoreCounts { context.notes.counts }

    /// Shared fetches under way. A fetch counts until its response is stored or dropped.
    package var fillCount: Int { context.underWay.count }

    /// Waits until no fetch for the store is under way.
    /// - Parameter timeout: in nanoseconds.
    /// - Returns: false when the patience ended or the task was cancelled.
    @discardableResult
    package func settle(timeout: UInt64, on loop: isolated EventLoop) async -> Bool {
        await context.underWay.none(timeout: timeout, on: loop)
    }

    /// The statistics of incomplete responses.
    package var partialStatistics: PartialStatistics { context.partials.statistics }

    /// Offline: no origin is contacted. A stored response answers whatever its age, and any other request gets a 504.
    /// Fetches under way continue. Any thread.
    package var isOffline: Bool {
        get { context.isOffline }
        set { context.isOffline = newValue }
    }

    // MARK: - Files that are ready

    /// The stored response of a GET that needs no decision but whether it is fresh: nothing of its key is in memory,
    /// the disk has it alone, its file is open and as it was, and no rule concerns it. Any thread; asks no disk.
    /// - Parameters:
    ///   - keyBytes: in the form of `CacheKey.bytes`.
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
    ///   - onInterim: called on its loop with each 1xx response of a fetch that this request starts.
    ///   - instead: called when the origin is to be asked, with whether that is to validate a stored response; a status
    ///     is that of an empty answer, and the origin is not asked.
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

    // The parts of questions that never wait are functions of their own, so that a request that waits has nothing of
    // them in its frames.

    @inline(never) private func servesOtherVariants(_ ask: CacheRequest) -> Bool { ask.policy.otherVariant == .serve }

    /// The answer, or the route's fallback where that stands in for it.
    @inline(never) private func withFallback(
        _ answer: Answer,
        _ ask: CacheRequest,
        on loop: isolated EventLoop
    ) -> Answer {
        guard let fallback = ask.phases?.fallback else { return answer }
        let status = answer.head.status
        // A client that gets 412 or 416 has a part or a version of something else than the fallback.
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
        // Each turn has seen a fetch end since the last one; who finds nothing after that fetches for itself.
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

    /// The seeds that may answer a question.
    @inline(never) private func seed(of ask: CacheRequest) -> SeedFolder? { ask.content == nil ? ask.seed : nil }

    /// Why a question passes the store by; nil where it does not.
    @inline(never) private func bypass(_ ask: CacheRequest) -> ForwardReason? {
        ask.policy.mode == .none ? ForwardReason(.bypass, StoreRefusal.cacheOff.rawValue) : nil
    }

    @inline(never) private func cancelled() -> Answer { answers.failure(.cancelled, ForwardReason(.uriMiss)) }
}

// MARK: - Answers that memory has ready

/// The whole of a stored response that is fresh for every plain GET that selects it; what the daemon's hot path answers
/// with, as an ``Answer``.
package struct ReadyAnswer {
    /// The answer without a reader, since all of its body is in memory.
    package let answer: Answer
    private let response: ResidentResponse

    /// - Parameters:
    ///   - key: of a GET without content, and without a field of `HotPathWindow.disqualifying`.
    ///   - fields: the fields of that request, for what varies.
    ///   - headFormatID: as ``CacheRequest/headFormatID``: what was prepared under another policy is not found.
    /// - Returns: nil where ``DownloadCore/answer(_:from:onInterim:on:)`` has to decide.
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

    /// Bytes of the body.
    package var count: Int { response.body.count }

    /// Calls `read` with the bytes of the body, which are valid during the call.
    package func withBody<Value>(_ read: (UnsafeRawBufferPointer) -> Value) -> Value {
        withExtendedLifetime(response) { read(response.body) }
    }
}
