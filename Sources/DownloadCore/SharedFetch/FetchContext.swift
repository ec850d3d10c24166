// The parts of the download core that shared fetches use: the tiers, the notes about keys, and the other fetches; and a
// request on its way to the origin.

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization

/// The state that the download core shares with its fetches, which outlive the requests that began them.
///
/// Sendable: all members are.
final class FetchContext: Sendable {
    /// The largest body that the memory tier takes, in bytes.
    let memoryMaxObject: Int
    /// The largest body that the tiers behind memory take, in bytes.
    let diskMaxObject: Int
    let invalidations: Invalidations
    let budget: BodyBudget
    let clock: WallClock
    /// The time for the answer to a check by HEAD, in nanoseconds.
    let headTimeout: UInt64
    let store: TieredStore
    let partials: PartialTable
    let notes: KeyNotes
    /// The fetches that requests may join.
    let inFlight: SharedFetchTable
    /// The fetches that an operator can end.
    let fetches = FetchTable()
    /// The shared fetches, and the parts that are arriving or being completed.
    let underWay = UnderWay()
    private let offline = Atomic<Bool>(false)

    /// Makes a context; the parameters are those of ``DownloadCore``.
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
        // Incomplete responses get up to an eighth of the memory tier and a quarter of the space for files.
        partials = PartialTable(
            heldLimit: min(memory.statistics.limit / 8, budget.limit / 4),
            filedLimit: Int(clamping: (store.files?.statistics.limit ?? 0) / 4)
        )
        inFlight = SharedFetchTable(underWay)
        notes = KeyNotes(clock, report: report)
    }

    /// Whether the daemon is offline, so that no fetch may open a socket. Any thread.
    var isOffline: Bool {
        get { offline.load(ordering: .relaxed) }
        set { offline.store(newValue, ordering: .relaxed) }
    }

    /// Whether the memory tier takes a body of this length when it has room.
    func fitsMemory(_ bytes: Int) -> Bool { bytes <= memoryMaxObject && store.takesInMemory(bytes) }

    /// Starts a fetch.
    /// - Throws: `FetchError`; `.offline` if the daemon is offline and the source would open a socket.
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

    /// Prepares a stream, which is not started yet.
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

    /// Whether a stored response may still answer, so that a server error must not replace it.
    func hasGood(_ ask: CacheRequest, besides errorStatus: Int, on loop: isolated EventLoop) async -> Bool {
        let heads = await store.heads(ask, on: loop) + partials.variants(ask.key).map(\.head)
        let now = clock.now()
        return heads.contains { Caching.mayStillServe($0, errorStatus: errorStatus, policy: ask.policy, now: now) }
    }

    /// Whether a stale response may replace an answer with `errorStatus`, or a missing answer (RFC 9111 section 4.2.4).
    func mayServeStale(_ stale: StoredResponse, _ ask: CacheRequest, errorStatus: Int?) -> Bool {
        // A response that was purged during the fetch must not be served as a stale one.
        !invalidations.isGone(stale) && staleVerdict(stale.head, ask, errorStatus: errorStatus).isAllowed
    }

    /// The verdict of the rules alone on a stale response as a replacement, with the reason if it may not be one.
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
    /// The nanoseconds that a request waits for the head of a fetch before the placeholder answers. Nil if no
    /// placeholder may answer: a response is stored, or the expected one could not be stored or shared, so that every
    /// request would get the placeholder and never the response.
    @inline(never) func placeholderDelay(_ miss: MissContext) -> UInt64? {
        miss.stale == nil && miss.plan == nil ? placeholderDelay(miss.ask) : nil
    }

    /// The same for a request without a stored response.
    func placeholderDelay(_ ask: CacheRequest) -> UInt64? {
        guard let phases = ask.phases, phases.placeholder != nil,
            !ask.isPrivateToRequest, !Caching.isReload(ask.request), !notes.isUncacheable(ask),
            !notes.recentlyNotKept.contains(ask.key, now: clock.now())
        else { return nil }
        return phases.placeholderDelay
    }
}

// MARK: - A request on its way to the origin

/// A request for the origin, and the search result that led to it; loop-bound. It is one object, which each function
/// that waits for the origin refers to.
final class MissContext {
    let ask: CacheRequest
    let source: any FetchSource
    /// The stored response that the request selects and that may not be used without a check.
    let stale: StoredResponse?
    /// The newest stored response of the key, whether or not this request selects it.
    let newest: StoredHead?
    let forwardReason: ForwardReason
    /// The time of the request's arrival, Unix seconds.
    let began: Int64
    /// The part to request; nil for the whole.
    let plan: RangeFetchPlan?
    /// Whether a HEAD has failed and this GET shows whether the origin fails at all.
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

    /// The same miss for another request.
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
