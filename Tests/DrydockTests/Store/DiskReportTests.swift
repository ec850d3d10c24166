// What a manager's log says of its store, and how it keeps the file system from filling up.

import DownloadCore
import Foundation
import LibrarySupport
import Logging
import TestSupport
import Testing

@testable import CacheStore
@testable import Drydock

/// A log that a test can read.
private final class Lines: Sendable {
    private struct Handler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) { lines.all.update { $0.append("\(event.level) \(event.message)") } }
    }

    private let all = Monitor<[String]>([])

    var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

    func count(_ level: Logger.Level, _ text: String) -> Int {
        all.read { $0.count { $0.hasPrefix("\(level) ") && $0.contains(text) } }
    }
}

@Suite struct DiskReportTests {
    private static func settings(_ folder: TemporaryFolder) -> DownloadConfiguration {
        var configuration = DownloadConfiguration()
        configuration.memory = nil
        configuration.disk = .init(folder: URL(fileURLWithPath: folder.file("store")), minimumFree: 1 << 20)
        return configuration
    }

    private func objects(_ folder: TemporaryFolder) throws -> [String] {
        let objects = folder.file("store/objects")
        return try FileManager.default.subpathsOfDirectory(atPath: objects).map { "\(objects)/\($0)" }.filter { path in
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder.boolValue
        }
    }

    @Test func aDamagedFileIsToldOf() async throws {
        let (folder, lines) = (try TemporaryFolder("drydock-library"), Lines())
        let origin = Origin(try ScriptedOrigin { _ in .pattern(100_000) })
        let before = DownloadManager(configuration: Self.settings(folder))
        _ = try await before.download(origin.url())
        await before.close()
        for path in try objects(folder) {
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            try file.seek(toOffset: try file.seekToEnd() - 50_000)
            try file.write(contentsOf: Data("damage".utf8))
            try file.close()
        }
        let manager = DownloadManager(configuration: Self.settings(folder), logger: lines.logger)
        // Whatever becomes of this one, the next is whole.
        _ = try? await manager.download(origin.url())
        #expect(Array(try await manager.download(origin.url()).data) == Pattern.bytes(0..<100_000))
        await manager.close()
        #expect(lines.count(.warning, folder.file("store")) == 1)
    }

    @Test func whatIsNotKeptIsToldOf() async throws {
        let lines = Lines()
        var configuration = DownloadConfiguration()
        configuration.disk = nil
        configuration.abandonment = .abort
        let origin = Origin(
            try ScriptedOrigin { request in
                let head = OriginReply.head(200, fields: [("Content-Length", "100")])
                return request.target == "/left"
                    ? OriginReply([head, .pattern(50, from: 0), .hang]) : .answer(to: request, "<!doctype html>")
            }
        )
        let manager = DownloadManager(configuration: configuration, logger: lines.logger)
        _ = try await manager.download(origin.url("/page"), options: .init(expectation: .image))
        for try await event in manager.events(for: origin.url("/left")) {
            if case .progress = event { break }
        }
        // As the daemon tells it: the one is the origin's fault, the other was wanted.
        #expect(await eventually { lines.count(.debug, "/left: the fetch was ended") == 1 })
        await manager.close()
        #expect(lines.count(.warning, "/page should be an image") == 1)
    }

    @Test func whenOthersFillTheDiskWhatIsStoredMakesRoom() async throws {
        let (folder, lines) = (try TemporaryFolder("drydock-library"), Lines())
        let available = Monitor<Int64>(1 << 30)
        var calls = FileCalls.real
        calls.available = { _ in available.read { $0 } }
        let origin = Origin(try ScriptedOrigin { _ in .pattern(100_000) })
        let configuration = Self.settings(folder)
        let engine = try await DownloadEngine.open(configuration, lines.logger, calls: calls, interval: 10_000_000)
        let sessions = DownloadSessions()
        for path in ["/a", "/b"] {
            let question = try DownloadRequest(origin.url(path), configuration, DownloadOptions())
            let session = try DownloadSession(question, engine, sessions)
            _ = try await session.ask()
            while try await session.read() != nil {}
        }
        #expect(await eventually { engine.core.store.statistics[.disk]?.objects == 2 })
        // Nothing is downloaded any more: it is the watch that looks.
        available.update { $0 = 0 }
        #expect(await eventually { engine.core.store.statistics[.disk]?.objects == 0 })
        #expect(await eventually { (try? objects(folder))?.isEmpty == true })
        #expect(lines.count(.warning, "less than DiskStore.minimumFree left: stored responses are evicted") == 1)
        await sessions.close()
        await engine.stop()
    }
}
