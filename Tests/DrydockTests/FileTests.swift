// Downloads into files: whole or not at all.

import Drydock
import Foundation
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
                case .file(let detail): #expect(detail.contains(folder.path), "\(detail)")
                case .invalidRequest(let detail): #expect(detail.contains("file URL"), "\(detail)")
                default: Issue.record("\(text): \(error as Any)")
                }
            }
        }
    }
}
