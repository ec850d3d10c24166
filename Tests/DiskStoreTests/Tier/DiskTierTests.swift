// The disk tier: what is stored comes back, over restarts, within limits, and only while it is valid.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct DiskTierTests {
    let folder = Folder()
    var path: String { "\(folder.path)/cache" }

    @Test(arguments: [0, 1, 4095, 262_144, 262_145, 1_000_000])
    func `a stored response comes back, now and after a restart`(size: Int) async throws {
        try await withPool { pool, loop in
            let first = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let head = storedHead([("ETag", "\"é\""), ("X-Odd", "a  b"), ("x-odd", "c")])
            try await first.store(pattern(size), key(1), head: head)
            for tier in [first, nil] {
                if tier == nil { first.close() }
                let tier = if let tier { tier } else { try await DiskTier.open(path: path, limits: ample, pool: pool) }
                let response = try #require(try await tier.load(key(1), inMemoryUpTo: 4096))
                #expect(response.head.fields == head.fields)
                #expect(response.head.bodyLength == Int64(size))
                #expect(response.key == key(1))
                let read = try #require(await readAll(response.body, on: loop))
                #expect(read.count == size)
                #expect(read.wrongAt == nil && read.error == nil)
                #expect((read.filePieces > 0) == (size > 4096))
                #expect(tier.lookup(key(2)).isEmpty)
                tier.close()
            }
        }
    }

    @Test func `the body begins at byte 4096, and the folder is nobody else's`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await tier.store(pattern(5000), key(1))
            let bytes = contents(try onlyFile(path))
            #expect(Array(bytes[4096..<9096]) == pattern(5000))
            #expect(bytes.withUnsafeBytes { FilePreamble($0) }?.bodyLength == 5000)
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o700)
            #expect(Folder.names(in: "\(path)/tmp").isEmpty)
            tier.close()
        }
    }

    @Test func `a second daemon on the folder is refused, and told which folder`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            await #expect(throws: DiskTierError.inUse(path: path)) {
                _ = try await DiskTier.open(path: path, limits: ample, pool: pool)
            }
            tier.close()
            try await DiskTier.open(path: path, limits: ample, pool: pool).close()
        }
    }

    @Test func `temporaries are removed at the start, strangers are left alone`() async throws {
        try await withPool { pool, _ in
            try await DiskTier.open(path: path, limits: ample, pool: pool).close()
            overwrite("\(path)/tmp/left", [1])
            overwrite("\(path)/objects/README", [1])
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            #expect(Folder.names(in: "\(path)/tmp").isEmpty)
            #expect(contents("\(path)/objects/README") == [1])
            tier.close()
        }
    }

    @Test func `writes that overtake one another leave the newest variants, and the newest of each`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let numbers = (0..<6).map { _ in tier.invalidations.nextNumber() }
            func store(_ number: Int, _ language: String) async throws {
                let head = storedHead(vary: [("Accept-Language", language)])
                try await tier.commit(
                    .complete([UInt8(number)]),
                    key: key(1),
                    head: head,
                    maxVariants: 3,
                    number: numbers[number]
                )
            }
            // All of one second; the two oldest are written last.
            for (number, language) in [(3, "c"), (5, "e"), (4, "d"), (1, "a"), (0, "b")] {
                try await store(number, language)
            }
            #expect(tier.lookup(key(1)).map(\.fileID) == [numbers[5], numbers[4], numbers[3]])
            await #expect(throws: DiskTierError.outdated) { try await store(2, "c") }
            #expect(tier.lookup(key(1)).count == 3)
            tier.close()
            #expect(Folder.files(below: "\(path)/objects").count == 3)
        }
    }

    @Test func `variants of one key live side by side, and one file holds each`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            for (number, language) in ["de", "en", "de"].enumerated() {
                var head = storedHead(vary: [("Accept-Language", language)])
                head.responseTime = Int64(2000 + number)
                try await tier.store(pattern(10 + number), key(1), head: head)
            }
            let entries = tier.lookup(key(1))
            #expect(entries.map(\.bodyLength) == [12, 11])
            #expect(Folder.files(below: "\(path)/objects").count == 2)
            tier.remove(key(1))
            #expect(tier.lookup(key(1)).isEmpty)
            tier.close()
        }
    }

    @Test func `freshening changes the head, keeps the body, and keeps the file short`() async throws {
        try await withPool { pool, _ in
            var tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let entry = try await tier.store(pattern(3000), key(1))
            let inode = try fileNumber(onlyFile(path))
            for round in 1...400 {
                var head = storedHead([
                    ("Cache-Control", "max-age=\(round)"), ("X-Long", String(repeating: "x", count: 400)),
                ])
                head.responseTime = Int64(1000 + round)
                #expect(await tier.writer.freshen(entry, head: head))
            }
            #expect(contents(try onlyFile(path)).count < 4096 + 3000 + 80 * 1024)
            #expect(try fileNumber(onlyFile(path)) == inode)
            tier.close()
            tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let response = try #require(try await tier.load(key(1)))
            #expect(response.head.fields.first(.cacheControl) == "max-age=400")
            #expect(await tier.bytes(key(1)) == pattern(3000))
            #expect(tier.lookup(key(1)).first?.storedAt == 1400)
            tier.close()
        }
    }

    @Test func `an old head is never put on a file that replaced its own`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let old = try await tier.store(pattern(10), key(1))
            try await tier.store(pattern(20), key(1), head: storedHead([("ETag", "\"2\"")]))
            #expect(await tier.writer.freshen(old, head: storedHead([("ETag", "\"1\"")])) == false)
            #expect(try await tier.load(key(1))?.head.fields.first(.etag) == "\"2\"")
            tier.close()
        }
    }

    @Test func `a fill that began before an invalidation is never stored`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let invalidations = Invalidations()
            let early = invalidations.token(for: key(1))
            invalidations.invalidate(key(1))
            await #expect(throws: DiskTierError.invalidated) {
                _ = try await tier.commit(
                    .complete(pattern(10)),
                    key: key(1),
                    head: storedHead(),
                    generation: (invalidations, early)
                )
            }
            #expect(tier.lookup(key(1)).isEmpty)
            #expect(Folder.files(below: "\(path)/objects").isEmpty)
            let late = invalidations.token(for: key(1))
            try await tier.commit(
                .complete(pattern(10)),
                key: key(1),
                head: storedHead(),
                generation: (invalidations, late)
            )
            #expect(tier.lookup(key(1)).count == 1)
            invalidations.invalidateAll()
            #expect(!invalidations.isUnchanged(late))
            tier.close()
        }
    }

    @Test func `what is larger than max_object, or finds no room, is not stored`() async throws {
        try await withPool { pool, _ in
            let small = DiskLimits(size: 1 << 20, maxObject: 1000, minFree: 0)
            var tier = try await DiskTier.open(path: path, limits: small, pool: pool)
            await #expect(throws: DiskTierError.self) { try await tier.store(pattern(1001), key(1)) }
            try await tier.store(pattern(1000), key(1))
            tier.close()
            let full = DiskLimits(size: 1 << 30, minFree: 1 << 60)
            tier = try await DiskTier.open(path: path, limits: full, pool: pool)
            await #expect(throws: DiskTierError.self) { try await tier.store(pattern(10), key(2)) }
            #expect(tier.statistics.refusals == 1)
            #expect(tier.lookup(key(2)).isEmpty)
            tier.close()
        }
    }

    @Test func `the size is kept by evicting what was not used for long`() async throws {
        try await withPool { pool, _ in
            let limits = DiskLimits(size: 40 * 12288, minFree: 0)
            let tier = try await DiskTier.open(path: path, limits: limits, pool: pool)
            for number in 0..<120 { try await tier.store(pattern(4000), key(number)) }
            let statistics = tier.statistics
            #expect(statistics.bytes <= limits.size)
            #expect(statistics.objects >= 30)
            #expect(statistics.evictions == 120 - statistics.objects)
            let files = Folder.files(below: "\(path)/objects")
            #expect(files.count == statistics.objects)
            tier.close()
        }
    }

    private func fileNumber(_ path: String) throws -> UInt {
        var status = stat()
        #expect(stat(path, &status) == 0)
        return UInt(status.st_ino)
    }

    @Test("A closed tier changes nothing in a folder that another process may have") func nothingAfterTheEnd()
        async throws
    {
        let folder = Folder()
        let path = "\(folder.path)/c"
        try await withPool { pool, _ in
            let first = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let entry = try await first.store(pattern(100), key(1))
            let spill = first.makeSpill(expected: 100)
            try await pool.run { try spill.appendNow([(Chunk(pattern(100)), 0..<100)]) }
            first.close()
            let second = try await DiskTier.open(path: path, limits: ample, pool: pool)
            await second.settle()
            let files = Folder.files(below: "\(path)/objects").map { ($0, contents($0)) }
            // Everything that changes files: a store, a removal, a new head, a purge, the care for the folder.
            await #expect(throws: (any Error).self) { try await first.store(pattern(100), key(2)) }
            first.remove(entry)
            first.remove(key(1))
            #expect(await first.writer.freshen(entry, head: storedHead()) == false)
            #expect(await first.purge([PurgeRule(.all)], number: first.invalidations.nextNumber()) == 0)
            first.tend()
            await first.remover.flush()
            first.close()
            let after = Folder.files(below: "\(path)/objects").map { ($0, contents($0)) }
            #expect(after.map(\.0) == files.map(\.0) && after.map(\.1) == files.map(\.1))
            #expect(await second.bytes(key(1)) == pattern(100))
            second.close()
        }
    }
}
