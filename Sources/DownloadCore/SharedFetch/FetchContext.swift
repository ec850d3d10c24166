// The parts of the download core that shared fetches use: the tiers, the notes about keys, and the other fetches.

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
    /// The same of the tiers behind it.
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

    /// The same up to the moment when the stream is started.
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

    /// The same by the rules alone, with the reason where it may not.
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
