// The storage of a memory cache: values by key, and the order in which they make room, as in the daemon's memory tier.

import CacheStore

/// A value without a lock: `MemoryCache` keeps it under its mutex.
struct MemoryCacheTable<Key: Hashable, Value> {
    private struct Entry {
        let key: Key
        let value: Value
        let cost: Int
    }

    /// Nil in a free slot.
    private var entries: [Entry?] = []
    private var slots: [Key: Int] = [:]
    private var freeSlots: [Int] = []
    private var order = SlotOrder()
    private(set) var cost = 0

    var count: Int { slots.count }

    /// A use: what is found stays longer.
    mutating func use(_ key: Key) -> Value? {
        guard let slot = slots[key] else { return nil }
        order.use(slot)
        return entries[slot]?.value
    }

    /// The key must not be there.
    mutating func insert(_ key: Key, _ value: Value, cost added: Int) {
        let slot = freeSlots.popLast() ?? entries.count
        let entry = Entry(key: key, value: value, cost: added)
        if slot == entries.count { entries.append(entry) } else { entries[slot] = entry }
        slots[key] = slot
        order.add(slot, hash: Self.hash(key), cost: added)
        cost += added
    }

    /// - Returns: what was there with the key that the table had, so that the caller lets go of both.
    mutating func remove(_ key: Key) -> (key: Key, value: Value)? {
        guard let slot = slots[key] else { return nil }
        order.remove(slot)
        return take(slot)
    }

    /// Takes out the value whose turn it is to make room; nil where nothing is left.
    mutating func evict() -> (key: Key, value: Value)? {
        guard let slot = order.victim(), let key = entries[slot]?.key else { return nil }
        order.evict(slot, hash: Self.hash(key))
        return take(slot)
    }

    /// - Parameter slot: of an entry that is no longer in the order.
    private mutating func take(_ slot: Int) -> (key: Key, value: Value)? {
        guard let entry = entries[slot] else { return nil }
        entries[slot] = nil
        slots[entry.key] = nil
        freeSlots.append(slot)
        cost -= entry.cost
        return (entry.key, entry.value)
    }

    private static func hash(_ key: Key) -> UInt64 { UInt64(truncatingIfNeeded: key.hashValue) }
}
