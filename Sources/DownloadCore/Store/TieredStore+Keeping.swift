// What a store does beside answers: it removes and purges, asks for room, takes seeds, and keeps to
// the order of shared tiers.

import CacheStore
import EventLoop
import HTTPCaching

extension TieredStore {
    // MARK: - Removing

    /// Whether something newer is known to have taken the place of a response that was found a while ago.
    func isSuperseded(_ response: StoredResponse) -> Bool {
        let head = response.head
        for tier in tiers {
            guard case .holds(let number, let storedAt) = tier.known(response.key, head) else { continue }
            if storedAt > head.responseTime || number > response.number { return true }
        }
        return memory.peek(response.key).contains {
            $0.isSameVariant(as: response) && ($0.number > response.number || $0.head.number != head.number)
        }
    }

    /// Removes one response from every tier; other variants stay.
    func remove(_ response: StoredResponse) {
        memory.remove(response.key) { $0.isSameVariant(as: response) }
        removeBehind(response)
    }

    func removeBehind(_ response: StoredResponse) {
        removeBehind(response.key, response.head, response.number)
    }

    /// Removes a variant from the tiers behind memory, up to this number.
    func removeBehind(_ key: CacheKey, _ head: StoredHead, _ number: UInt64) {
        for place in tiers.indices { tiers[place].remove(reference(key, head, number, in: place)) }
    }

    /// Removes every variant of a key. The caller has told the invalidations.
    func remove(_ key: CacheKey) {
        memory.remove(key)
        for tier in tiers { tier.remove(key) }
    }

    // MARK: - The order of shared tiers

    func reference(_ key: CacheKey, _ head: StoredHead, _ number: UInt64, in place: Int) -> TierReference {
        TierReference(key, head, number: number, moment: moment(before: number, in: place))
    }

    /// The last moment of a tier that was known when what has this number began.
    func moment(before number: UInt64, in place: Int) -> UInt64 {
        tiers[place].isShared ? moments[place].last(before: number) : 0
    }

    /// What another store has invalidated leaves memory, and what is on its way is not stored.
    func take(_ news: TierNews) {
        switch news {
        case .keys(let keys):
            for key in keys {
                invalidations.invalidate(key)
                memory.remove(key)
            }
        case .rules(let rules):
            let number = invalidations.invalidate(rules)
            memory.remove(concerned: Set(rules), before: number)
        case .everything:
            invalidations.invalidateAll()
            memory.removeAll()
        }
    }

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
        memory.removeInvalid(invalidations)
    }

    func settleSweep() async {
        for tier in tiers { await tier.settleSweep() }
    }

    /// Purges memory. Not on a loop.
    /// - Returns: how many responses are gone or stale that no tier behind is known to hold: those are counted there.
    func purgeMemory(_ rules: [PurgeRule], number: UInt64, now: Int64) -> Int {
        let gone = memory.purge(rules, number: number, now: now, pins: invalidations.pins)
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
        if tiers.isEmpty { invalidations.markSwept(rules.filter { !$0.isSoft }.map { ($0, number) }) }
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
        _ token: InvalidationToken,
        _ policy: CachePolicy
    ) async throws(TierError) -> Bool {
        guard let files else { return false }
        let commit = TierCommit(
            key,
            head,
            copy.body,
            invalidations: invalidations,
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
        _ token: InvalidationToken,
        _ policy: CachePolicy
    ) async throws -> Bool {
        let chunk = try await copy.chunk()
        // What was purged before this is something else.
        var head = head
        head.number = token.number
        // No route has this format of the head: the head is prepared again at the first request.
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
        var gone: [ResidentResponse] = []
        _ = invalidations.ifUnchanged(token) {
            isInserted = memory.insert(response, as: nil, maxVariants: policy.maxVariants, gone: &gone)
        }
        return isInserted
    }
}
