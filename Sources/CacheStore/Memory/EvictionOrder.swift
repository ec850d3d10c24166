// The order of eviction in one shard of the memory tier: S3-FIFO, over slots and what they cost.
//
// New entries stand in a small queue, which has a tenth of the room. Those that are asked for twice before they reach its
// end move on to the main queue, where each use buys one more turn, up to three. What leaves the small queue unused is
// remembered by its hash for a while: when it comes again, it goes to the main queue at once. Against SIEVE, which is as
// good while popularity stays as it is, this order also keeps up when it changes (Benchmarks/eviction measures both).

internal import CProcessor

/// A value without a lock, as the shard that it belongs to.
struct EvictionOrder {
    private static let none: Int32 = -1
    private static let mostUses: UInt8 = 3

    private enum Place: UInt8 { case free, small, main }

    /// 16 bytes: there is one for each entry.
    private struct Node {
        /// Only the shares of the queues come from it: an entry of 4 GiB or more counts as one of 4 GiB.
        var cost: UInt32 = 0
        var newer = EvictionOrder.none
        var older = EvictionOrder.none
        var uses: UInt8 = 0
        var place = Place.free
        /// Makes no room for others.
        var isPinned = false
    }

    private struct Queue {
        var newest = EvictionOrder.none
        var oldest = EvictionOrder.none
        var cost = 0
        var count = 0
    }

    private var nodes: [Node] = []
    private var small = Queue()
    private var main = Queue()
    private var ghosts = GhostQueue()

    /// Entries in the order.
    var count: Int { small.count + main.count }

    /// Says that an entry's use comes next.
    func prefetch(_ slot: Int) {
        nodes.withUnsafeBufferPointer { nodes in
            if let first = nodes.baseAddress { c_processor_prefetch(first + slot) }
        }
    }

    /// A use of an entry. No allocation.
    mutating func use(_ slot: Int) {
        if nodes[slot].uses < Self.mostUses { nodes[slot].uses += 1 }
    }

    /// Takes an entry in.
    mutating func add(_ slot: Int, hash: UInt64, cost: Int) {
        while nodes.count <= slot { nodes.append(Node()) }
        nodes[slot] = Node(cost: UInt32(clamping: cost))
        link(slot, ghosts.remove(hash) ? .main : .small)
    }

    mutating func setCost(_ slot: Int, _ cost: Int) {
        let cost = UInt32(clamping: cost)
        let change = Int(cost) - Int(nodes[slot].cost)
        nodes[slot].cost = cost
        if nodes[slot].place == .small { small.cost += change } else { main.cost += change }
    }

    /// What is pinned makes no room for others, until it is let go of.
    mutating func pin(_ slot: Int, _ isPinned: Bool) { nodes[slot].isPinned = isPinned }

    func isPinned(_ slot: Int) -> Bool { nodes[slot].isPinned }

    /// An entry has gone by itself.
    mutating func remove(_ slot: Int) {
        unlink(slot)
        nodes[slot] = Node()
    }

    /// The entry that makes room for others; it stays until ``evict(_:hash:)``.
    /// - Returns: nil where there is none that may go.
    mutating func victim() -> Int? {
        // Each round takes one use from an entry, so that this many find one, if there is one.
        for _ in 0..<(Int(Self.mostUses) + 3) * count {
            if small.count > 0, main.count == 0 || small.cost * 10 >= small.cost + main.cost {
                let slot = Int(small.oldest)
                guard nodes[slot].uses > 1 || nodes[slot].isPinned else { return slot }
                unlink(slot)
                nodes[slot].uses = 0
                link(slot, .main)
            } else {
                let slot = Int(main.oldest)
                guard nodes[slot].uses > 0 || nodes[slot].isPinned else { return slot }
                unlink(slot)
                if nodes[slot].uses > 0 { nodes[slot].uses -= 1 }
                link(slot, .main)
            }
        }
        return nil
    }

    /// An entry makes room for others: should it come again soon, it was too early.
    mutating func evict(_ slot: Int, hash: UInt64) {
        if nodes[slot].place == .small { ghosts.add(hash, limit: max(main.count, 16)) }
        remove(slot)
    }

    private mutating func link(_ slot: Int, _ place: Place) {
        var queue = place == .small ? small : main
        nodes[slot].place = place
        nodes[slot].newer = Self.none
        nodes[slot].older = queue.newest
        if queue.newest == Self.none {
            queue.oldest = Int32(slot)
        } else {
            nodes[Int(queue.newest)].newer = Int32(slot)
        }
        queue.newest = Int32(slot)
        queue.cost += Int(nodes[slot].cost)
        queue.count += 1
        if place == .small { small = queue } else { main = queue }
    }

    private mutating func unlink(_ slot: Int) {
        let node = nodes[slot]
        var queue = node.place == .small ? small : main
        if node.newer == Self.none { queue.newest = node.older } else { nodes[Int(node.newer)].older = node.older }
        if node.older == Self.none { queue.oldest = node.newer } else { nodes[Int(node.older)].newer = node.newer }
        queue.cost -= Int(node.cost)
        queue.count -= 1
        if node.place == .small { small = queue } else { main = queue }
    }
}

/// Hashes of what has made room, the latest ones.
struct GhostQueue {
    /// Which of the ring's entries of a hash counts: the latest.
    private var stamps: [UInt64: UInt64] = [:]
    private var ring: [(hash: UInt64, stamp: UInt64)] = []
    private var first = 0
    private var next: UInt64 = 0

    var count: Int { stamps.count }

    mutating func add(_ hash: UInt64, limit: Int) {
        next += 1
        stamps[hash] = next
        ring.append((hash, next))
        while ring.count - first > limit {
            let (oldest, stamp) = ring[first]
            first += 1
            if stamps[oldest] == stamp { stamps[oldest] = nil }
        }
        // Amortised: each entry is moved once at most on the average.
        if first > 64, first > ring.count / 2 {
            ring.removeFirst(first)
            first = 0
        }
    }

    /// Forgets a hash; whether it was there.
    mutating func remove(_ hash: UInt64) -> Bool { stamps.removeValue(forKey: hash) != nil }
}
