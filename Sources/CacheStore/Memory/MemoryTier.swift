// The memory tier: complete responses in memory, bounded in bytes, in number and per object.

import EventLoop
import HTTPCaching
import Synchronization

/// The counters and sizes of the memory tier.
package struct MemoryStatistics: Sendable, Equatable {
    /// The number of keys.
    package var objects = 0
    /// The bytes of everything that the entries hold, with the overhead of the heap and the tables.
    package var bytes = 0
    /// The most bytes.
    package var limit = 0
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var insertions = 0
    /// The bytes of large bodies that have left the tier, but are still sent, and so take room from others.
    package var lentBytes = 0
    /// The number of responses that were larger than the limit per object, or for which there was no memory.
    package var tooLarge = 0
}

/// The memory tier. Sendable: every shard is under its own mutex, held for lookups and changes only; no two are held at
/// once.
package final class MemoryTier: Sendable {
    private typealias Shard = Mutex<MemoryShard>

    // The buffer is allocated once and freed in deinit; each element is a mutex. Objects would cost each lookup a
    // reference.
    private nonisolated(unsafe) let shards: UnsafeMutableBufferPointer<Shard>
    private let size: Int
    let objects: Int
    private let maxObject: Int
    /// The pins, whose responses are not evicted.
    package let pins: Pins
    private let lent = LentBytes()
    private let totalCost = Atomic<Int>(0)
    private let pinnedCost = Atomic<Int>(0)
    private let totalCount = Atomic<Int>(0)
    private let evictions = Atomic<Int>(0)
    private let insertions = Atomic<Int>(0)
    private let tooLarge = Atomic<Int>(0)
    /// The shard that evicts the next entry.
    private let turn = Atomic<Int>(0)

    /// Makes a tier.
    /// - Parameters:
    ///   - size: the most bytes of all entries; 256 MiB by default. Zero stores nothing.
    ///   - objects: the most keys.
    ///   - maxObject: the most bytes of one body; nil for one eighth of `size`.
    ///   - shards: the number of shards, rounded up to a power of two.
    ///   - pins: the pins; pinned responses are not evicted while they take at most half of `size`.
    package init(
        size: Int = 256 * 1024 * 1024,
        objects: Int = .max,
        maxObject: Int? = nil,
        shards: Int = 16,
        pins: Pins = Pins()
    ) {
        self.size = max(0, size)
        self.objects = max(0, objects)
        self.maxObject = min(maxObject ?? size / 8, size)
        self.pins = pins
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

    /// The hot path: the variant of a key that needs no decision while it is fresh. It does not allocate, unless the
    /// shard's last hit is still in use.
    /// - Parameters:
    ///   - keyBytes: the key in the form of `CacheKey.bytes`.
    ///   - hash: the result of `CacheKey.hash(keyBytes)`.
    ///   - selects: returns whether the request selects a response that varies; called under the shard's mutex.
    package func hit(
        _ keyBytes: UnsafeRawBufferPointer,
        hash: UInt64,
        where selects: (ResidentResponse) -> Bool = { _ in false }
    ) -> ResidentResponse? {
        shards[shard(hash)].withLock { $0.hit(keyBytes, hash: hash, where: selects) }
    }

    /// Whether there is a response of a key; not counted as a lookup. It does not allocate.
    package func holds(_ keyBytes: UnsafeRawBufferPointer, hash: UInt64) -> Bool {
        shards[shard(hash)].withLock { $0.holds(keyBytes, hash: hash) }
    }

    /// All variants of a key, newest first.
    package func variants(_ key: CacheKey) -> [StoredResponse] {
        shards[shard(key.hash)].withLock { $0.variants(key) }.map(\.response)
    }

    /// All variants of a key, as ``variants(_:)``, but not counted as a lookup or a use.
    package func peek(_ key: CacheKey) -> [StoredResponse] {
        shards[shard(key.hash)].withLock { $0.peek(key) }.map(\.response)
    }

    // MARK: - Changes

    /// Whether the tier stores a body of this size at all.
    package func takes(_ bytes: Int) -> Bool {
        bytes <= maxObject && bytes <= size && objects > 0
    }

    /// Whether a body fits beside the removed ones that are still being sent.
    package func hasRoom(for bytes: Int) -> Bool { bytes <= size - lent.count }

    /// Stores a response whose body is one chunk in memory; it replaces the same variant.
    /// - Parameters:
    ///   - held: the resident response, made before the call if the caller holds a lock; nil to make it here.
    ///   - maxVariants: the most variants of one key, at least 1; the oldest one is dropped.
    /// - Returns: false if the response is too large, its body is not in memory, or memory is short; the older variant
    ///   is then removed, too.
    @discardableResult
    package func insert(_ response: StoredResponse, as held: ResidentResponse? = nil, maxVariants: Int = 32) -> Bool {
        var gone: [ResidentResponse] = []
        return insert(response, as: held, maxVariants: maxVariants, gone: &gone)
    }

    /// Stores a response for a caller that holds a lock, and that releases the removed responses after it.
    package func insert(
        _ response: StoredResponse,
        as held: ResidentResponse?,
        maxVariants: Int,
        gone: inout [ResidentResponse]
    ) -> Bool {
        let bytes = response.body.heldBytes
        guard takes(bytes), hasRoom(for: bytes), let held = held ?? ResidentResponse(response), held.cost <= size else {
            tooLarge.wrappingAdd(1, ordering: .relaxed)
            gone += remove(response.key) { $0.isSameVariant(as: response) }
            return false
        }
        let isPinned = mayPin(response.key)
        // Removed bodies that are still being sent take memory. Those removed now may not be sent, so they do not count
        // yet.
        let room = size - lent.count
        enter(held)
        gone += change(response.key.hash) { $0.insert(held, response, maxVariants: maxVariants, isPinned: isPinned) }
        insertions.wrappingAdd(1, ordering: .relaxed)
        gone += shrink(toBytes: room, objects: objects)
        return true
    }

    /// Lets the tier count a large body from now on.
    private func enter(_ held: ResidentResponse) { held.block.chunk?._withUnsafeGuaranteedRef { $0.enter(lent) } }

    package func remove(_ key: CacheKey) { remove(key) { _ in true } }

    /// Removes the variants that `shouldRemove` selects; it is called under the shard's mutex.
    /// - Returns: the removed responses; a caller with a lock must release them after it.
    @discardableResult
    package func remove(_ key: CacheKey, where shouldRemove: (StoredResponse) -> Bool) -> [ResidentResponse] {
        change(key.hash) { $0.remove(key) { shouldRemove($0.response) } }
    }

    package func removeAll() { walk { _ in .remove } }

    /// Calls `revise` for every response, some hundred under one lock, so that lookups wait little. Not on a loop.
    /// Responses that are inserted during the walk may be skipped.
    /// - Returns: the removed and replaced responses.
    @discardableResult
    package func walk(_ revise: (ResidentResponse) -> MemoryRevision) -> [ResidentResponse] {
        var gone: [ResidentResponse] = []
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

    /// Applies changed pins to the entries; not on a loop.
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

    /// Evicts until at most this many bytes are left, under memory pressure.
    /// - Returns: the evicted responses.
    @discardableResult
    package func shrink(toBytes bytes: Int, objects: Int = .max) -> [ResidentResponse] {
        var gone: [ResidentResponse] = []
        var emptyInARow = 0
        while true {
            let (cost, count) = (totalCost.load(ordering: .relaxed), totalCount.load(ordering: .relaxed))
            guard cost > bytes || count > objects else { return gone }
            let number = turn.wrappingAdd(1, ordering: .relaxed).oldValue & (shards.count - 1)
            // A shard with less than its share of the excess is skipped, because its order would lose better entries
            // than those of a fuller shard. In a second round each shard has its turn, because the fuller ones may be
            // pinned.
            let isCost = cost > bytes
            let share = emptyInARow < shards.count ? (isCost ? cost : count) / shards.count : 0
            let evicted = change(UInt64(number) << 32) { shard in
                (isCost ? shard.cost : shard.count) >= share ? shard.evict() : []
            }
            emptyInARow = evicted.isEmpty ? emptyInARow + 1 : 0
            // Others evict at the same time, or an insertion is about to be counted.
            if emptyInARow > 2 * shards.count { return gone }
            evictions.wrappingAdd(evicted.count, ordering: .relaxed)
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

    /// The shard of a hash, by a part of its upper half; the index uses both halves.
    private func shard(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 32) & (shards.count - 1) }

    /// Passes all responses to `body`, some hundred at a time, without a lock. Not on a loop.
    package func forEachSlice(_ body: ([ResidentResponse]) -> Void) {
        for number in shards.indices {
            var next: Int? = 0
            while let start = next {
                let slice = shards[number].withLock { $0.responses(from: start, count: 256) }
                next = slice.next
                body(slice.responses)
            }
        }
    }

    /// The responses for which `isWanted` is true, in no order. Not on a loop.
    package func responses(where isWanted: (ResidentResponse) -> Bool) -> [ResidentResponse] {
        var found: [ResidentResponse] = []
        forEachSlice { found += $0.filter(isWanted) }
        return found
    }

    /// Changes one shard and updates the counters. The returned responses are released after the lock.
    private func change(_ hash: UInt64, _ body: (inout MemoryShard) -> [ResidentResponse]) -> [ResidentResponse] {
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

// MARK: - Purges

extension MemoryTier {
    /// Removes the responses of hard purges, and makes those of soft purges stale. Not on a loop.
    /// - Parameters:
    ///   - number: the number of the purges: responses that were fetched or validated later stay.
    ///   - now: the time of the purges in Unix seconds.
    ///   - pins: the pins, which purges for age spare.
    /// - Returns: the responses that were removed or made stale, in their previous state.
    package func purge(_ rules: [PurgeRule], number: UInt64, now: Int64, pins: Pins) -> [ResidentResponse] {
        walk { response in
            guard response.headNumber <= number else { return .keep }
            let subject = RuleSubject(response, pins)
            let concerning = rules.filter { $0.concerns(subject) }
            if concerning.isEmpty { return .keep }
            return concerning.allSatisfy(\.isSoft) ? .replace(response.response.stale(since: now)) : .remove
        }
    }

    /// Removes the responses that ``InvalidationRule/anyHost(of:)`` rules match. Not on a loop.
    /// - Parameter number: the number of the rules: responses that were fetched or validated later stay.
    package func remove(concerned rules: Set<InvalidationRule>, before number: UInt64) {
        walk { response in
            guard response.headNumber <= number, rules.contains(where: { $0.mayConcern(response.keyBytes) }),
                rules.contains(.anyHost(of: response.key))
            else { return .keep }
            return .remove
        }
    }

    /// Removes invalidated responses that no request has asked for since. Not on a loop.
    package func removeInvalid(_ invalidations: Invalidations) {
        // This happens outside the shard's mutex: an insertion takes the mutex of the invalidations first, so that the
        // other order could deadlock.
        forEachSlice { responses in
            for response in responses where invalidations.isGone(response) {
                remove(response.key) { $0.isSame(as: response.response) }
            }
        }
    }
}

extension RuleSubject {
    init(_ response: ResidentResponse, _ pins: Pins) {
        let key = response.key
        // Most responses have no names, and parsing their heads would take the longest of all.
        let names = response.hasNames ? InvalidationRule.concerning(response.head, key) : []
        self.init(key: key, names: names, arrivedAt: response.responseTime) { pins.contains(key) }
    }
}

// MARK: - Pressure

extension MemoryTier {
    /// Evicts a share of the entries in the order of eviction, and returns the memory to the kernel. Blocks for
    /// milliseconds, so not on a loop.
    /// - Parameter share: the share of the bytes in use, above 0 and at most 1.
    /// - Returns: the number of freed bytes.
    @discardableResult
    package func shed(_ share: Double) -> Int {
        let before = statistics.bytes
        let wanted = Int((Double(before) * min(1, max(0, share))).rounded(.up))
        shrink(toBytes: max(0, before - wanted))
        BlockHeap.shared.giveBack()
        ProcessMemory.giveBack()
        return max(0, before - statistics.bytes)
    }
}
