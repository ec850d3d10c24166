// The order in which entries make room for others: S3-FIFO, over numbered slots and what they cost, with the hashes of
// those that made room lately.
//
// A new entry stands in the small queue, which has a tenth of the cost. An entry that was used meanwhile moves from its
// end to the main queue, where each use gives it one more turn, up to three. The hash of an entry that leaves the small
// queue unused is remembered for a while (`GhostTable`): when the entry comes again, it goes to the main queue at once.
// A scan passes through the small queue alone. The order finds what the published S3-FIFO finds (`HitRatioTests`).

import CProcessor

/// The place of one entry in its queue: 16 bytes.
public struct EvictionNode: Sendable {
    @inlinable static var none: Int32 { -1 }

    @usableFromInline
    enum Queue: UInt8, Sendable {
        case free, small, main

        @inlinable
        static func == (left: Queue, right: Queue) -> Bool { left.rawValue == right.rawValue }
    }

    /// Only the shares of the queues come from it: an entry that costs 4 GiB or more counts as one of 4 GiB.
    @usableFromInline var cost: UInt32
    @usableFromInline var newer = EvictionNode.none
    @usableFromInline var older = EvictionNode.none
    @usableFromInline var uses: UInt8
    @usableFromInline var queue = Queue.free
    /// A pinned entry makes no room for others.
    @usableFromInline var isPinned = false

    @inlinable
    init(cost: UInt32 = 0, uses: UInt8 = 0) { (self.cost, self.uses) = (cost, uses) }
}

/// Where the nodes are: an array, whose growth copies it, or a `Slab`, whose growth copies nothing.
public protocol EvictionNodes: Sendable {
    init()
    var count: Int { get }
    subscript(slot: Int) -> EvictionNode { get set }
    mutating func append(_ node: EvictionNode)
}

extension ContiguousArray<EvictionNode>: EvictionNodes {}

extension Slab<EvictionNode>: EvictionNodes {}

/// The order of one shard of the memory tier, and of the library's cache.
typealias ArrayEvictionOrder = EvictionOrder<ContiguousArray<EvictionNode>>

/// A value without a lock: its owner's lock protects it. It is generic, and on the way of each hit: so all of it can be
/// inlined where other modules make it of nodes of their own.
public struct EvictionOrder<Nodes: EvictionNodes>: Sendable {
    /// Uses that count at most.
    @inlinable static var maximumUses: UInt8 { 3 }
    /// Nodes that one search looks at before it takes the next one although that was used. Without this bound, a search
    /// among many used entries would hold the owner's lock the longer the more entries there are.
    @inlinable static var patience: Int { 4096 }
    /// Entries that may stand in the small queue whatever its share is, while the room fills.
    @inlinable static var leastSmall: Int { 32 }

    @usableFromInline
    struct Queue: Sendable {
        @usableFromInline var newest = EvictionNode.none
        @usableFromInline var oldest = EvictionNode.none
        @usableFromInline var cost = 0
        @usableFromInline var count = 0
    }

    @usableFromInline var nodes = Nodes()
    @usableFromInline var small = Queue()
    @usableFromInline var main = Queue()
    @usableFromInline var ghosts = GhostTable()
    /// Nothing has had to make room yet. The queues have their shares then, too: the older entries stand in the main
    /// queue. Otherwise all of the first entries would leave through the small queue, with too few ghosts to bring them
    /// back, and the order would find two points less until it has seen several times its room.
    @usableFromInline var isFilling = true
    @usableFromInline let usesToStay: UInt8

    /// - Parameter usesToStay: uses in the small queue with which an entry moves on to the main queue: two, as
    ///   published, or one where the owner sees few of the uses.
    public init(usesToStay: UInt8 = 2) { self.usesToStay = usesToStay }

    /// Entries in the order.
    @inlinable public var count: Int { small.count + main.count }
    /// Evictions for which a hash is remembered: the entries of the main queue when the queues have their shares.
    @inlinable var memory: Int { max(count - count / 10, Self.leastSmall) }

    /// A use of an entry. No allocation.
    @inlinable @inline(__always)
    public mutating func use(_ slot: Int) {
        if nodes[slot].uses < Self.maximumUses { nodes[slot].uses += 1 }
    }

    /// Takes an entry in.
    @inlinable
    public mutating func add(_ slot: Int, hash: UInt64, cost: Int) {
        add(slot, cost: cost, queue: ghosts.remove(hash) ? .main : .small, uses: 0)
    }

    /// Takes an entry in that an earlier process had, as ``standing(_:)`` said there.
    @inlinable
    public mutating func add(_ slot: Int, standing: EvictionStanding, cost: Int) {
        add(slot, cost: cost, queue: standing.isInMain ? .main : .small, uses: min(standing.uses, Self.maximumUses))
    }

    @inlinable
    mutating func add(_ slot: Int, cost: Int, queue: EvictionNode.Queue, uses: UInt8) {
        while nodes.count <= slot { nodes.append(EvictionNode()) }
        nodes[slot] = EvictionNode(cost: UInt32(clamping: cost), uses: uses)
        link(slot, queue)
        guard isFilling else { return }
        while small.count > Self.leastSmall, small.cost * 10 > small.cost + main.cost {
            let oldest = Int(small.oldest)
            unlink(oldest)
            link(oldest, .main)
        }
    }

    /// What is worth keeping of an entry's place, for a later process.
    @inlinable
    public func standing(_ slot: Int) -> EvictionStanding {
        EvictionStanding(isInMain: nodes[slot].queue == .main, uses: nodes[slot].uses)
    }

    @inlinable
    public mutating func setCost(_ slot: Int, _ cost: Int) {
        let cost = UInt32(clamping: cost)
        let change = Int(cost) - Int(nodes[slot].cost)
        nodes[slot].cost = cost
        if nodes[slot].queue == .small { small.cost += change } else { main.cost += change }
    }

    /// A pinned entry makes no room for others, until it is let go of.
    @inlinable
    public mutating func pin(_ slot: Int, _ isPinned: Bool) { nodes[slot].isPinned = isPinned }

    @inlinable
    public func isPinned(_ slot: Int) -> Bool { nodes[slot].isPinned }

    /// An entry has gone by itself.
    @inlinable
    public mutating func remove(_ slot: Int) {
        unlink(slot)
        nodes[slot] = EvictionNode()
        if count == 0 { isFilling = true }
    }

    /// An entry has another slot now, which was free.
    @inlinable
    public mutating func move(_ slot: Int, to free: Int) {
        let node = nodes[slot]
        nodes[free] = node
        nodes[slot] = EvictionNode()
        var queue = node.queue == .small ? small : main
        if node.newer == EvictionNode.none {
            queue.newest = Int32(free)
        } else {
            nodes[Int(node.newer)].older = Int32(free)
        }
        if node.older == EvictionNode.none {
            queue.oldest = Int32(free)
        } else {
            nodes[Int(node.older)].newer = Int32(free)
        }
        if node.queue == .small { small = queue } else { main = queue }
    }

    /// The entry that makes room for others; it stays until ``evict(_:hash:)``.
    /// - Parameter isKept: true for an entry that makes no room for others, besides the pinned ones.
    /// - Returns: nil where no entry was found that may go.
    @inlinable
    public mutating func victim(besides isKept: (Int) -> Bool = { _ in false }) -> Int? {
        // Each round takes one use from an entry, so that this many find one, if there is one.
        let rounds = (Int(Self.maximumUses) + 3) * count
        for round in 0..<min(rounds, 2 * Self.patience) {
            let isInSmall = small.count > 0 && (main.count == 0 || small.cost * 10 >= small.cost + main.cost)
            let slot = Int(isInSmall ? small.oldest : main.oldest)
            let node = nodes[slot]
            let isUsed = round < Self.patience && node.uses >= (isInSmall ? usesToStay : 1)
            guard isUsed || node.isPinned || isKept(slot) else { return slot }
            unlink(slot)
            if isInSmall { nodes[slot].uses = 0 } else if node.uses > 0 { nodes[slot].uses -= 1 }
            link(slot, .main)
        }
        return nil
    }

    /// Evicts an entry. Its hash is remembered: if the entry is inserted again soon, the eviction was too early.
    @inlinable
    public mutating func evict(_ slot: Int, hash: UInt64) {
        if nodes[slot].queue == .small { ghosts.add(hash, limit: memory) }
        remove(slot)
        isFilling = count == 0
    }

    @inlinable
    mutating func link(_ slot: Int, _ place: EvictionNode.Queue) {
        var queue = place == .small ? small : main
        nodes[slot].queue = place
        nodes[slot].newer = EvictionNode.none
        nodes[slot].older = queue.newest
        if queue.newest == EvictionNode.none {
            queue.oldest = Int32(slot)
        } else {
            nodes[Int(queue.newest)].newer = Int32(slot)
        }
        queue.newest = Int32(slot)
        queue.cost += Int(nodes[slot].cost)
        queue.count += 1
        if place == .small { small = queue } else { main = queue }
    }

    @inlinable
    mutating func unlink(_ slot: Int) {
        let node = nodes[slot]
        var queue = node.queue == .small ? small : main
        if node.newer == EvictionNode.none {
            queue.newest = node.older
        } else {
            nodes[Int(node.newer)].older = node.older
        }
        if node.older == EvictionNode.none {
            queue.oldest = node.newer
        } else {
            nodes[Int(node.older)].newer = node.newer
        }
        queue.cost -= Int(node.cost)
        queue.count -= 1
        if node.queue == .small { small = queue } else { main = queue }
    }
}

extension EvictionOrder<Slab<EvictionNode>> {
    /// Bytes that the nodes and the ghosts take.
    @inlinable public var capacityBytes: Int { nodes.capacityBytes + ghosts.capacityBytes }

    /// Gives up the memory of the last slots, which are free.
    @inlinable
    public mutating func shorten(to count: Int) { while nodes.count > count { nodes.removeLast() } }
}

extension ArrayEvictionOrder {
    /// Says that an entry's use comes next.
    func prefetch(_ slot: Int) {
        nodes.withUnsafeBufferPointer { nodes in
            if let first = nodes.baseAddress { c_processor_prefetch(first + slot) }
        }
    }
}

/// What a later process needs of an entry's place: the queue and the uses. The order within a queue is lost.
public struct EvictionStanding: Sendable, Equatable {
    public var isInMain: Bool
    /// At most three.
    public var uses: UInt8

    @inlinable
    public init(isInMain: Bool = false, uses: UInt8 = 0) { (self.isInMain, self.uses) = (isInMain, uses) }
}

// MARK: - Ghosts

/// A hash counts for as many evictions as `limit` says. Half of it is kept: with a million ghosts, one question in some
/// four thousand finds what was never there. A full bucket forgets its oldest hash earlier:
/// one in a hundred, and some more while the table grows.
@usableFromInline
struct GhostTable: Sendable {
    /// A line of the processor's cache.
    private struct Bucket {
        /// Zero is free.
        var marks = SIMD8<UInt32>(repeating: 0)
        /// The number of the eviction.
        var numbers = SIMD8<UInt32>(repeating: 0)
    }

    /// Hashes of one bucket on the average.
    private static let load = 4

    // Linear hashing: bucket n is split into itself and one at the end, when it is its turn.
    private var buckets = Slab<Bucket>()
    private var number: UInt32 = 0
    private var limit: UInt32 = 0

    @usableFromInline
    init() {}

    /// Bytes that the buckets take.
    @usableFromInline var capacityBytes: Int { buckets.capacityBytes }

    /// - Parameter limit: evictions after which a hash is forgotten.
    @usableFromInline
    mutating func add(_ hash: UInt64, limit: Int) {
        self.limit = UInt32(clamping: limit)
        number &+= 1
        while buckets.count == 0 || buckets.count * Self.load < limit { grow() }
        put(Self.mark(hash), number)
    }

    /// Forgets a hash.
    /// - Returns: whether it was there.
    @usableFromInline
    mutating func remove(_ hash: UInt64) -> Bool {
        guard buckets.count > 0 else { return false }
        let mark = Self.mark(hash)
        let place = place(mark)
        for lane in 0..<8 where buckets[place].marks[lane] == mark {
            buckets[place].marks[lane] = 0
            return number &- buckets[place].numbers[lane] < limit
        }
        return false
    }

    private mutating func put(_ mark: UInt32, _ number: UInt32) {
        let place = place(mark)
        var bucket = buckets[place]
        var (chosen, most) = (0, UInt32(0))
        for lane in 0..<8 {
            // The same hash counts once.
            if bucket.marks[lane] == mark {
                chosen = lane
                break
            }
            let age = bucket.marks[lane] == 0 ? .max : self.number &- bucket.numbers[lane]
            if age > most { (chosen, most) = (lane, age) }
        }
        bucket.marks[chosen] = mark
        bucket.numbers[chosen] = number
        buckets[place] = bucket
    }

    private mutating func grow() {
        buckets.append(Bucket())
        let last = buckets.count - 1
        guard last > 0 else { return }
        let split = last - Self.power(last)
        let old = buckets[split]
        buckets[split] = Bucket()
        for lane in 0..<8 where old.marks[lane] != 0 { put(old.marks[lane], old.numbers[lane]) }
    }

    private func place(_ mark: UInt32) -> Int {
        let low = Self.power(max(1, buckets.count - 1))
        let place = Int(mark) & (2 * low - 1)
        return place < buckets.count ? place : place & (low - 1)
    }

    /// The greatest power of two that is not greater.
    private static func power(_ count: Int) -> Int { 1 << (Int.bitWidth - 1 - count.leadingZeroBitCount) }

    private static func mark(_ hash: UInt64) -> UInt32 { max(1, UInt32(truncatingIfNeeded: hash ^ (hash >> 32))) }
}

// MARK: - The order for other owners

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
