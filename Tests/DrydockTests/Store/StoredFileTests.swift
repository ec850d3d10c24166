// Stored bodies as files: copied without asking anybody, whole or not at all.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct StoredFileTests {
    @Test("What is stored is copied into a file, valid or not, and nobody is asked", arguments: [false, true])
    func copies(onDisk: Bool) async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager(onDisk: onDisk) {
            // The body is larger than a result may hold.
            $0.maximumBody = 1000
            $0.staleWhileRevalidate = .seconds(3600)
            $0.mode = .fixedLifetime
        } _: { _ in
            .pattern(3_000_000)
        } _: { manager, origin in
            try await manager.download(origin.url(), to: URL(filePath: folder.file("first")))
            for (name, outcome) in [("valid", DownloadOutcome.stillValid), ("stale", .checkFailed)] {
                if name == "stale" { try await manager.expireAll() }
                let file = URL(filePath: folder.file("some/where/\(name)"))
                let result = try await manager.store.copy(origin.url(), to: file)
                #expect(result.file == file)
                #expect(result.outcome == outcome)
                #expect(result.data.isEmpty)
                let isWhole = try readBytes(file.path()) == Pattern.bytes(0..<3_000_000)
                #expect(isWhole)
            }
            #expect(origin.server.requests() == 1)
        }
    }

    @Test("A download of what is stored copies it without the origin") func downloadFromTheStore() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            origin.server.stop()
            let file = URL(filePath: folder.file("a"))
            let result = try await manager.download(origin.url(), to: file, options: .init(cachePolicy: .storedOnly))
            #expect(result.outcome == .stillValid)
            #expect(folder.text("a") == "hello")
        }
    }

    @Test("A POST's answer is copied by its content; what is not stored leaves the old file") func requests()
        async throws
    {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("a", "old")
        try await withManager {
            .answer(to: $0, "by \($0.method)")
        } _: { manager, origin in
            let (file, post) = (URL(filePath: folder.file("a")), origin.asking("/a", .post))
            _ = try await manager.download(post, body: Data("one".utf8))
            for work in [
                { try await manager.store.copy(origin.url(), to: file) },
                { try await manager.store.copy(post, body: Data("two".utf8), to: file) },
            ] as [() async throws -> DownloadResult] {
                guard case .notStored = await failure(work) else {
                    Issue.record("nothing is stored")
                    continue
                }
            }
            #expect(folder.text("a") == "old")
            try await manager.store.copy(post, body: Data("one".utf8), to: file)
            #expect(folder.text("a") == "by POST")
            guard
                case .invalidRequest = await failure({
                    try await manager.store.copy(origin.asking("/a", .head), to: file)
                })
            else {
                Issue.record("a HEAD has no body")
                return
            }
            #expect(origin.server.requests() == 1)
        }
    }

    @Test("A seed is copied, too") func seeds() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "from the origin") })
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("seeds/\(origin.server.authority)/a", "from the seed")
        let manager = makeManager { $0.seeds = .init(folder: URL(filePath: folder.file("seeds"))) }
        let result = try await manager.store.copy(origin.url(), to: URL(filePath: folder.file("a")))
        #expect(result.outcome == .seeded)
        #expect(folder.text("a") == "from the seed")
        #expect(origin.server.requests() == 0)
        await manager.close()
    }

    // MARK: - A path that cannot be taken

    @Test(
        "What has come whole and cannot be put in its place is handed over beside it",
        arguments: ["download", "stale", "copy"]
    )
    func notInPlace(how: String) async throws {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("taken/by/another", "")
        let target = URL(filePath: folder.file("taken"), directoryHint: .notDirectory)
        try await withManager {
            .answer(to: $0, fields: [("ETag", "\"1\"")], "hello")
        } _: { manager, origin in
            if how != "download" { _ = try await manager.download(origin.url()) }
            if how == "stale" { try await manager.expireAll() }
            let error = await #expect(throws: DownloadError.self) {
                switch how {
                case "copy": try await manager.store.copy(origin.url(), to: target)
                case "stale":
                    let options = DownloadOptions(yieldsStaleFirst: true)
                    for try await _ in manager.events(for: origin.url(), to: target, options: options) {}
                default: try await manager.download(origin.url(), to: target)
                }
            }
            guard case .notInPlace(let result, let reason) = error, let file = result.file else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(reason.contains(folder.file("taken")), "\(reason)")
            #expect(readText(file.path()) == "hello")
            #expect(result.head.status.code == 200)
            #expect(error?.description.contains(file.path()) == true, "\(String(describing: error))")
            #expect(error?.outcome == .downloadFailed)
            // Nothing else is left beside it, and what stood there does still.
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(Set(names) == ["taken", file.lastPathComponent])
            #expect(folder.text("taken/by/another") == "")
        }
    }

    // MARK: - What is expected

    @Test("What was stored without an expectation is a miss for one who has it", arguments: [false, true])
    func expected(onDisk: Bool) async throws {
        let isPicture = Monitor(false)
        let picture: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 0]
        try await withManager(onDisk: onDisk) { request in
            isPicture.read { $0 } ? .answer(to: request, body: picture) : .answer(to: request, "<!doctype html>")
        } _: { manager, origin in
            let options = DownloadOptions(expectation: .image)
            let page = try await manager.download(origin.url())
            #expect(page.text == "<!doctype html>")
            #expect(try await manager.state(of: origin.url(), options: options) == .absent)
            isPicture.update { $0 = true }
            #expect(try await manager.download(origin.url(), options: options).data == Data(picture))
            #expect(try await manager.download(origin.url(), options: options).outcome == .stillValid)
            // Whoever expects nothing takes it, too.
            #expect(try await manager.download(origin.url()).data == Data(picture))
            #expect(origin.server.requests() == 2)
        }
    }
}
