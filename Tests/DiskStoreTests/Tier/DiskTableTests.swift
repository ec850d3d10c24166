// The table of files: what it finds, what it takes, and that nothing in it takes the longer the more there is.

import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct DiskTableTests {
    private func slot(_ number: Int, variant: Int = 0, size: Int64 = 4096) -> DiskTable.Slot {
        var mixer = SeededRandom(state: UInt64(number))
        let hash = mixer.next()
        let name = StoredFileName(high: mixer.next(), low: variant == 0 ? hash : hash &+ UInt64(variant))
        return DiskTable.Slot(
            keyHash: hash,
            name: name,
            fileID: UInt64(number),
            bodyLength: 10,
            size: size,
            storedAt: Int64(variant),
            lastUse: UInt32(number)
        )
    }

    @Test func `a million files take less than 150 bytes each, while they come and when they are there`() {
        var table = DiskTable()
        var most = 0.0
        for number in 0..<1_000_000 {
            // One in four is a variant, which takes a place in a second index.
            table.insert(slot(number, variant: number % 4 == 0 ? 1 : 0))
            if number > 100_000, number % 10_000 == 0 {
                most = max(most, Double(table.memory) / Double(table.count))
            }
        }
        #expect(MemoryLayout<DiskTable.Slot>.stride == 64)
        #expect(table.count == 1_000_000)
        #expect(max(most, Double(table.memory) / 1_000_000) < 150)
    }

    @Test func `memory comes back when files go`() {
        var table = DiskTable()
        let slots = (0..<50_000).map { slot($0) }
        for slot in slots { table.insert(slot) }
        let full = table.memory
        for slot in slots.dropLast(100) { table.remove(slot.keyHash, slot.name) }
        #expect(table.count == 100)
        #expect(full - table.memory > 40_000 * 64)
        #expect(slots.suffix(100).allSatisfy { table.find($0.keyHash, $0.name) != nil })
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `a random sequence of changes behaves like a dictionary`(seed: UInt64) {
        var random = SeededRandom(state: seed)
        var table = DiskTable()
        var model: [StoredFileName: DiskTable.Slot] = [:]
        for _ in 0..<20_000 {
            let slot = slot(
                Int.random(in: 0..<300, using: &random),
                variant: Int.random(in: 0..<3, using: &random),
                size: Int64.random(in: 1...9, using: &random) * 4096
            )
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                table.insert(slot)
                model[slot.name] = slot
            case 4..<7:
                #expect((table.remove(slot.keyHash, slot.name) == nil) == (model.removeValue(forKey: slot.name) == nil))
            case 7:
                table.update(slot.keyHash, slot.name) { $0.size += 4096 }
                model[slot.name]?.size += 4096
            case 8:
                #expect(table.markSeen(slot.name) == (model[slot.name] != nil))
                model[slot.name]?.isSeen = true
            default:
                let found = table.find(slot.keyHash)
                #expect(found.count == model.values.count { $0.keyHash == slot.keyHash })
                #expect(found.map(\.storedAt) == found.map(\.storedAt).sorted(by: >))
            }
            if Int.random(in: 0..<20, using: &random) == 0 {
                let gone = table.evict()
                #expect((gone == nil) == model.isEmpty)
                if let gone { #expect(model.removeValue(forKey: gone.name) != nil) }
            }
            #expect(table.count == model.count)
        }
        #expect(table.used == model.values.reduce(0) { $0 + $1.size })
        #expect(model.values.allSatisfy { table.find($0.keyHash, $0.name)?.size == $0.size })
    }

    @Test func `what the walk has not met is found, whatever comes and goes meanwhile`() {
        var random = SeededRandom(state: 7)
        var table = DiskTable()
        for number in 0..<5000 { table.insert(slot(number)) }
        for number in 0..<5000 where number % 3 != 0 { _ = table.markSeen(slot(number).name) }
        var missing = Set((0..<5000).filter { $0 % 3 == 0 })
        var position: Int?
        var next = 5000
        repeat {
            let (found, before) = table.unseen(before: position, count: 64)
            for slot in found {
                #expect(missing.remove(Int(slot.fileID)) != nil)
                table.remove(slot.keyHash, slot.name)
            }
            position = before
            // Meanwhile, some go and some come.
            for _ in 0..<10 {
                let number = Int.random(in: 0..<5000, using: &random)
                let gone = slot(number)
                if table.remove(gone.keyHash, gone.name) != nil { missing.remove(number) }
                var fresh = slot(next)
                fresh.isSeen = true
                table.insert(fresh)
                next += 1
            }
        } while position != nil
        #expect(missing.isEmpty)
    }

    @Test func `what is used stays, what is not goes first, and never what is pinned`() {
        var table = DiskTable()
        for number in 0..<1000 { table.insert(slot(number)) }
        let pinned = Set((0..<1000).filter { $0 % 2 == 0 }.map { slot($0).keyHash })
        for number in 0..<100 { _ = table.use(slot(number).keyHash, slot(number).name, 5000) }
        var evicted: [Int] = []
        for _ in 0..<400 {
            guard let victim = table.evict(besides: pinned) else { break }
            evicted.append(Int(victim.fileID))
        }
        #expect(evicted.count == 400)
        #expect(evicted.allSatisfy { $0 % 2 == 1 && $0 >= 100 })
        for number in 0..<1000 where number % 2 == 1 { table.remove(slot(number).keyHash, slot(number).name) }
        let none = table.evict(besides: pinned)
        #expect(none == nil)
        #expect(table.count == 500)
    }

    @Test func `a file that replaces another takes over its place in the order, and the index hears of it`() throws {
        var table = DiskTable()
        let file = slot(1)
        #expect(table.insert(file).standing == EvictionStanding())
        for _ in 0..<2 { _ = table.use(file.keyHash, file.name, 6001) }
        var next = slot(1, size: 8192)
        next.fileID = 2
        let known = table.insert(next)
        #expect(known.fileID == 2 && known.size == 8192 && known.lastUse == next.lastUse)
        #expect(known.standing == EvictionStanding(isInMain: false, uses: 2))
        #expect(table.find(file.keyHash, file.name)?.standing == known.standing)
    }

    @Test func `the index knows the first use of a file, and one a minute, with its place in the order`() throws {
        var table = DiskTable()
        let file = slot(1)
        table.insert(file)
        var news = table.use(file.keyHash, file.name, 6001)
        let first = try #require(news)
        #expect(first.lastUse == 6000 && first.standing == EvictionStanding(isInMain: false, uses: 1))
        news = table.use(file.keyHash, file.name, 6059)
        #expect(news == nil)
        news = table.use(file.keyHash, file.name, 6060)
        let second = try #require(news)
        #expect(second.lastUse == 6060 && second.standing.uses == 3)
        let use = IndexRow.use(of: second)
        #expect(use == 6060 | 3 << 32)
        #expect(IndexRow.standing(use) == second.standing)
        #expect(IndexRow.standing(6060 | 5 << 32) == EvictionStanding(isInMain: true, uses: 1))
        news = table.use(file.keyHash, StoredFileName(high: 0, low: 0), 6060)
        #expect(news == nil)
    }
}
