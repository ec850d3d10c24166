// Items of a batch with files, contents and wishes of their own.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct BatchFileTests {
    private func file(_ folder: TemporaryFolder, _ name: String) -> URL {
        URL(filePath: folder.file(name), directoryHint: .notDirectory)
    }

    @Test("What comes, what was stored and what is not kept is written, whole, and the folders are made")
    func written() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("old", "a text that is longer than the new one")
        try await withManager(onDisk: true) { request in
            request.target == "/long" ? .pattern(3_000_000) : .answer(to: request, "of \(request.target)")
        } _: { manager, origin in
            _ = try await manager.download(origin.url("/stored"))
            origin.server.forgetRequests()
            let items = [
                DownloadBatch.Item(origin.url("/a"), file: file(folder, "old")),
                DownloadBatch.Item(origin.url("/stored"), file: file(folder, "deep/er/stored")),
                DownloadBatch.Item(origin.url("/not"), file: file(folder, "not"), options: .init(cachePolicy: .bypass)),
                DownloadBatch.Item(origin.url("/long"), file: file(folder, "long")),
                // One resource goes to two files, and comes once.
                DownloadBatch.Item(origin.url("/long"), file: file(folder, "long too")),
            ]
            let batch = manager.batch(items)
            #expect(try await batch.size().progress.queued == 5)
            #expect(folder.text("old") == "a text that is longer than the new one")
            let report = try await batch.run()
            #expect(report.entries.map(\.state) == [.done, .done, .done, .done, .done])
            #expect(report.entries.map(\.item) == items)
            #expect(folder.text("old") == "of /a")
            #expect(folder.text("deep/er/stored") == "of /stored")
            #expect(folder.text("not") == "of /not")
            for name in ["long", "long too"] {
                let isWhole = try readBytes(folder.file(name)) == Pattern.bytes(0..<3_000_000)
                #expect(isWhole)
            }
            #expect(origin.count("GET", "/long") == 1 && origin.count("GET", "/stored") == 0)
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.sorted() == ["deep", "long", "long too", "not", "old"])
        }
    }

    @Test("What fails leaves the file as it was, and nothing beside it", arguments: ["/missing", "/cut"])
    func failures(_ path: String) async throws {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("a", "old")
        try await withManager { request in
            if request.target == "/missing" { return .answer(404, to: request, "none") }
            return OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "12")]), OriginReply.text("half"), .cut,
            ])
        } _: { manager, origin in
            let batch = manager.batch([DownloadBatch.Item(origin.url(path), file: file(folder, "a"))])
            let report = try await batch.run()
            #expect(report.entries.map(\.state) == [.failed])
            #expect(!report.isComplete)
            #expect(folder.text("a") == "old")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a"])
        }
    }

    @Test("Files that are none, that two items want, or whose place is taken") func refusals() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("taken/by/another", "")
        try await withManager {
            .answer(to: $0, "of \($0.target)")
        } _: { manager, origin in
            let batch = manager.batch(
                [
                    DownloadBatch.Item(origin.url("/a"), file: file(folder, "one")),
                    DownloadBatch.Item(origin.url("/b"), file: file(folder, "one")),
                    DownloadBatch.Item(origin.url("/c"), file: URL(string: "http://127.0.0.1/file")),
                    DownloadBatch.Item(origin.url("/d"), file: file(folder, "taken/by/another/d")),
                    DownloadBatch.Item(origin.url("/e"), file: file(folder, "taken")),
                    DownloadBatch.Item(origin.asking("/f", .head), file: file(folder, "f")),
                ],
                concurrency: 1
            )
            let report = try await batch.run()
            #expect(report.entries.map(\.state) == [.done, .failed, .failed, .failed, .failed, .failed])
            let reasons = report.entries.map { $0.reason ?? "" }
            #expect(reasons[1].contains("item 1 is written to"), "\(reasons[1])")
            #expect(reasons[2].contains("file URL"), "\(reasons[2])")
            #expect(reasons[3].contains("Not a directory"), "\(reasons[3])")
            #expect(reasons[4].contains("rename to"), "\(reasons[4])")
            #expect(reasons[5].contains("ask with GET"), "\(reasons[5])")
            #expect(origin.server.requests(target: "/f") == 0)
            #expect(origin.count("GET", "/b") == 0 && origin.count("GET", "/c") == 0)
            // What could not be put in its place is stored all the same.
            #expect(try await manager.download(origin.url("/e")).outcome == .stillValid)
            #expect(Set(try FileManager.default.contentsOfDirectory(atPath: folder.path)) == ["one", "taken"])
        }
    }

    // MARK: - Contents

    @Test("A POST is sent with its content, and equal ones come once") func posts() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager { request in
            .answer(to: request, "\(request.method) \(String(decoding: request.body, as: UTF8.self))")
        } _: { manager, origin in
            let post = origin.asking("/a", .post)
            let batch = manager.batch([
                DownloadBatch.Item(post, body: Data("one".utf8), file: file(folder, "one")),
                DownloadBatch.Item(post, body: Data("two".utf8)), DownloadBatch.Item(post, body: Data("two".utf8)),
                DownloadBatch.Item(origin.asking("/a")),
            ])
            let sized = try await batch.size()
            #expect(sized.entries.map(\.state) == [.queued, .queued, .done, .queued])
            #expect(sized.entries[0].reason?.contains("POST") == true)
            #expect(sized.entries[2].duplicateOf == 1)
            #expect(origin.count("POST") == 0)
            let report = try await batch.run()
            #expect(report.isComplete)
            #expect(folder.text("one") == "POST one")
            let contents = origin.server.log.filter { $0.method == "POST" }.map {
                String(decoding: $0.body, as: UTF8.self)
            }
            #expect(contents.sorted() == ["one", "two"])
            let two = try await manager.download(post, body: Data("two".utf8))
            #expect(two.text == "POST two")
            #expect(two.outcome == .stillValid)
        }
    }

    @Test("A POST that the mode does not keep, and a content without one, are refused") func refusedPosts() async throws
    {
        try await withManager {
            $0.mode = .http
        } _: {
            .answer(to: $0, "hello")
        } _: { manager, origin async throws in
            let batch = manager.batch([
                DownloadBatch.Item(origin.asking("/a"), body: Data("one".utf8))
            ])
            #expect(try await batch.run().entries.map(\.state) == [.failed])
            #expect(origin.server.requests() == 0)
        }
    }

    // MARK: - Wishes

    @Test("Items that differ in what they wish are no duplicates") func wishes() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            origin.server.forgetRequests()
            let batch = manager.batch(
                [
                    DownloadBatch.Item(origin.url()), DownloadBatch.Item(origin.url(), options: .init(lifetime: .zero)),
                    DownloadBatch.Item(origin.url(), options: .init(cachePolicy: .storedOnly)),
                    DownloadBatch.Item(origin.url(), options: .init(expectation: .image)),
                    DownloadBatch.Item(origin.url()), DownloadBatch.Item(origin.url(), options: .init(lifetime: .zero)),
                ],
                concurrency: 1
            )
            let report = try await batch.run()
            #expect(report.entries.map(\.duplicateOf) == [nil, nil, nil, nil, 0, 1])
            #expect(
                report.entries.map(\.outcome) == [.stillValid, .confirmed, .stillValid, .downloaded, nil, nil]
            )
            #expect(report.entries.map(\.isStored) == [true, true, true, false, false, false])
            #expect(report.progress.duplicates == 2)
            #expect(origin.server.log.map(\.method) == ["HEAD", "GET"])
        }
    }

    @Test("What came and is not kept is no success, and is counted") func unstored() async throws {
        try await withManager {
            .answer(to: $0, "<!doctype html>")
        } _: { manager, origin in
            let batch = manager.batch([
                DownloadBatch.Item(origin.url("/a")),
                DownloadBatch.Item(origin.url("/b"), options: .init(expectation: .image)),
            ])
            #expect(batch.progress.notStored == 0)
            let report = try await batch.run()
            #expect(!report.isComplete)
            #expect((report.progress.done, report.progress.notStored, report.progress.failed) == (2, 1, 0))
            #expect(report.unstored.map(\.item.request.path) == ["/b"])
            #expect(report.unstored.allSatisfy { $0.reason != nil })
        }
    }

    @Test("Redirects of items are followed, for sizes and for bodies") func redirects() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager { request in
            switch request.target {
            case "/from": .answer(302, to: request, fields: [("Location", "/to")], "")
            case "/round": .answer(302, to: request, fields: [("Location", "/round")], "")
            default: .answer(to: request, "at \(request.target)")
            }
        } _: { manager, origin in
            let batch = manager.batch([
                DownloadBatch.Item(origin.url("/from"), file: file(folder, "a")),
                DownloadBatch.Item(origin.url("/round")),
            ])
            let sized = try await batch.size()
            #expect(sized.entries.map(\.size) == [6, nil])
            #expect(sized.entries.map(\.state) == [.queued, .failed])
            let report = try await batch.run()
            #expect(report.entries.map(\.state) == [.done, .failed])
            #expect(report.entries[0].status == 200 && report.entries[0].isStored)
            #expect(folder.text("a") == "at /to")
            #expect(report.entries[1].reason?.isEmpty == false)
        }
    }

    @Test("A file whose place is taken, and that is nowhere else, stays where it was written") func bytesAreKept()
        async throws
    {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("taken/by/another", "")
        try await withManager {
            .answer(to: $0, "of \($0.target)")
        } _: { manager, origin in
            let item = DownloadBatch.Item(
                origin.url("/a"),
                file: file(folder, "taken"),
                options: .init(cachePolicy: .bypass)
            )
            let report = try await manager.batch([item]).run()
            #expect(report.entries.map(\.state) == [.failed])
            let reason = report.entries[0].reason ?? ""
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0 != "taken" }
            try #require(names.count == 1, "\(names) \(reason)")
            #expect(reason.contains("the bytes are in \(folder.file(names[0]))"), "\(reason)")
            #expect(try String(contentsOfFile: folder.file(names[0]), encoding: .utf8) == "of /a")
        }
    }
}
