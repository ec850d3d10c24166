// A disk that fails at every call that the tier makes: the response arrives, the entry goes, the log says so once.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import LoopSupport
import StoreSupport
import Synchronization
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct DiskFaultTests {
    let folder = Folder()
    let files = FaultyFiles()
    let told = Told()
    var path: String { "\(folder.path)/cache" }

    private func open(_ pool: IOPool, limits: DiskLimits = ample) async throws -> DiskTier {
        try await DiskTier.open(path: path, limits: limits, pool: pool, calls: files.calls) { [told] in told.note($0) }
    }

    /// Streams a body through a fill to a reader and into the tier.
    private func transfer(_ tier: DiskTier, _ number: Int, on loop: EventLoop) async -> (
        read: ReadResult, stored: Bool
    ) {
        await onLoop(loop) { loop in
            let spill = tier.writer.makeSpill()
            let options = GrowingBodyOptions(window: 64 * 1024, spill: spill, budget: BodyBudget())
            let (body, writer) = Body.growing(options, on: loop)
            guard let reader = body.makeReader(on: loop) else { return (ReadResult(), false) }
            let pump = Pump(writer, total: 1_000_000)
            pump.run()
            let read = await readAll(reader, on: loop)
            let entry = try? await tier.commit(body, spill: spill, key: key(number), head: storedHead())
            return (read, entry != nil)
        }
    }

    // MARK: - Writing

    static let writing: [Fault] = [
        Fault(call: .open, code: ENOSPC, path: "cache/tmp/"),
        Fault(call: .open, code: EROFS, path: "cache/tmp/"),
        Fault(call: .open, code: EACCES, path: "cache/tmp/"),
        Fault(call: .open, code: EMFILE, path: "cache/tmp/"),
        Fault(call: .write, code: ENOSPC, path: "cache/tmp/"),
        Fault(call: .write, code: ENOSPC, path: "cache/tmp/", after: 3),
        Fault(call: .write, code: ENOSPC, path: "cache/tmp/", after: 3, partly: 100),
        Fault(call: .write, code: EDQUOT, path: "cache/tmp/", after: 20),
        Fault(call: .write, code: EIO, path: "cache/tmp/"),
        Fault(call: .write, code: EIO, path: "cache/tmp/", after: 5),
        Fault(call: .write, code: EROFS, path: "cache/tmp/", after: 1),
        Fault(call: .rename, code: EIO, path: "/objects/"),
        Fault(call: .rename, code: EROFS, path: "/objects/"),
        Fault(call: .rename, code: ENOSPC, path: "/objects/"),
        Fault(call: .makeFolder, code: ENOSPC, path: "/objects/"),
        Fault(call: .makeFolder, code: EROFS, path: "/objects/"),
    ]

    @Test(arguments: writing)
    func `a response that cannot be written arrives, is not stored, and is told once`(fault: Fault) async throws {
        try await withPool { pool, loop in
            let tier = try await open(pool)
            files.fail(fault)
            for number in 0..<3 {
                let (read, stored) = await transfer(tier, number, on: loop)
                #expect(read.count == 1_000_000 && read.wrongAt == nil && read.error == nil)
                #expect(!stored)
                #expect(tier.lookup(key(number)).isEmpty)
            }
            #expect(files.failures >= 3)
            #expect(told.kinds == [.unwritable])
            let text = told.all.first?.text ?? ""
            #expect(text.contains("http://example.com/0") && text.contains(path), "\(text)")
            #expect(text.contains(SystemError("", code: fault.code).named), "\(text)")
            #expect(tier.statistics.troubles == 3)
            // Nothing is left of it, and nothing stays reserved.
            #expect(await eventually { Folder.names(in: "\(path)/tmp").isEmpty })
            #expect(Folder.files(below: "\(path)/objects").isEmpty)
            #expect(tier.parts.state.withLock { $0.table.reserved } == 0)
            files.fail(nil)
            #expect(await transfer(tier, 0, on: loop).stored)
            #expect(tier.lookup(key(0)).count == 1)
            tier.close()
        }
    }

    @Test func `a response that cannot replace another leaves the other whole`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            try await tier.store(pattern(500), key(1))
            // A file system that is full takes what is not pinned.
            tier.pin(key(1), true)
            for fault in Self.writing where fault.call != .makeFolder && fault.after == 0 {
                files.fail(fault)
                await #expect(throws: DiskTierError.self) { try await tier.store(pattern(900), key(1)) }
                files.fail(nil)
                #expect(await tier.bytes(key(1)) == pattern(500), "\(fault)")
            }
            tier.close()
        }
    }

    @Test(arguments: [
        Fault(call: .open, code: EROFS, path: "/objects/"),
        Fault(call: .write, code: ENOSPC, path: "/objects/"),
        Fault(call: .write, code: ENOSPC, path: "/objects/", partly: 40),
        Fault(call: .write, code: EIO, path: "/objects/"),
    ])
    func `a head that cannot be freshened stays as it was`(fault: Fault) async throws {
        try await withPool { pool, _ in
            var tier = try await open(pool)
            let entry = try await tier.store(pattern(500), key(1))
            files.fail(fault)
            for _ in 0..<2 {
                #expect(await tier.writer.freshen(entry, head: storedHead([("ETag", "\"2\"")])) == false)
            }
            #expect(told.kinds == [.unwritable])
            files.fail(nil)
            for _ in 0..<2 {
                #expect(try await tier.load(key(1))?.head.fields.first(.etag) == "\"1\"")
                #expect(await tier.bytes(key(1)) == pattern(500))
                tier.close()
                tier = try await open(pool)
            }
            #expect(await tier.writer.freshen(entry, head: storedHead([("ETag", "\"3\"")])))
            #expect(try await tier.load(key(1))?.head.fields.first(.etag) == "\"3\"")
            tier.close()
        }
    }

    // MARK: - Reading

    @Test(arguments: [
        Fault(call: .open, code: EIO, path: "/objects/"),
        Fault(call: .open, code: EACCES, path: "/objects/"),
        Fault(call: .read, code: EIO, path: "/objects/"),
        Fault(call: .read, code: EIO, path: "/objects/", after: 1),
        Fault(call: .read, code: EIO, path: "/objects/", after: 2),
        Fault(call: .read, code: EIO, path: "/objects/", after: 2, partly: 17),
    ])
    func `a file that cannot be read is a miss, and goes`(fault: Fault) async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            try await tier.store(pattern(1000), key(1))
            files.fail(fault)
            await #expect(throws: DiskTierError.damaged) { _ = try await tier.load(key(1)) }
            #expect(tier.lookup(key(1)).isEmpty)
            #expect(Folder.files(below: "\(path)/objects").isEmpty)
            #expect(told.kinds == [.unreadable])
            let text = told.all.first?.text ?? ""
            #expect(text.contains("http://example.com/1") && text.contains("/objects/"), "\(text)")
            #expect(text.contains(SystemError("", code: fault.code).named), "\(text)")
            files.fail(nil)
            try await tier.store(pattern(1000), key(1))
            #expect(await tier.bytes(key(1)) == pattern(1000))
            tier.close()
        }
    }

    @Test func `a later block that cannot be read cuts the reader, and the entry goes`() async throws {
        try await withPool { pool, loop in
            let tier = try await open(pool)
            try await tier.store(pattern(600_000), key(1))
            let response = try #require(try await tier.load(key(1), verifiedUpTo: 0))
            files.fail(Fault(call: .read, code: EIO, path: "/objects/"))
            let result = try #require(await onLoop(loop) { loop in await Self.pieces(response.body, on: loop) })
            #expect(result.count == 262_144)
            #expect(result.error == .file(SystemError("read a stored body", code: EIO)))
            #expect(tier.lookup(key(1)).isEmpty)
            #expect(told.kinds == [.unreadable])
            tier.close()
        }
    }

    /// Counts the pieces of a body without reading its file, which fails.
    private static func pieces(_ body: Body, on loop: isolated EventLoop) async -> ReadResult? {
        guard let reader = body.makeReader(on: loop) else { return nil }
        var result = ReadResult()
        do throws(BodyError) {
            while let piece = try await reader.next(maxBytes: 1 << 20, on: loop) { result.count += piece.count }
        } catch {
            result.error = error
        }
        return result
    }

    @Test(arguments: [EMFILE, ENFILE, ENOMEM])
    func `a want of descriptors or memory is a miss, and costs no entry`(code: Int32) async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            try await tier.store(pattern(1000), key(1))
            files.fail(Fault(call: .open, code: code, path: "/objects/"))
            for _ in 0..<3 { #expect(await tier.bytes(key(1)) == nil) }
            #expect(told.kinds == [.unreadable])
            files.fail(nil)
            #expect(await tier.bytes(key(1)) == pattern(1000))
            tier.close()
        }
    }

    // MARK: - What is told

    enum Loss: CaseIterable { case deleted, truncated, headBit, bodyBit }

    @Test(arguments: Loss.allCases)
    func `what others did to a file is told once, with its URL and its place`(loss: Loss) async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            try await tier.store(pattern(1000), key(1))
            let file = try onlyFile(path)
            var bytes = contents(file)
            switch loss {
            case .deleted: unlink(file)
            case .truncated: overwrite(file, Array(bytes.prefix(4500)))
            case .headBit, .bodyBit:
                bytes[loss == .headBit ? 5200 : 4500] ^= 4
                overwrite(file, bytes)
            }
            for _ in 0..<3 { #expect(await tier.bytes(key(1)) == nil) }
            #expect(told.kinds == [loss == .deleted ? .missing : .damaged])
            let text = told.all.first?.text ?? ""
            #expect(text.contains("http://example.com/1") && text.contains(file), "\(text)")
            #expect(Folder.files(below: "\(path)/objects").isEmpty)
            tier.close()
            // The index has no row of it any more.
            let again = try await open(pool)
            #expect(again.lookup(key(1)).isEmpty)
            again.close()
            #expect(told.all.count == 1)
        }
    }

    @Test func `a file that cannot be removed is out of the index all the same`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            for number in 0..<3 { try await tier.store(pattern(10), key(number)) }
            files.fail(Fault(call: .unlink, code: EROFS, path: "/objects/"))
            for number in 0..<3 { tier.remove(key(number)) }
            await tier.remover.flush()
            #expect(tier.statistics.objects == 0 && tier.statistics.bytes == 0)
            #expect(told.kinds == [.unwritable])
            tier.close()
        }
    }

    @Test func `of what concerns the disk one is told a minute, of what concerns an entry ten`() {
        let told = Told()
        let clock = SettableClock()
        let teller = TroubleTeller(clock: { clock.now }) { told.note($0) }
        for number in 0..<25 {
            teller.note(.unwritable, "w\(number)")
            teller.note(.damaged, "d\(number)")
        }
        #expect(told.all.filter { $0.kind == .unwritable }.map(\.text) == ["w0"])
        #expect(told.all.filter { $0.kind == .damaged }.map(\.text) == (0..<10).map { "d\($0)" })
        clock.advance(61_000_000_000)
        teller.note(.unwritable, "later")
        teller.note(.damaged, "later")
        #expect(told.all.suffix(2).map(\.untold) == [24, 15])
        #expect(told.all.last?.description == "later (and 15 more like it that were not logged)")
        #expect(teller.count == 52)
    }

    // MARK: - The folder

    @Test(arguments: [
        (Fault(call: .open, code: EROFS, path: "/lock"), "make the folder writable"),
        (Fault(call: .open, code: EACCES, path: "/secret"), "make the folder writable"),
        (Fault(call: .makeFolder, code: ENOSPC, path: "/objects"), "make room"),
    ])
    func `a folder that cannot be used is named at the start, with what to do`(fault: Fault, advice: String)
        async throws
    {
        try await withPool { pool, _ in
            files.fail(fault)
            let error = await #expect(throws: DiskTierError.self) { _ = try await open(pool) }
            let text = error?.description ?? ""
            #expect(text.contains(path) && text.contains(advice), "\(text)")
            files.fail(nil)
            try await open(pool).close()
        }
    }

    // MARK: - Out of inodes, or of quota

    @Test(arguments: [ENOSPC, EDQUOT])
    func `where the file system takes no more files, stored responses make room`(code: Int32) async throws {
        try await withPool { pool, loop in
            let tier = try await open(pool)
            files.limitInodes(60, code: code)
            for number in 0..<80 {
                try await tier.store(pattern(4000), key(number))
                #expect(await tier.bytes(key(number)) == pattern(4000))
            }
            let (objects, left) = (tier.statistics.objects, files.inodes)
            #expect(objects > 10 && objects < 25 && Folder.files(below: "\(path)/objects").count == objects)
            #expect(tier.statistics.evictions == 80 - objects && left >= 0 && !tier.room.isFailing)
            #expect(Set(told.kinds) == [.full])
            let text = told.all.first?.text ?? ""
            #expect(text.contains(path) && text.contains("inodes"), "\(text)")
            #expect(text.contains(SystemError("", code: code).named), "\(text)")
            // What is written while it arrives, too.
            let (read, stored) = await transfer(tier, 100, on: loop)
            #expect(read.count == 1_000_000 && read.error == nil && stored)
            tier.close()
        }
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func `where a write finds no room that was counted, stored responses make it`(code: Int32) async throws {
        try await withPool { pool, loop in
            let tier = try await open(pool)
            for number in 0..<40 { try await tier.store(pattern(4000), key(number)) }
            for (number, isSpilled) in [(50, false), (51, true)] {
                let before = tier.statistics.objects
                // A part of the bytes goes, then none, until something was removed.
                files.fail(Fault(call: .write, code: code, path: "cache/tmp/", after: 0, partly: 1000, times: 2))
                if isSpilled {
                    let (read, stored) = await transfer(tier, number, on: loop)
                    #expect(read.count == 1_000_000 && read.wrongAt == nil && stored)
                } else {
                    try await tier.store(pattern(4000), key(number))
                    #expect(await tier.bytes(key(number)) == pattern(4000))
                }
                files.fail(nil)
                #expect(tier.statistics.objects < before && tier.statistics.objects > 0)
            }
            #expect(Set(told.kinds) == [.full])
            tier.close()
        }
    }

    @Test func `where that does not help, it costs a few of them, and nothing is tried for a while`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            for number in 0..<100 { try await tier.store(pattern(4000), key(number)) }
            #expect(!tier.room.isFailing)
            files.fail(Fault(call: .open, code: ENOSPC, path: "cache/tmp/"))
            await #expect(throws: DiskTierError.self) { try await tier.store(pattern(4000), key(200)) }
            #expect(tier.statistics.objects == 88 && tier.room.isFailing)
            #expect(told.kinds == [.full, .unwritable])
            files.fail(nil)
            try await tier.store(pattern(4000), key(200))
            #expect(!tier.room.isFailing && tier.statistics.objects == 89)
            tier.close()
        }
    }

    // MARK: - min_free

    @Test func `when others fill the disk, stored responses make room, and nothing is stored`() async throws {
        try await withPool { pool, _ in
            let limits = DiskLimits(size: 1 << 30, minFree: 1 << 20)
            files.setAvailable(1 << 30)
            let tier = try await open(pool, limits: limits)
            for number in 0..<40 { try await tier.store(pattern(4000), key(number)) }
            // Ten files are owed; what is given back shows only later, as where files are being sent.
            files.setAvailable((1 << 20) - 10 * 12288)
            tier.tend()
            #expect(await eventually { tier.parts.state.withLock { !$0.isTrimming } })
            #expect(tier.statistics.objects == 30)
            #expect(told.kinds == [.full])
            #expect(told.all.first?.text.contains("min_free") == true)
            #expect(Folder.files(below: "\(path)/objects").count == 30)
            // It still looks full: a store must not drive out all the others for that.
            await #expect(throws: DiskTierError.self) { try await tier.store(pattern(4000), key(99)) }
            #expect(tier.lookup(key(99)).isEmpty)
            let left = tier.statistics.objects
            #expect(left < 30 && left > 0)
            files.setAvailable(1 << 30)
            tier.tend()
            #expect(await eventually { tier.parts.state.withLock { !$0.isTrimming } })
            try await tier.store(pattern(4000), key(99))
            #expect(tier.statistics.objects == left + 1)
            tier.close()
        }
    }
}
