// The memory tier: complete responses in memory, bounded in bytes, in number and per object.

import Synchronization

/// What the memory tier has done and holds.
package struct MemoryStatistics: Sendable, Equatable {
    /// Keys.
    package var objects = 0
    /// Bytes of everything that the entries hold, with what the heap and the tables add.
    package var bytes = 0
    /// Bytes at most.
    package var limit = 0
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var insertions = 0
    /// Bytes of large bodies that have gone, and that somebody still sends: there is less room for others until that ends.
    package var lentBytes = 0
    /// Responses that were larger than the limit per object, or for which there was no memory.
    package var tooLarge = 0
}

/// Sendable: every shard is under its own mutex, held for lookups and changes only; no two are held at once.
package final class MemoryTier: Sendable {
    private typealias Shard = Mutex<MemoryShard>

    // Allocated once and freed in deinit, ours alone; each element is a mutex.  Objects would cost a lookup a reference.
    private nonisolated(unsafe) let shards: UnsafeMutableBufferPointer<Shard>
    private let size: Int
    let objects: Int
    private let maxObject: Int
    private let onEvict: (@Sendable (HeldResponse) -> Void)?
    /// What makes no room for others.
    package let pins: Pins
    private let lent = LentBytes()
    private let totalCost = Atomic<Int>(0)
    private let pinnedCost = Atomic<Int>(0)
    private let totalCount = Atomic<Int>(0)
    private let evictions = Atomic<Int>(0)
    private let insertions = Atomic<Int>(0)
    private let tooLarge = Atomic<Int>(0)
    /// Which shard gives up an entry next.
    private let turn = Atomic<Int>(0)

    /// - Parameters:
    ///   - size: bytes of all entries; 256 MiB by default. Zero keeps nothing.
    ///   - objects: keys at most.
    ///   - maxObject: bytes of one body at most; nil is one eighth of `size`.
    ///   - shards: rounded up to a power of two.
    ///   - pins: what is pinned makes no room for others, while it takes no more than half of `size`.
    ///   - onEvict: called for every response that makes room for others, after it has gone, without a lock held.
    package init(
        size: Int = 256 * 1024 * 1024,
        objects: Int = .max,
        maxObject: Int? = nil,
        shards: Int = 16,
        pins: Pins = Pins(),
        onEvict: (@Sendable (HeldResponse) -> Void)? = nil
    ) {
        self.size = max(0, size)
        self.objects = max(0, objects)
        self.maxObject = min(maxObject ?? size / 8, size)
        self.pins = pins
        self.onEvict = onEvict
        var count = 1
        while count < min(max(shards, 1), 1024) { count *= 2 }
        self.shards = .allocate(capacity: count)
        for index in 0..<count { self.shards.initializeElement(at: index, to: Shard(MemoryShard())) }
    }

    deinit {
        shards.deinitialize()
        shards.deallocate()
    }

    // MARK: - Lookups

    /// The hot path: the variant of a key that needs no further decision while it is fresh. No allocation,
    /// unless somebody still has the last hit of the shard.
    /// - Parameters:
    ///   - keyBytes: in the form of `CacheKey.bytes`.
    ///   - hash: `CacheKey.hash(keyBytes)`.
    ///   - selects: whether the request selects a response that varies; asked under the shard's mutex.
    package func hit(
        _ keyBytes: UnsafeRawBufferPointer,
        hash: UInt64,
        where selects: (HeldResponse) -> Bool = { _ in false }
    ) -> HeldResponse? {
        shards[shard(hash)].withLock { $0.hit(keyBytes, hash: hash, where: selects) }
    }

    /// Whether there is anything of a key, as above; not counted as a lookup. No allocation.
    package func holds(_ keyBytes: UnsafeRawBufferPointer, hash: UInt64) -> Bool {
        shards[shard(hash)].withLock { $0.holds(keyBytes, hash: hash) }
    }

    /// All variants of a key, newest first.
    package func variants(_ key: CacheKey) -> [StoredResponse] {
        shards[shard(key.hash)].withLock { $0.variants(key) }.map(\.response)
    }

    /// As ``variants(_:)``, for whoever asks besides a lookup: neither counted nor held for a use.
    package func peek(_ key: CacheKey) -> [StoredResponse] {
        shards[shard(key.hash)].withLock { $0.peek(key) }.map(\.response)
    }

    // MARK: - Changes

    /// Whether a body of so many bytes may be kept at all.
    package func takes(_ bytes: Int) -> Bool {
        bytes <= maxObject && bytes <= size && objects > 0
    }

    /// Whether there is room for it beside what has gone and is still sent.
    package func hasRoom(for bytes: Int) -> Bool { bytes <= size - lent.count }

    /// Keeps a response whose body is one chunk in memory; it replaces the same variant.
    /// - Parameters:
    ///   - held: made of the response before, where the caller holds a lock now; nil makes it here.
    ///   - maxVariants: responses of one key at most, at least 1; the one that was stored longest ago goes.
    /// - Returns: false where it is too large, its body is not in memory, or there is no memory for it; then the older variant has gone, too.
    @discardableResult
    package func insert(_ response: StoredResponse, as held: HeldResponse? = nil, maxVariants: Int = 32) -> Bool {
        var gone: [HeldResponse] = []
        return insert(response, as: held, maxVariants: maxVariants, gone: &gone)
    }

    /// The same for who holds a lock, and lets go of what has gone when it is free again.
    package func insert(
        _ response: StoredResponse,
        as held: HeldResponse?,
        maxVariants: Int,
        gone: inout [HeldResponse]
    ) -> Bool {
        let bytes = response.body.heldBytes
        guard takes(bytes), hasRoom(for: bytes), let held = held ?? HeldResponse(response), held.cost <= size else {
            tooLarge.wrappingAdd(1, ordering: .relaxed)
            gone += remove(response.key) { $0.isSameVariant(as: response) }
            return false
        }
        let isPinned = mayPin(response.key)
        // What has gone and is sent all the same takes room. What goes now is not known to be.
        let room = size - lent.count
        enter(held)
        gone += change(response.key.hash) { $0.insert(held, response, maxVariants: maxVariants, isPinned: isPinned) }
        insertions.wrappingAdd(1, ordering: .relaxed)
        gone += shrink(toBytes: room, objects: objects)
        return true
    }

    /// The tier counts a large body from now on.
    private func enter(_ held: HeldResponse) { held.block.chunk?._withUnsafeGuaranteedRef { $0.enter(lent) } }

    package func remove(_ key: CacheKey) { remove(key) { _ in true } }

    /// Removes the variants of a key that `isDoomed` names; it is called under the shard's mutex.
    /// - Returns: what has gone: who holds a lock lets go of it when that is free again.
    @discardableResult
    package func remove(_ key: CacheKey, where isDoomed: (StoredResponse) -> Bool) -> [HeldResponse] {
        change(key.hash) { $0.remove(key) { isDoomed($0.response) } }
    }

    package func removeAll() { walk { _ in .remove } }

    /// Asks `revise` about every response, some hundred under a lock at a time, so that lookups are not held up: not on a
    /// loop. What is inserted meanwhile may be passed over.
    /// - Returns: what has gone or was replaced.
    @discardableResult
    package func walk(_ revise: (HeldResponse) -> MemoryRevision) -> [HeldResponse] {
        var gone: [HeldResponse] = []
        for number in shards.indices {
            var next: Int? = 0
            while let start = next {
                gone += change(UInt64(number) << 32) { shard in
                    let step = shard.revise(from: start, count: 256, revise) { enter($0) }
                    next = step.next
                    return step.gone
                }
            }
        }
        return gone
    }

    /// Pins that were added or removed take effect on what is held; not on a loop.
    package func takeOverPins() {
        for number in shards.indices {
            var next: Int? = 0
            while let start = next {
                _ = change(UInt64(number) << 32) { shard in
                    next = shard.pin(from: start, count: 256) { mayPin($0) }
                    return []
                }
            }
        }
    }

    private func mayPin(_ key: CacheKey) -> Bool {
        pins.contains(key) && pinnedCost.load(ordering: .relaxed) <= size / 2
    }

    /// Evicts until at most so much is left: for memory pressure.
    /// - Returns: what has gone.
    @discardableResult
    package func shrink(toBytes bytes: Int, objects: Int = .max) -> [HeldResponse] {
        var gone: [HeldResponse] = []
        var emptyInARow = 0
        while true {
            let (cost, count) = (totalCost.load(ordering: .relaxed), totalCount.load(ordering: .relaxed))
            guard cost > bytes || count > objects else { return gone }
            let number = turn.wrappingAdd(1, ordering: .relaxed).oldValue & (shards.count - 1)
            // A shard with less than its share of what is too much is passed over: its order would lose entries that
            // are better than those of a fuller shard. In a second round each shard has its turn, since the fuller ones
            // may be pinned.
            let isCost = cost > bytes
            let share = emptyInARow < shards.count ? (isCost ? cost : count) / shards.count : 0
            let evicted = change(UInt64(number) << 32) { shard in
                (isCost ? shard.cost : shard.count) >= share ? shard.evict() : []
            }
            emptyInARow = evicted.isEmpty ? emptyInARow + 1 : 0
            // Others evict at the same time, or an insertion is about to be counted.
            if emptyInARow > 2 * shards.count { return gone }
            evictions.wrappingAdd(evicted.count, ordering: .relaxed)
            if let onEvict { for response in evicted { onEvict(response) } }
            gone += evicted
        }
    }

    package var statistics: MemoryStatistics {
        var statistics = MemoryStatistics(limit: size)
        for number in shards.indices {
            shards[number].withLock { state in
                statistics.objects += state.count
                statistics.bytes += state.cost
                statistics.hits += state.hits
                statistics.misses += state.misses
            }
        }
        statistics.lentBytes = lent.count
        statistics.evictions = evictions.load(ordering: .relaxed)
        statistics.insertions = insertions.load(ordering: .relaxed)
        statistics.tooLarge = tooLarge.load(ordering: .relaxed)
        return statistics
    }

    /// A part of the upper half of the hash; the index uses both halves.
    private func shard(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 32) & (shards.count - 1) }

    /// Hands over everything that is held, some hundred responses at a time, without a lock held. Not on a loop.
    package func forEachSlice(_ body: ([HeldResponse]) -> Void) {
        for number in shards.indices {
            var next: Int? = 0
            while let start = next {
                let slice = shards[number].withLock { $0.responses(from: start, count: 256) }
                next = slice.next
                body(slice.responses)
            }
        }
    }

    /// The responses that `isWanted` names, in no order. Not on a loop.
    package func responses(where isWanted: (HeldResponse) -> Bool) -> [HeldResponse] {
        var found: [HeldResponse] = []
        forEachSlice { found += $0.filter(isWanted) }
        return found
    }

    /// Changes one shard and counts; what is returned is released after the lock.
    private func change(_ hash: UInt64, _ body: (inout MemoryShard) -> [HeldResponse]) -> [HeldResponse] {
        let (removed, cost, count, pinned) = shards[shard(hash)].withLock { state in
            let before = (state.cost, state.count, state.pinnedCost)
            let removed = body(&state)
            return (removed, state.cost - before.0, state.count - before.1, state.pinnedCost - before.2)
        }
        pinnedCost.wrappingAdd(pinned, ordering: .relaxed)
        totalCost.wrappingAdd(cost, ordering: .relaxed)
        totalCount.wrappingAdd(count, ordering: .relaxed)
        for response in removed { response.block.chunk?._withUnsafeGuaranteedRef { $0.leave() } }
        return removed
    }
}
