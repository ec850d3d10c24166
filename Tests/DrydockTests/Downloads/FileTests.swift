// Downloads into files: whole or not at all.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct FileTests {
    @Test func isWrittenWhole() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager(onDisk: true) { _ in
            .pattern(3_000_000)
        } _: { manager, origin in
            for (number, outcome) in [DownloadOutcome.downloaded, .stillValid].enumerated() {
                // The folders on the way are made.
                let file = URL(fileURLWithPath: folder.file("some/where/\(number)"))
                let result = try await manager.download(origin.url(), to: file)
                #expect(result.outcome == outcome)
                #expect(result.file == file)
                #expect(result.data.isEmpty)
                #expect(try readBytes(file.path) == Pattern.bytes(0..<3_000_000))
            }
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func aRequestGoesToAFile() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let file = URL(fileURLWithPath: folder.file("answer"))
        try await withManager {
            .answer(to: $0, "answer to \($0.method)")
        } _: { manager, origin in
            for method in [HTTPRequest.Method.get, .put] {
                let body = method == .put ? RequestBody.data(Data("content".utf8)) : nil
                let result = try await manager.download(origin.request(method), body: body, to: file)
                #expect(result.file == file && result.data.isEmpty)
                #expect(readText(file.path) == "answer to \(method)")
            }
            #expect(origin.server.log.map(\.method) == ["GET", "PUT"])
        }
    }

    @Test func takesThePlaceOfTheOldOne() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let path = try folder.write("a", "old")
        try await withManager {
            .answer(to: $0, "new")
        } _: { manager, origin in
            try await manager.download(origin.url(), to: URL(fileURLWithPath: path))
            #expect(readText(path) == "new")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a"])
        }
    }

    @Test(arguments: ["cut", "status", "cancelled"]) func whatFailsLeavesTheOldOne(how: String) async throws {
        let folder = try TemporaryFolder("drydock-library")
        let path = try folder.write("a", "old")
        let gate = Gate()
        try await withManager { request in
            let start = OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "12")]), OriginReply.text("half"),
            ])
            return switch how {
            case "cut": start.then(.cut)
            case "status": .answer(500, to: request, "out of order")
            default: start.then(OriginReply([.wait(gate)]))
            }
        } _: { manager, origin in
            let task = Task { () -> DownloadError? in
                await failure {
                    try await manager.download(origin.url(), to: URL(fileURLWithPath: path))
                }
            }
            #expect(await origin.isAsked(1))
            if how == "cancelled" { task.cancel() }
            #expect(await task.value?.outcome == .downloadFailed)
            #expect(readText(path) == "old")
            #expect(
                await eventually { (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) == ["a"] }
            )
            gate.open()
        }
    }

    @Test func whereNoneCanBe() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("a", "a file")
        try await withManager {
            .answer(to: $0, "new")
        } _: { manager, origin in
            for text in ["\(folder.path)/a/b", "\(folder.path)/"] {
                let file = URL(fileURLWithPath: text)
                let error = await failure { try await manager.download(origin.url(), to: file) }
                switch error {
                case .file(let detail):
                    #expect(detail == "the download could not be written: mkdir \(folder.path)/a/: Not a directory")
                case .invalidRequest(let detail): #expect(detail.contains("file URL"), "\(detail)")
                default: Issue.record("\(text): \(error as Any)")
                }
            }
        }
    }

    @Test(arguments: ["confirmed", "replaced", "gone"]) func whatIsStaleComesFirstAsAFile(how: String) async throws {
        let folder = try TemporaryFolder("drydock-library")
        let file = URL(fileURLWithPath: folder.file("a"))
        let (version, isAnother) = (Monitor(1), Monitor(false))
        try await withManager(onDisk: true) {
            // The stored body is larger than what a result may hold.
            $0.maximumBody = 1000
            $0.lifetime = .zero
        } _: { request in
            if how == "gone", isAnother.read({ $0 }) { return .answer(404, to: request, "none") }
            let number = version.read { $0 }
            let fields = [("ETag", "\"\(number)\"")]
            return .answer(to: request, fields: fields, body: Pattern.bytes(0..<(50_000 * number)))
        } _: { manager, origin in
            try await manager.download(origin.url(), to: file)
            try FileManager.default.removeItem(at: file)
            if how == "replaced" { version.update { $0 = 2 } }
            isAnother.update { $0 = true }
            var words: [String] = []
            do {
                for try await event in manager.events(
                    for: origin.url(),
                    to: file,
                    options: .init(yieldsStaleFirst: true)
                ) {
                    switch event {
                    case .stale(let result):
                        #expect(result.file == file)
                        #expect(result.data.isEmpty)
                        #expect(result.outcome == .beingChecked)
                        words.append("stale \(try readBytes(file.path).count)")
                    case .began, .uploaded: words.append("began")
                    case .progress(let progress): if progress.completed == progress.total { words.append("whole") }
                    case .finished(let result):
                        #expect(result.file == file)
                        words.append("\(result.outcome.rawValue) \(try readBytes(file.path).count)")
                    }
                }
            } catch DownloadError.unacceptableStatus(let result) {
                words.append("\(result.head.status.code)")
            }
            switch how {
            case "confirmed": #expect(words == ["stale 50000", "began", "whole", "confirmed 50000"])
            case "replaced": #expect(words == ["stale 50000", "began", "whole", "downloaded 100000"])
            default: #expect(words == ["stale 50000", "404"])
            }
            #expect(try readBytes(file.path).count == (how == "replaced" ? 100_000 : 50_000))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a"])
        }
    }
}
