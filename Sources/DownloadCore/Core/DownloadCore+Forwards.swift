// What the modules above ask of the parts of the download core: each function here forwards to one of them.

package import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire

extension DownloadCore {
    // MARK: - Answers

    /// An answer to GET or HEAD from what the daemon itself has, obeying conditions and ranges as an origin does (RFC
    /// 9110 section 13.2.2).
    /// - Parameter body: complete.
    package func own(
        _ request: RequestHead,
        _ head: ResponseHead,
        _ body: Body,
        on loop: isolated EventLoop
    ) -> Answer {
        answers.own(request, head, body, on: loop)
    }

    /// No answer from the origin.
    package func failure(_ error: FetchError, _ forwardReason: ForwardReason) -> Answer {
        answers.failure(error, forwardReason)
    }

    /// An empty answer in the place of the origin's, which was not asked.
    package func unasked(_ status: Int) -> Answer { answers.unasked(status) }

    /// The Cache-Status of a forwarded answer.
    package func status(of forwardReason: ForwardReason, forwardStatus: Int) -> CacheStatus {
        answers.status(of: forwardReason, forwardStatus: forwardStatus)
    }

    /// The stored response that a request selects, fresh or stale; nil where there is none.
    package func stored(_ ask: CacheRequest, on loop: isolated EventLoop) async -> StoredResponse? {
        await context.store.find(ask, on: loop).response
    }

    /// What ``answer(_:from:onInterim:on:)`` would decide now.
    package func explain(_ ask: CacheRequest, on loop: isolated EventLoop) async -> StoredExplanation {
        await lookup.explain(ask, on: loop)
    }

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

    // MARK: - Passing on

    /// Whether a key has no stored response and its last answer could not be stored: then its next request may be
    /// forwarded without a shared fetch.
    package func isKnownUncacheable(_ key: CacheKey, _ rules: PassThroughRules) -> Bool {
        forwarder.isKnownUncacheable(key, rules)
    }

    /// Makes a fetch known to `drydock cancel` as long as what this gives lives.
    /// - Parameter fetch: not held: it outlives what this gives.
    package func listing(of fetch: any ListedFetch, _ ask: PassThroughRequest) -> FetchListing {
        forwarder.listing(of: fetch, ask)
    }

    /// Judges a head from the origin: why its request went there, and why it is not stored.
    package func forwardReason(of ask: PassThroughRequest, _ head: ResponseHead) -> ForwardReason {
        forwarder.forwardReason(of: ask, head)
    }

    /// The answer that a head from the origin begins, without its body.
    /// - Parameter forwardReason: from ``forwardReason(of:_:)``.
    package func answer(
        _ ask: PassThroughRequest,
        _ head: ResponseHead,
        _ framing: BodyFraming,
        _ forwardReason: ForwardReason
    ) -> Answer {
        forwarder.answer(ask, head, framing, forwardReason)
    }

    /// The answer where the origin gave none.
    package func failure(_ error: FetchError, _ ask: PassThroughRequest) -> Answer { forwarder.failure(error, ask) }

    /// Forwards one request and its answer; nothing is stored or shared.
    /// - Parameter forwardReason: why the request goes to the origin.
    package func forward(
        _ request: FetchRequest,
        from source: any FetchSource,
        _ forwardReason: ForwardReason,
        on loop: isolated EventLoop
    ) async -> Answer {
        await forwarder.forward(request, from: source, forwardReason, on: loop)
    }

    // MARK: - Housekeeping

    /// Ends fetches: requests that wait for a head get ``FetchError/stopped(_:)``, and readers of a body are cut off.
    /// Stored responses stay as they are; later requests fetch anew. Any thread.
    ///
    /// Requests with other methods than GET and HEAD go on, since they may have had their effect already.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    package func cancel(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches { housekeeping.cancel(isMeant) }

    /// Drops the requests that wait for the head of a fetch that others may share: they get
    /// ``FetchError/stopped(_:)``, and the fetch goes on for the store. Later requests may join it. Who reads a body
    /// goes on reading, and so does what is forwarded for one request alone. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    /// - Returns: how many fetches go on without those who waited, and how many requests that were.
    package func dropWaiters(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches { housekeeping.dropWaiters(isMeant) }

    /// Lets fetches that others may share go on for the store, whoever leaves them after this. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    package func keepGoing(_ isMeant: (CacheKey) -> Bool) { housekeeping.keepGoing(isMeant) }

    /// Removes what is stored under a key, and keeps fetches under way from being stored and from being joined: who
    /// asks after this gets nothing that is older than this.
    package func invalidate(_ key: CacheKey) { housekeeping.invalidate(key) }

    /// Invalidates the stored and the arriving responses of the URLs of these keys, in every service, and all that the
    /// rules match. When it returns, no crash can bring one of them back.
    /// - Parameter anyHost: keys that match with any host in place of their own; finding these takes a
    ///   walk through the memory tier.
    package func invalidate(
        _ keys: [CacheKey],
        _ rules: Set<InvalidationRule> = [],
        anyHost: [CacheKey] = []
    ) async {
        await housekeeping.invalidate(keys, rules, anyHost: anyHost)
    }

    /// Stored responses that purges have removed or made stale.
    package var purgeCounts: (hard: Int, soft: Int) { housekeeping.purgeCounts }

    /// Puts purges in force. When it returns, no tier answers a request with a purged response (after a soft
    /// purge: as a fresh one), no fetch that began before can store one, and a restart changes neither. The
    /// files are deleted afterwards.
    /// - Parameter pool: runs the blocking calls.
    /// - Returns: how many stored responses were removed, or made stale.
    package func purge(_ rules: [PurgeRule], on pool: IOPool) async throws(PurgeError) -> Int {
        try await housekeeping.purge(rules, on: pool)
    }

    /// Pins a URL, for responses that are stored and for those to come; returns when the pin is on the disk.
    /// - Parameter pool: runs the blocking calls.
    /// - Returns: false where it was pinned already.
    package func pin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await housekeeping.pin(url, on: pool)
    }

    /// Removes the pin of a URL.
    /// - Returns: false where it was not pinned.
    package func unpin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await housekeeping.unpin(url, on: pool)
    }

    // MARK: - Seeds and plain files

    /// Answers that came from seed folders so far.
    package var seedAnswerCount: Int { seeds.answerCount }

    /// Reports failures to write the files of `store_as`.
    package var storedFileTroubles: StoredFileTroubles { context.store.troubles }

    /// The pinned seed's response to a request; nil where the request goes to the origin instead.
    package func pinned(_ ask: CacheRequest, _ seed: SeedFolder) async -> StoredResponse? {
        await seeds.pinned(ask, seed)
    }

    /// Stores one seed, stale at once unless its folder gives it a freshness lifetime. A stored response that is at
    /// least as new stays. It blocks: not for a loop's thread.
    package func adopt(_ copy: SeedCopy, as key: CacheKey, _ policy: CachePolicy) async -> SeedImport {
        await seeds.adopt(copy, as: key, policy)
    }

    // MARK: - What is stored, for whoever asks for no answer

    /// Any thread.
    package var statistics: StoreStatistics {
        StoreStatistics(
            memory: context.store.memory.statistics,
            behind: context.store.tiers.map { ($0.name, $0.statistics) }
        )
    }

    /// The threads of the tiers, for whoever watches that none stands still.
    package var storeThreads: [IOPool] { context.store.tiers.flatMap(\.threads) }

    /// There are tiers to be tended.
    package var hasTiersBehind: Bool { context.store.hasTiersBehind }

    /// Lets the tiers keep to their limits; called every few seconds. Any thread.
    package func tend() { for tier in context.store.tiers { tier.tend() } }

    /// Makes what somebody has removed of the tiers' folders again; whoever makes something in one of them calls this before.
    /// Blocks: not on a loop.
    /// - Throws: why a folder cannot be made.
    package func makeFoldersWhole() throws(TierError) { for tier in context.store.tiers { try tier.makeWhole() } }

    /// Writes what is to be found again; everything later is a miss. Blocks: not on a loop.
    package func closeStore() { for tier in context.store.tiers { tier.close() } }

    /// - Parameter pool: for what blocks.
    package func listing(on pool: IOPool) -> StoreListing {
        StoreListing(
            memory: context.store.memory,
            behind: context.store.tiers,
            invalidations: invalidations,
            pool: pool
        )
    }

    // MARK: - Memory

    /// Gives a part of what memory holds back to the kernel. Blocks for milliseconds: not on a loop.
    /// - Parameter share: above 0 and at most 1.
    /// - Returns: how many bytes have gone.
    package func shedMemory(_ share: Double) -> Int { context.store.memory.shed(share) }

    /// Empties memory; what the tiers behind it hold stays.
    package func freeMemory() { context.store.memory.removeAll() }

    // MARK: - Exports and files

    /// Hands over every stored response, those behind memory first, each key once.
    /// - Parameters:
    ///   - services: whose responses the tiers behind memory are asked for.
    ///   - only: the service whose responses memory is asked for; nil for all.
    ///   - body: nil is a stored response that could not be read. It says whether it wants more.
    package func forEachStored(
        services: [String],
        only: String?,
        _ body: (StoredResponse?) async -> Bool
    ) async {
        var seen: Set<CacheKey> = []
        for tier in context.store.tiers {
            for service in services { guard await forEachStored(in: tier, service, &seen, body) else { return } }
        }
        let held = context.store.memory.responses { only == nil || $0.key.service == only }
        for response in held where !seen.contains(response.key) {
            guard await body(response.response) else { return }
        }
    }

    private func forEachStored(
        in tier: any ResponseTier,
        _ service: String,
        _ seen: inout Set<CacheKey>,
        _ body: (StoredResponse?) async -> Bool
    ) async -> Bool {
        var query = ListQuery()
        query.service = service
        repeat {
            guard let (rows, end) = try? await tier.list(query, pinned: [], limit: 1000) else { return true }
            for row in rows {
                let key = CacheKey(service: service, url: row.url)
                guard seen.insert(key).inserted else { continue }
                let miss = TierQuestion(key, policy: CachePolicy(), isUse: false, wantsBody: false)
                guard let answer = try? await tier.find(miss) else { continue }
                for finding in answer.findings {
                    guard await body(try? await tier.open(finding, miss)) else { return false }
                }
            }
            query.after = end
        } while query.after != nil
        return true
    }

    /// Writes the newest response of a key as a plain file, unless there is one; see `store_as`.
    /// - Parameter name: a relative path without empty or dot segments.
    package func keepAsFile(_ key: CacheKey, as name: String) async {
        do {
            try await context.store.files?.keepAsFile(key, nil, as: name, onlyIfMissing: true)
        } catch {
            storedFileTroubles.tell(name, error)
        }
    }
}
