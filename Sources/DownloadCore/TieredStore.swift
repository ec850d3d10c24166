// Memory before disk: finds the stored response that a request selects, keeps new ones, and writes freshened heads to both.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

/// Sendable: its members are.
final class TieredStore: Sendable {
    /// What was found under a key.
    struct Found {
        /// The newest response that the request selects.
        var response: StoredResponse?
        var tier = StoreTier.memory
        /// There are responses that other requests select.
        var hasOthers = false
    }

    private let memory: MemoryTier
    private let disk: DiskTier?
    private let generations: Generations

    init(memory: MemoryTier, disk: DiskTier?, generations: Generations) {
        self.memory = memory
        self.disk = disk
        self.generations = generations
    }

    // MARK: - Finding

    func find(_ ask: CacheAsk, on loop: isolated EventLoop) async -> Found {
        var found = Found()
        let token = generations.note(ask.key)
        if ask.policy.memory {
            let variants = memory.variants(ask.key)
            found.hasOthers = !variants.isEmpty
            if let response = select(variants, ask) {
                found.response = prepared(response, ask, token)
                return found
            }
        }
        guard ask.policy.disk, let disk else { return found }
        var loaded: [StoredResponse] = []
        for entry in disk.lookup(ask.key) {
            // What cannot be loaded is absent or damaged: the disk tier has given it up, and it counts as a miss.
            if let response = try? await disk.load(entry, via: nil, policy: ask.policy) { loaded.append(response) }
        }
        found.hasOthers = found.hasOthers || !loaded.isEmpty
        if let response = select(loaded, ask) {
            found.tier = .disk
            found.response = promote(response, ask, token)
        }
        return found
    }

    private func select(_ variants: [StoredResponse], _ ask: CacheAsk) -> StoredResponse? {
        Caching.select(from: variants.map(\.head), request: ask.request).map { variants[$0] }
    }

    /// A response whose ready head was made for another route, or before a reload, is made ready anew.
    private func prepared(_ response: StoredResponse, _ ask: CacheAsk, _ token: GenerationToken) -> StoredResponse {
        guard response.shape != ask.shape, response.body.wholeChunk != nil else { return response }
        let fresh = make(response.head, response.body, ask, tier: .memory)
        _ = generations.ifUnchanged(token) {
            if memory.variants(ask.key).contains(where: { $0 === response }) { memory.insert(fresh) }
        }
        return fresh
    }

    /// A small body has come into memory with its head: the memory tier keeps it.
    private func promote(_ response: StoredResponse, _ ask: CacheAsk, _ token: GenerationToken) -> StoredResponse {
        guard ask.policy.memory, response.body.wholeChunk != nil else { return response }
        let copy = make(response.head, response.body, ask, tier: .memory)
        _ = generations.ifUnchanged(token) {
            // What has come into memory while the file was read is newer.
            if !memory.variants(ask.key).contains(where: { $0.isSameVariant(as: copy) }) { memory.insert(copy) }
        }
        return copy
    }

    private func make(_ head: StoredHead, _ body: Body, _ ask: CacheAsk, tier: StoreTier) -> StoredResponse {
        StoredResponse(
            key: ask.key,
            head: head,
            body: body,
            preparedHead: ask.prepare(head),
            hot: Caching.hotPath(stored: head, policy: ask.policy),
            tier: tier,
            shape: ask.shape
        )
    }

    // MARK: - Keeping

    /// - Parameter expected: the declared length of the body in bytes; zero where there is none.
    func makeSpill(expected: Int64) -> SpillFile? { disk?.makeSpill(expected: expected) }

    /// Stores a response that is whole, unless its key was invalidated since its fetch began, or a newer one is stored.
    /// - Parameters:
    ///   - body: as its readers have it, complete.
    ///   - whole: the same in memory, where it is.
    ///   - spill: the body's file, where it was written while it arrived.
    ///   - keepsInMemory: the memory tier may have it.
    ///   - keepsOnDisk: the disk tier may have it.
    ///   - done: called when both tiers have it, or will not have it; any thread.
    func commit(
        _ head: StoredHead,
        _ ask: CacheAsk,
        _ token: GenerationToken,
        body: Body,
        whole: Body?,
        spill: SpillFile?,
        keepsInMemory: Bool,
        keepsOnDisk: Bool,
        done: @escaping @Sendable () -> Void
    ) {
        var isCurrent = false
        _ = generations.ifUnchanged(token) {
            guard !isOutdated(head, ask) else { return }
            isCurrent = true
            if keepsInMemory, let whole { memory.insert(make(head, whole, ask, tier: .memory)) }
        }
        guard isCurrent, keepsOnDisk, let disk else { return done() }
        let (key, generations) = (ask.key, generations)
        Task {
            // A response that the disk tier refuses has been answered all the same; its statistics count it.
            _ = try? await disk.commit(body, spill: spill, key: key, head: head, generation: (generations, token))
            done()
        }
    }

    /// A response that was asked for later is stored already: a slow fetch does not undo a reload.
    private func isOutdated(_ head: StoredHead, _ ask: CacheAsk) -> Bool {
        if ask.policy.disk, let entry = disk?.entry(ask.key, head), entry.storedAt > head.responseTime { return true }
        return memory.variants(ask.key).contains {
            $0.head.isSameVariant(as: head) && $0.head.responseTime > head.responseTime
        }
    }

    /// Removes one response from both tiers; other variants stay.
    func remove(_ response: StoredResponse) {
        memory.remove(response.key) { $0.isSameVariant(as: response) }
        if let disk, let entry = disk.entry(response.key, response.head) { disk.remove(entry) }
    }

    /// Gives a stored response a new head, in every tier that holds it.
    /// - Returns: the response to answer with; it is not stored any more where the new head forbids that, or where the
    ///   key was invalidated since `token`.
    func freshen(
        _ response: StoredResponse,
        head: StoredHead,
        ask: CacheAsk,
        token: GenerationToken,
        on loop: isolated EventLoop
    ) async -> StoredResponse {
        let fresh = make(head, response.body, ask, tier: response.tier)
        guard case .store = Caching.decideKeep(head, policy: ask.policy) else {
            remove(response)
            return fresh
        }
        // A file is named after its selecting fields: under another Vary it would not be found again.
        if !fresh.isSameVariant(as: response) { remove(response) }
        _ = generations.ifUnchanged(token) {
            if ask.policy.memory, response.body.wholeChunk != nil { memory.insert(fresh) }
        }
        if let disk, ask.policy.disk, generations.isUnchanged(token), let entry = disk.entry(ask.key, response.head) {
            await disk.freshen(entry, head: head)
        }
        return fresh
    }
}
