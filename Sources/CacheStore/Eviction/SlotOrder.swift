// The order of eviction for owners in other rooms: the memory tier's, without what only the tiers need.

/// The owner numbers its entries, and keeps a number as long as the entry is there. A value without a lock: its owner's
/// lock protects it.
package struct SlotOrder: Sendable {
    private var order = ArrayEvictionOrder(usesToStay: 1)

    package init() {}

    /// Takes an entry in.
    /// - Parameters:
    ///   - hash: of the entry's key, by which the order knows it when it comes again.
    ///   - cost: only the shares of the queues come from it.
    package mutating func add(_ slot: Int, hash: UInt64, cost: Int) { order.add(slot, hash: hash, cost: max(1, cost)) }

    /// A use of an entry.
    package mutating func use(_ slot: Int) { order.use(slot) }

    /// An entry has gone by itself.
    package mutating func remove(_ slot: Int) { order.remove(slot) }

    /// The entry that makes room for others; it stays until ``evict(_:hash:)``.
    /// - Returns: nil where there is none.
    package mutating func victim() -> Int? { order.victim() }

    /// An entry makes room for others.
    package mutating func evict(_ slot: Int, hash: UInt64) { order.evict(slot, hash: hash) }
}
