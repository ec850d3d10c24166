// Damage to the disk tier's files and index: a miss, or a body that is cut; never a wrong byte.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct DiskDamageTests {
    let folder = Folder()
    var path: String { "\(folder.path)/cache" }

    @Test(arguments: [0, 9, 20, 30, 4096, 4096 + 999, 4096 + 1000, 4096 + 1010, 4096 + 1060, -1, -5, -9])
    func `a flipped bit in a small file is a miss, and the file goes`(offset: Int) async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await tier.store(pattern(1000), key(1))
            let file = try onlyFile(path)
            var bytes = contents(file)
            bytes[offset < 0 ? bytes.count + offset : offset] ^= 0x10
            overwrite(file, bytes)
            await #expect(throws: DiskTierError.damaged) { _ = try await tier.load(key(1)) }
            #expect(tier.lookup(key(1)).isEmpty)
            #expect(Folder.files(below: "\(path)/objects").isEmpty)
            #expect(tier.statistics.damaged == 1)
            tier.close()
        }
    }

    @Test(arguments: [(0, 0), (0, 600_000), (1, 600_000), (2, 600_000), (1, 599_999), (2, 0)] as [(Int, Int64)])
    func `a damaged block is a miss, and cuts the reader only if it is a later one of a very large body`(
        block: Int,
        limit: Int64
    ) async throws {
        try await withPool { pool, loop in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await tier.store(pattern(600_000), key(1))
            let file = try onlyFile(path)
            var bytes = contents(file)
            bytes[4096 + block * 262_144 + 5] ^= 1
            overwrite(file, bytes)
            if block == 0 || limit >= 600_000 {
                await #expect(throws: DiskTierError.damaged) {
                    _ = try await tier.load(key(1), verifiedUpTo: limit)
                }
            } else {
                let response = try #require(try await tier.load(key(1), verifiedUpTo: limit))
                let result = try #require(await readAll(response.body, on: loop))
                #expect(result.count == block * 262_144)
                #expect(result.wrongAt == nil)
                #expect(result.error == .damaged(block: block))
            }
            #expect(tier.lookup(key(1)).isEmpty)
            #expect(Folder.files(below: "\(path)/objects").isEmpty)
            tier.close()
        }
    }

    @Test(arguments: [0, 35, 4096, 5000, 5096, 5100, -1])
    func `a truncated file is a miss`(length: Int) async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await tier.store(pattern(1000), key(1))
            let file = try onlyFile(path)
            let bytes = contents(file)
            overwrite(file, Array(bytes.prefix(length < 0 ? bytes.count + length : length)))
            await #expect(throws: DiskTierError.damaged) { _ = try await tier.load(key(1)) }
            #expect(tier.lookup(key(1)).isEmpty)
            tier.close()
        }
    }

    @Test func `a torn record leaves the one before it valid, wherever it was torn`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let entry = try await tier.store(pattern(1000), key(1), head: storedHead([("ETag", "\"1\"")]))
            let file = try onlyFile(path)
            let before = contents(file)
            #expect(await tier.writer.freshen(entry, head: storedHead([("ETag", "\"2\"")])))
            let after = contents(file)
            #expect(after.count > before.count)
            for length in stride(from: before.count, through: after.count, by: 3) {
                overwrite(file, Array(after.prefix(length)))
                let response = try #require(try await tier.load(key(1)))
                #expect(response.head.fields.first(.etag) == (length == after.count ? "\"2\"" : "\"1\""))
            }
            overwrite(file, Array(after.dropLast(7)))
            #expect(await tier.writer.freshen(entry, head: storedHead([("ETag", "\"3\"")])))
            #expect(try await tier.load(key(1))?.head.fields.first(.etag) == "\"3\"")
            tier.close()
        }
    }

    enum IndexDamage: CaseIterable { case deleted, garbage, truncated, secretLost, none }

    @Test(arguments: IndexDamage.allCases)
    func `after a kill, whatever became of the index, every file is found`(damage: IndexDamage) async throws {
        try await withPool { pool, _ in
            let live = try await DiskTier.open(path: path, limits: ample, pool: pool)
            for number in 0..<30 { try await live.store(pattern(100 + number), key(number)) }
            let copy = "\(folder.path)/killed"
            copyTree(path, copy)
            live.close()
            switch damage {
            case .deleted: DiskIndex.remove("\(copy)/index.sqlite")
            case .garbage:
                DiskIndex.remove("\(copy)/index.sqlite")
                overwrite("\(copy)/index.sqlite", pattern(10_000))
            case .truncated: overwrite("\(copy)/index.sqlite", Array(contents("\(copy)/index.sqlite").prefix(3000)))
            case .secretLost: unlink("\(copy)/secret")
            case .none: break
            }
            let told = Told()
            let tier = try await DiskTier.open(path: copy, limits: ample, pool: pool) { told.note($0) }
            #expect(told.kinds == (damage == .garbage ? [.index] : []))
            // Right from the start, while the folders are still walked, where the names can be guessed.
            if damage != .secretLost { #expect(await tier.bytes(key(17)) == pattern(117)) }
            await tier.settle()
            for number in 0..<30 { #expect(await tier.bytes(key(number)) == pattern(100 + number)) }
            #expect(tier.statistics.objects == 30)
            tier.close()
            let again = try await DiskTier.open(path: copy, limits: ample, pool: pool)
            #expect(again.statistics.objects == 30)
            #expect(!again.statistics.isRebuilding)
            again.close()
        }
    }

    @Test func `rows without a file and files without a row are repaired silently`() async throws {
        try await withPool { pool, _ in
            let first = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await first.store(pattern(10), key(1))
            unlink(try onlyFile(path))
            first.close()
            let second = try await DiskTier.open(path: path, limits: ample, pool: pool)
            #expect(second.lookup(key(1)).count == 1)
            await #expect(throws: DiskTierError.absent) { _ = try await second.load(key(1)) }
            #expect(second.lookup(key(1)).isEmpty)
            second.close()
        }
    }

    @Test func `what is removed while the folders are walked does not come back`() async throws {
        try await withPool { pool, _ in
            let live = try await DiskTier.open(path: path, limits: ample, pool: pool)
            for number in 0..<50 { try await live.store(pattern(10), key(number)) }
            let copy = "\(folder.path)/killed"
            copyTree(path, copy)
            live.close()
            DiskIndex.remove("\(copy)/index.sqlite")
            let tier = try await DiskTier.open(path: copy, limits: ample, pool: pool)
            for number in 0..<25 { tier.remove(key(number)) }
            await tier.settle()
            for number in 0..<50 { #expect((await tier.bytes(key(number)) != nil) == (number >= 25)) }
            tier.close()
        }
    }
}
