// Whose folder a disk tier takes: an empty one or one with its mark, and nobody else's, of which it changes nothing.

import EventLoop
import Files
import Glibc
import HTTPCaching
import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

/// A file, or with nil a folder, that stands in the way.
typealias Planted = (name: String, bytes: [UInt8]?)

@Suite struct FolderMarkTests {
    static let tag = "Signature: 8a477f597d28d172789f06886806bc55"

    private static func plant(_ path: String, _ files: [Planted]) {
        mkdir(path, 0o755)
        for file in files {
            var folder = path
            for part in file.name.split(separator: "/").dropLast() {
                folder += "/\(part)"
                mkdir(folder, 0o755)
            }
            if let bytes = file.bytes {
                overwrite("\(path)/\(file.name)", bytes)
            } else {
                mkdir("\(path)/\(file.name)", 0o755)
            }
        }
        chmod(path, 0o755)
    }

    /// Every name below a path with its mode, the time of its last change, and its bytes.
    private static func picture(_ path: String) -> [String] {
        var status = stat()
        guard lstat(path, &status) == 0 else { return [] }
        let bytes = status.st_mode & S_IFMT == S_IFREG ? contents(path) : []
        let line = "\(path) \(status.st_mode) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec) \(bytes)"
        return [line] + Folder.names(in: path).flatMap { picture("\(path)/\($0)") }
    }

    private static func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    static let foreign: [(String, [Planted])] = [
        (
            "a bare git repository",
            [
                ("HEAD", text("ref: refs/heads/main\n")), ("config", text("[core]\n")), ("objects/ab/cd", [1, 2]),
                ("refs/heads", nil),
            ]
        ),
        (
            "a user's tmp and trash",
            [("tmp/letter.txt", text("dear")), ("trash/photo.jpg", [1]), ("secret", text("mine"))]
        ),
        ("one hidden file", [(".profile", text("x"))]),
        ("another program's cache", [("CACHEDIR.TAG", text(tag + "\n")), ("objects/x", [1])]),
        ("another program's empty cache", [("CACHEDIR.TAG", text(tag + "\n# made by cargo\n"))]),
        ("a version file of somebody's", [("version", text("1.2\n"))]),
        ("a version file beside other things", [("CACHEDIR.TAG", text(tag)), ("version", text("2")), ("tmp/a", [1])]),
        ("a mark without its tag", [("version", text("drydock 1 shared\n")), ("thesis.tex", [1])]),
        ("a lock and a secret", [("lock", []), ("secret", pattern(16))]),
        (
            "a database of somebody's",
            [("lock", []), ("secret", pattern(16)), ("index.sqlite", text("SQLite format 3\0CREATE TABLE files (a)"))]
        ),
        (
            "text about our tables",
            [
                ("lock", []), ("secret", pattern(16)),
                (
                    "index.sqlite",
                    text(
                        "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER)CREATE TABLE files (high INTEGER, low INTEGER, keyhash INTEGER"
                    )
                ),
            ]
        ),
    ]

    @Test(
        "A folder that is not empty and has no mark is refused, and nothing in it changes",
        arguments: foreign.indices
    )
    func foreignFoldersAreLeftAlone(_ index: Int) async throws {
        let (name, files) = Self.foreign[index]
        let folder = Folder()
        let path = "\(folder.path)/c"
        Self.plant(path, files)
        let before = Self.picture(path)
        try await withPool { pool, _ in
            let error = await #expect(throws: DiskTierError.self, "\(name)") {
                _ = try await DiskTier.open(path: path, limits: ample, pool: pool)
            }
            guard case .notTaken(.foreign(path, let found)) = error else {
                Issue.record("\(name): \(String(describing: error))")
                return
            }
            #expect(Folder.names(in: path).contains(found))
            #expect("\(FolderRefusal.foreign(path: path, found: found))".contains("name an empty folder"))
        }
        #expect(Self.picture(path) == before, "\(name)")
    }

    @Test("A file in place of the folder is left alone") func aFileIsLeftAlone() async throws {
        let folder = Folder()
        let path = "\(folder.path)/c"
        overwrite(path, [1, 2, 3])
        try await withPool { pool, _ in
            await #expect(throws: DiskTierError.self) {
                _ = try await DiskTier.open(path: path, limits: ample, pool: pool)
            }
        }
        #expect(contents(path) == [1, 2, 3])
    }

    static let halfMade: [[Planted]] = [
        [], [("lost+found", nil)], [("CACHEDIR.TAG.new", [])], [("CACHEDIR.TAG.new", text("Signature: 8a47"))],
        [("CACHEDIR.TAG", text(tag))], [("CACHEDIR.TAG", []), ("version.new", text("dry"))],
        [("CACHEDIR.TAG", text(tag)), ("version", text("drydock 1"))], [("version", text("drydock 1 shared\n"))],
    ]

    @Test("A folder in which the marking was cut off is taken, and is whole then", arguments: halfMade.indices)
    func halfMadeFoldersAreTaken(_ index: Int) async throws {
        let folder = Folder()
        let path = "\(folder.path)/c"
        Self.plant(path, Self.halfMade[index])
        try await withPool { pool, _ in
            for _ in 0..<2 {
                let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
                if await tier.bytes(key(1)) == nil { try await tier.store(pattern(100), key(1)) }
                tier.close()
            }
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            #expect(await tier.bytes(key(1)) == pattern(100))
            tier.close()
        }
        #expect(contents("\(path)/CACHEDIR.TAG").starts(with: Self.text(Self.tag + "\n")))
        #expect(contents("\(path)/version") == Self.text("drydock 1 shared\n"))
        #expect(Folder.names(in: path).allSatisfy { !$0.hasSuffix(".new") })
    }

    @Test("A folder of version 0.1.0 is marked, and keeps what is stored in it", arguments: [true, false])
    func foldersOfTheFirstVersionAreMarked(_ isClosed: Bool) async throws {
        let folder = Folder()
        let (path, copy) = ("\(folder.path)/c", "\(folder.path)/copy")
        let told = Told()
        try await withPool { pool, _ in
            let first = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await first.store(pattern(100), key(1))
            if isClosed { first.close() }
            // As a process left it, in order or killed; the first version wrote no mark.
            copyTree(path, copy)
            first.close()
            for name in ["CACHEDIR.TAG", "version"] { unlink("\(copy)/\(name)") }
            let second = try await DiskTier.open(path: copy, limits: ample, pool: pool) { told.note($0) }
            #expect(await second.bytes(key(1)) == pattern(100))
            second.close()
        }
        #expect(contents("\(copy)/version") == Self.text("drydock 1 shared\n"))
        #expect(told.all.map(\.text).count { $0.contains("0.1.0") && $0.contains(copy) } == 1)
    }

    @Test("A daemon's folder of version 0.1.0 is not taken by the library") func jobsAreADaemons() async throws {
        let folder = Folder()
        let path = "\(folder.path)/c"
        try await withPool { pool, _ in
            try await DiskTier.open(path: path, limits: ample, pool: pool).close()
            for name in ["CACHEDIR.TAG", "version"] { unlink("\(path)/\(name)") }
            mkdir("\(path)/jobs", 0o700)
            await #expect(throws: DiskTierError.notTaken(.otherKind(path: path, kind: .shared))) {
                _ = try await DiskTier.open(path: path, limits: ample, kind: .private, pool: pool)
            }
            #expect(!Folder.names(in: path).contains("version"))
        }
    }

    @Test("Daemon and library refuse a folder of the other kind", arguments: StoreKind.allCases)
    func theOtherKindIsRefused(_ kind: StoreKind) async throws {
        let folder = Folder()
        let path = "\(folder.path)/c"
        let other: StoreKind = kind == .shared ? .private : .shared
        try await withPool { pool, _ in
            try await DiskTier.open(path: path, limits: ample, kind: kind, pool: pool).close()
            let before = Self.picture(path)
            await #expect(throws: DiskTierError.notTaken(.otherKind(path: path, kind: kind))) {
                _ = try await DiskTier.open(path: path, limits: ample, kind: other, pool: pool)
            }
            #expect(Self.picture(path) == before)
            try await DiskTier.open(path: path, limits: ample, kind: kind, pool: pool).close()
        }
    }

    @Test("A newer format is refused, whatever else its version file says", arguments: ["shared", "private", "of all"])
    func newerFormatsAreRefused(_ kind: String) async throws {
        let folder = Folder()
        let path = "\(folder.path)/c"
        try await withPool { pool, _ in
            try await DiskTier.open(path: path, limits: ample, pool: pool).close()
            let format = FolderMark.format + 1
            overwrite("\(path)/version", Self.text("drydock \(format) \(kind)\n"))
            let before = Self.picture(path)
            await #expect(throws: DiskTierError.notTaken(.newer(path: path, format: format))) {
                _ = try await DiskTier.open(path: path, limits: ample, pool: pool)
            }
            #expect(Self.picture(path) == before)
        }
    }

    @Test("An older format is emptied, marked anew, and said; pins stay", arguments: [false, true])
    func olderFormatsAreEmptied(_ isMarked: Bool) async throws {
        let folder = Folder()
        let path = "\(folder.path)/c"
        try await withPool { pool, _ in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            try await tier.store(pattern(100), key(1))
            tier.close()
            overwrite("\(path)/pins", Self.text("http://example.com/1\n"))
            if !isMarked { for name in ["CACHEDIR.TAG", "version"] { unlink("\(path)/\(name)") } }
            let newer = FolderMark.format + 1
            let opened = try DiskFolder(path, format: newer)
            #expect(opened.remark?.contains("emptied") == true && opened.remark?.contains(path) == true)
            #expect(Folder.files(below: opened.objects).isEmpty && !Folder.names(in: path).contains("index.sqlite"))
            opened.release()
            #expect(contents("\(path)/version") == Self.text("drydock \(newer) shared\n"))
            #expect(contents("\(path)/pins") == Self.text("http://example.com/1\n"))
            let again = try DiskFolder(path, format: newer)
            #expect(again.remark == nil)
            again.release()
            // The version of today leaves it alone.
            #expect(throws: DiskTierError.notTaken(.newer(path: path, format: newer))) { try DiskFolder(path) }
        }
    }

    @Test("Looking at a folder changes nothing") func inspectionChangesNothing() throws {
        let folder = Folder()
        let path = "\(folder.path)/c"
        #expect(try FolderMark.inspect("\(folder.path)/absent", .shared) == .empty)
        Self.plant(path, [])
        let before = Self.picture(path)
        #expect(try FolderMark.inspect(path, .shared) == .empty)
        #expect(Self.picture(path) == before)
        #expect(Folder.names(in: folder.path) == ["c"])
    }
}
