// The order of eviction: what the queues do with uses, pins, moves and ghosts. What it finds is in HitRatioTests.

import StoreSupport
import Testing

@testable import CacheStore

@Suite struct EvictionOrderTests {
    private func expect(_ things: inout HeldThings, _ thing: Int, _ isHit: Bool) {
        let was = things.ask(thing)
        #expect(was == isHit, "\(thing)")
    }

    @Test func `what is used twice moves on, what is not makes room, and comes back to the main queue`() {
        var things = HeldThings(10)
        for thing in 0..<10 { _ = things.ask(thing) }
        for _ in 0..<2 { for thing in 0..<3 { expect(&things, thing, true) } }
        for thing in 100..<110 { expect(&things, thing, false) }
        #expect((0..<3).allSatisfy { things.slots[$0] != nil })
        #expect(things.slots[3] == nil)
        // The latest that made room are remembered: another scan does not drive them out.
        expect(&things, 102, false)
        for thing in 200..<205 { expect(&things, thing, false) }
        #expect(things.slots[102] != nil)
        #expect(things.slots.count == 10 && things.order.count == 10)
    }

    @Test func `while the room fills, the older entries stand in the main queue, and a scan leaves them alone`() {
        var things = HeldThings(1000)
        for thing in 0..<1000 { _ = things.ask(thing) }
        for thing in 5000..<8000 { expect(&things, thing, false) }
        #expect((1..<890).allSatisfy { things.slots[$0] != nil })
        #expect(things.slots[999] == nil)
    }

    @Test(arguments: [(1, true), (2, false)] as [(UInt8, Bool)])
    func `so many uses as its owner says keep an entry`(usesToStay: UInt8, isKept: Bool) {
        var order = ArrayEvictionOrder(usesToStay: usesToStay)
        for slot in 0..<10 { order.add(slot, hash: UInt64(slot), cost: 1) }
        order.use(0)
        let victim = order.victim()
        #expect(victim == (isKept ? 1 : 0))
        #expect(order.standing(0) == EvictionStanding(isInMain: isKept, uses: isKept ? 0 : 1))
    }

    @Test func `an entry that moves to another slot keeps its place`() {
        var order = EvictionOrder<Slab<EvictionNode>>()
        for slot in 0..<10 { order.add(slot, hash: UInt64(slot), cost: slot + 1) }
        // The oldest, one from the middle, and the newest.
        for (slot, free) in [(0, 10), (5, 11), (9, 12)] {
            order.add(free, hash: 99, cost: 1)
            order.remove(free)
            order.move(slot, to: free)
        }
        var gone: [Int] = []
        while let victim = order.victim() {
            gone.append(victim)
            order.evict(victim, hash: UInt64(victim))
        }
        #expect(gone == [10, 1, 2, 3, 4, 11, 6, 7, 8, 12])
        order.shorten(to: 0)
        #expect(order.count == 0)
    }

    @Test func `an entry of an earlier process goes on where it stood`() {
        var order = ArrayEvictionOrder()
        order.add(0, standing: EvictionStanding(isInMain: true, uses: 1), cost: 1)
        order.add(1, standing: EvictionStanding(isInMain: false, uses: 3), cost: 1)
        order.add(2, standing: EvictionStanding(isInMain: false, uses: 1), cost: 1)
        #expect(order.standing(0) == EvictionStanding(isInMain: true, uses: 1))
        #expect(order.standing(1) == EvictionStanding(isInMain: false, uses: 3))
        var victim = order.victim()
        #expect(victim == 2)
        order.evict(2, hash: 2)
        victim = order.victim()
        #expect(victim == 1)
        #expect(order.standing(1).isInMain)
    }

    @Test func `one search looks at so many entries and no more`() {
        var order = ArrayEvictionOrder()
        for slot in 0..<20_000 {
            order.add(slot, hash: UInt64(slot), cost: 1)
            for _ in 0..<3 { order.use(slot) }
        }
        let victim = order.victim()
        let used = (0..<20_000).count { order.standing($0).uses == 3 }
        #expect(victim != nil)
        #expect(used >= 20_000 - 4097)
    }

    @Test func `what is pinned stays, and nothing goes where nothing may`() {
        var order = ArrayEvictionOrder()
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
        func mixed(_ number: Int) -> UInt64 {
            var random = SeededRandom(state: UInt64(number))
            return random.next()
        }
        var ghosts = GhostTable()
        for number in 0..<100_000 { ghosts.add(mixed(number), limit: 1000) }
        let early = (0..<99_000).count { ghosts.remove(mixed($0)) }
        let late = (99_000..<100_000).count { ghosts.remove(mixed($0)) }
        let again = (99_000..<100_000).count { ghosts.remove(mixed($0)) }
        // A full bucket forgets its oldest hash earlier.
        #expect(early == 0 && late > 970 && again == 0)
        ghosts.add(mixed(7), limit: 1000)
        for number in 0..<999 { ghosts.add(mixed(200_000 + number), limit: 1000) }
        #expect(ghosts.capacityBytes < 32_000)
    }

    @Test func `nearly all ghosts that are added while the table grows are found`() {
        var ghosts = GhostTable()
        var random = SeededRandom(state: 3)
        let hashes = (0..<20_000).map { _ in random.next() }
        for (number, hash) in hashes.enumerated() { ghosts.add(hash, limit: number + 1) }
        let found = hashes.count { ghosts.remove($0) }
        #expect(found > 18_000)
    }
}
