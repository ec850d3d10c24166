// Many files: the index is loaded behind, a purge of everything is one rename, and a damaged index is made anew.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Synchronization
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct DiskScaleTests {
    let folder = Folder()
    let told = Told()
    var path: String { "\(folder.path)/cache" }

    private func open(_ pool: IOPool, limits: DiskLimits = ample) async throws -> DiskTier {
        try await DiskTier.open(path: path, limits: limits, pool: pool) { [told] in told.note($0) }
    }

    /// Rows of files that do not exist, as many as make the index come in several pages.
    private func addRows(_ tier: DiskTier, _ count: Int) {
        var random = SeededRandom(state: 5)
        for number in 0..<count {
            let hash = random.next()
            let slot = DiskTable.Slot(
                keyHash: hash,
                name: StoredFileName(high: random.next(), low: hash),
                fileID: UInt64(number + 1),
                bodyLength: 1,
                size: 8192,
                storedAt: 1,
                lastUse: 1
            )
            tier.parts.state.withLock { _ = $0.table.insert(slot) }
            tier.parts.index.note(.put(IndexRow(slot: slot, key: key(100_000 + number).bytes, head: storedHead())))
        }
    }

    // MARK: - Loading behind

    @Test func `a large index is loaded behind, and what is stored is found from the start`() async throws {
        try await withPool { pool, _ in
            let rows = DiskLoader.firstPage + 20_000
            let first = try await open(pool)
            for number in 0..<50 { try await first.store(pattern(100 + number), key(number)) }
            addRows(first, rows)
            first.close()
            let tier = try await open(pool)
            for number in 0..<50 { #expect(await tier.bytes(key(number)) == pattern(100 + number)) }
            await tier.settle()
            #expect(tier.statistics.objects == rows + 50)
            #expect(!tier.statistics.isRebuilding)
            #expect(tier.lookup(key(51)).isEmpty)
            tier.close()
            // Closed in order: nothing is walked, so the rows without a file are there still.
            let again = try await open(pool)
            await again.settle()
            #expect(again.statistics.objects == rows + 50)
            again.close()
            #expect(told.all.isEmpty)
        }
    }

    @Test func `what is removed, replaced or stored before the index is loaded stays so`() async throws {
        try await withPool { pool, _ in
            let first = try await open(pool)
            for number in 0..<90 { try await first.store(pattern(100 + number), key(number)) }
            addRows(first, DiskLoader.firstPage + 20_000)
            first.close()
            // Whatever order the rows come in, some of these come later than the first page.
            var tier = try await open(pool)
            for number in 0..<30 { tier.remove(key(number)) }
            for number in 30..<60 { try await tier.store(pattern(1000 + number), key(number)) }
            for number in 60..<70 {
                if try await tier.load(key(number)) != nil { tier.lookup(key(number)).first.map { tier.remove($0) } }
            }
            await tier.settle()
            for _ in 0..<2 {
                for number in 0..<90 {
                    let expected: [UInt8]? =
                        switch number {
                        case 0..<30, 60..<70: nil
                        case 30..<60: pattern(1000 + number)
                        default: pattern(100 + number)
                        }
                    #expect(await tier.bytes(key(number)) == expected, "\(number)")
                }
                tier.close()
                tier = try await open(pool)
                await tier.settle()
            }
            tier.close()
        }
    }

    // MARK: - Purging everything

    @Test(arguments: [false, true])
    func `a purge of everything is for good, and what is stored afterwards stays`(isLoading: Bool) async throws {
        try await withPool { pool, _ in
            var tier = try await open(pool)
            for number in 0..<300 { try await tier.store(pattern(10), key(number)) }
            if isLoading {
                addRows(tier, DiskLoader.firstPage + 20_000)
                tier.close()
                DiskIndex.remove(tier.parts.folder.index)
                tier = try await open(pool)
            }
            try await tier.emptier.removeAll()
            for number in 0..<300 { #expect(await tier.bytes(key(number)) == nil) }
            for number in 0..<20 { try await tier.store(pattern(20 + number), key(number)) }
            await tier.settle()
            for _ in 0..<2 {
                #expect(tier.statistics.objects == 20)
                for number in 0..<300 {
                    #expect(await tier.bytes(key(number)) == (number < 20 ? pattern(20 + number) : nil))
                }
                #expect(await eventually { Folder.names(in: tier.parts.folder.trash).isEmpty })
                tier.close()
                tier = try await open(pool)
                await tier.settle()
            }
            #expect(Folder.files(below: "\(path)/objects").count == 20)
            tier.close()
            #expect(told.all.isEmpty)
        }
    }

    @Test func `a folder that cannot be renamed keeps everything`() async throws {
        try await withPool { pool, _ in
            let files = FaultyFiles()
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool, calls: files.calls)
            try await tier.store(pattern(10), key(1))
            files.fail(Fault(call: .rename, code: EROFS, path: "/trash/"))
            await #expect(throws: DiskTierError.self) { try await tier.emptier.removeAll() }
            #expect(await tier.bytes(key(1)) == pattern(10))
            files.fail(nil)
            try await tier.emptier.removeAll()
            #expect(await tier.bytes(key(1)) == nil)
            tier.close()
        }
    }

    @Test func `files that a listing has named are removed, but not what has replaced them`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            var files: [DiskFileID] = []
            for number in 0..<400 {
                let entry = try await tier.store(pattern(10), key(number))
                files.append(
                    DiskFileID(keyHash: tier.parts.keyHash(key(number)), name: entry.name, fileID: entry.fileID)
                )
            }
            try await tier.store(pattern(20), key(7))
            #expect(tier.remover.remove(files) == 399)
            #expect(tier.statistics.objects == 1)
            await tier.remover.flush()
            #expect(Folder.files(below: "\(path)/objects").count == 1)
            #expect(await tier.bytes(key(7)) == pattern(20))
            tier.close()
        }
    }

    @Test func `what is pinned is not evicted, though all the others are`() async throws {
        try await withPool { pool, _ in
            let limits = DiskLimits(size: 20 * 12288, minFree: 0)
            let tier = try await open(pool, limits: limits)
            for number in 0..<5 { tier.pin(key(number), true) }
            for number in 0..<100 { try await tier.store(pattern(4000), key(number)) }
            for number in 0..<5 { #expect(await tier.bytes(key(number)) == pattern(4000)) }
            #expect(tier.statistics.objects == 20)
            tier.pin(key(0), false)
            tier.remove(key(1))
            #expect(tier.lookup(key(1)).isEmpty)
            // It stands among the files that were used: files that are used as well push it out, and a scan would not.
            for number in 100..<200 {
                try await tier.store(pattern(4000), key(number))
                #expect(await tier.bytes(key(number)) == pattern(4000))
            }
            #expect(await tier.bytes(key(0)) == nil)
            #expect(await tier.bytes(key(2)) == pattern(4000))
            tier.close()
        }
    }

    @Test func `a smaller size takes effect at the next start, some files at a time`() async throws {
        try await withPool { pool, _ in
            let first = try await open(pool)
            for number in 0..<500 { try await first.store(pattern(10), key(number)) }
            first.close()
            let limits = DiskLimits(size: 100 * 8192, minFree: 0)
            let tier = try await open(pool, limits: limits)
            #expect(await eventually { tier.parts.state.withLock { !$0.isTrimming } })
            #expect(tier.statistics.objects == 100)
            #expect(tier.statistics.bytes <= limits.size)
            #expect(Folder.files(below: "\(path)/objects").count == 100)
            tier.close()
        }
    }

    // MARK: - A damaged index

    @Test func `a flipped bit anywhere in the index loses no file, and no answer is wrong`() async throws {
        try await withPool { pool, _ in
            let first = try await open(pool)
            for number in 0..<40 { try await first.store(pattern(100 + number), key(number)) }
            first.close()
            let index = contents(first.parts.folder.index)
            var random = SeededRandom(state: 11)
            for _ in 0..<60 {
                var bytes = index
                let offset = Int.random(in: 0..<bytes.count, using: &random)
                bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                DiskIndex.remove(first.parts.folder.index)
                overwrite(first.parts.folder.index, bytes)
                let tier = try await open(pool)
                await tier.settle()
                for number in 0..<40 {
                    #expect(await tier.bytes(key(number)) == pattern(100 + number), "byte \(offset) number \(number)")
                }
                #expect(tier.statistics.objects == 40, "byte \(offset)")
                tier.close()
            }
        }
    }

    @Test func `a row that does not match its checksum is made anew from its file, and told`() async throws {
        try await withPool { pool, _ in
            let first = try await open(pool)
            for number in 0..<40 { try await first.store(pattern(100 + number), key(number)) }
            let fileID = try #require(first.lookup(key(7)).first).fileID
            first.close()
            var bytes = contents(first.parts.folder.index)
            let number = withUnsafeBytes(of: fileID.bigEndian) { Array($0) }
            let offset = try #require((0..<bytes.count - 8).first { Array(bytes[$0..<$0 + 8]) == number })
            bytes[offset + 7] ^= 1
            overwrite(first.parts.folder.index, bytes)
            let tier = try await open(pool)
            await tier.settle()
            #expect(told.kinds == [.index])
            #expect(tier.lookup(key(7)).first?.fileID == fileID)
            #expect(await tier.bytes(key(7)) == pattern(107))
            tier.close()
            let again = try await open(pool)
            await again.settle()
            #expect(again.statistics.objects == 40)
            #expect(told.kinds == [.index])
            again.close()
        }
    }

    @Test func `an index that is damaged behind its first page is made anew while the tier serves`() async throws {
        try await withPool { pool, _ in
            let first = try await open(pool)
            for number in 0..<50 { try await first.store(pattern(100 + number), key(number)) }
            addRows(first, DiskLoader.firstPage + 20_000)
            first.close()
            var bytes = contents(first.parts.folder.index)
            // Pages of 4 KiB: the second half of the file, but not its beginning, where the first rows may be.
            for offset in stride(from: bytes.count / 2, to: bytes.count - 4096, by: 1024) { bytes[offset] ^= 0xFF }
            overwrite(first.parts.folder.index, bytes)
            let tier = try await open(pool)
            for number in 0..<50 { #expect(await tier.bytes(key(number)) == pattern(100 + number)) }
            await tier.settle()
            // The rows without a file are gone with the old index.
            #expect(tier.statistics.objects == 50)
            #expect(told.kinds == [.index])
            #expect(try await tier.lister.list(ListQuery(), pinned: [], limit: 1000).rows.count == 50)
            tier.close()
            let again = try await open(pool)
            #expect(again.statistics.objects == 50 && !again.statistics.isRebuilding)
            again.close()
        }
    }

    @Test func `where no index can be made there is one in memory, and what is stored is found`() async throws {
        try await withPool { pool, _ in
            let first = try await open(pool)
            for number in 0..<20 { try await first.store(pattern(100 + number), key(number)) }
            first.close()
            // A folder in its place, as a stand-in for a disk on which SQLite cannot write.
            DiskIndex.remove(first.parts.folder.index)
            #expect(mkdir(first.parts.folder.index, 0o700) == 0)
            let tier = try await open(pool)
            for number in 0..<20 { #expect(await tier.bytes(key(number)) == pattern(100 + number)) }
            try await tier.store(pattern(7), key(99))
            await tier.settle()
            #expect(tier.statistics.objects == 21)
            #expect(try await tier.lister.list(ListQuery(), pinned: [], limit: 1000).rows.count == 21)
            #expect(told.kinds == [.index])
            tier.close()
            #expect(rmdir(first.parts.folder.index) == 0)
            let again = try await open(pool)
            await again.settle()
            #expect(again.statistics.objects == 21)
            #expect(await again.bytes(key(99)) == pattern(7))
            again.close()
        }
    }
}
