// Items of a batch that name a file: it has the whole body or is as it was.

import DownloadCore
import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import LoopSupport
import Policies
import TestSupport
import Testing
import Upstream

extension Rig {
    /// A batch of the items, run; below `files` in the rig's folder, unless `hasFolder` is false.
    fileprivate func run(_ items: [BatchItem], concurrency: Int = 1, hasFolder: Bool = true) async -> [BatchEntry] {
        let runner = fileRunner(items, concurrency: concurrency, hasFolder: hasFolder)
        await run(runner)
        return runner.batch.entries
    }

    fileprivate func fileRunner(_ items: [BatchItem], concurrency: Int = 1, hasFolder: Bool = true) -> BatchRunner {
        try? FileManager.default.createDirectory(atPath: folder.file("tmp"), withIntermediateDirectories: true)
        return BatchRunner(
            Batch(items, options: BatchOptions(concurrency: concurrency)),
            core: core,
            resolve: { [self] item, _ throws(BatchRefusal) in
                let fields = try item.requestFields().lines.map { ($0.name, $0.value) }
                return .store(ask(item.url, fields, policy: CachePolicy()), ScriptedSource(origin))
            },
            files: hasFolder ? BatchFiles(folder: folder.file("files"), drafts: folder.file("tmp"), pool: pool) : nil
        )
    }

    /// The names below `files`, sorted.
    fileprivate var fileNames: [String] {
        let names = FileManager.default.enumerator(atPath: folder.file("files"))?.compactMap { $0 as? String } ?? []
        return names.filter { !$0.hasSuffix("maps") }.sorted()
    }
}

@Suite(.timeLimit(.minutes(5)))
struct BatchFileTests {
    private static let lasting = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]

    /// `/missing` 404, `/cut` 4 bytes of 10, `/unproven` ends without saying so, all else its own path.
    private static func answer(_ asked: Asked) -> Reply {
        switch asked.path {
        case "/missing": return .whole(404, [("Cache-Control", "no-store")], Array("none".utf8))
        case "/cut":
            let cut = Reply.Step.fail(.upstream(UpstreamError(.truncated, detail: "cut")))
            return .pieces(lasting, length: 10, [.bytes(Array("0123".utf8)), cut])
        case "/unproven":
            let head = ResponseHead(status: 200, reason: "R", fields: Fields(lasting))
            return Reply(steps: [.head(head, .untilClose), .bytes(Array("1234567".utf8)), .unprovenEnd])
        case "/unstored": return .whole(200, [("Cache-Control", "no-store")], Array("not stored".utf8))
        default:
            let body = Array("text of \(asked.path)".utf8)
            if asked.method == .head { return .headOnly(200, lasting + [("Content-Length", "\(body.count)")]) }
            return .whole(200, lasting, body)
        }
    }

    @Test("what is downloaded, what was stored and what may not be stored is written; folders are created")
    func written() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            _ = await rig.get("/stored")
            let entries = await rig.run([
                BatchItem(url: "/a", file: "maps/a.txt"), BatchItem(url: "/stored", file: "stored.txt"),
                BatchItem(url: "/unstored", file: "maps/unstored.txt"), BatchItem(url: "/b"),
            ])
            #expect(entries.map(\.state) == [.done, .done, .done, .done])
            #expect(entries.map(\.outcome) == [.downloaded, .valid, .notStored, .downloaded])
            // What was stored already has not come for this batch.
            #expect(entries.map(\.received) == [10, 0, 10, 10])
            #expect(rig.folder.text("files/maps/a.txt") == "text of /a")
            #expect(rig.folder.text("files/stored.txt") == "text of /stored")
            #expect(rig.folder.text("files/maps/unstored.txt") == "not stored")
            #expect(rig.fileNames == ["maps/a.txt", "maps/unstored.txt", "stored.txt"])
        }
    }

    @Test("a body of many pieces is written whole, from the origin and from the store")
    func longBody() async throws {
        try await withRig { rig in
            let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            rig.origin.answers { _ in .whole(200, Self.lasting, body) }
            let entries = await rig.run([
                BatchItem(url: "/a", file: "first"), BatchItem(url: "/a", file: "second"),
            ])
            #expect(entries.map(\.outcome) == [.downloaded, .valid])
            #expect(rig.origin.count == 1)
            for name in ["first", "second"] {
                let written = try readBytes(rig.folder.file("files/\(name)"))
                // Not compared within the expectation: the difference of long lists takes minutes.
                let isWhole = written == body
                #expect(isWhole, "\(name) has \(written.count) bytes")
            }
        }
    }

    @Test("a failure leaves the file as it was, and nothing beside it", arguments: ["/missing", "/cut", "/unproven"])
    func failures(_ url: String) async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            try rig.folder.write("files/a.txt", "old")
            let entries = await rig.run([BatchItem(url: url, file: "a.txt"), BatchItem(url: "/b", file: "b.txt")])
            #expect(entries.map(\.state) == [.failed, .done], "\(entries.map(\.line))")
            #expect(rig.folder.text("files/a.txt") == "old")
            #expect(rig.fileNames == ["a.txt", "b.txt"])
        }
    }

    @Test("a file that is there is replaced, and no other one is touched")
    func replaced() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            try rig.folder.write("files/a.txt", "an old text that is longer than the new one")
            try rig.folder.write("files/a.txt.part", "another file")
            let entries = await rig.run([BatchItem(url: "/a", file: "a.txt")])
            #expect(entries[0].line == "/a done downloaded size=10 received=10 status=200")
            #expect(rig.folder.text("files/a.txt") == "text of /a")
            #expect(rig.fileNames == ["a.txt", "a.txt.part"])
            #expect(rig.folder.text("files/a.txt.part") == "another file")
        }
    }

    @Test("two items do not write to one file, and one resource goes to two")
    func sameFile() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            let entries = await rig.run(
                [
                    BatchItem(url: "/a", file: "one"), BatchItem(url: "/b", file: "one"),
                    BatchItem(url: "/a", file: "two"), BatchItem(url: "/a", file: "one"),
                ],
                concurrency: 4
            )
            #expect(entries.map(\.state) == [.done, .failed, .done, .done])
            #expect(entries[1].reason == "item 1 is written to 'one', too; give each its own file")
            #expect(entries[3].outcome == .duplicate)
            #expect(rig.folder.text("files/one") == "text of /a" && rig.folder.text("files/two") == "text of /a")
            #expect(!rig.asked.contains("GET /b"))
        }
    }

    @Test(
        "a name that leads out of the folder is refused before anything is asked",
        arguments: [
            "", "/etc/passwd", "../a", "a/../b", "./a", "a//b", "a/", "a\nb", String(repeating: "x", count: 241),
        ]
    )
    func names(_ name: String) async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            let entries = await rig.run([BatchItem(url: "/a", file: name)])
            #expect(entries[0].state == .failed)
            #expect(entries[0].reason?.contains("is not a relative path; write one such as") == true)
            #expect(rig.origin.count == 0 && rig.fileNames.isEmpty)
        }
    }

    @Test("without a folder for files, and where no file can be made, the item says so")
    func troubles() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            let without = await rig.run([BatchItem(url: "/a", file: "a.txt")], hasFolder: false)
            #expect(without[0].reason == "there is no folder for 'a.txt'; set 'cache.disk', or leave 'file' out")
            #expect(rig.origin.count == 0)
            try rig.folder.write("files/taken", "a file, and no folder")
            let below = await rig.run([BatchItem(url: "/a", file: "taken/a.txt")])
            #expect(below[0].state == .failed)
            #expect(below[0].reason?.hasPrefix("'taken/a.txt' is not written: write to ") == true, "\(below[0].line)")
            #expect(rig.fileNames == ["taken"])
        }
    }

    @Test("looking for sizes writes nothing; what needs no download is written by the download")
    func sizes() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            _ = await rig.get("/stored")
            let runner = rig.fileRunner([BatchItem(url: "/stored", file: "a.txt"), BatchItem(url: "/b", file: "b.txt")])
            await rig.check(runner)
            #expect(
                runner.batch.entries.map(\.line) == [
                    "/stored queued check=valid size=15", "/b queued check=sized size=10",
                ]
            )
            #expect(rig.fileNames.isEmpty)
            runner.goOn()
            await rig.run(runner)
            #expect(runner.batch.entries.map(\.outcome) == [.valid, .downloaded])
            #expect(rig.folder.text("files/a.txt") == "text of /stored")
            #expect(rig.folder.text("files/b.txt") == "text of /b")
        }
    }

    @Test("a file is kept over a restart with its item")
    func kept() throws {
        let batch = Batch([BatchItem(url: "/a", file: "a.txt"), BatchItem(url: "/b")])
        let written = try JSONEncoder().encode(batch)
        let again = try JSONDecoder().decode(Batch.self, from: written)
        #expect(again == batch && again.entries[0].item.file == "a.txt")
    }
}
