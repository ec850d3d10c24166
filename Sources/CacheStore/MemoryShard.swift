// One shard of the memory tier: a slab of entries, an index over it, and SIEVE as the order of eviction.

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
        var wasVisited = false
        /// Towards the newest entry.
        var newer = MemoryShard.none
        /// Towards the oldest entry; the next free one in a free entry.
        var older = MemoryShard.none
    }

    private var entries: [Entry] = []
    private var index = HashIndex()
    private var firstFree = MemoryShard.none
    private var newest = MemoryShard.none
    private var oldest = MemoryShard.none
    /// Where eviction looks next; from the oldest towards the newest.
    private var hand = MemoryShard.none
    private(set) var cost = 0
    var hits = 0
    var misses = 0

    var count: Int { index.count }

    // MARK: - Lookups

    /// The response of an entry with exactly one variant that is on the hot path.
    mutating func hit(_ key: UnsafeRawBufferPointer, hash: UInt64) -> StoredResponse? {
        guard let slot = find(key, hash), let response = entries[slot].first, response.hot != nil,
            entries[slot].others.isEmpty
        else { return nil }
        entries[slot].wasVisited = true
        hits += 1
        return response
    }

    mutating func variants(_ key: CacheKey) -> [StoredResponse] {
        guard let slot = find(key), let first = entries[slot].first else {
            misses += 1
            return []
        }
        entries[slot].wasVisited = true
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
    mutating func insert(_ response: StoredResponse, maxVariants: Int) -> [StoredResponse] {
        guard let slot = find(response.key) else {
            add(response)
            return []
        }
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

    func responses(where isWanted: (StoredResponse) -> Bool) -> [StoredResponse] {
        entries.flatMap { entry in entry.first.map { ([$0] + entry.others).filter(isWanted) } ?? [] }
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

    /// Removes the entry that SIEVE names: the first from the hand on that was not used since the hand last passed it.
    mutating func evict() -> [StoredResponse] {
        guard oldest != Self.none else { return [] }
        var slot = hand == Self.none ? oldest : hand
        while entries[Int(slot)].wasVisited {
            entries[Int(slot)].wasVisited = false
            slot = entries[Int(slot)].newer == Self.none ? oldest : entries[Int(slot)].newer
        }
        hand = slot
        return replace(Int(slot)) { variants in
            defer { variants = [] }
            return variants
        }
    }

    private mutating func add(_ response: StoredResponse) {
        let slot: Int32
        if firstFree == Self.none {
            slot = Int32(entries.count)
            entries.append(Entry())
        } else {
            slot = firstFree
            firstFree = entries[Int(slot)].older
        }
        let entry = Entry(hash: response.key.hash, first: response, cost: response.cost, older: newest)
        entries[Int(slot)] = entry
        if newest == Self.none { oldest = slot } else { entries[Int(newest)].newer = slot }
        newest = slot
        cost += response.cost
        index.insert(response.key.hash, slot: Int(slot))
    }

    /// Lets `change` edit an entry's variants; an entry without any is unlinked.
    private mutating func replace<R>(_ slot: Int, _ change: (inout [StoredResponse]) -> R) -> R {
        var variants = (entries[slot].first.map { [$0] } ?? []) + entries[slot].others
        let result = change(&variants)
        let newCost = variants.reduce(0) { $0 + $1.cost }
        cost += newCost - entries[slot].cost
        entries[slot].cost = newCost
        entries[slot].first = variants.first
        entries[slot].others = Array(variants.dropFirst())
        if variants.isEmpty { unlink(slot) }
        return result
    }

    private mutating func unlink(_ slot: Int) {
        let entry = entries[slot]
        index.remove(entry.hash, slot: slot)
        if hand == Int32(slot) { hand = entry.newer }
        if entry.newer == Self.none { newest = entry.older } else { entries[Int(entry.newer)].older = entry.older }
        if entry.older == Self.none { oldest = entry.newer } else { entries[Int(entry.older)].newer = entry.newer }
        entries[slot] = Entry(older: firstFree)
        firstFree = Int32(slot)
    }
}
