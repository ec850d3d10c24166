// What the fetches for the store work with: the tiers, what is known of keys, and which other fetches are under way.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire
internal import Synchronization

/// What the download core shares with its fetches, which outlive the requests that began them.
///
/// Sendable: what it holds is.
final class FetchContext: Sendable {
    /// Bytes of one body that the memory tier takes at most.
    let memoryMaxObject: Int
    /// The same of the tiers behind it.
    let diskMaxObject: Int
    let generations: Generations
    let budget: FillBudget
    let clock: WallClock
    /// How long the answer to a check by HEAD may take, in nanoseconds.
    let headPatience: UInt64
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
        generations: Generations,
        budget: FillBudget,
        clock: WallClock,
        headPatience: UInt64,
        report: @escaping @Sendable (CoreReport) -> Void
    ) {
        self.memoryMaxObject = memoryMaxObject
        self.diskMaxObject = diskMaxObject
        self.generations = generations
        self.budget = budget
        self.clock = clock
        self.headPatience = headPatience
        store = TieredStore(memory: memory, behind: tiers, generations: generations, clock: clock)
        // As much as an eighth of the memory tier and a quarter of that of files are for what is not whole.
        partials = PartialTable(
            heldLimit: min(memory.statistics.limit / 8, budget.limit / 4),
            filedLimit: Int(clamping: (store.files?.statistics.limit ?? 0) / 4)
        )
        inFlight = SharedFetchTable(underWay)
        notes = KeyNotes(clock, report: report)
    }

    /// Nobody is asked who would have to be reached over a socket. Any thread.
    var isOffline: Bool {
        get { offline.load(ordering: .relaxed) }
        set { offline.store(newValue, ordering: .relaxed) }
    }

    static let offlineAdvice = "and the daemon is offline, so that nobody is asked; 'drydock offline off' ends that"

    /// Whether the memory tier takes a body of this length when it has room.
    func fitsMemory(_ bytes: Int) -> Bool { bytes <= memoryMaxObject && store.takesInMemory(bytes) }

    /// Starts a fetch, unless nobody is to be asked.
    /// - Throws: `FetchError`; `.offline` where the daemon is offline and the source would open a socket.
    func start(
        _ stream: FetchStream,
        _ request: FetchRequest,
        from source: any FetchSource,
        patience: UInt64? = nil,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> FetchStream.Head {
        if isOffline, source.opensSockets {
            throw .offline("\(request.method.name) is for the origin to answer, \(Self.offlineAdvice)")
        }
        stream.budget = budget
        return try await stream.start(request, from: source, patience: patience, on: loop)
    }

    // MARK: - What is stored, where the origin fails

    /// Whether something is stored that may still answer, so that a server error must not take its place.
    func hasGood(_ ask: CacheAsk, besides errorStatus: Int, on loop: isolated EventLoop) async -> Bool {
        let heads = await store.heads(ask, on: loop) + partials.variants(ask.key).map(\.head)
        let now = clock.now()
        return heads.contains { Caching.mayStillServe($0, errorStatus: errorStatus, policy: ask.policy, now: now) }
    }

    /// Whether a stale response may stand in for an answer with `errorStatus`, or for none (RFC 9111 section 4.2.4).
    func mayServeStale(_ stale: StoredResponse, _ ask: CacheAsk, errorStatus: Int?) -> Bool {
        // What was purged while the origin was asked stands in for nothing.
        !generations.isGone(stale) && staleVerdict(stale.head, ask, errorStatus: errorStatus).isAllowed
    }

    /// The same by the rules alone, with the reason where it may not.
    func staleVerdict(_ stale: StoredHead, _ ask: CacheAsk, errorStatus: Int?) -> StaleVerdict {
        Caching.mayServeStale(
            stored: stale,
            policy: ask.policy,
            staleness: Caching.staleness(stale, policy: ask.policy, now: clock.now()),
            request: ask.request,
            errorStatus: errorStatus
        )
    }
}
