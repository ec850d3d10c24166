// What the order of memory finds on the same requests as S3-FIFO as published: within one point, and more than LRU.

import HTTPCaching
import StoreSupport
import Testing

@testable import CacheStore

@Suite(.timeLimit(.minutes(5))) struct HitRatioTests {
    /// Every request counts, those too that fill the room.
    private func ratio(_ requests: [Int], _ ask: (Int) -> Bool) -> Double {
        Double(requests.count(where: ask)) / Double(requests.count)
    }

    private func expectClose(_ found: Double, _ reference: Double, _ name: String) {
        #expect(found > reference - 0.01, "\(name): \(found), and the reference finds \(reference)")
    }

    @Test(arguments: RequestStream.all)
    func `the order of memory finds within one point of what the reference finds, and more than LRU`(
        _ stream: RequestStream
    ) {
        let requests = stream.requests()
        var reference = ReferenceOrder(stream.room)
        var least = LeastRecentlyUsed(stream.room)
        var entries = HeldThings(stream.room)
        let best = ratio(requests) { reference.ask($0) }
        let leastFound = ratio(requests) { least.ask($0) }
        let entriesFound = ratio(requests) { entries.ask($0) }
        expectClose(entriesFound, best, "the memory tier's order")
        #expect(entriesFound > leastFound, "LRU finds \(leastFound)")
    }

    @Test func `the shards of the memory tier find together what one order finds`() {
        let stream = RequestStream(objects: 20_000, skew: 0.7, room: 1000, count: 60_000)
        let requests = stream.requests()
        var reference = ReferenceOrder(stream.room)
        let tier = MemoryTier(size: 1 << 30, objects: stream.room, shards: 16)
        let best = ratio(requests) { reference.ask($0) }
        let found = ratio(requests) { thing in
            let key = key(thing)
            let isHit = key.bytes.withUnsafeBytes { tier.hit($0, hash: key.hash) } != nil
            if !isHit {
                tier.insert(
                    StoredResponse(
                        key: key,
                        head: storedHead(),
                        body: .complete([1]),
                        preparedHead: Array("HTTP/1.1 200 OK\r\n".utf8),
                        hot: HotPathWindow(start: 1000, freshFor: 1000, initialAge: 0),
                        tier: .memory
                    )
                )
            }
            return isHit
        }
        #expect(tier.statistics.objects == stream.room)
        expectClose(found, best, "the memory tier")
    }
}

/// The memory tier's order with room for so many things.
struct HeldThings {
    private(set) var order = ArrayEvictionOrder()
    private(set) var slots: [Int: Int] = [:]
    private var things: [Int] = []
    private var free: [Int] = []
    private let room: Int

    init(_ room: Int) { self.room = room }

    /// Whether it was there.
    mutating func ask(_ thing: Int) -> Bool {
        if let slot = slots[thing] {
            order.use(slot)
            return true
        }
        let slot = free.popLast() ?? things.count
        if slot == things.count { things.append(thing) } else { things[slot] = thing }
        slots[thing] = slot
        order.add(slot, hash: hash(thing), cost: 1)
        // The tier, too, takes in what is new before others go.
        if slots.count > room, let victim = order.victim() {
            order.evict(victim, hash: hash(things[victim]))
            slots[things[victim]] = nil
            free.append(victim)
        }
        return false
    }
}

private func hash(_ thing: Int) -> UInt64 {
    var random = SeededRandom(state: UInt64(thing))
    return random.next()
}
