// The order of eviction: what the queues do, and that it beats LRU on skewed, scanning and shifting requests.

import Testing

@testable import CacheStore

@Suite struct EvictionOrderTests {
    /// Keeps so many of the things that are asked for.
    private struct Cache {
        var order = EvictionOrder()
        var slots: [Int: Int] = [:]
        var things: [Int] = []
        var free: [Int] = []
        let room: Int

        init(_ room: Int) { self.room = room }

        /// Whether it was there.
        mutating func ask(_ thing: Int) -> Bool {
            if let slot = slots[thing] {
                order.use(slot)
                return true
            }
            if slots.count == room, let slot = order.victim() {
                order.evict(slot, hash: UInt64(things[slot]))
                slots[things[slot]] = nil
                free.append(slot)
            }
            let slot = free.popLast() ?? things.count
            if slot == things.count { things.append(thing) } else { things[slot] = thing }
            slots[thing] = slot
            order.add(slot, hash: UInt64(thing), cost: 1)
            return false
        }

        mutating func expect(_ thing: Int, _ isHit: Bool) {
            let was = ask(thing)
            #expect(was == isHit, "\(thing)")
        }
    }

    @Test func `what is used twice moves on, what is not makes room, and comes back to the main queue`() {
        var cache = Cache(10)
        for thing in 0..<10 { _ = cache.ask(thing) }
        for _ in 0..<2 { for thing in 0..<3 { cache.expect(thing, true) } }
        for thing in 100..<110 { cache.expect(thing, false) }
        #expect((0..<3).allSatisfy { cache.slots[$0] != nil })
        #expect(cache.slots[3] == nil)
        // The latest that made room are remembered: another scan does not drive them out.
        cache.expect(102, false)
        for thing in 200..<205 { cache.expect(thing, false) }
        #expect(cache.slots[102] != nil)
        #expect(cache.slots.count == 10 && cache.order.count == 10)
    }

    @Test func `what is pinned stays, and nothing goes where nothing may`() {
        var order = EvictionOrder()
        func expectVictim(_ slot: Int?) {
            let found = order.victim()
            #expect(found == slot)
        }
        for slot in 0..<20 { order.add(slot, hash: UInt64(slot), cost: 1) }
        for slot in 0..<20 { for _ in 0..<5 { order.use(slot) } }
        for slot in 0..<20 where slot != 13 { order.pin(slot, true) }
        expectVictim(13)
        order.pin(13, true)
        expectVictim(nil)
        order.pin(13, false)
        order.evict(13, hash: 13)
        expectVictim(nil)
        #expect(order.count == 19)
        for slot in 0..<20 where slot != 13 { order.remove(slot) }
        #expect(order.count == 0)
        expectVictim(nil)
        order.add(13, hash: 13, cost: 5)
        order.setCost(13, 7)
        expectVictim(13)
    }

    @Test func `ghosts are bounded, and the latest count`() {
        var ghosts = GhostQueue()
        for hash in 0..<1000 { ghosts.add(UInt64(hash), limit: 100) }
        #expect(ghosts.count == 100)
        let removed = [899, 900, 900].map { ghosts.remove($0) }
        #expect(removed == [false, true, false])
        ghosts.add(901, limit: 100)
        for hash in 2000..<2098 { ghosts.add(UInt64(hash), limit: 100) }
        let isThere = ghosts.remove(901)
        #expect(isThere)
    }

    /// A stream of requests; the same every time.
    enum Stream: CaseIterable {
        case skewed, scanning, shifting

        func requests(_ count: Int) -> [Int] {
            var random = SeededRandom(state: 11)
            let objects = 5000
            var sums: [Double] = []
            for rank in 1...objects { sums.append((sums.last ?? 0) + 1 / Double(rank)) }
            var names = Array(0..<objects)
            var scanned = objects
            return (0..<count).map { position in
                if self == .shifting, position % 10_000 == 9999 {
                    for rank in 0..<500 { names.swapAt(rank, Int.random(in: 0..<objects, using: &random)) }
                }
                if self == .scanning, position % 5000 >= 4000 {
                    scanned += 1
                    return scanned
                }
                let draw = Double.random(in: 0..<(sums.last ?? 1), using: &random)
                var (low, high) = (0, objects - 1)
                while low < high {
                    let middle = (low + high) / 2
                    if sums[middle] > draw { high = middle } else { low = middle + 1 }
                }
                return names[low]
            }
        }
    }

    @Test(arguments: Stream.allCases) func `it finds more than LRU does`(_ stream: Stream) {
        let requests = stream.requests(100_000)
        for room in [50, 500] {
            var cache = Cache(room)
            let hits = requests.count { cache.ask($0) }
            var used: [Int: Int] = [:]
            var least: [(thing: Int, time: Int)] = []
            var first = 0
            var hitsOfLRU = 0
            for (time, thing) in requests.enumerated() {
                if used[thing] != nil { hitsOfLRU += 1 }
                used[thing] = time
                least.append((thing, time))
                while used.count > room {
                    let (oldest, when) = least[first]
                    first += 1
                    if used[oldest] == when { used[oldest] = nil }
                }
            }
            #expect(hits > hitsOfLRU, "\(stream) with room for \(room): \(hits) and \(hitsOfLRU)")
        }
    }
}
