// The public memory cache: its limits, what goes first, and who is told.

import Drydock
import Synchronization
import Testing

@testable import CacheStore

@Suite struct MemoryCacheTests {
    /// What was evicted, in order.
    private final class Gone: Sendable {
        private let keys = Mutex<[String]>([])
        var all: [String] { keys.withLock { $0 } }
        func add(_ key: String) { keys.withLock { $0.append(key) } }
    }

    private func cache(cost: Int = .max, count: Int = .max) -> (MemoryCache<String, Int>, Gone) {
        let gone = Gone()
        return (MemoryCache(costLimit: cost, countLimit: count) { key, _ in gone.add(key) }, gone)
    }

    @Test func findsWhatWasInserted() {
        let (cache, gone) = cache()
        cache["a"] = 1
        #expect(cache.insert(2, for: "b", cost: 10))
        #expect(cache["a"] == 1)
        #expect(cache["b"] == 2)
        #expect(cache["c"] == nil)
        #expect(cache.count == 2)
        #expect(cache.cost == 11)
        #expect(cache.hits == 2)
        #expect(cache.misses == 1)
        #expect(gone.all.isEmpty)
    }

    @Test func costLimit() {
        let (cache, gone) = cache(cost: 10)
        for key in ["a", "b", "c"] { cache.insert(0, for: key, cost: 3) }
        cache.insert(0, for: "d", cost: 4)
        #expect(gone.all == ["a"])
        #expect(cache.cost == 10)
        cache.insert(0, for: "e", cost: 10)
        #expect(gone.all == ["a", "b", "c", "d"])
        #expect(cache.count == 1)
        #expect(cache.evictions == 4)
    }

    @Test func countLimit() {
        let (cache, gone) = cache(count: 2)
        for key in ["a", "b", "c", "d"] { cache[key] = 0 }
        #expect(gone.all == ["a", "b"])
        #expect(cache.count == 2)
    }

    @Test func whatIsUsedStays() {
        let (cache, gone) = cache(count: 3)
        for key in ["a", "b", "c"] { cache[key] = 0 }
        // A scan passes by, and what is used between does not go with it.
        for number in 0..<100 {
            #expect(cache["a"] != nil)
            cache["scan \(number)"] = number
        }
        #expect(!gone.all.contains("a"))
        #expect(gone.all.count == 100)
    }

    @Test func whatIsTooLargeIsNotKept() {
        let (cache, gone) = cache(cost: 10)
        cache.insert(1, for: "a", cost: 1)
        cache.insert(1, for: "b", cost: 1)
        #expect(!cache.insert(2, for: "a", cost: 11))
        // The old value is outdated, and others do not make room in vain.
        #expect(cache["a"] == nil)
        #expect(cache["b"] == 1)
        #expect(gone.all.isEmpty)
    }

    @Test func replacingCountsOnce() {
        let (cache, gone) = cache(cost: 10)
        for number in 0..<100 { cache.insert(number, for: "a", cost: 10) }
        #expect(cache["a"] == 99)
        #expect(cache.cost == 10)
        #expect(gone.all.isEmpty)
    }

    @Test func lowerLimitsActAtOnce() {
        let (cache, gone) = cache()
        for number in 0..<10 { cache.insert(number, for: "\(number)", cost: 10) }
        cache.costLimit = 50
        #expect(cache.count == 5)
        cache.countLimit = 2
        #expect(cache.count == 2)
        #expect(gone.all == (0..<8).map(String.init))
        cache.countLimit = -1
        #expect(cache.count == 0)
        #expect(!cache.insert(1, for: "a"))
    }

    @Test func shrinkingLeavesTheLimits() {
        let (cache, gone) = cache(cost: 100)
        for number in 0..<10 { cache.insert(number, for: "\(number)", cost: 10) }
        cache.shrink(toCost: 20)
        #expect(cache.cost == 20)
        #expect(gone.all.count == 8)
        for number in 10..<18 { cache.insert(number, for: "\(number)", cost: 10) }
        #expect(gone.all.count == 8)
        #expect(cache.costLimit == 100)
    }

    @Test func removingTellsNobody() {
        let (cache, gone) = cache()
        for key in ["a", "b", "c"] { cache[key] = 7 }
        #expect(cache.removeValue(for: "a") == 7)
        #expect(cache.removeValue(for: "a") == nil)
        cache["b"] = nil
        cache.removeAll()
        #expect(cache.count == 0)
        #expect(cache.cost == 0)
        #expect(gone.all.isEmpty)
    }

    /// Against a plain model: whatever the order of calls, the limits hold and what is found
    /// is what was put there last.
    @Test(arguments: 0..<20) func randomCalls(seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        let (cache, gone) = cache(cost: 100, count: 12)
        var newest: [String: Int] = [:]
        for step in 0..<2000 {
            let key = "\(random.next() % 40)"
            switch random.next() % 10 {
            case 0..<5:
                let cost = Int(random.next() % 30)
                #expect(cache.insert(step, for: key, cost: cost))
                newest[key] = step
            case 5..<9: if let found = cache[key] { #expect(found == newest[key]) }
            default:
                cache.removeValue(for: key)
                newest[key] = nil
            }
            #expect(cache.cost <= 100 && cache.count <= 12)
        }
        #expect(gone.all.count == cache.evictions)
        for key in newest.keys { cache.removeValue(for: key) }
        #expect(cache.cost == 0)
        #expect(cache.count == 0)
    }

    /// There is one S3-FIFO: the cache keeps and evicts what the memory tier's order does, use by use.
    @Test func theOrderIsThatOfTheMemoryTier() {
        let (cache, gone) = cache()
        cache.countLimit = 200
        var order = ArrayEvictionOrder(usesToStay: 1)
        var slots: [String: Int] = [:]
        var (names, free): ([Int: String], [Int]) = ([:], Array((0..<201).reversed()))
        var expected: [String] = []
        var numbers = SplitMix(state: 7)
        func hash(_ name: String) -> UInt64 { UInt64(truncatingIfNeeded: name.hashValue) }
        for _ in 0..<20_000 {
            // Few names are asked for often, and many seldom.
            let unit = Double(numbers.next() >> 11) / Double(1 << 53)
            let name = "\(Int(1000 * unit * unit * unit))"
            let isThere = cache[name] != nil
            #expect(isThere == (slots[name] != nil))
            if let slot = slots[name] {
                order.use(slot)
                continue
            }
            cache.insert(1, for: name)
            if slots.count == 200, let victim = order.victim(), let old = names[victim] {
                order.evict(victim, hash: hash(old))
                expected.append(old)
                (slots[old], names[victim]) = (nil, nil)
                free.append(victim)
            }
            let slot = free.removeLast()
            (slots[name], names[slot]) = (slot, name)
            order.add(slot, hash: hash(name), cost: 1)
        }
        #expect(gone.all == expected && expected.count > 1000)
    }

    @Test func manyTasksAtOnce() async {
        let (cache, gone) = cache(cost: 500, count: 50)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        cache.insert(number, for: "\(task * 7 + number % 100)", cost: number % 20)
                        _ = cache["\(number % 100)"]
                    }
                }
            }
        }
        #expect(cache.cost <= 500 && cache.count <= 50)
        #expect(gone.all.count == cache.evictions)
    }

    @Test func theHandlerMayUseTheCache() {
        let told = Gone()
        let holder = Holder()
        let cache = MemoryCache<String, Int>(countLimit: 1) { key, value in
            told.add(key)
            if value < 3 { holder.cache?.insert(value + 1, for: key) }
        }
        holder.set(cache)
        cache["a"] = 1
        cache["b"] = 10
        #expect(cache.count == 1)
        #expect(cache["a"] == 2)
        #expect(told.all == ["a", "b"])
        holder.set(nil)
    }

    /// Carries the cache into its own handler.
    private final class Holder: Sendable {
        private let held = Mutex<MemoryCache<String, Int>?>(nil)
        var cache: MemoryCache<String, Int>? { held.withLock { $0 } }
        func set(_ cache: MemoryCache<String, Int>?) { held.withLock { $0 = cache } }
    }
}

/// The same numbers for the same seed (SplitMix64).
private struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
