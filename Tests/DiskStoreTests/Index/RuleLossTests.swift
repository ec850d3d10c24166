// The file of rules is damaged or lost: whatever a soft purge has made stale is not fresh again, and the log says so.

import EventLoop
import Glibc
import HTTPCaching
import StoreSupport
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct RuleLossTests {
    enum Loss: CaseIterable { case none, bit, torn, emptied, removed, folder }

    private let told = Told()

    private func isStale(_ tier: DiskTier, _ number: Int) async throws -> Bool {
        let response = try #require(try await tier.load(key(number)))
        if case .stale = tier.invalidations.verdict(response) { return true }
        return false
    }

    private func damage(_ path: String, _ loss: Loss) {
        var bytes = contents(path)
        switch loss {
        case .none: break
        case .bit:
            bytes[bytes.count - 3] ^= 4
            overwrite(path, bytes)
        case .torn: truncate(path, off_t(bytes.count - 1))
        case .emptied: truncate(path, 0)
        case .removed: unlink(path)
        case .folder:
            unlink(path)
            mkdir(path, 0o700)
        }
    }

    @Test(arguments: Loss.allCases, [false, true])
    func `what cannot be read makes everything stale`(loss: Loss, isKilled: Bool) async throws {
        let folder = Folder()
        let path = "\(folder.path)/cache"
        try await withPool { pool, _ in
            func open(_ path: String) async throws -> DiskTier {
                try await DiskTier.open(path: path, limits: ample, pool: pool) { [told] in told.note($0) }
            }
            var tier = try await open(path)
            for number in 0..<4 { try await tier.store(pattern(100), key(number)) }
            let rules = [PurgeRule(.url("http://example.com/1"), isSoft: true)]
            let number = tier.invalidations.purge(rules, now: 5)
            try tier.invalidations.persist(rules, number: number, now: 5)
            await tier.parts.index.pass()
            #expect(told.all.isEmpty)
            var root = path
            if isKilled {
                // As a killed process leaves it.
                root = "\(folder.path)/copy"
                copyTree(path, root)
            }
            tier.close()
            damage("\(root)/rules", loss)
            tier = try await open(root)
            await tier.settle()
            for number in 0..<4 { #expect(try await isStale(tier, number) == (number == 1 || loss != .none)) }
            #expect(told.kinds == (loss == .none ? [] : [.rules]), "\(told.all)")
            #expect(told.all.allSatisfy { $0.text.contains("\(root)/rules") }, "\(told.all)")
            // What comes from now on is fresh, after another start, too, and it is told once.
            try await tier.store(pattern(100), key(3))
            tier.close()
            tier = try await open(root)
            await tier.settle()
            // Nothing can be put in the place of a folder.
            if loss != .folder {
                #expect(try await isStale(tier, 3) == false)
                #expect(try await isStale(tier, 2) == (loss != .none))
                #expect(told.all.count == (loss == .none ? 0 : 1), "\(told.all)")
            }
            tier.close()
        }
    }

    @Test func `a hard rule beside the damage still removes`() async throws {
        let folder = Folder()
        try await withPool { pool, _ in
            let path = "\(folder.path)/rules"
            let first = Invalidations(path: path, pins: Pins(), pool: pool)
            let early = first.token(for: key(1))
            first.invalidate([.url(of: key(1))])
            first.close()
            var bytes = contents(path)
            bytes[9] ^= 1
            overwrite(path, bytes)
            let second = Invalidations(path: path, pins: Pins(), pool: pool)
            #expect(second.loss != nil && !second.isUnchanged(early))
            #expect(second.ruleCount == 2)
            second.close()
        }
    }

    @Test func `an invalidation that cannot be written is told, and written as soon as that is possible`() async throws
    {
        let folder = Folder()
        let path = "\(folder.path)/rules"
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: folder.path, limits: ample, pool: pool) { [told] in told.note($0) }
            // Something else that cannot be written is told in the same minute.
            tier.parts.troubles.note(.unwritable, "a file cannot be written")
            #expect(unlink(path) == 0 && mkdir(path, 0o700) == 0)
            let rules = [InvalidationRule.url(of: key(1))]
            let number = tier.invalidations.invalidate(rules)
            await tier.invalidate(rules, number: number)
            #expect(told.kinds == [.unwritable, .rules], "\(told.all)")
            let text = told.all.last?.text ?? ""
            #expect(text.contains("cannot be written to \(path): EISDIR") && text.contains("tried again"), "\(text)")
            tier.tend()
            try await pool.run {}
            #expect(rmdir(path) == 0)
            tier.tend()
            // What it concerns has been removed by then, and needs no rule any more.
            #expect(await eventually { !contents(path).isEmpty && RuleRecord.decode(contents(path)).isWhole })
            #expect(told.kinds == [.unwritable, .rules], "\(told.all)")
            tier.close()
        }
    }

    @Test func `nothing is lost where nothing was stored`() async throws {
        let folder = Folder()
        try await withPool { pool, _ in
            for _ in 0..<2 {
                let tier = try await DiskTier.open(path: folder.path, limits: ample, pool: pool) { [told] in
                    told.note($0)
                }
                #expect(folder.size(of: "rules") ?? 0 > 0, "its absence means something from now on")
                tier.close()
                unlink("\(folder.path)/rules")
            }
            #expect(told.all.isEmpty)
        }
    }
}
