// One shard of the memory tier: a slab of entries, an index over it, and the order in which they make room.

import Glibc
import HTTPCaching

/// A value without a lock: `MemoryTier` keeps it under the shard's mutex.
struct MemoryShard {
    private static let none: Int32 = -1

    private struct Entry {
        var hash: UInt64 = 0
        /// The newest variant; nil in a free entry.
        var first: StoredResponse?
        /// Older variants, newest first.
        var others: [StoredResponse] = []
        var cost = 0
        /// The next free one in a free entry.
        var nextFree = MemoryShard.none
        /// Makes no room for others.
        var isPinned = false
    }

    private var entries: [Entry] = []
    private var index = HashIndex()
    private var firstFree = MemoryShard.none
    private var order = EvictionOrder()
    private(set) var cost = 0
    /// The part of it that is pinned.
    private(set) var pinnedCost = 0
    var hits = 0
    var misses = 0

    var count: Int { index.count }

    // MARK: - Lookups

    /// The response of an entry that is on the hot path, if it is the only one, or one of variants of which `selects` names one.
    mutating func hit(
        _ key: UnsafeRawBufferPointer,
        hash: UInt64,
        where selects: (StoredResponse) -> Bool
    ) -> StoredResponse? {
        guard let slot = find(key, hash), let first = entries[slot].first else { return nil }
        let isPlain = !first.varies && entries[slot].others.isEmpty
        guard let response = isPlain ? first : variant(slot, where: selects), response.hot != nil else {
            return nil
        }
        order.use(slot)
        hits += 1
        return response
    }

    /// Of responses that vary by the same fields no more than one can be selected; among others the rules have to choose.
    private func variant(_ slot: Int, where selects: (StoredResponse) -> Bool) -> StoredResponse? {
        guard let first = entries[slot].first, first.varies else { return nil }
        var found = selects(first) ? first : nil
        for other in entries[slot].others {
            guard other.head.varyNames == first.head.varyNames else { return nil }
            if found == nil, selects(other) { found = other }
        }
        return found
    }

    mutating func variants(_ key: CacheKey) -> [StoredResponse] {
        guard let slot = find(key), let first = entries[slot].first else {
            misses += 1
            return []
        }
        order.use(slot)
        hits += 1
        return [first] + entries[slot].others
    }

    func peek(_ key: CacheKey) -> [StoredResponse] {
        guard let slot = find(key), let first = entries[slot].first else { return [] }
        return [first] + entries[slot].others
    }

    private func find(_ key: CacheKey) -> Int? { key.bytes.withUnsafeBytes { find($0, key.hash) } }

    private func find(_ key: UnsafeRawBufferPointer, _ hash: UInt64) -> Int? {
        index.find(hash) { slot in
            guard let first = entries[slot].first else { return false }
            return first.key.bytes.withUnsafeBytes { stored in
                guard stored.count == key.count, let left = stored.baseAddress, let right = key.baseAddress else {
                    return false
                }
                return memcmp(left, right, key.count) == 0
            }
        }
    }

    // MARK: - Changes

    /// Returns what the response replaces, and the variants that were stored longest ago beyond `maxVariants`.
    mutating func insert(_ response: StoredResponse, maxVariants: Int, isPinned: Bool = false) -> [StoredResponse] {
        guard let slot = find(response.key) else {
            add(response, isPinned: isPinned)
            return []
        }
        setPinned(slot, isPinned)
        return replace(slot) { variants in
            let replaced = variants.filter { $0.isSameVariant(as: response) }
            variants.removeAll { $0.isSameVariant(as: response) }
            let place = variants.firstIndex { $0.head.responseTime <= response.head.responseTime }
            variants.insert(response, at: place ?? variants.count)
            let dropped = variants.dropFirst(max(1, maxVariants))
            variants.removeLast(dropped.count)
            return replaced + dropped
        }
    }

    /// Removes the variants that `isDoomed` names.
    mutating func remove(_ key: CacheKey, where isDoomed: (StoredResponse) -> Bool) -> [StoredResponse] {
        guard let slot = find(key) else { return [] }
        return replace(slot) { variants in
            let doomed = variants.filter(isDoomed)
            variants.removeAll(where: isDoomed)
            return doomed
        }
    }

    /// The responses of some slots, and where the next turn begins; nil at the end.
    func responses(from start: Int, count: Int) -> (responses: [StoredResponse], next: Int?) {
        let end = min(entries.count, start + count)
        let found = entries[start..<max(start, end)].flatMap { entry in entry.first.map { [$0] + entry.others } ?? [] }
        return (found, end < entries.count ? end : nil)
    }

    mutating func removeAll(where isDoomed: (StoredResponse) -> Bool) -> [StoredResponse] {
        var removed: [StoredResponse] = []
        for slot in entries.indices where entries[slot].first != nil {
            removed += replace(slot) { variants in
                let doomed = variants.filter(isDoomed)
                variants.removeAll(where: isDoomed)
                return doomed
            }
        }
        return removed
    }

    /// Lets `revise` look at the entries of some slots, and change or remove their responses; an entry may be met twice while
    /// others come and go, but none that stays is passed over.
    /// - Returns: what has gone or was replaced, and where the next turn begins; nil at the end.
    mutating func revise(
        from start: Int,
        count: Int,
        _ revise: (StoredResponse) -> MemoryRevision
    ) -> (gone: [StoredResponse], next: Int?) {
        let end = min(entries.count, start + count)
        var gone: [StoredResponse] = []
        for slot in start..<max(start, end) where entries[slot].first != nil {
            let revisions = ([entries[slot].first].compactMap(\.self) + entries[slot].others).map { ($0, revise($0)) }
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
                        return other
                    }
                }
            }
        }
        return (gone, end < entries.count ? end : nil)
    }

    /// Pins, or lets go of, what `isPinned` says.
    mutating func pin(from start: Int, count: Int, _ isPinned: (CacheKey) -> Bool) -> Int? {
        let end = min(entries.count, start + count)
        for slot in start..<max(start, end) {
            if let first = entries[slot].first { setPinned(slot, isPinned(first.key)) }
        }
        return end < entries.count ? end : nil
    }

    private mutating func setPinned(_ slot: Int, _ isPinned: Bool) {
        guard entries[slot].isPinned != isPinned else { return }
        entries[slot].isPinned = isPinned
        order.pin(slot, isPinned)
        pinnedCost += isPinned ? entries[slot].cost : -entries[slot].cost
    }

    /// Removes the entry whose turn it is (see `EvictionOrder`); empty where there is none.
    mutating func evict() -> [StoredResponse] {
        guard let slot = order.victim() else { return [] }
        order.evict(slot, hash: entries[slot].hash)
        return replace(slot, isInOrder: false) { variants in
            defer { variants = [] }
            return variants
        }
    }

    private mutating func add(_ response: StoredResponse, isPinned: Bool) {
        let slot: Int32
        if firstFree == Self.none {
            slot = Int32(entries.count)
            entries.append(Entry())
        } else {
            slot = firstFree
            firstFree = entries[Int(slot)].nextFree
        }
        entries[Int(slot)] = Entry(hash: response.key.hash, first: response, cost: response.cost)
        order.add(Int(slot), hash: response.key.hash, cost: response.cost)
        cost += response.cost
        setPinned(Int(slot), isPinned)
        index.insert(response.key.hash, slot: Int(slot))
    }

    /// Lets `change` edit an entry's variants; an entry without any is given up.
    /// - Parameter isInOrder: false for an entry that has left the order of eviction.
    private mutating func replace<R>(
        _ slot: Int,
        isInOrder: Bool = true,
        _ change: (inout [StoredResponse]) -> R
    ) -> R {
        var variants = (entries[slot].first.map { [$0] } ?? []) + entries[slot].others
        let result = change(&variants)
        let newCost = variants.reduce(0) { $0 + $1.cost }
        cost += newCost - entries[slot].cost
        if entries[slot].isPinned { pinnedCost += newCost - entries[slot].cost }
        entries[slot].cost = newCost
        entries[slot].first = variants.first
        entries[slot].others = Array(variants.dropFirst())
        if variants.isEmpty {
            if isInOrder { order.remove(slot) }
            index.remove(entries[slot].hash, slot: slot)
            entries[slot] = Entry(nextFree: firstFree)
            firstFree = Int32(slot)
        } else {
            order.setCost(slot, newCost)
        }
        return result
    }
}

/// What becomes of a response that a walk over the memory tier meets.
package enum MemoryRevision {
    case keep, remove
    case replace(StoredResponse)
}
