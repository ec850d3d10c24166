// The parts of one representation in a file of the disk tier, which becomes that of a stored response.

import EventLoop
import Glibc
import LoopSupport
import StoreSupport
import Synchronization
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct SparseFileTests {
    @Test func `parts in memory and in a file become a stored file, byte for byte`() async throws {
        try await withPool { pool, loop in
            let folder = Folder()
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            defer { tier.close() }
            let bytes = pattern(1_000_000)
            let sparse = tier.makeSparse()
            let extents = Extents(length: 1_000_000, file: sparse)
            // Out of order, two through the file and one in memory.
            for range in [600_000..<1_000_000, 0..<300_000] as [Range<Int64>] {
                let spill = sparse.part(at: range.lowerBound, count: range.upperBound - range.lowerBound)
                let part = Chunk(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
                try await pool.run { try spill.appendNow([(part, 0..<part.capacity)]) }
                extents.add(range, try #require(sparse.body(range)))
            }
            #expect(!extents.isComplete && extents.usesFile && extents.heldBytes == 0)
            extents.add(300_000..<600_000, .complete(Array(bytes[300_000..<600_000])))
            #expect(extents.isComplete && sparse.reserved >= 700_000)
            #expect(try await extents.gather().wholeChunk?.array(0..<1_000_000) == bytes)
            let (body, spill) = try await extents.seal()
            try await tier.commit(body, spill: spill, key: key(1), head: storedHead())
            #expect(sparse.reserved == 0)
            // The file is checked against its sums when it is loaded and read.
            let stored = try #require(try await tier.load(key(1)))
            #expect(await readAll(stored.body, on: loop) == ReadResult(count: 1_000_000, filePieces: 16))
            #expect(await readAll(body, on: loop)?.wrongAt == nil)
        }
    }

    @Test func `parts of the file that touch are one`() async throws {
        try await withPool { pool, _ in
            let folder = Folder()
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            defer { tier.close() }
            let sparse = tier.makeSparse()
            let extents = Extents(length: 1_000_000, file: sparse)
            for index in 0..<Int64(1000) {
                let range = index * 1000..<index * 1000 + 1000
                let spill = sparse.part(at: range.lowerBound, count: 1000)
                let part = Chunk(Array(pattern(1_000_000)[Int(range.lowerBound)..<Int(range.upperBound)]))
                try await pool.run { try spill.appendNow([(part, 0..<1000)]) }
                extents.add(range, try #require(sparse.body(range)))
            }
            #expect(extents.isComplete && extents.segments(0..<1_000_000).count == 1)
        }
    }

    @Test func `a file of parts goes with them, and gives back its room`() async throws {
        try await withPool { pool, _ in
            let folder = Folder()
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            defer { tier.close() }
            var sparse: SparseFile? = tier.makeSparse()
            let spill = sparse?.part(at: 100, count: 1000)
            try await pool.run { try spill?.appendNow([(Chunk(pattern(1000)), 0..<1000)]) }
            #expect(Folder.names(in: "\(folder.path)/c/tmp").count == 1)
            #expect(tier.parts.state.withLock { $0.table.reserved } == 1000)
            sparse = nil
            try await pool.run {}
            // The part holds the file as long as it is written to.
            #expect(spill != nil && Folder.names(in: "\(folder.path)/c/tmp").count == 1)
        }
    }

    @Test(arguments: [(true, 3000), (false, 3000), (true, 900_000)])
    func `what came of a body that was cut is kept at its place`(spills: Bool, total: Int) async throws {
        try await withPool { pool, loop in
            let folder = Folder()
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            defer { tier.close() }
            let sparse = tier.makeSparse()
            let spill = spills ? sparse.part(at: 50, count: 1_000_000) : nil
            let options = GrowingBodyOptions(window: 128 * 1024, spill: spill, budget: BodyBudget())
            let body = await onLoop(loop) { loop in
                let (body, writer) = Body.growing(options, expectedLength: 1_000_000, on: loop)
                let pump = Pump(writer, total: total, step: 1000)
                await pump.finish(on: loop)
                return body
            }
            let (filed, rest) = body.salvage()
            let file = filed > 0 ? try sparse.open().read(offset: FileLayout.bodyOffset + 50, count: Int(filed)) : nil
            let got = (file.map { $0.array(0..<Int(filed)) } ?? []) + (rest.map { $0.array(0..<$0.capacity) } ?? [])
            #expect(got == pattern(total) && (total < 100_000) == (filed == 0))
        }
    }

    @Test func `the file of a cut fill becomes one of parts`() async throws {
        try await withPool { pool, _ in
            let folder = Folder()
            let tier = try await DiskTier.open(path: "\(folder.path)/c", limits: ample, pool: pool)
            defer { tier.close() }
            var spill: SpillFile? = tier.makeSpill(expected: 5000)
            #expect(spill.flatMap { SparseFile(of: $0) } == nil)
            let bytes = Chunk(pattern(1000))
            try await pool.run { [spill] in try spill?.appendNow([(bytes, 0..<1000)]) }
            let sparse = try #require(spill.flatMap { SparseFile(of: $0) })
            #expect(sparse.reserved == 5000)
            spill = nil
            try await pool.run {}
            let body = try #require(sparse.body(10..<20))
            guard case .file(let file, let offset, 10) = body.source else { throw BodyError.abandoned }
            #expect(try file.read(offset: offset, count: 10).array(0..<10) == Array(pattern(20)[10...]))
        }
    }
}
