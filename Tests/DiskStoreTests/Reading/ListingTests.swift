// Listings over both tiers: every stored response on exactly one page, whatever the limit, and nothing that is gone.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Synchronization
import Testing

@testable import CacheStore
@testable import DiskStore

private func page(_ path: String, service: String = "s") -> CacheKey {
    CacheKey(service: service, url: "http://a.test/\(path)")
}

@Suite struct ListingTests {
    private let folder = Folder()

    /// All pages: key, variant, tiers.
    private func all(_ query: ListQuery = ListQuery(), limit: Int = 100, _ listing: StoreListing) async throws
        -> [String]
    {
        var lines: [String] = []
        var query = query
        query.limit = limit
        var last = ""
        for _ in 0..<10_000 {
            let page = try await listing.page(query)
            for listed in page.responses {
                #expect(last < listed.key.description, "a URL is split over pages, or comes twice")
                let variant = listed.head.varyFields.first(.accept).map { " \($0)" } ?? ""
                lines.append(
                    "\(listed.key.service) \(listed.key)\(variant) \(listed.tiers.map(\.rawValue).joined(separator: "+"))"
                )
            }
            last = page.responses.last?.key.description ?? last
            guard let next = page.next else { return lines }
            #expect(query.after.map { $0 < next } ?? true)
            query.after = next
        }
        Issue.record("the pages do not end")
        return lines
    }

    private func withTiers(_ body: (StoreListing, DiskTier, MemoryTier) async throws -> Void) async throws {
        try await withPool { pool, _ in
            let disk = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            let memory = MemoryTier(size: 1 << 26, shards: 4, pins: disk.invalidations.pins)
            let listing = StoreListing(memory: memory, behind: [disk], invalidations: disk.invalidations, pool: pool)
            try await body(listing, disk, memory)
            disk.close()
        }
    }

    private func hold(_ memory: MemoryTier, _ key: CacheKey, _ head: StoredHead, number: UInt64, bytes: Int = 3) {
        var head = head
        head.number = number
        memory.insert(
            StoredResponse(
                key: key,
                head: head,
                body: .complete(pattern(bytes)),
                preparedHead: [],
                hot: nil,
                tier: .memory,
                number: number
            )
        )
    }

    @Test(arguments: [1, 2, 3, 7, 1000]) func `every response is on one page, merged by what it is`(limit: Int)
        async throws
    {
        try await withTiers { listing, disk, memory in
            var expected: [String] = []
            for number in 0..<40 {
                let key = page("\(number / 2)", service: number % 2 == 0 ? "s" : "t")
                let vary = number % 5 == 0 ? [("Accept", "x\(number)")] : []
                let head = storedHead(vary: vary)
                let onDisk = number % 3 != 0
                let inMemory = number % 4 != 0 || !onDisk
                var fileID = disk.invalidations.nextNumber()
                if onDisk { fileID = try await disk.store(pattern(3), key, head: head).fileID }
                if inMemory { hold(memory, key, head, number: fileID) }
                let tiers = (inMemory ? ["memory"] : []) + (onDisk ? ["disk"] : [])
                expected.append(
                    "\(key.service) \(key)\(vary.first.map { " \($0.1)" } ?? "") \(tiers.joined(separator: "+"))"
                )
            }
            let lines = try await all(limit: limit, listing)
            #expect(lines.sorted() == expected.sorted())
        }
    }

    @Test func `filters select, and what a rule has removed is not listed`() async throws {
        try await withTiers { listing, disk, memory in
            for number in 1...9 {
                let tag = number % 2 == 0 ? "even" : "odd"
                let head = storedHead([("Cache-Control", "max-age=60"), ("Cache-Tag", tag)])
                _ = try await disk.store(
                    pattern(number * 10),
                    page("x/\(number)", service: number > 7 ? "t" : "s"),
                    head: head
                )
            }
            hold(memory, page("m"), storedHead(), number: disk.invalidations.nextNumber())
            func count(_ change: (inout ListQuery) -> Void) async throws -> Int {
                var query = ListQuery()
                change(&query)
                return try await all(query, listing).count
            }
            #expect(try await count { _ in } == 10)
            #expect(try await count { $0.pattern = "x/" } == 9)
            #expect(try await count { $0.pattern = "*/x/[1]" } == 0)
            #expect(try await count { $0.pattern = "http://*/1" } == 1)
            #expect(try await count { $0.pattern = "a.test/m" } == 1)
            #expect(try await count { $0.prefix = "http://a.test/x/" } == 9)
            #expect(try await count { $0.prefix = "a.test" } == 0)
            #expect(try await count { $0.service = "t" } == 2)
            #expect(try await count { $0.tier = .memory } == 1)
            #expect(try await count { $0.tier = .disk } == 9)
            #expect(try await count { $0.minSize = 50 } == 5)
            #expect(try await count { $0.arrivedBefore = 1000 } == 0)
            #expect(try await count { $0.arrivedBefore = 1001 } == 10)
            #expect(try await count { $0.isPinned = true } == 0)
            _ = try disk.invalidations.pins.add("http://a.test/x/3")
            #expect(try await count { $0.isPinned = true } == 1)
            #expect(try await count { $0.after = "http://a.test/x/8" } == 1)
            _ = disk.invalidations.purge([PurgeRule(.tag("even"))], now: 5)
            #expect(try await count { _ in } == 6)
            _ = disk.invalidations.purge([PurgeRule(.prefix("http://a.test/x"), isSoft: true)], now: 5)
            let stale = try await listing.page(ListQuery()) { $0.head.staleSince == 5 }
            #expect(stale.responses.count == 5)
        }
    }

    @Test func `of many responses the first by URL are kept`() throws {
        var first = FirstByURL(limit: 10)
        var numbers = SeededRandom(state: 3)
        for number in (0..<5000).map({ _ in Int.random(in: 100_000..<999_999, using: &numbers) }) + [1] {
            let response = listed(String("\(1_000_000 + number)".dropFirst()))
            first.add(try #require(ResidentResponse(response)), response.key)
        }
        let (kept, isCut) = first.finish()
        #expect(isCut && kept.count >= 10 && kept[0].key == page("000001"))
        #expect(kept.map(\.key.description) == kept.map(\.key.description).sorted())
    }

    private func listed(_ path: String) -> StoredResponse {
        StoredResponse(
            key: page(path),
            head: storedHead(),
            body: .complete([1]),
            preparedHead: [],
            hot: nil,
            tier: .memory
        )
    }
}

@Suite struct SweepTests {
    private let folder = Folder()

    @Test func `the files of purged responses go, those of later ones stay, and the rules are forgotten`() async throws
    {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            for number in 0..<3000 {
                try await tier.store([1], page(number % 2 == 0 ? "a/\(number)" : "b/\(number)"))
            }
            let rules = [PurgeRule(.prefix("http://a.test/a/")), PurgeRule(.glob("*/b/1*"))]
            let number = tier.invalidations.purge(rules, now: 5)
            try await tier.store([2], page("a/0"))
            let expected = 1500 + (0..<3000).count { $0 % 2 == 1 && "\($0)".hasPrefix("1") }
            let count = try await tier.sweeper.count(rules, before: number)
            #expect(count == expected - 1, "a/0 is a later one")
            tier.sweep()
            await tier.settleSweep()
            #expect(tier.invalidations.unsweptCount == 0)
            #expect(tier.statistics.objects == 3000 - expected + 1)
            #expect(Folder.files(below: "\(folder.path)/c/objects").count == tier.statistics.objects)
            #expect(await tier.bytes(page("a/0")) == [2])
            #expect(await tier.bytes(page("b/3")) == [1])
            tier.close()
            #expect(RuleRecord.decode(contents("\(folder.path)/c/rules")).records == [], "nothing is left to remember")
            // A killed process's index, its rules, and all files.
            let again = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            await again.settle()
            #expect(again.statistics.objects == 3000 - expected + 1)
            again.close()
        }
    }

    @Test func `what a purge has still to count stays until it is counted`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            for number in 0..<3 { try await tier.store([1], page("\(number)")) }
            let rules = [PurgeRule(.prefix("http://a.test/"))]
            let number = tier.invalidations.purge(rules, now: 5, isCountedFirst: true)
            tier.sweep()
            await tier.settleSweep()
            #expect(tier.statistics.objects == 3 && tier.invalidations.unsweptCount == 1)
            #expect(await tier.purge(rules, number: number) == 3)
            await tier.settleSweep()
            #expect(tier.statistics.objects == 0 && tier.invalidations.unsweptCount == 0)
            tier.close()
        }
    }

    @Test func `with the index lost, files that a rule has purged are not taken up`() async throws {
        try await withPool { pool, _ in
            let path = "\(folder.path)/c"
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            for number in 0..<20 {
                let tags = [("Cache-Control", "max-age=60"), ("Surrogate-Key", number % 2 == 0 ? "even" : "odd")]
                try await tier.store([1], page("\(number)"), head: storedHead(tags))
            }
            let rules = [PurgeRule(.tag("even"))]
            let number = tier.invalidations.purge(rules, now: 5)
            try tier.invalidations.persist(rules, number: number, now: 5)
            tier.close()
            unlink("\(path)/index.sqlite")
            let again = try await DiskTier.open(path: path, limits: ample, pool: pool)
            await again.settle()
            again.sweep()
            await again.settleSweep()
            #expect(again.statistics.objects == 10)
            #expect(await again.bytes(page("2")) == nil)
            #expect(await again.bytes(page("3")) == [1])
            #expect(again.invalidations.unsweptCount == 0)
            again.close()
        }
    }

    // Whatever came from a clock that was ahead was given up once anything was purged, which
    // lost what nobody had purged.
    @Test(arguments: [false, true])
    func
        `a file from a clock that was ahead is held against its own rules by its head, and stays where none is its own`(
            hasIndex: Bool
        ) async throws
    {
        try await withPool { pool, _ in
            let path = "\(folder.path)/c"
            let live = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let ahead = live.invalidations.nextNumber() + 1_000_000_000_000_000
            for number in 0..<6 {
                let body = Body.complete([1])
                try await live.commit(body, key: page("\(number)"), head: storedHead(), number: ahead + UInt64(number))
            }
            let copy = "\(folder.path)/killed"
            if hasIndex { live.close() }
            copyTree(path, copy)
            if !hasIndex { live.close() }
            if !hasIndex { DiskIndex.remove("\(copy)/index.sqlite") }
            let tier = try await DiskTier.open(path: copy, limits: ample, pool: pool)
            let rules = [InvalidationRule.url(of: page("1"))]
            let number = tier.invalidations.invalidate(rules)
            await tier.sweeper.keep(rules, number: number)
            await tier.settle()
            for number in 0..<6 {
                let response = try await tier.load(page("\(number)"))
                let isThere = response.map { tier.invalidations.verdict($0) != .gone } ?? false
                #expect(isThere == (number != 1), "\(number)")
            }
            tier.close()
        }
    }

    @Test func `a row with a number from the future is left to the walk once there are rules`() throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let invalidations = Invalidations(path: "\(folder.path)/rules", pins: Pins(), pool: pool)
        #expect(invalidations.suspectNumber == .max, "no rule: it has its place in the order")
        let number = invalidations.purge([PurgeRule(.url("http://other.test/"))], now: 5)
        #expect(invalidations.suspectNumber < number)
        var state = DiskState()
        func row(_ number: UInt64) -> DiskTable.Slot {
            var slot = DiskTable.Slot(guess: StoredFileName(high: number, low: number))
            slot.fileID = number
            return slot
        }
        let suspect = invalidations.suspectNumber
        let earlier = state.load(row(suspect - 1), unless: suspect)
        let later = state.load(row(number + 1), unless: suspect)
        state.table.insert(row(number + 2))
        let own = state.load(row(number + 2), unless: suspect)
        #expect(earlier == .known && later == .unknown && own == .known, "what this process has written is known")
        invalidations.close()
    }

    @Test func `what was purged while it was pinned is evicted like any other once it is let go of`() async throws {
        try await withPool { pool, _ in
            let limits = DiskLimits(size: 400_000, minFree: 0)
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: limits, pool: pool)
            _ = try tier.invalidations.pins.add("http://a.test/kept")
            await tier.takeOverPin("http://a.test/kept")
            try await tier.store(pattern(5000), page("kept"))
            tier.remove(page("kept"))
            await tier.remover.flush()
            _ = try tier.invalidations.pins.remove("http://a.test/kept")
            await tier.takeOverPin("http://a.test/kept")
            try await tier.store(pattern(5000), page("kept"))
            #expect(tier.parts.state.withLock { $0.pinned.isEmpty })
            for number in 0..<100 { try await tier.store(pattern(5000), page("\(number)")) }
            #expect(tier.lookup(page("kept")).isEmpty)
            tier.close()
        }
    }

    @Test func `what is pinned is not evicted, over a restart too`() async throws {
        try await withPool { pool, _ in
            let path = "\(folder.path)/c"
            let limits = DiskLimits(size: 400_000, minFree: 0)
            let tier = try await DiskTier.open(path: path, limits: limits, pool: pool)
            try await tier.store(pattern(5000), page("kept"))
            _ = try tier.invalidations.pins.add("http://a.test/kept")
            _ = try tier.invalidations.pins.add("http://a.test/later")
            await tier.takeOverPin("http://a.test/kept")
            try await tier.store(pattern(5000), page("later"))
            for number in 0..<100 { try await tier.store(pattern(5000), page("\(number)")) }
            #expect(tier.lookup(page("kept")).count == 1 && tier.lookup(page("later")).count == 1)
            tier.close()
            let again = try await DiskTier.open(path: path, limits: limits, pool: pool)
            await again.settle()
            for number in 100..<200 { try await again.store(pattern(5000), page("\(number)")) }
            #expect(again.lookup(page("kept")).count == 1 && again.lookup(page("later")).count == 1)
            _ = try again.invalidations.pins.remove("http://a.test/kept")
            await again.takeOverPin("http://a.test/kept")
            #expect(again.parts.state.withLock { $0.pinned.count } == 1)
            again.close()
        }
    }
}
