// A process that is killed at the worst moment: what was invalidated or purged before stays
// gone, and nothing else goes.

import Dispatch
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct KilledTests {
    let folder = Folder()
    var path: String { "\(folder.path)/cache" }

    private func page(_ number: Int, _ line: String? = nil) -> CacheKey {
        CacheKey(service: "s", url: "http://a.test/\(number)", lines: line.map { [$0] } ?? [])
    }

    /// Two variants, a keyed response and a member of a group for each number; their names cannot be guessed.
    private func fill(_ tier: DiskTier, _ count: Int) async throws {
        for number in 0..<count {
            for language in ["de", "fr"] {
                let head = storedHead([("Vary", "Accept-Language")], vary: [("Accept-Language", language)])
                try await tier.store(pattern(100), page(number), head: head)
            }
            try await tier.store(pattern(100), page(number, "x-user: \(number)"))
            try await tier.store(
                pattern(100),
                page(1000 + number),
                head: storedHead([("Cache-Groups", "\"g\(number)\"")])
            )
        }
    }

    /// How many stored responses of a key could answer.
    private func count(_ tier: DiskTier, _ key: CacheKey) async -> Int {
        var count = 0
        for entry in tier.lookup(key) {
            let response = try? await tier.reader.load(entry, via: nil, policy: CachePolicy())
            if let response, tier.invalidations.verdict(response) != .gone { count += 1 }
        }
        return count
    }

    /// Invalidates as a request does, with all that it may name.
    private func invalidate(_ tier: DiskTier, _ number: Int) async {
        tier.remove(page(number))
        let rules = [
            InvalidationRule.url(of: page(number)), .group("g\(number)", of: page(number)),
        ]
        let made = tier.invalidations.invalidate(rules)
        await tier.sweeper.keep(rules, number: made)
    }

    private func expectGone(_ tier: DiskTier, _ isGone: (Int) -> Bool, of total: Int) async {
        for number in 0..<total {
            let left = [
                await count(tier, page(number)), await count(tier, page(number, "x-user: \(number)")),
                await count(tier, page(1000 + number)),
            ]
            #expect(left == (isGone(number) ? [0, 0, 0] : [2, 1, 1]), "\(number)")
        }
    }

    /// While the folders are walked, and no file is removed: what the memory of the process knows is of no use.
    @Test(arguments: [false, true])
    func `what was invalidated while the folders were walked is gone after a kill`(losesIndexAgain: Bool) async throws {
        try await withPool { pool, _ in
            let live = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await fill(live, 40)
            let (second, third) = ("\(folder.path)/second", "\(folder.path)/third")
            copyTree(path, second)
            live.close()
            DiskIndex.remove("\(second)/index.sqlite")
            let files = FaultyFiles()
            files.fail(Fault(call: .unlink, code: EROFS, path: "/objects/"))
            let walking = try await DiskTier.open(path: second, limits: ample, pool: pool, calls: files.calls)
            let gate = DispatchSemaphore(value: 0)
            walking.parts.index.submit { gate.wait() }
            for number in 0..<20 { await invalidate(walking, number) }
            copyTree(second, third)
            gate.signal()
            walking.close()
            if losesIndexAgain { DiskIndex.remove("\(third)/index.sqlite") }
            let killed = try await DiskTier.open(path: third, limits: ample, pool: pool)
            for number in 0..<20 {
                #expect(await count(killed, page(number)) == 0)
                #expect(await count(killed, page(number, "x-user: \(number)")) == 0)
            }
            await killed.settle()
            await expectGone(killed, { $0 < 20 }, of: 40)
            killed.sweep()
            await killed.settleSweep()
            await expectGone(killed, { $0 < 20 }, of: 40)
            killed.close()
            // And after an end in order, with the rules forgotten that are of no use any more.
            let again = try await DiskTier.open(path: third, limits: ample, pool: pool)
            await again.settle()
            await expectGone(again, { $0 < 20 }, of: 40)
            again.close()
        }
    }

    @Test func `rules are forgotten when the files are gone, and not while one is still there`() async throws {
        try await withPool { pool, _ in
            let files = FaultyFiles()
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool, calls: files.calls)
            try await fill(tier, 300)
            files.fail(Fault(call: .unlink, code: EROFS, path: "/objects/"))
            for number in 0..<280 { await invalidate(tier, number) }
            await tier.settleSweep()
            #expect(tier.invalidations.unsweptCount == 560, "280 URLs and as many groups")
            files.fail(nil)
            tier.sweep()
            await tier.settleSweep()
            #expect(tier.invalidations.unsweptCount == 280, "groups are swept where there are many rules")
            await expectGone(tier, { $0 < 280 }, of: 300)
            tier.close()
            let again = try await DiskTier.open(path: path, limits: ample, pool: pool)
            await again.settle()
            #expect(again.invalidations.unsweptCount == 280)
            await expectGone(again, { $0 < 280 }, of: 300)
            again.close()
        }
    }

    enum Column: CaseIterable { case url, tag, service }

    /// The words of the row stand in the table and in SQLite's indexes; a purge that looks for
    /// them must not pass it over.
    @Test(arguments: Column.allCases)
    func `a purge finds what it concerns, whatever word of the index is damaged`(column: Column) async throws {
        try await withPool { pool, _ in
            let live = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let key = CacheKey(service: "catalogue", url: "http://a.test/purged")
            try await live.store(pattern(10), key, head: storedHead([("Cache-Tag", "offer-17")]))
            for number in 0..<20 { try await live.store(pattern(10), page(number)) }
            live.close()
            let word =
                switch column {
                case .url: "test/purged"
                case .tag: "offer-17"
                case .service: "catalogue"
                }
            let index = contents("\(path)/index.sqlite")
            let positions = index.indices.dropLast(word.utf8.count).filter { index[$0...].starts(with: word.utf8) }
            #expect(positions.count >= (column == .url ? 2 : 1))
            for position in positions {
                var damaged = index
                damaged[position + 2] ^= 1
                let copy = "\(folder.path)/\(column)-\(position)"
                copyTree(path, copy)
                overwrite("\(copy)/index.sqlite", damaged)
                let told = Told()
                let tier = try await DiskTier.open(path: copy, limits: ample, pool: pool) { told.note($0) }
                let rule =
                    switch column {
                    case .url: PurgeRule(.url("http://a.test/purged"))
                    case .tag: PurgeRule(.tag("offer-17"))
                    case .service: PurgeRule(.all, service: "catalogue")
                    }
                let number = tier.invalidations.purge([rule], now: 5)
                try tier.invalidations.persist([rule], number: number, now: 5)
                await tier.settle()
                tier.sweep()
                await tier.settleSweep()
                #expect(tier.invalidations.unsweptCount == 0)
                #expect(told.kinds == [.index], "\(told.all)")
                tier.close()
                // What has forgotten its rules and knows the files alone.
                DiskIndex.remove("\(copy)/index.sqlite")
                let again = try await DiskTier.open(path: copy, limits: ample, pool: pool)
                await again.settle()
                #expect(again.statistics.objects == 20)
                #expect(await again.bytes(key) == nil)
                again.close()
            }
        }
    }
}
