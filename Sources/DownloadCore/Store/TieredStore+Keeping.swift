// What a store does beside answers: room, invalidation and purges, seeds, plain files, what it holds and has done.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching

extension TieredStore {
    // MARK: - Room

    var hasTiersBehind: Bool { !tiers.isEmpty }

    /// Whether the memory tier takes a body of so many bytes when it has room.
    func takesInMemory(_ bytes: Int) -> Bool { memory.takes(bytes) }

    /// Whether the memory tier has room for as much now, beside what has gone and is still sent.
    func hasMemory(for bytes: Int) -> Bool { memory.hasRoom(for: bytes) }

    /// Why no tier behind memory would take a body of so many bytes now; nil where one does.
    func refusal(of bytes: Int) -> TierRefusal? {
        var first: TierRefusal?
        for tier in tiers {
            guard let refusal = tier.refusal(of: bytes) else { return nil }
            first = first ?? refusal
        }
        return first
    }

    // MARK: - Invalidation

    /// Returns when rules hold for all who share a tier, and outlive the process.
    func invalidateBehind(_ rules: [InvalidationRule], number: UInt64) async {
        for tier in tiers { await tier.invalidate(rules, number: number) }
    }

    /// Removes from all tiers what the hard rules in force concern. Not on a loop.
    func removeInvalid() async {
        for tier in tiers { tier.sweep() }
        await settleSweep()
        memory.removeInvalid(generations)
    }

    func settleSweep() async {
        for tier in tiers { await tier.settleSweep() }
    }

    /// Purges memory. Not on a loop.
    /// - Returns: how many responses are gone or stale that no tier behind is known to hold: those are counted there.
    func purgeMemory(_ rules: [PurgeRule], number: UInt64, now: Int64) -> Int {
        let gone = memory.purge(rules, number: number, now: now, pins: generations.pins)
        if tiers.isEmpty { return gone.count }
        return gone.count { response in
            let head = response.response.head
            return !tiers.contains { if case .holds = $0.known(response.key, head) { true } else { false } }
        }
    }

    /// - Returns: how many stored responses the purges concern behind memory.
    func purgeBehind(_ rules: [PurgeRule], number: UInt64) async -> Int {
        var count = 0
        for tier in tiers { count += await tier.purge(rules, number: number) }
        // Nobody but memory could have anything that they concern.
        if tiers.isEmpty { generations.markSwept(rules.filter { !$0.isSoft }.map { ($0, number) }) }
        return count
    }

    // MARK: - Seeds and plain files

    /// Whether a response of a key is known to be stored that arrived, or was confirmed, then or later; Unix seconds.
    func isKnownToHold(_ key: CacheKey, since time: Int64) -> Bool {
        memory.peek(key).contains { $0.head.responseTime >= time }
            || tiers.contains { $0.isKnownToHold(key, since: time, besides: []) }
    }

    /// Copies a seed into a file of its own.
    /// - Returns: false where there is no tier of files.
    func adoptAsFile(
        _ copy: SeedCopy,
        _ head: StoredHead,
        _ key: CacheKey,
        _ token: GenerationToken,
        _ policy: CachePolicy
    ) async throws(TierError) -> Bool {
        guard let files else { return false }
        let commit = TierCommit(
            key,
            head,
            copy.body,
            generations: generations,
            token: token,
            maxVariants: policy.maxVariants
        )
        try await files.adopt(copy, commit)
        memory.remove(key) { $0.head.isSameVariant(as: head) && $0.number < token.number }
        return true
    }

    /// Copies a seed into memory.
    /// - Returns: false where something as new is there.
    func adoptInMemory(
        _ copy: SeedCopy,
        _ head: StoredHead,
        _ key: CacheKey,
        _ token: GenerationToken,
        _ policy: CachePolicy
    ) async throws -> Bool {
        let chunk = try await copy.chunk()
        // Another shape than any route's: it is made ready when it is asked for.
        let response = StoredResponse(
            key: key,
            head: head,
            body: .complete(chunk),
            preparedHead: [],
            hot: nil,
            tier: .memory,
            number: token.number
        )
        var isInserted = false
        var gone: [HeldResponse] = []
        _ = generations.ifUnchanged(token) {
            isInserted = memory.insert(response, as: nil, maxVariants: policy.maxVariants, gone: &gone)
        }
        return isInserted
    }
}
