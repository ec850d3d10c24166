// Seeds of a program: what is stored written as seeds, and folders of seeds taken over, looked at again, and answered
// from, in both layouts.

import Drydock
import Foundation
import HTTPCaching
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct SeedTests {
    private static let modified = "Mon, 01 May 2023 10:00:00 GMT"

    private func seeds(
        _ folder: TemporaryFolder,
        _ layout: SeedLayout = .url,
        _ use: SeedUse = .pinned
    ) -> DownloadConfiguration.Seeds {
        DownloadConfiguration.Seeds(folder: URL(filePath: folder.path), layout: layout, use: use)
    }

    private func file(_ folder: TemporaryFolder, _ name: String) -> URL { URL(filePath: folder.file(name)) }

    // MARK: - Export and import

    @Test("What is stored is exported, and answers as seeds and as an import elsewhere", arguments: [false, true])
    func thereAndBack(onDisk: Bool) async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        try await withManager(onDisk: onDisk) { request in
            .answer(to: request, fields: [("Last-Modified", Self.modified), ("X-Own", "1")], "of \(request.target)")
        } _: { manager, origin in
            for path in ["/a", "/b/?q=1"] { _ = try await manager.download(origin.url(path)) }
            let report = try await manager.store.exportSeeds(to: file(folder, "deep/seeds"))
            #expect((report.written, report.skipped, report.failed) == (2, 0, 0))
            #expect(report.bytes == 5 + 10)
            #expect(report.firstError == nil)
            #expect(folder.text("deep/seeds/\(origin.server.authority)/a") == "of /a")
            origin.server.forgetRequests()

            // In place: never checked.
            let pinned = makeManager {
                $0.seeds = DownloadConfiguration.Seeds(folder: file(folder, "deep/seeds"))
                $0.lifetime = .zero
            }
            let seeded = try await pinned.download(origin.url("/b/?q=1"))
            #expect(seeded.outcome == .seeded)
            #expect(seeded.text == "of /b/?q=1")
            #expect(seeded.head.headerFields[.init("X-Own")!] == "1")
            await pinned.close()
            #expect(origin.server.requests() == 0)

            // Copied at any time: checked at first use.
            let other = makeManager(onDisk ? folder : nil)
            _ = try await other.download(origin.url("/a"))
            origin.server.forgetRequests()
            let copies = try await other.store.importSeeds(from: file(folder, "deep/seeds"))
            #expect((copies.imported, copies.kept, copies.unknown, copies.refused, copies.failed) == (1, 1, 0, 0, 0))
            guard case .stale = try await other.state(of: origin.url("/b/?q=1")) else {
                Issue.record("an imported seed is not valid")
                return
            }
            #expect(try await other.download(origin.url("/b/?q=1")).outcome == .confirmed)
            #expect(try await other.download(origin.url("/a")).outcome == .stillValid)
            #expect(origin.server.log.map { "\($0.method) \($0.target)" } == ["HEAD /b/?q=1"])
            await other.close()
        }
    }

    @Test("What is somebody's own, or needs more than a URL, is not exported") func whatIsNoSeed() async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        try await withManager { request in
            // RFC 9111 section 3.5: what may be stored of a request with Authorization.
            .answer(to: request, fields: [("Cache-Control", "public, max-age=600")], "mine")
        } _: { manager, origin in
            var own = origin.asking("/own")
            own.headerFields[.authorization] = "Basic YTpi"
            _ = try await manager.download(own)
            _ = try await manager.download(origin.asking("/post", .post), body: Data("one".utf8))
            _ = try await manager.download(origin.url("/all"))
            var stored = 0
            for try await _ in manager.store.responses() { stored += 1 }
            let report = try await manager.store.exportSeeds(to: URL(filePath: folder.path))
            #expect((report.written, report.skipped) == (1, stored - 1))
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.file(origin.server.authority))
            #expect(names.sorted() == ["all", "all.head.json"])
        }
    }

    @Test("An answer to a POST does not become the seed of its URL") func posts() async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        try await withManager {
            .answer(to: $0, "by \($0.method)")
        } _: { manager, origin in
            _ = try await manager.download(origin.asking("/a", .post), body: Data("one".utf8))
            #expect(try await manager.store.exportSeeds(to: URL(filePath: folder.path)).written == 0)
            let other = makeManager { $0.seeds = seeds(folder) }
            #expect(try await other.download(origin.url()).text == "by GET")
            await other.close()
        }
    }

    @Test("A removal of everything does not reach seeds that are imported after it", arguments: [false, true])
    func importAfterARemoval(onDisk: Bool) async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        try await withManager(onDisk: onDisk) {
            .answer(to: $0, fields: [("ETag", "\"1\"")], "hello")
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            let seeds = URL(filePath: folder.path)
            #expect(try await manager.store.exportSeeds(to: seeds).written == 1)
            #expect(try await manager.removeAll() == 1)
            #expect(try await manager.store.importSeeds(from: seeds).imported == 1)
            guard case .stale = try await manager.state(of: origin.url()) else {
                Issue.record("the import is not there")
                return
            }
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
            #expect(origin.server.log.map(\.method) == ["GET", "HEAD"])
        }
    }

    @Test("Files without a head are those of https, unless a parent says otherwise") func withoutHeads() async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "from the origin") })
        try folder.write("\(origin.server.authority)/a", "from the seed")
        let manager = makeManager()
        #expect(try await manager.store.importSeeds(from: URL(filePath: folder.path)).imported == 1)
        #expect(try await manager.state(of: origin.url()) == .absent)
        try await manager.removeAll()
        let root = try #require(URL(string: origin.server.url))
        #expect(try await manager.store.importSeeds(from: URL(filePath: folder.path), below: [root]).imported == 1)
        #expect(try await manager.state(of: origin.url()) != .absent)
        await manager.close()
    }

    @Test("Folders that cannot be had are refused, and say where they are") func noFolders() async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        try folder.write("a file", "")
        let manager = makeManager()
        for source in [file(folder, "a file/b"), file(folder, "nowhere")] {
            let error = await #expect(throws: DownloadError.self) {
                _ = try await manager.store.importSeeds(from: source)
            }
            guard case .file(let text) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(text.contains(source.path(percentEncoded: false)), "\(text)")
        }
        let remote = try #require(URL(string: "http://127.0.0.1/"))
        for work in [
            { _ = try await manager.store.importSeeds(from: remote) },
            { _ = try await manager.store.exportSeeds(to: remote) },
        ] as [() async throws -> Void] {
            let error = await #expect(throws: DownloadError.self) { try await work() }
            guard case .invalidRequest = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
        let unwritable = await #expect(throws: DownloadError.self) {
            _ = try await manager.store.exportSeeds(to: file(folder, "a file/b"))
        }
        guard case .file = unwritable else {
            Issue.record("\(String(describing: unwritable))")
            return
        }
        await manager.close()
        await #expect(throws: DownloadError.closed) {
            _ = try await manager.store.importSeeds(from: URL(filePath: folder.path))
        }
    }

    @Test("A cancelled task writes and stores nothing more, and says so") func cancelled() async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        try await withManager {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            for number in 0..<3 { _ = try await manager.download(origin.url("/\(number)")) }
            let there = URL(filePath: folder.path)
            let tasks: [Task<Void, any Error>] = [
                Task {
                    while !Task.isCancelled { await Task.yield() }
                    _ = try await manager.store.exportSeeds(to: there)
                },
                Task {
                    while !Task.isCancelled { await Task.yield() }
                    _ = try await manager.store.importSeeds(from: there)
                },
            ]
            for task in tasks {
                task.cancel()
                await #expect(throws: DownloadError.cancelled) { try await task.value }
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
            #expect(try await manager.store.exportSeeds(to: there).written == 3)
        }
    }

    // MARK: - Looking again

    @Test(
        "A new seed answers once the folder is looked at again",
        arguments: [
            SeedUse.pinned, .imported,
        ]
    )
    func lookingAgain(use: SeedUse) async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        let origin = Origin(try ScriptedOrigin { .answer(500, to: $0, "out of order") })
        let manager = makeManager { $0.seeds = seeds(folder, .url, use) }
        #expect(try await manager.store.reloadSeeds() == 0)
        try folder.write("\(origin.server.authority)/a", "from the seed")
        #expect(await failure { try await manager.download(origin.url()) } != nil)
        #expect(try await manager.store.reloadSeeds() == 1)
        let result = try await manager.download(origin.url())
        #expect(result.text == "from the seed")
        #expect(result.outcome == (use == .pinned ? .seeded : .checkFailed))
        // A folder that cannot be read changes nothing.
        try FileManager.default.moveItem(atPath: folder.path, toPath: folder.path + ".away")
        let error = await #expect(throws: DownloadError.self) { try await manager.store.reloadSeeds() }
        guard case .unavailable(let text) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(text.contains(folder.path), "\(text)")
        try FileManager.default.moveItem(atPath: folder.path + ".away", toPath: folder.path)
        #expect(try await manager.download(origin.url()).text == "from the seed")
        await manager.close()
    }

    @Test func withoutSeeds() async throws {
        let manager = makeManager()
        #expect(try await manager.store.reloadSeeds() == 0)
        await manager.close()
    }

    // MARK: - The layout of Docker

    /// A folder as Docker's download manager left it: names of hashes, and dates in property lists.
    private func dockerFolder(_ origin: Origin, expires: Date?) throws -> TemporaryFolder {
        let folder = try TemporaryFolder("drydock-seeds")
        let parent = try #require(ContentDigest.md5.hex("http:/\(origin.server.authority)/images".utf8))
        let date = try #require(ISO8601DateFormatter().date(from: "2023-05-01T10:00:00Z"))
        func write(_ name: String, _ dates: [String: Date]) throws {
            let list = try PropertyListSerialization.data(fromPropertyList: dates, format: .xml, options: 0)
            try folder.write(name, String(decoding: list, as: UTF8.self))
        }
        try folder.write("\(parent)_a.png", "an old picture")
        try write("ResourceInfos.plist", ["\(parent)_a.png": date])
        if let expires { try write("DownloadManagerExpirationDates.plist", ["\(parent)_a.png": expires]) }
        return folder
    }

    @Test("Files with Docker's names answer in place") func dockerInPlace() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(500, to: $0, "out of order") })
        let folder = try dockerFolder(origin, expires: nil)
        let manager = makeManager { $0.seeds = seeds(folder, .hashed) }
        let result = try await manager.download(origin.url("/images/a.png"))
        #expect(result.text == "an old picture")
        #expect(result.outcome == .seeded)
        #expect(result.head.headerFields[.lastModified] == Self.modified)
        #expect(origin.server.requests() == 0)
        await manager.close()
    }

    @Test(
        "Files with Docker's names are copied, with the server's dates and the dates of their expiry",
        arguments: ["opening", "later"],
        [false, true]
    )
    func dockerCopies(_ moment: String, isFresh: Bool) async throws {
        let origin = Origin(
            try ScriptedOrigin { .answer(to: $0, fields: [("Last-Modified", Self.modified)], "an old picture") }
        )
        let folder = try dockerFolder(origin, expires: isFresh ? Date(timeIntervalSinceNow: 3600) : nil)
        let manager = makeManager { if moment == "opening" { $0.seeds = seeds(folder, .hashed, .imported) } }
        if moment == "later" {
            let parent = try #require(URL(string: origin.server.url + "/images"))
            let unknown = try await manager.store.importSeeds(from: URL(filePath: folder.path))
            #expect((unknown.imported, unknown.unknown) == (0, 1))
            let copies = try await manager.store.importSeeds(from: URL(filePath: folder.path), below: [parent])
            #expect((copies.imported, copies.unknown) == (1, 0))
        }
        let result = try await manager.download(origin.url("/images/a.png"))
        #expect(result.text == "an old picture")
        #expect(result.outcome == (isFresh ? .stillValid : .confirmed))
        #expect(origin.server.log.map(\.method) == (isFresh ? [] : ["HEAD"]))
        await manager.close()
    }
}
