// The parts of one representation: what is there, what is missing, and how they become a file.

import EventLoop
import Glibc
import LoopSupport
import Synchronization
import Testing

@testable import CacheStore

@Suite(.timeLimit(.minutes(5))) struct ExtentsTests {
    private func text(_ extents: Extents, _ range: Range<Int64>) -> String {
        extents.segments(range).map { segment in
            switch segment {
            case .present(_, let bytes): "+\(bytes.lowerBound)-\(bytes.upperBound)"
            case .missing(let hole): "?\(hole.lowerBound)-\(hole.upperBound)"
            }
        }.joined(separator: " ")
    }

    @Test(
        arguments: [
            (0..<100, "?0-10 +0-10 ?20-30 +0-10 ?40-100"), (10..<20, "+0-10"), (12..<15, "+2-5"),
            (15..<35, "+5-10 ?20-30 +0-5"),
            (0..<5, "?0-5"), (20..<30, "?20-30"), (40..<41, "?40-41"), (39..<41, "+9-10 ?40-41"), (50..<50, ""),
        ] as [(Range<Int64>, String)]
    )
    func `what there is of a range`(range: Range<Int64>, expected: String) {
        let extents = Extents(length: 100, file: nil)
        extents.add(30..<40, .complete(pattern(10)))
        extents.add(10..<20, .complete(pattern(10)))
        #expect(text(extents, range) == expected)
        #expect(extents.stored == [10..<20, 30..<40] && extents.heldBytes == 20 && !extents.isComplete)
    }

    @Test func `what is missing may be filled and lost while others ask for it`() async throws {
        try await withPool { _, loop in
            let extents = Extents(length: 30, file: nil)
            let isOver = Atomic(false)
            async let holes = Task.detached {
                let found = (0..<10_000).map { _ in extents.firstMissing(in: [0..<10, 20..<30]) }
                isOver.store(true, ordering: .releasing)
                return found
            }.value
            let (first, last) = (Body.complete(pattern(10)), Body.complete(pattern(10)))
            await onLoop(loop) { _ in
                while !isOver.load(ordering: .acquiring) {
                    extents.begin(0..<10, first)
                    extents.begin(20..<30, last)
                    extents.end(first)
                    extents.end(last)
                }
            }
            #expect(Set(await holes).isSubset(of: [nil, 0..<10, 20..<30]))
        }
    }

    @Test func `parts may overlap, and one that has failed is none`() async throws {
        try await withPool { _, loop in
            let extents = Extents(length: 30, file: nil)
            let got = await onLoop(loop) { loop -> [String] in
                let (body, writer) = Body.growing(
                    GrowingBodyOptions(budget: BodyBudget()),
                    expectedLength: 20,
                    on: loop
                )
                extents.begin(0..<20, body)
                let before = self.text(extents, 0..<30)
                extents.add(5..<10, .complete(pattern(5)))
                extents.add(8..<25, .complete(pattern(17)))
                let both = self.text(extents, 0..<30)
                let stored = "\(extents.stored)"
                writer.fail(.truncated)
                let failed = self.text(extents, 0..<30)
                extents.end(body)
                return [before, both, stored, failed, self.text(extents, 0..<30)]
            }
            #expect(
                got == [
                    "+0-20 ?20-30", "+0-20 +12-17 ?25-30", "[Range(5..<25)]", "?0-5 +0-5 +2-17 ?25-30",
                    "?0-5 +0-5 +2-17 ?25-30",
                ]
            )
        }
    }

    @Test func `a part of the wrong length, an empty one and too many are not taken`() {
        let extents = Extents(length: 1000, file: nil)
        extents.add(0..<5, .complete(pattern(4)))
        extents.add(5..<5, .complete([]))
        #expect(extents.stored.isEmpty)
        for index in 0..<Int64(300) { extents.add(index * 2..<index * 2 + 1, .complete([1])) }
        #expect(extents.stored.count == Extents.limit)
    }

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
            #expect(tier.state.withLock { $0.table.reserved } == 1000)
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
