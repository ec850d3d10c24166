// The memory tier: what it finds, what it counts and what it gives up.

import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

@Suite struct MemoryTierTests {
    private func response(
        _ number: Int,
        size: Int = 100,
        vary: [(String, String)] = [],
        hot: Bool = true
    ) -> StoredResponse {
        StoredResponse(
            key: key(number),
            head: storedHead(vary: vary),
            body: .complete(pattern(size)),
            preparedHead: Array("HTTP/1.1 200 OK\r\n".utf8),
            hot: hot ? HotPathWindow(start: 1000, freshFor: 1000, initialAge: 0) : nil,
            tier: .memory
        )
    }

    private func held(_ tier: MemoryTier, _ key: CacheKey) -> ResidentResponse? {
        key.bytes.withUnsafeBytes { tier.hit($0, hash: key.hash) }
    }

    private func hit(_ tier: MemoryTier, _ key: CacheKey) -> StoredResponse? { held(tier, key)?.response }

    /// Whether it is the response of this number, byte for byte, with five bytes of body for each.
    private func isResponse(_ held: ResidentResponse, _ number: Int) -> Bool {
        held.keyBytes.elementsEqual(key(number).bytes) && held.body.elementsEqual(pattern(number * 5))
    }

    @Test func `a hit that is kept stays what it is`() throws {
        let tier = MemoryTier(size: 1 << 20, shards: 1)
        for number in 0..<10 { tier.insert(response(number, size: number * 5)) }
        let kept = try (0..<10).map { try #require(held(tier, key($0))) }
        for number in 0..<10 { tier.remove(key(number)) }
        for number in 10..<100 { tier.insert(response(number, size: number * 5)) }
        for number in 0..<10 { #expect(isResponse(kept[number], number)) }
        #expect(held(tier, key(5)) == nil)
    }

    @Test func `a hit is found by its whole key, and only on the hot path`() {
        let tier = MemoryTier(size: 1 << 20, maxObject: 1 << 16)
        tier.insert(response(1, size: 77))
        tier.insert(response(2, hot: false))
        tier.insert(response(3, vary: [("Accept", "a")]))
        tier.insert(response(3, vary: [("Accept", "b")]))
        #expect(hit(tier, key(1))?.body.knownLength == 77)
        #expect(hit(tier, key(2)) == nil)
        #expect(hit(tier, key(3)) == nil)
        // The same hash with other bytes is another key.
        let other = key(4).bytes
        #expect(other.withUnsafeBytes { tier.hit($0, hash: key(1).hash) } == nil)
        #expect(tier.variants(key(3)).compactMap { $0.head.varyFields.first(.accept) } == ["b", "a"])
        #expect(tier.variants(key(5)).isEmpty)
        #expect(tier.statistics.objects == 3)
    }

    @Test func `a newer response replaces the same variant`() {
        let tier = MemoryTier(size: 1 << 20, maxObject: 1 << 16)
        tier.insert(response(1, size: 10))
        let newer = response(1, size: 20)
        tier.insert(newer)
        #expect(tier.variants(key(1)).count == 1)
        #expect(hit(tier, key(1))?.body.knownLength == 20)
        #expect(tier.statistics.bytes == ResidentResponse(newer)?.cost)
        // One that is too large takes the outdated one with it.
        #expect(!tier.insert(response(1, size: 1 << 17)))
        #expect(tier.variants(key(1)).isEmpty)
        #expect(tier.statistics.bytes == 0)
    }

    @Test func `what has gone and is sent all the same takes room until that ends`() {
        let tier = MemoryTier(size: 1 << 20, maxObject: 512 << 10, shards: 1)
        tier.insert(response(1, size: 400_000))
        // Another head for the same body.
        if let same = hit(tier, key(1)) { tier.insert(same) }
        tier.insert(response(2, size: 400_000))
        #expect(tier.statistics.lentBytes == 0)
        do {
            let sent = [held(tier, key(1)), held(tier, key(2))]
            tier.remove(key(1))
            tier.insert(response(3, size: 400_000))
            #expect(tier.statistics.lentBytes >= 400_000)
            // What had to go may be held as well: the next one sees that.
            tier.insert(response(7))
            #expect(tier.statistics.bytes + tier.statistics.lentBytes <= 1 << 20)
            tier.removeAll()
            #expect(tier.statistics.lentBytes == 800_000)
            #expect(!tier.hasRoom(for: 400_000) && !tier.insert(response(4, size: 400_000)))
            #expect(tier.insert(response(5, size: 100_000)))
            #expect(sent.allSatisfy { $0?.body.elementsEqual(pattern(400_000)) == true })
        }
        tier.insert(response(6))
        #expect(tier.statistics.lentBytes == 0)
        #expect(tier.hasRoom(for: 400_000) && tier.insert(response(4, size: 400_000)))
    }

    @Test func `variants of one key are bounded`() {
        let tier = MemoryTier(size: 1 << 24)
        for number in 0..<100 { tier.insert(response(1, vary: [("Accept", "\(number)")])) }
        #expect(tier.variants(key(1)).count == 32)
        #expect(tier.variants(key(1)).first?.head.varyFields.first(.accept) == "99")
    }

    @Test func `cost counts everything, and neither bytes nor objects exceed their limits`() {
        let tier = MemoryTier(size: 200_000, objects: 60, shards: 4)
        for number in 0..<500 { tier.insert(response(number, size: number % 7 * 1000)) }
        let statistics = tier.statistics
        #expect(statistics.bytes <= 200_000)
        #expect(statistics.objects <= 60)
        #expect(statistics.objects > 20)
        #expect(statistics.evictions + statistics.objects == statistics.insertions)
        #expect(ResidentResponse(response(1, size: 5000)).map { (5100..<5400).contains($0.cost) } == true)
        tier.shrink(toBytes: 10_000)
        #expect(tier.statistics.bytes <= 10_000)
        tier.removeAll()
        #expect(tier.statistics.bytes == 0)
        #expect(tier.statistics.objects == 0)
    }

    @Test func `what is used survives a scan`() {
        let tier = MemoryTier(size: 1 << 30, objects: 100, shards: 1)
        for number in 0..<50 { tier.insert(response(number)) }
        for number in 0..<50 { #expect(hit(tier, key(number)) != nil) }
        for number in 1000..<1500 {
            tier.insert(response(number))
            if number % 20 == 0 { for used in 0..<50 { _ = hit(tier, key(used)) } }
        }
        let survivors = (0..<50).count { hit(tier, key($0)) != nil }
        #expect(survivors >= 45)
    }

    @Test func `removal by key and by rule`() {
        let tier = MemoryTier(size: 1 << 24)
        for number in 0..<20 { tier.insert(response(number)) }
        tier.remove(key(3))
        #expect(tier.variants(key(3)).isEmpty)
        #expect(tier.walk { $0.key.description.hasSuffix("/1") ? .remove : .keep }.count == 1)
        #expect(tier.statistics.objects == 18)
    }

    @Test func `a walk meets every response, and removes or replaces it`() {
        let tier = MemoryTier(size: 1 << 24, shards: 2)
        for number in 0..<2000 { tier.insert(response(number)) }
        tier.insert(response(7, vary: [("Accept", "a")]))
        var seen = 0
        let gone = tier.walk { response in
            seen += 1
            if response.key == key(7) { return .remove }
            return response.key == key(8) ? .replace(response.response.stale(since: 5)) : .keep
        }
        #expect(seen == 2001 && gone.count == 3)
        #expect(tier.statistics.objects == 1999 && tier.variants(key(7)).isEmpty)
        #expect(hit(tier, key(8)) == nil, "stale: no more for the hot path")
        #expect(tier.variants(key(8)).map(\.head.staleSince) == [5] && hit(tier, key(9)) != nil)
    }

    @Test func `what is pinned makes no room for others, up to half of the tier`() throws {
        let pins = Pins()
        let tier = MemoryTier(size: 200_000, shards: 1, pins: pins)
        for number in 0..<3 { _ = try pins.add("\(key(number))") }
        tier.insert(response(0, size: 10_000))
        tier.insert(response(1, size: 10_000))
        for number in 100..<200 { tier.insert(response(number, size: 10_000)) }
        #expect(hit(tier, key(0)) != nil && hit(tier, key(1)) != nil && hit(tier, key(100)) == nil)
        #expect(tier.statistics.bytes <= 200_000)
        _ = try pins.remove("\(key(0))")
        tier.takeOverPins()
        tier.shrink(toBytes: 0)
        #expect(hit(tier, key(0)) == nil && hit(tier, key(1)) != nil)
        #expect(tier.statistics.objects == 1, "and it ends where nothing else is left")
        // Pinned after it was stored.
        tier.insert(response(2, size: 10_000))
        tier.takeOverPins()
        tier.shrink(toBytes: 0)
        #expect(hit(tier, key(2)) != nil)
        for number in 1000..<1100 {
            _ = try pins.add("\(key(number))")
            tier.insert(response(number, size: 10_000))
        }
        #expect(tier.statistics.bytes <= 200_000, "all of them are pinned, and there is no room for all")
    }

    @Test func `a random sequence behaves like a dictionary, as long as nothing must go`() {
        var random = SeededRandom(state: 7)
        let tier = MemoryTier(size: 1 << 30, shards: 2)
        var model: [Int: Int] = [:]
        for _ in 0..<20_000 {
            let number = Int.random(in: 0..<200, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                tier.remove(key(number))
                model[number] = nil
            case 1:
                let size = Int.random(in: 0..<50, using: &random)
                tier.insert(response(number, size: size))
                model[number] = size
            default:
                #expect(hit(tier, key(number))?.body.knownLength.map(Int.init) == model[number])
            }
        }
        #expect(tier.statistics.objects == model.count)
    }

    @Test func `several threads at once keep the counts right`() async {
        let tier = MemoryTier(size: 300_000, shards: 4)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    var random = SeededRandom(state: UInt64(worker))
                    // Some are kept while their entries change and go.
                    var kept: [(number: Int, response: ResidentResponse)] = []
                    for _ in 0..<Thoroughness.attempts(3000) {
                        let number = Int.random(in: 0..<300, using: &random)
                        switch Int.random(in: 0..<8, using: &random) {
                        case 0: tier.remove(key(number))
                        case 1, 2: tier.insert(response(number, size: number * 5))
                        default:
                            guard let found = held(tier, key(number)) else { continue }
                            #expect(isResponse(found, number))
                            kept.append((number, found))
                            if kept.count > 20 { kept.removeFirst(15) }
                        }
                        let areWhole = kept.allSatisfy { isResponse($0.response, $0.number) }
                        #expect(areWhole)
                    }
                }
            }
        }
        tier.shrink(toBytes: 300_000)
        #expect(tier.statistics.bytes <= 300_000)
        tier.removeAll()
        #expect(tier.statistics.bytes == 0)
        #expect(tier.statistics.objects == 0)
    }
}
