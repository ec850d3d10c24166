// Files of the disk tier that stay open: which answers they give, and when they must be closed.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import LoopSupport
import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct OpenFileTests {
    let folder = Folder()
    var path: String { "\(folder.path)/cache" }
    private let size = 600_000

    /// A tier with one response whose file is open, and its entry.
    private func withOpenFile(_ body: (DiskTier, DiskEntry, EventLoop) async throws -> Void) async throws {
        try await withPool { pool, loop in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await tier.store(pattern(size), key(1))
            try await reopen(tier)
            try await body(tier, #require(tier.lookup(key(1)).first), loop)
            tier.close()
            #expect(tier.parts.openFiles.count == 0)
        }
    }

    /// The first time verifies the file, the second finds it verified and keeps it open.
    private func reopen(_ tier: DiskTier) async throws {
        for _ in 0..<2 {
            let entry = try #require(tier.lookup(key(1)).first)
            #expect(tier.finder.loaded(entry) == nil)
            _ = try await tier.reader.load(entry, via: nil, policy: CachePolicy())
        }
        #expect(tier.statistics.openFiles == 1)
    }

    @Test func `a verified file stays open, answers without being read, and is counted as used`() async throws {
        try await withOpenFile { tier, entry, loop in
            let (hits, file) = (tier.statistics.hits, try onlyFile(path))
            let first = try #require(tier.finder.loaded(entry))
            let second = try #require(tier.finder.loaded(entry))
            #expect(first === second && first.head.fields == storedHead().fields && first.tier == .disk)
            #expect(tier.statistics.hits == hits + 2)
            #expect(tier.finder.loaded(entry, isUse: false) != nil && tier.statistics.hits == hits + 2)
            let read = try #require(await readAll(first.body, on: loop))
            #expect(read.count == size && read.wrongAt == nil && read.error == nil && read.filePieces > 0)
            // Readers at the same time have positions of their own.
            let readers = await onLoop(loop) { loop in
                let readers = [first.body, second.body].compactMap { $0.makeReader(on: loop) }
                return readers.map { reader -> Int in
                    guard case .piece(let piece) = reader.nextIfReady(maxBytes: 100_000) else { return -1 }
                    return piece.count
                }
            }
            #expect(readers == [100_000, 100_000])
            #expect(try file == onlyFile(path))
        }
    }

    @Test func `bodies that come into memory, and files that are not verified yet, are not kept open`() async throws {
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await tier.store(pattern(1000), key(1))
            for _ in 0..<3 { #expect(try await tier.load(key(1)) != nil) }
            try await tier.store(pattern(size), key(2))
            #expect(try await tier.load(key(2)) != nil)
            #expect(tier.parts.openFiles.count == 0)
            tier.close()
        }
    }

    @Test(arguments: ["key", "entry", "all", "close"])
    func `what is removed is closed, and its room given back`(way: String) async throws {
        try await withOpenFile { tier, entry, _ in
            switch way {
            case "key": tier.remove(key(1))
            case "entry": tier.remove(entry)
            case "all": try await tier.emptier.removeAll()
            default: tier.close()
            }
            await tier.remover.flush()
            #expect(tier.parts.openFiles.count == 0 && tier.finder.loaded(entry) == nil)
        }
    }

    @Test func `what is replaced is closed`() async throws {
        try await withOpenFile { tier, entry, loop in
            try await tier.store(pattern(size + 1), key(1))
            #expect(tier.parts.openFiles.count == 0 && tier.finder.loaded(entry) == nil)
            try await reopen(tier)
            let newer = try #require(tier.lookup(key(1)).first)
            #expect(tier.finder.loaded(entry) == nil && tier.finder.loaded(newer)?.body.knownLength == Int64(size + 1))
        }
    }

    @Test func `what is freshened is read again`() async throws {
        try await withOpenFile { tier, entry, _ in
            #expect(await tier.writer.freshen(entry, head: storedHead([("X-New", "1")])))
            #expect(tier.finder.loaded(entry) == nil)
            _ = try await tier.reader.load(entry, via: nil, policy: CachePolicy())
            #expect(tier.finder.loaded(entry)?.head.fields.first("X-New") == "1")
        }
    }

    @Test(arguments: ["removed", "cut", "written to", "another"])
    func `a file that somebody else touches is looked at again`(way: String) async throws {
        try await withOpenFile { tier, entry, _ in
            let file = try onlyFile(path)
            letFileClockTick()
            switch way {
            case "removed": #expect(unlink(file) == 0)
            case "cut": #expect(truncate(file, 5000) == 0)
            case "written to":
                let descriptor = open(file, O_WRONLY)
                #expect(pwrite(descriptor, [UInt8(0)], 1, 4096) == 1)
                close(descriptor)
            default:
                let other = contents(file)
                unlink(file)
                overwrite(file, other)
            }
            #expect(tier.finder.loaded(entry) == nil && tier.parts.openFiles.count == 0)
            let loaded = try? await tier.reader.load(entry, via: nil, policy: CachePolicy())
            #expect((loaded == nil) == (way == "removed" || way == "cut"))
            #expect(tier.lookup(key(1)).isEmpty == (loaded == nil))
        }
    }

    /// Same length, one bit: only a look at the body shows it.
    @Test(arguments: [0, 300_000, 599_999])
    func `a file that was changed since it was verified is verified again`(position: Int) async throws {
        try await withOpenFile { tier, entry, _ in
            let file = try onlyFile(path)
            letFileClockTick()
            let descriptor = open(file, O_WRONLY)
            #expect(pwrite(descriptor, [patternByte(position) ^ 1], 1, off_t(4096 + position)) == 1)
            close(descriptor)
            #expect(tier.finder.loaded(entry) == nil)
            await #expect(throws: DiskTierError.damaged) {
                _ = try await tier.reader.load(entry, via: nil, policy: CachePolicy())
            }
            #expect(tier.lookup(key(1)).isEmpty && tier.statistics.damaged == 1)
        }
    }

    @Test func `what verified a file is known until it changes: our own head is no such change`() async throws {
        try await withPool { pool, _ in
            let files = FaultyFiles()
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool, calls: files.calls)
            try await tier.store(pattern(size), key(1))
            func readByLoading() async throws -> Int {
                let entry = try #require(tier.lookup(key(1)).first)
                _ = files.takeBytesRead()
                _ = try await tier.reader.load(entry, via: nil, policy: CachePolicy())
                return files.takeBytesRead()
            }
            #expect(try await readByLoading() > size)
            #expect(try await readByLoading() < 8192)
            let entry = try #require(tier.lookup(key(1)).first)
            letFileClockTick()
            #expect(await tier.writer.freshen(entry, head: storedHead([("X-New", "1")])))
            #expect(try await readByLoading() < 8192)
            #expect(try await readByLoading() < 8192)
            // Another time of change, the same bytes.
            letFileClockTick()
            #expect(chmod(try onlyFile(path), 0o640) == 0)
            #expect(try await readByLoading() > size)
            #expect(try await readByLoading() < 8192)
            tier.close()
        }
    }

    @Test func `the heads of many variants are read without their bodies`() async throws {
        try await withPool { pool, _ in
            let files = FaultyFiles()
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool, calls: files.calls)
            for number in 0..<32 {
                let head = storedHead([("Vary", "Accept-Language")], vary: [("Accept-Language", "l\(number)")])
                try await tier.store(pattern(size), key(1), head: head)
            }
            let entries = tier.lookup(key(1))
            _ = files.takeBytesRead()
            #expect(entries.count == 32)
            #expect(Set(await tier.reader.heads(entries).map { $0.head.varyFields.first(.acceptLanguage) }).count == 32)
            #expect(files.takeBytesRead() < 32 * 1024)
            tier.close()
        }
    }

    /// What the hot path finds of a key.
    private func ready(_ tier: DiskTier, _ key: CacheKey, selects: Bool = false) -> ReadyFile? {
        key.bytes.withUnsafeBytes { tier.readyFile($0) { _ in selects } }
    }

    /// The response as the memory tier would hold it, without its body.
    private func held(_ response: StoredResponse, headFormatID: UInt64) -> ResidentResponse? {
        let plain = StoredResponse(
            key: response.key,
            head: response.head,
            body: .complete([]),
            preparedHead: Array("HTTP/1.1 200 OK\r\nShape: \(headFormatID)\r\n".utf8),
            hot: Caching.hotPath(stored: response.head, policy: CachePolicy()),
            tier: .disk,
            headFormatID: headFormatID,
            number: response.number
        )
        return ResidentResponse(plain)
    }

    @Test func `an open file is made ready once for each shape, and counted when it answers`() async throws {
        try await withOpenFile { tier, entry, _ in
            let response = try #require(tier.finder.loaded(entry))
            #expect(ready(tier, key(1)) == nil)
            for (headFormatID, isMade) in [(1, true), (1, false), (2, true), (1, true)] as [(UInt64, Bool)] {
                var made = 0
                tier.makeReady(response, headFormatID: headFormatID) {
                    made += 1
                    return held(response, headFormatID: headFormatID)
                }
                #expect(made == (isMade ? 1 : 0) && ready(tier, key(1))?.held.headFormatID == headFormatID)
            }
            let hits = tier.statistics.hits
            let found = try #require(ready(tier, key(1)))
            #expect(tier.statistics.hits == hits && found.length == size && found.response === response)
            tier.noteUse(of: found)
            #expect(tier.statistics.hits == hits + 1)
            #expect(found.piece(0..<size)?.offset == FileLayout.bodyOffset)
            #expect(found.piece(5..<6)?.offset == FileLayout.bodyOffset + 5)
            #expect(ready(tier, key(2)) == nil)
        }
    }

    @Test(arguments: ["freshened", "replaced", "removed", "all removed", "cut", "another variant", "closed"])
    func `a file is ready no more`(when how: String) async throws {
        try await withOpenFile { tier, entry, _ in
            let response = try #require(tier.finder.loaded(entry))
            tier.makeReady(response, headFormatID: 1) { held(response, headFormatID: 1) }
            #expect(ready(tier, key(1)) != nil)
            switch how {
            case "freshened": #expect(await tier.writer.freshen(entry, head: storedHead([("X-New", "1")])))
            case "replaced": try await tier.store(pattern(size + 1), key(1))
            case "removed": tier.remove(key(1))
            case "all removed": try await tier.emptier.removeAll()
            case "cut": #expect(truncate(try onlyFile(path), 5000) == 0)
            case "another variant":
                var head = storedHead([("Vary", "Accept")])
                (head.varyNames, head.varyFields) = (["accept"], Fields([("Accept", "a")]))
                try await tier.store(pattern(10), key(1), head: head)
                #expect(tier.lookup(key(1)).count == 2)
            default: tier.close()
            }
            #expect(ready(tier, key(1), selects: true) == nil)
            // Who has found the response before makes nothing ready in the place of another.
            tier.makeReady(response, headFormatID: 2) { held(response, headFormatID: 2) }
            #expect(ready(tier, key(1), selects: true) == nil)
        }
    }

    @Test func `there are so many at most, and the one that was used last stays`() async throws {
        try await withOpenFile { tier, entry, _ in
            let response = try #require(tier.finder.loaded(entry))
            guard case .file(let file, _, _) = response.body.source, let stamp = FileStamp(file.descriptor) else {
                Issue.record("not a file")
                return
            }
            let names = (0..<4).map { StoredFileName([$0], key: tier.parts.folder.fileNameKey) }
            let files = OpenFiles(limit: 3)
            for name in names[..<3] { files.keep(name, response, file, stamp) { true } }
            #expect(files.find(names[0], response.number) != nil)
            files.keep(names[3], response, file, stamp) { true }
            #expect(files.count == 3)
            #expect(names.map { files.find($0, response.number) != nil } == [true, false, true, true])
            #expect(files.find(names[0], response.number + 1) == nil)
            // Removed while it was read.
            files.keep(names[0], response, file, stamp) { false }
            #expect(files.count == 2 && files.find(names[0], response.number) == nil)
            let none = OpenFiles(limit: 0)
            none.keep(names[0], response, file, stamp) { true }
            #expect(none.count == 0)
        }
    }
}

/// Changes of files have another time than those before: a tick of the kernel's clock of files, some hundred times a
/// second, comes between them.
private func letFileClockTick() {
    func now() -> timespec {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return time
    }
    let start = now()
    while case let time = now(), time.tv_sec == start.tv_sec, time.tv_nsec == start.tv_nsec { usleep(1000) }
}
