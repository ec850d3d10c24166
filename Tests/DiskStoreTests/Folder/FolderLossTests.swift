// Somebody removes what is in the folder under the daemon, or puts something else there: nothing hangs, nothing of
// anybody's is lost, the log says so once, and what comes next is stored.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import LoopSupport
import StoreSupport
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct FolderLossTests {
    let folder = Folder()
    let told = Told()
    var path: String { "\(folder.path)/cache" }

    private func open(_ pool: IOPool, _ path: String? = nil, calls: FileCalls = .real) async throws -> DiskTier {
        let path = path ?? self.path
        return try await DiskTier.open(path: path, limits: ample, pool: pool, calls: calls) { [told] in told.note($0) }
    }

    private func removeContents() {
        for name in Folder.names(in: path) where unlink("\(path)/\(name)") != 0 { Folder.remove("\(path)/\(name)") }
        #expect(Folder.names(in: path).isEmpty)
    }

    /// Returns when what the tier does every few seconds is done.
    private func tend(_ tier: DiskTier) async throws {
        try await tier.parts.pool.run {
            tier.restorer.restore()
            tier.restorer.removeSomeEmptyFolders()
        }
        await tier.settle()
    }

    // MARK: - Removed

    enum First: CaseIterable { case load, store, spill, purge, tend }

    @Test(arguments: First.allCases)
    func `what was removed is made again, told once, and what comes next is stored`(first: First) async throws {
        try await withPool { pool, loop in
            let tier = try await open(pool)
            for number in 0..<20 { try await tier.store(pattern(1000), key(number)) }
            let secret = contents("\(path)/secret")
            _ = tier.invalidations.purge([PurgeRule(.url("http://example.com/7"), isSoft: true)], now: 5)
            #expect(try tier.invalidations.pins.add("http://example.com/3"))
            removeContents()
            switch first {
            case .load: #expect(await tier.bytes(key(3)) == nil)
            case .store: try await tier.store(pattern(500), key(30))
            case .spill: #expect(await spill(tier, 30, on: loop))
            case .purge: try await tier.emptier.removeAll()
            case .tend: try await tend(tier)
            }
            await tier.settle()
            #expect(told.kinds == [.removed], "\(told.all)")
            let text = told.all.first?.text ?? ""
            #expect(text.contains(path) && text.contains("objects") && text.contains("drydock purge --all"), "\(text)")
            #expect(tier.statistics.objects == (first == .store || first == .spill ? 1 : 0))
            for number in 0..<20 { #expect(await tier.bytes(key(number)) == nil) }
            try await tier.store(pattern(700), key(31))
            #expect(await spill(tier, 32, on: loop))
            #expect(await tier.bytes(key(31)) == pattern(700))
            #expect(contents("\(path)/secret") == secret)
            tier.close()
            #expect(told.kinds == [.removed], "\(told.all)")
            #expect(
                Folder.names(in: path)
                    == [
                        "CACHEDIR.TAG", "index.sqlite", "lock", "objects", "pins", "rules", "secret", "tmp", "trash",
                        "version",
                    ]
            )
            // It is a store like any other: with its mark, its rules and its pins.
            let again = try await open(pool)
            #expect(!again.statistics.isRebuilding && again.lookup(key(31)).count == 1)
            #expect(await again.bytes(key(31)) == pattern(700))
            #expect(again.invalidations.pins.all == ["http://example.com/3"] && again.invalidations.ruleCount == 1)
            again.close()
        }
    }

    /// A body that is written while it arrives.
    private func spill(_ tier: DiskTier, _ number: Int, on loop: EventLoop) async -> Bool {
        await onLoop(loop) { loop in
            let spill = tier.writer.makeSpill()
            let options = GrowingBodyOptions(window: 64 * 1024, spill: spill, budget: BodyBudget())
            let (body, writer) = Body.growing(options, on: loop)
            guard let reader = body.makeReader(on: loop) else { return false }
            let pump = Pump(writer, total: 1_000_000)
            pump.run()
            let read = await readAll(reader, on: loop)
            withExtendedLifetime(pump) {}
            #expect(read.count == 1_000_000 && read.wrongAt == nil && read.error == nil)
            return (try? await tier.commit(body, spill: spill, key: key(number), head: storedHead())) != nil
        }
    }

    @Test func `what is left of the files is found, and only what is gone is lost`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            for number in 0..<20 { try await tier.store(pattern(1000 + number), key(number)) }
            for name in ["tmp", "trash"] { rmdir("\(path)/\(name)") }
            for name in ["version", "index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
                unlink("\(path)/\(name)")
            }
            for number in 0..<5 {
                let entry = try #require(tier.lookup(key(number)).first)
                unlink(tier.parts.folder.path(of: entry.name))
            }
            try await tend(tier)
            #expect(told.kinds == [.removed])
            #expect(tier.statistics.objects == 15)
            for number in 0..<20 {
                #expect(await tier.bytes(key(number)) == (number < 5 ? nil : pattern(1000 + number)))
            }
            tier.close()
            let again = try await open(pool)
            #expect(!again.statistics.isRebuilding && again.statistics.objects == 15)
            again.close()
        }
    }

    @Test(arguments: ["version", "CACHEDIR.TAG", "secret", "lock", "trash"])
    func `one small file less costs no stored response`(name: String) async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            try await tier.store(pattern(100), key(1))
            if unlink("\(path)/\(name)") != 0 { rmdir("\(path)/\(name)") }
            try await tend(tier)
            #expect(Folder.names(in: path).contains(name) && !tier.statistics.isRebuilding)
            #expect(told.kinds == [.removed] && told.all.first?.text.contains("removed \(name) from") == true)
            #expect(await tier.bytes(key(1)) == pattern(100))
            try await tend(tier)
            tier.close()
            #expect(told.all.count == 1)
        }
    }

    @Test func `what waits for its removal while the folder is walked does not come back`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            for number in 0..<10 { try await tier.store(pattern(1000), key(number)) }
            let isFree = Gate()
            for _ in 0..<2 { pool.submit { isFree.wait() } }
            for number in 0..<5 { tier.remove(key(number)) }
            rmdir("\(path)/tmp")
            #expect(tier.restorer.restore() == .restored)
            await tier.settle()
            #expect(tier.statistics.objects == 5)
            isFree.open()
            await tier.remover.flush()
            for number in 0..<10 { #expect(await tier.bytes(key(number)) == (number < 5 ? nil : pattern(1000))) }
            // A response that comes later is none of those that wait.
            try await tier.store(pattern(500), key(1))
            #expect(await tier.bytes(key(1)) == pattern(500))
            tier.close()
        }
    }

    @Test func `whoever waits for removals, a sweep or the walk goes on after the tier's end`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            for number in 0..<10 { try await tier.store(pattern(1000), key(number)) }
            tier.close()
            pool.stop()
            tier.remover.remove([DiskFileID(keyHash: 1, name: StoredFileName(high: 0, low: 1), fileID: 1)])
            tier.remover.deleteBehind([DiskTable.Slot(guess: StoredFileName(high: 0, low: 1))])
            tier.sweep()
            await tier.remover.flush()
            await tier.settleSweep()
            await tier.settle()
            await tier.parts.index.pass()
        }
    }

    // MARK: - Another folder

    @Test func `a folder that was removed itself is made again, and locked`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            try await tier.store(pattern(100), key(1))
            Folder.remove(path)
            try await tier.store(pattern(200), key(2))
            #expect(await tier.bytes(key(2)) == pattern(200))
            await #expect(throws: DiskTierError.inUse(path: path)) { _ = try await open(pool) }
            tier.close()
            let again = try await open(pool)
            #expect(await again.bytes(key(2)) == pattern(200))
            again.close()
            #expect(told.kinds == [.removed])
        }
    }

    @Test func `in a folder that is another daemon's now nothing is changed`() async throws {
        try await withPool { pool, loop in
            let tier = try await open(pool)
            try await tier.store(pattern(100), key(1))
            Folder.remove(path)
            let other = try await DiskTier.open(path: path, limits: ample, pool: pool)
            for number in 0..<5 { try await other.store(pattern(300), key(number)) }
            other.parts.index.writeBatch()
            let files = Set(Folder.files(below: path))
            for _ in 0..<3 {
                await #expect(throws: DiskTierError.self) { try await tier.store(pattern(200), key(2)) }
                #expect(await !spill(tier, 3, on: loop))
                #expect(await tier.bytes(key(1)) == nil)
                try await tend(tier)
            }
            #expect(tier.room.isFailing)
            #expect(told.kinds == [.removed] && told.all.first?.text.contains("cannot be made again") == true)
            let rule = PurgeRule(.url("http://a.test/purged"))
            try tier.invalidations.persist([rule], number: tier.invalidations.purge([rule], now: 5), now: 5)
            #expect(throws: PinError.self) { _ = try tier.invalidations.pins.add("http://a.test/pinned") }
            await #expect(throws: DiskTierError.self) { try await tier.emptier.removeAll() }
            tier.close()
            // Temporaries go behind.
            #expect(await eventually { Set(Folder.files(below: path)) == files })
            for number in 0..<5 { #expect(await other.bytes(key(number)) == pattern(300)) }
            other.close()
            let again = try await DiskTier.open(path: path, limits: ample, pool: pool)
            #expect(!again.statistics.isRebuilding && again.statistics.objects == 5)
            again.close()
        }
    }

    @Test func `what somebody else has put into the folder meanwhile is left alone`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            try await tier.store(pattern(100), key(1))
            removeContents()
            overwrite("\(path)/thesis.tex", pattern(10))
            try await tend(tier)
            await #expect(throws: DiskTierError.self) { try await tier.store(pattern(200), key(2)) }
            #expect(Folder.names(in: path) == ["thesis.tex"])
            #expect(told.kinds == [.removed] && told.all.first?.text.contains("thesis.tex") == true)
            unlink("\(path)/thesis.tex")
            try await tend(tier)
            try await tier.store(pattern(200), key(2))
            #expect(await tier.bytes(key(2)) == pattern(200) && !tier.room.isFailing)
            tier.close()
        }
    }

    // MARK: - The lock

    @Test func `removing the file of the lock lets nobody in`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            unlink("\(path)/lock")
            await #expect(throws: DiskTierError.inUse(path: path)) { _ = try await open(pool) }
            tier.close()
            try await open(pool).close()
        }
    }

    @Test func `a daemon that locks the file alone, as version 0-1-0, keeps others out, and is kept out`() async throws
    {
        try await withPool { pool, _ in
            try await open(pool).close()
            let file = Glibc.open("\(path)/lock", O_RDWR)
            defer { close(file) }
            #expect(flock(file, LOCK_EX | LOCK_NB) == 0)
            await #expect(throws: DiskTierError.inUse(path: path)) { _ = try await open(pool) }
            #expect(flock(file, LOCK_UN) == 0)
            let tier = try await open(pool)
            #expect(flock(file, LOCK_EX | LOCK_NB) != 0)
            tier.close()
            #expect(flock(file, LOCK_EX | LOCK_NB) == 0)
        }
    }

    // MARK: - In the place of a file

    enum Thing: CaseIterable { case pipe, link, danglingLink, emptyFolder, fullFolder }

    private func put(_ thing: Thing, at file: String) {
        unlink(file)
        switch thing {
        case .pipe: #expect(mkfifo(file, 0o600) == 0)
        case .link, .danglingLink:
            let target = "\(folder.path)/elsewhere"
            if thing == .link { overwrite(target, pattern(6000)) }
            #expect(symlink(target, file) == 0)
        case .emptyFolder, .fullFolder:
            #expect(mkdir(file, 0o700) == 0)
            if thing == .fullFolder { overwrite("\(file)/letter", pattern(5)) }
        }
    }

    /// As the table knows it, as a name that is guessed, and as the walk meets it.
    @Test(arguments: Thing.allCases, ["known", "guessed", "walked"])
    func `what is no file in the place of one is a miss, and never waited for`(thing: Thing, when: String) async throws
    {
        try await withPool { pool, _ in
            var tier = try await open(pool)
            try await tier.store(pattern(1000), key(1))
            try await tier.store(pattern(1000), key(2))
            let file = tier.parts.folder.path(of: try #require(tier.lookup(key(1)).first).name)
            if when != "known" {
                tier.close()
                DiskIndex.remove("\(path)/index.sqlite")
            }
            put(thing, at: file)
            if when != "known" { tier = try await open(pool) }
            if when == "walked" { await tier.settle() }
            for _ in 0..<2 { #expect(await tier.bytes(key(1)) == nil) }
            await tier.settle()
            #expect(await tier.bytes(key(1)) == nil && tier.lookup(key(1)).isEmpty)
            #expect(await tier.bytes(key(2)) == pattern(1000))
            // What is somebody's stays, and is in the way; everything else makes room.
            if thing == .fullFolder {
                await #expect(throws: DiskTierError.self) { try await tier.store(pattern(1100), key(1)) }
                #expect(contents("\(file)/letter") == pattern(5) && tier.room.isFailing)
            } else {
                try await tier.store(pattern(1100), key(1))
                #expect(await tier.bytes(key(1)) == pattern(1100))
            }
            if thing == .link { #expect(contents("\(folder.path)/elsewhere") == pattern(6000)) }
            tier.close()
        }
    }

    @Test func `a head is not renewed through a link`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            let entry = try await tier.store(pattern(1000), key(1))
            let file = tier.parts.folder.path(of: entry.name)
            #expect(rename(file, "\(folder.path)/elsewhere") == 0)
            let before = contents("\(folder.path)/elsewhere")
            #expect(symlink("\(folder.path)/elsewhere", file) == 0)
            #expect(await !tier.writer.freshen(entry, head: storedHead([("ETag", "\"2\"")])))
            #expect(contents("\(folder.path)/elsewhere") == before)
            #expect(await tier.bytes(key(1)) == nil)
            tier.close()
        }
    }

    // MARK: - Empty folders

    private func folders() -> [String] {
        let first = Folder.names(in: "\(path)/objects")
        return first + first.flatMap { Folder.names(in: "\(path)/objects/\($0)") }
    }

    @Test("a folder goes with its last file", arguments: ["removed", "evicted", "damaged", "all"])
    func aFolderGoesWithItsLastFile(how: String) async throws {
        try await withPool { pool, _ in
            let limits = how == "evicted" ? DiskLimits(size: 64 * 8192, minFree: 0) : ample
            let tier = try await DiskTier.open(path: path, limits: limits, pool: pool)
            for number in 0..<512 { try await tier.store(pattern(1000), key(number)) }
            let left = how == "evicted" ? 64 : 512
            #expect(tier.statistics.objects == left)
            #expect(folders().count <= 2 * left && folders().count > left)
            switch how {
            case "removed": for number in 0..<512 { tier.remove(key(number)) }
            case "damaged":
                for file in Folder.files(below: "\(path)/objects") { overwrite(file, []) }
                for number in 0..<512 { #expect(await tier.bytes(key(number)) == nil) }
            case "all": try await tier.emptier.removeAll()
            default: break
            }
            await tier.remover.flush()
            if how != "evicted" { #expect(folders().isEmpty) }
            #expect(Folder.names(in: path).contains("objects"))
            try await tier.store(pattern(1000), key(1))
            #expect(await tier.bytes(key(1)) == pattern(1000))
            tier.close()
        }
    }

    @Test func `empty folders that an earlier version has left go behind, some at a time`() async throws {
        try await withPool { pool, _ in
            let tier = try await open(pool)
            for number in 0..<50 { try await tier.store(pattern(1000), key(number)) }
            let used = Set(folders())
            for number in 0..<600 {
                let first = "\(path)/objects/\(DiskFolder.hex(number % 256))"
                mkdir(first, 0o700)
                mkdir("\(first)/\(DiskFolder.hex(number / 3))", 0o700)
            }
            #expect(folders().count > 300)
            for _ in 0..<256 { try await tend(tier) }
            #expect(Set(folders()).isSubset(of: used) && folders().count <= used.count + 50)
            for number in 0..<50 { #expect(await tier.bytes(key(number)) == pattern(1000)) }
            tier.close()
        }
    }

    @Test func `a file finds its place although its folder is removed at that moment`() async throws {
        try await withPool { pool, _ in
            let real = FileCalls.real
            var calls = real
            let turns = Countdown(3)
            calls.rename = { from, to in
                if to.contains("/objects/"), turns.next() {
                    rmdir(String(to.dropLast(33)))
                    rmdir(String(to.dropLast(36)))
                }
                return real.rename(from, to)
            }
            let tier = try await open(pool, calls: calls)
            try await tier.store(pattern(1000), key(1))
            #expect(await tier.bytes(key(1)) == pattern(1000))
            #expect(told.all.isEmpty)
            tier.close()
        }
    }
}
