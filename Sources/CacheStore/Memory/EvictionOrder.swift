// The order of eviction: S3-FIFO, over numbered slots with costs, and with the hashes of entries that were evicted
// recently.
//
// A new entry is in the small queue, which has a tenth of the cost. At the end of that queue, an entry that was used
// moves to the main queue, where each use gives it one more turn, up to three. The hash of an entry that leaves the
// small queue unused is remembered for a while (`GhostTable`): if the entry comes again, it goes to the main queue at
// once. A scan passes through the small queue only. The order has the hit ratio of the published S3-FIFO
// (`HitRatioTests`).

import CProcessor

/// The node of one entry in its queue: 16 bytes.
public struct EvictionNode: Sendable {
    @inlinable static var none: Int32 { -1 }

    @usableFromInline
    enum Queue: UInt8, Sendable {
        case free, small, main

        @inlinable
        static func == (left: Queue, right: Queue) -> Bool { left.rawValue == right.rawValue }
    }

    /// The cost, which determines the shares of the queues only: an entry that costs 4 GiB or more counts as one of 4
    /// GiB.
    @usableFromInline var cost: UInt32
    @usableFromInline var newer = EvictionNode.none
    @usableFromInline var older = EvictionNode.none
    @usableFromInline var uses: UInt8
    @usableFromInline var queue = Queue.free
    /// Whether the entry is pinned, so that it is not evicted.
    @usableFromInline var isPinned = false

    @inlinable
    init(cost: UInt32 = 0, uses: UInt8 = 0) { (self.cost, self.uses) = (cost, uses) }
}

/// The storage of the nodes: an array, whose growth copies it, or a `Slab`, whose growth copies nothing.
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

/// The order of eviction, a value without a lock: its owner's lock protects it. It is generic, and each hit uses it, so
/// that all of it can be inlined in other modules with nodes of their own.
public struct EvictionOrder<Nodes: EvictionNodes>: Sendable {
    /// The most uses that count.
    @inlinable static var maximumUses: UInt8 { 3 }
    /// The most nodes that one search examines before it takes the next one although that was used. Without this bound,
    /// the time under the owner's lock would grow with the number of used entries.
    @inlinable static var patience: Int { 4096 }
    /// The number of entries that the small queue may have independently of its share, while the cache fills.
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
    /// Whether nothing was evicted yet. The queues have their shares from the start: older entries are in the main
    /// queue. Otherwise all of the first entries would leave through the small queue, with too few remembered hashes,
    /// and the hit ratio would be two points lower until several times the capacity was seen.
    @usableFromInline var isFilling = true
    @usableFromInline let usesToStay: UInt8

    /// Makes an order.
    /// - Parameter usesToStay: the uses in the small queue after which an entry moves to the main queue: two, as
    ///   published, or one if the owner sees few of the uses.
    public init(usesToStay: UInt8 = 2) { self.usesToStay = usesToStay }

    /// The number of entries.
    @inlinable public var count: Int { small.count + main.count }
    /// The number of evictions for which a hash is remembered: the entries of the main queue when the queues have their
    /// shares.
    @inlinable var memory: Int { max(count - count / 10, Self.leastSmall) }

    /// Records a use of an entry. It does not allocate.
    @inlinable @inline(__always)
    public mutating func use(_ slot: Int) {
        if nodes[slot].uses < Self.maximumUses { nodes[slot].uses += 1 }
    }

    /// Adds an entry.
    @inlinable
    public mutating func add(_ slot: Int, hash: UInt64, cost: Int) {
        add(slot, cost: cost, queue: ghosts.remove(hash) ? .main : .small, uses: 0)
    }

    /// Adds an entry of an earlier process, with its ``standing(_:)`` there.
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

    /// The properties of an entry's position that a later process needs.
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

    /// Pins or unpins an entry; a pinned one is not evicted.
    @inlinable
    public mutating func pin(_ slot: Int, _ isPinned: Bool) { nodes[slot].isPinned = isPinned }

    @inlinable
    public func isPinned(_ slot: Int) -> Bool { nodes[slot].isPinned }

    /// Removes an entry.
    @inlinable
    public mutating func remove(_ slot: Int) {
        unlink(slot)
        nodes[slot] = EvictionNode()
        if count == 0 { isFilling = true }
    }

    /// Moves an entry to another slot, which was free.
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

    /// The next entry to be evicted; it stays until ``evict(_:hash:)``.
    /// - Parameter isKept: returns whether an entry must stay, in addition to the pinned ones.
    /// - Returns: nil if no entry was found that may be evicted.
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
    mutating func link(_ slot: Int, _ kind: EvictionNode.Queue) {
        var queue = kind == .small ? small : main
        nodes[slot].queue = kind
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
        if kind == .small { small = queue } else { main = queue }
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
    /// The bytes that the nodes and the remembered hashes take.
    @inlinable public var capacityBytes: Int { nodes.capacityBytes + ghosts.capacityBytes }

    /// Releases the memory of the last slots, which are free.
    @inlinable
    public mutating func shorten(to count: Int) { while nodes.count > count { nodes.removeLast() } }
}

extension ArrayEvictionOrder {
    /// Prefetches the node of an entry that is used next.
    func prefetch(_ slot: Int) {
        nodes.withUnsafeBufferPointer { nodes in
            if let first = nodes.baseAddress { c_processor_prefetch(first + slot) }
        }
    }
}

/// The properties of an entry's position that a later process needs: the queue and the uses. The order within a queue
/// is lost.
public struct EvictionStanding: Sendable, Equatable {
    public var isInMain: Bool
    /// The number of uses, at most three.
    public var uses: UInt8

    @inlinable
    public init(isInMain: Bool = false, uses: UInt8 = 0) { (self.isInMain, self.uses) = (isInMain, uses) }
}

// MARK: - Ghosts

/// The hashes of entries that were evicted recently; each is remembered for `limit` evictions. Half of a hash is kept:
/// with a million entries, one lookup in some four thousand finds a hash that was never added. A full bucket drops its
/// oldest hash early: one in a hundred, and some more while the table grows.
@usableFromInline
struct GhostTable: Sendable {
    /// A bucket of the size of a cache line.
    private struct Bucket {
        /// The halves of hashes; zero is a free lane.
        var marks = SIMD8<UInt32>(repeating: 0)
        /// The numbers of the evictions.
        var numbers = SIMD8<UInt32>(repeating: 0)
    }

    /// The average number of hashes in a bucket.
    private static let load = 4

    // Linear hashing: when it is the turn of bucket n, it is split into itself and a new one at the end.
    private var buckets = Slab<Bucket>()
    private var number: UInt32 = 0
    private var limit: UInt32 = 0

    @usableFromInline
    init() {}

    /// The bytes that the buckets take.
    @usableFromInline var capacityBytes: Int { buckets.capacityBytes }

    /// Makes a table.
    /// - Parameter limit: the number of evictions after which a hash is forgotten.
    @usableFromInline
    mutating func add(_ hash: UInt64, limit: Int) {
        self.limit = UInt32(clamping: limit)
        number &+= 1
        while buckets.count == 0 || buckets.count * Self.load < limit { grow() }
        put(Self.mark(hash), number)
    }

    /// Removes a hash.
    /// - Returns: whether it was present.
    @usableFromInline
    mutating func remove(_ hash: UInt64) -> Bool {
        guard buckets.count > 0 else { return false }
        let mark = Self.mark(hash)
        let index = index(mark)
        for lane in 0..<8 where buckets[index].marks[lane] == mark {
            buckets[index].marks[lane] = 0
            return number &- buckets[index].numbers[lane] < limit
        }
        return false
    }

    private mutating func put(_ mark: UInt32, _ number: UInt32) {
        let index = index(mark)
        var bucket = buckets[index]
        var (chosen, most) = (0, UInt32(0))
        for lane in 0..<8 {
            // The same hash is kept once.
            if bucket.marks[lane] == mark {
                chosen = lane
                break
            }
            let age = bucket.marks[lane] == 0 ? .max : self.number &- bucket.numbers[lane]
            if age > most { (chosen, most) = (lane, age) }
        }
        bucket.marks[chosen] = mark
        bucket.numbers[chosen] = number
        buckets[index] = bucket
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

    private func index(_ mark: UInt32) -> Int {
        let low = Self.power(max(1, buckets.count - 1))
        let index = Int(mark) & (2 * low - 1)
        return index < buckets.count ? index : index & (low - 1)
    }

    /// The greatest power of two that is at most `count`.
    private static func power(_ count: Int) -> Int { 1 << (Int.bitWidth - 1 - count.leadingZeroBitCount) }

    private static func mark(_ hash: UInt64) -> UInt32 { max(1, UInt32(truncatingIfNeeded: hash ^ (hash >> 32))) }
}

// MARK: - The order for other owners

/// The order of eviction over slots that the owner numbers, and that keep their number. A value without a lock: its
/// owner's lock protects it.
package struct SlotOrder: Sendable {
    private var order = ArrayEvictionOrder(usesToStay: 1)

    package init() {}

    /// Adds an entry.
    /// - Parameters:
    ///   - hash: the hash of the entry's key, by which the order recognizes it later.
    ///   - cost: the cost, which determines the shares of the queues only.
    package mutating func add(_ slot: Int, hash: UInt64, cost: Int) { order.add(slot, hash: hash, cost: max(1, cost)) }

    /// Records a use of an entry.
    package mutating func use(_ slot: Int) { order.use(slot) }

    /// Removes an entry that was not evicted.
    package mutating func remove(_ slot: Int) { order.remove(slot) }

    /// The next entry to be evicted; it stays until ``evict(_:hash:)``.
    /// - Returns: nil if there is none.
    package mutating func victim() -> Int? { order.victim() }

    /// Evicts an entry.
    package mutating func evict(_ slot: Int, hash: UInt64) { order.evict(slot, hash: hash) }
}
