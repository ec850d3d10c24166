// One shard of the memory tier: its entries, an index over them, and their order of eviction.

import Glibc
import HTTPCaching
import HTTPWire

/// A shard, a value without a lock: `MemoryTier` keeps it under the shard's mutex.
struct MemoryShard: ~Copyable {
    /// The newest variant of each entry, of which the shard has a reference; nil in a free slot. Further variants are
    /// in a table of their own, because few entries have any.
    private var newest: [ResidentBlock?] = []
    /// The holder of the last hit. The next hit reuses it if it is free by then, so that a hit allocates nothing.
    private var holder: BlockHolder?
    /// The older variants by slot, newest first.
    private var older: [Int: [ResidentResponse]] = [:]
    private var freeSlots: [Int32] = []
    private var index = HashIndex()
    private var order = ArrayEvictionOrder()
    private(set) var cost = 0
    /// The cost of the pinned entries.
    private(set) var pinnedCost = 0
    var hits = 0
    var misses = 0

    var count: Int { index.count }

    deinit {
        for block in newest { block?.release() }
    }

    // MARK: - Lookups

    /// The response of an entry for the hot path: the only variant, or the one that `selects` names.
    mutating func hit(
        _ key: UnsafeRawBufferPointer,
        hash: UInt64,
        where selects: (ResidentResponse) -> Bool
    ) -> ResidentResponse? {
        guard let slot = find(key, hash), let first = newest[slot] else { return nil }
        var response: ResidentResponse?
        if !first.varies, older.isEmpty || older[slot] == nil {
            if first.isHot { response = held(first) }
        } else {
            response = variant(slot, first, where: selects)
        }
        guard let response else { return nil }
        order.use(slot)
        hits += 1
        return response
    }

    /// The response of a block. It does not allocate, unless the response of the last hit is still in use, which cannot
    /// change under the mutex: references to the holder are made here only. The block that the holder drops still
    /// belongs to its entry.
    private mutating func held(_ block: ResidentBlock) -> ResidentResponse {
        if let holder, holder.block == block { return ResidentResponse(holder) }
        if isKnownUniquelyReferenced(&holder), let holder {
            holder.hold(block)
            return ResidentResponse(holder)
        }
        let holder = BlockHolder(block)
        self.holder = holder
        return ResidentResponse(holder)
    }

    /// The variant that a request selects. Of responses that vary by the same fields at most one can be selected; among
    /// others the rules have to choose.
    private mutating func variant(
        _ slot: Int,
        _ first: ResidentBlock,
        where selects: (ResidentResponse) -> Bool
    ) -> ResidentResponse? {
        guard first.varies else { return nil }
        let newest = held(first)
        var found = selects(newest) ? newest : nil
        for other in older[slot] ?? [] {
            guard other.varyNames.holdsSame(as: newest.varyNames) else { return nil }
            if found == nil, selects(other) { found = other }
        }
        return found.flatMap { $0.block.isHot ? $0 : nil }
    }

    func holds(_ key: UnsafeRawBufferPointer, hash: UInt64) -> Bool { find(key, hash) != nil }

    mutating func variants(_ key: CacheKey) -> [ResidentResponse] {
        guard let slot = find(key) else {
            misses += 1
            return []
        }
        order.use(slot)
        hits += 1
        return variants(slot)
    }

    func peek(_ key: CacheKey) -> [ResidentResponse] { find(key).map { variants($0) } ?? [] }

    /// The variants of a slot, newest first; empty for a free slot.
    private func variants(_ slot: Int) -> [ResidentResponse] {
        newest[slot].map { [ResidentResponse(BlockHolder($0))] + (older[slot] ?? []) } ?? []
    }

    private func find(_ key: CacheKey) -> Int? { key.bytes.withUnsafeBytes { find($0, key.hash) } }

    private func find(_ key: UnsafeRawBufferPointer, _ hash: UInt64) -> Int? {
        index.find(hash) { slot in
            // Both are elsewhere in memory, and needed soon.
            order.prefetch(slot)
            newest[slot]?.prefetch()
            guard let stored = newest[slot]?.keyBytes, stored.count == key.count, let left = stored.baseAddress,
                let right = key.baseAddress
            else { return false }
            return memcmp(left, right, key.count) == 0
        }
    }

    // MARK: - Changes

    /// Inserts a response.
    /// - Parameters:
    ///   - held: the resident response.
    ///   - response: the stored response that it was made of.
    /// - Returns: the replaced response, and the oldest variants beyond `maxVariants`.
    mutating func insert(
        _ held: ResidentResponse,
        _ response: StoredResponse,
        maxVariants: Int,
        isPinned: Bool = false
    ) -> [ResidentResponse] {
        guard let slot = find(response.key) else {
            add(held, response.key.hash, isPinned: isPinned)
            return []
        }
        setPinned(slot, isPinned)
        return replace(slot) { variants in
            let replaced = variants.filter { known in
                !known.varies && !held.varies || known.isSameVariant(as: held)
            }
            variants.removeAll { known in replaced.contains { $0 === known } }
            let index = variants.firstIndex { $0.responseTime <= response.head.responseTime }
            variants.insert(held, at: index ?? variants.count)
            let dropped = variants.dropFirst(max(1, maxVariants))
            variants.removeLast(dropped.count)
            return replaced + dropped
        }
    }

    /// Removes the variants that `shouldRemove` selects.
    mutating func remove(_ key: CacheKey, where shouldRemove: (ResidentResponse) -> Bool) -> [ResidentResponse] {
        guard let slot = find(key) else { return [] }
        return replace(slot) { variants in
            let doomed = variants.filter(shouldRemove)
            variants.removeAll { known in doomed.contains { $0 === known } }
            return doomed
        }
    }

    /// The responses of some slots, and the slot at which to continue; nil at the end.
    func responses(from start: Int, count: Int) -> (responses: [ResidentResponse], next: Int?) {
        let end = min(newest.count, start + count)
        return ((start..<max(start, end)).flatMap { variants($0) }, end < newest.count ? end : nil)
    }

    /// Calls `revise` with the entries of some slots, which may change or remove their responses. Changes in between
    /// may show an entry twice, but never skip one that stays.
    /// - Parameter entered: called with each replacement.
    /// - Returns: the removed and replaced responses, and where to continue; nil at the end.
    mutating func revise(
        from start: Int,
        count: Int,
        _ revise: (ResidentResponse) -> MemoryRevision,
        entered: (ResidentResponse) -> Void
    ) -> (gone: [ResidentResponse], next: Int?) {
        let end = min(newest.count, start + count)
        var gone: [ResidentResponse] = []
        for slot in start..<max(start, end) where newest[slot] != nil {
            let revisions = variants(slot).map { ($0, revise($0)) }
            let isChanged = revisions.contains { if case .keep = $0.1 { false } else { true } }
            guard isChanged else { continue }
            replace(slot) { variants in
                variants = revisions.compactMap { response, revision in
                    switch revision {
                    case .keep: return response
                    case .remove:
                        gone.append(response)
                        return nil
                    case .replace(let other):
                        gone.append(response)
                        // The body is still in memory. Otherwise, or without memory, the response would be dropped.
                        let held = ResidentResponse(other)
                        if let held { entered(held) }
                        return held
                    }
                }
            }
        }
        return (gone, end < newest.count ? end : nil)
    }

    /// Pins or unpins entries as `isPinned` says.
    mutating func pin(from start: Int, count: Int, _ isPinned: (CacheKey) -> Bool) -> Int? {
        let end = min(newest.count, start + count)
        for slot in start..<max(start, end) {
            if let first = newest[slot] { setPinned(slot, isPinned(CacheKey(bytes: Array(first.keyBytes)))) }
        }
        return end < newest.count ? end : nil
    }

    private mutating func setPinned(_ slot: Int, _ isPinned: Bool) {
        guard order.isPinned(slot) != isPinned else { return }
        order.pin(slot, isPinned)
        let own = variants(slot).reduce(0) { $0 + $1.cost }
        pinnedCost += isPinned ? own : -own
    }

    /// Evicts the next entry in order (see `EvictionOrder`); empty if there is none.
    mutating func evict() -> [ResidentResponse] {
        guard let slot = order.victim(), let first = newest[slot] else { return [] }
        let isPinned = order.isPinned(slot)
        order.evict(slot, hash: CacheKey.hash(first.keyBytes))
        return replace(slot, isPinned: isPinned, isInOrder: false) { variants in
            defer { variants = [] }
            return variants
        }
    }

    private mutating func add(_ response: ResidentResponse, _ hash: UInt64, isPinned: Bool) {
        let slot: Int
        response.block.retain()
        if let free = freeSlots.popLast() {
            slot = Int(free)
            newest[slot] = response.block
        } else {
            slot = newest.count
            newest.append(response.block)
        }
        order.add(slot, hash: hash, cost: response.cost)
        cost += response.cost
        setPinned(slot, isPinned)
        index.insert(hash, slot: slot)
    }

    /// Lets `change` edit an entry's variants; an entry without any is removed.
    /// - Parameters:
    ///   - isPinned: whether the entry is pinned; nil to keep that.
    ///   - isInOrder: false for an entry that has left the order of eviction.
    private mutating func replace<R>(
        _ slot: Int,
        isPinned: Bool? = nil,
        isInOrder: Bool = true,
        _ change: (inout [ResidentResponse]) -> R
    ) -> R {
        var variants = variants(slot)
        let before = variants
        let result = change(&variants)
        let newCost = variants.reduce(0) { $0 + $1.cost }
        let difference = newCost - before.reduce(0) { $0 + $1.cost }
        cost += difference
        if isPinned ?? order.isPinned(slot) { pinnedCost += difference }
        if let kept = newest[slot], let last = holder?.block, last == kept { holder = nil }
        variants.first?.block.retain()
        newest[slot]?.release()
        newest[slot] = variants.first?.block
        if variants.count > 1 || before.count > 1 {
            older[slot] = variants.count > 1 ? Array(variants.dropFirst()) : nil
        }
        if variants.isEmpty {
            if isInOrder { order.remove(slot) }
            if let first = before.first { index.remove(CacheKey.hash(first.keyBytes), slot: slot) }
            freeSlots.append(Int32(slot))
        } else {
            order.setCost(slot, newCost)
        }
        return result
    }
}

/// The treatment of a response during a walk over the memory tier.
package enum MemoryRevision {
    case keep, remove
    case replace(StoredResponse)
}
