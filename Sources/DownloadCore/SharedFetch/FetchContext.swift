// The parts of the download core that shared fetches use: the tiers, the notes about keys, and the other fetches; and a
// request on its way to the origin.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization

/// Shared by the download core and its fetches, which outlive the requests that began them.
///
/// Sendable: everything it holds is.
final class FetchContext: Sendable {
    /// Bytes of one body that the memory tier takes at most.
    let memoryMaxObject: Int
    /// Bytes of one body that the tiers behind memory take at most.
    let diskMaxObject: Int
    let invalidations: Invalidations
    let budget: BodyBudget
    let clock: WallClock
    /// How long the answer to a check by HEAD may take, in nanoseconds.
    let headTimeout: UInt64
    let store: TieredStore
    let partials: PartialTable
    let notes: KeyNotes
    /// Fetches that requests may join.
    let inFlight: SharedFetchTable
    /// What an operator can end.
    let fetches = FetchTable()
    /// Shared fetches, and parts that are arriving or being made whole.
    let underWay = UnderWay()
    private let offline = Atomic<Bool>(false)

    /// The parameters are those of ``DownloadCore``.
    init(
        memory: MemoryTier,
        memoryMaxObject: Int,
        behind tiers: [any ResponseTier],
        diskMaxObject: Int,
        invalidations: Invalidations,
        budget: BodyBudget,
        clock: WallClock,
        headTimeout: UInt64,
        report: @escaping @Sendable (CoreEvent) -> Void
    ) {
        self.memoryMaxObject = memoryMaxObject
        self.diskMaxObject = diskMaxObject
        self.invalidations = invalidations
        self.budget = budget
        self.clock = clock
        self.headTimeout = headTimeout
        store = TieredStore(memory: memory, behind: tiers, invalidations: invalidations, clock: clock)
        // As much as an eighth of the memory tier and a quarter of that of files are for what is not whole.
        partials = PartialTable(
            heldLimit: min(memory.statistics.limit / 8, budget.limit / 4),
            filedLimit: Int(clamping: (store.files?.statistics.limit ?? 0) / 4)
        )
        inFlight = SharedFetchTable(underWay)
        notes = KeyNotes(clock, report: report)
    }

    /// Offline: no fetch may open a socket. Any thread.
    var isOffline: Bool {
        get { offline.load(ordering: .relaxed) }
        set { offline.store(newValue, ordering: .relaxed) }
    }

    /// Whether the memory tier takes a body of this length when it has room.
    func fitsMemory(_ bytes: Int) -> Bool { bytes <= memoryMaxObject && store.takesInMemory(bytes) }

    /// Starts a fetch, unless the daemon is offline.
    /// - Throws: `FetchError`; `.offline` where the daemon is offline and the source would open a socket.
    func start(
        _ stream: FetchStream,
        _ request: FetchRequest,
        from source: any FetchSource,
        timeout: UInt64? = nil,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> FetchStream.Head {
        try prepare(stream, for: request.method, to: source)
        return try await stream.start(request, from: source, timeout: timeout, on: loop)
    }

    /// Prepares a stream up to the moment when it is started.
    @inline(never) func prepare(
        _ stream: FetchStream,
        for method: Method,
        to source: any FetchSource
    ) throws(FetchError) {
        if isOffline, source.opensSockets {
            throw .offline("\(method.name) is for the origin to answer, \(FetchError.offlineAdvice)")
        }
        stream.budget = budget
    }

    // MARK: - What is stored, where the origin fails

    /// Whether something is stored that may still answer, so that a server error must not take its place.
    func hasGood(_ ask: CacheRequest, besides errorStatus: Int, on loop: isolated EventLoop) async -> Bool {
        let heads = await store.heads(ask, on: loop) + partials.variants(ask.key).map(\.head)
        let now = clock.now()
        return heads.contains { Caching.mayStillServe($0, errorStatus: errorStatus, policy: ask.policy, now: now) }
    }

    /// Whether a stale response may stand in for an answer with `errorStatus`, or for none (RFC 9111 section 4.2.4).
    func mayServeStale(_ stale: StoredResponse, _ ask: CacheRequest, errorStatus: Int?) -> Bool {
        // A response that was purged during the fetch must not be served as a stale one.
        !invalidations.isGone(stale) && staleVerdict(stale.head, ask, errorStatus: errorStatus).isAllowed
    }

    /// What the rules alone say of a stale response as a stand-in, with the reason if it may not be one.
    func staleVerdict(_ stale: StoredHead, _ ask: CacheRequest, errorStatus: Int?) -> StaleVerdict {
        Caching.mayServeStale(
            stored: stale,
            policy: ask.policy,
            staleness: Caching.staleness(stale, policy: ask.policy, now: clock.now()),
            request: ask.request,
            errorStatus: errorStatus
        )
    }
}

// MARK: - Placeholders

extension FetchContext {
    /// How long, in nanoseconds, a request waits for the head of what is fetched before the placeholder answers; nil
    /// where no placeholder may answer: a response is stored, or the one to come could not be stored or shared, so that
    /// every request would get the placeholder and never the response.
    @inline(never) func placeholderDelay(_ miss: MissContext) -> UInt64? {
        miss.stale == nil && miss.plan == nil ? placeholderDelay(miss.ask) : nil
    }

    /// The same of a request for which nothing is stored.
    func placeholderDelay(_ ask: CacheRequest) -> UInt64? {
        guard let phases = ask.phases, phases.placeholder != nil,
            !ask.isPrivateToRequest, !Caching.isReload(ask.request), !notes.isUncacheable(ask),
            !notes.recentlyNotKept.contains(ask.key, now: clock.now())
        else { return nil }
        return phases.placeholderDelay
    }
}

// MARK: - A request on its way to the origin

/// A request for the origin, and the search result that led to it; loop-bound. One object, which each function that waits
/// for the origin refers to.
final class MissContext {
    let ask: CacheRequest
    let source: any FetchSource
    /// The stored response that the request selects and that may not be used without asking.
    let stale: StoredResponse?
    /// The newest stored response of the key, whether or not this request selects it.
    let newest: StoredHead?
    let forwardReason: ForwardReason
    /// When the request arrived, Unix seconds.
    let began: Int64
    /// The part to ask for; nil asks for the whole.
    let plan: RangeFetchPlan?
    /// A HEAD has failed, and this asks by GET whether the origin has.
    let hasHeadFailed: Bool

    init(
        ask: CacheRequest,
        source: any FetchSource,
        stale: StoredResponse?,
        newest: StoredHead?,
        forwardReason: ForwardReason,
        began: Int64 = .max,
        plan: RangeFetchPlan? = nil,
        hasHeadFailed: Bool = false
    ) {
        self.ask = ask
        self.source = source
        self.stale = stale
        self.newest = newest
        self.forwardReason = forwardReason
        self.began = began
        self.plan = plan
        self.hasHeadFailed = hasHeadFailed
    }

    /// This miss, for another question.
    func asking(_ ask: CacheRequest, hasHeadFailed: Bool) -> MissContext {
        MissContext(
            ask: ask,
            source: source,
            stale: stale,
            newest: newest,
            forwardReason: forwardReason,
            began: began,
            plan: plan,
            hasHeadFailed: hasHeadFailed
        )
    }
}

@available(*, unavailable) extension MissContext: Sendable {}
