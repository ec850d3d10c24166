// Stored responses that go, or are no longer valid, by prefix, form, tag and age; and those that are pinned.

import DownloadCore
import EventLoop
import Foundation
import LibrarySupport
import TestSupport
import Testing

@testable import Drydock

@Suite struct PurgeTests {
    private static let paths = ["/a/1", "/a/2", "/b/1", "/b/2"]

    private func reply(_ request: OriginRequest) -> OriginReply {
        let fields = [
            ("Last-Modified", "Mon, 01 May 2023 10:00:00 GMT"), ("Cache-Tag", "all, \(request.target.suffix(1))"),
        ]
        return .answer(to: request, fields: fields, "hello")
    }

    private static let selections: [(String, [String])] = [
        ("all", paths), ("url", ["/a/1"]), ("prefix", ["/b/1", "/b/2"]), ("glob", ["/a/2", "/b/2"]),
        ("tag", ["/a/1", "/b/1"]),
    ]

    private func selection(_ name: String, _ origin: Origin) -> StoredSelection {
        switch name {
        case "url": .url(origin.url("/a/1"))
        case "prefix": .prefix(origin.server.url + "/b/")
        case "glob": .glob("*/2")
        case "tag": .tag("1")
        default: .all
        }
    }

    @Test("What is removed is downloaded anew, and nothing else", arguments: selections, [false, true])
    func removing(_ meant: (name: String, paths: [String]), onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            reply($0)
        } _: { manager, origin in
            for path in Self.paths { _ = try await manager.download(origin.url(path)) }
            origin.server.forgetRequests()
            #expect(try await manager.store.remove(selection(meant.name, origin)) == meant.paths.count)
            for path in Self.paths { _ = try await manager.download(origin.url(path)) }
            #expect(origin.server.log.map { "\($0.method) \($0.target)" } == meant.paths.map { "GET \($0)" })
            #expect(try await manager.store.remove(.glob("*/nothing")) == 0)
        }
    }

    @Test("What has expired is checked, and nothing else", arguments: selections, [false, true])
    func expiring(_ meant: (name: String, paths: [String]), onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            reply($0)
        } _: { manager, origin in
            for path in Self.paths { _ = try await manager.download(origin.url(path)) }
            origin.server.forgetRequests()
            #expect(try await manager.store.expire(selection(meant.name, origin)) == meant.paths.count)
            for path in Self.paths { _ = try await manager.download(origin.url(path)) }
            #expect(origin.server.log.map { "\($0.method) \($0.target)" } == meant.paths.map { "HEAD \($0)" })
        }
    }

    @Test("A restart brings back nothing that was removed") func removingForEver() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { reply($0) })
        let first = makeManager(folder)
        for path in Self.paths { _ = try await first.download(origin.url(path)) }
        #expect(try await first.store.remove(.tag("2")) == 2)
        await first.close()
        let second = makeManager(folder)
        var left: [String] = []
        for try await response in second.store.responses() { left.append(response.url.path()) }
        #expect(left == ["/a/1", "/b/1"])
        await second.close()
    }

    // MARK: - Pins

    @Test("A pin is told, is listed, outlives the manager and is taken back") func pins() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { reply($0) })
        let first = makeManager(folder)
        #expect(try await first.store.pin(origin.url("/a/1")))
        #expect(try await !first.store.pin(origin.url("/a/1")))
        for path in ["/a/1", "/a/2"] { _ = try await first.download(origin.url(path)) }
        await first.close()
        let second = makeManager(folder)
        #expect(try await second.store.pins() == [origin.url("/a/1")])
        var pinned: [String] = []
        for try await response in second.store.responses() where response.isPinned {
            pinned.append(response.url.path())
        }
        #expect(pinned == ["/a/1"])
        #expect(try await second.store.unpin(origin.url("/a/1")))
        #expect(try await !second.store.unpin(origin.url("/a/1")))
        #expect(try await second.store.pins() == [])
        await second.close()
    }

    @Test("What is pinned does not go for its age, and makes no room for others", arguments: [false, true])
    func pinnedStays(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            // Room for a few bodies in each place.
            $0.memory =
                onDisk ? nil : DownloadConfiguration.MemoryLimits(size: 2 << 20, count: 1000, maximumEntrySize: 200_000)
            $0.disk?.size = 2_000_000
        } _: { _ in
            .pattern(100_000)
        } _: { manager, origin in
            try await manager.store.pin(origin.url("/pinned"))
            _ = try await manager.download(origin.url("/pinned"))
            for number in 0..<60 { _ = try await manager.download(origin.url("/\(number)")) }
            let count = origin.server.requests()
            #expect(try await manager.download(origin.url("/pinned")).outcome == .stillValid)
            #expect(origin.server.requests() == count)
            // The first of the others has made room.
            #expect(await eventually { (try? await manager.state(of: origin.url("/0"))) == .absent })
            // The time is counted in whole seconds.
            try await manager.engine().core.clock.advance(seconds: 1)
            #expect(
                await eventually {
                    _ = try? await manager.store.remove(.olderThan(.zero))
                    var left: [String] = []
                    do {
                        for try await response in manager.store.responses() { left.append(response.url.path()) }
                    } catch {
                        Issue.record("\(error)")
                    }
                    return left == ["/pinned"]
                }
            )
        }
    }

    @Test("What cannot be pinned is refused") func refusedPins() async throws {
        let manager = makeManager()
        let long = URL(string: "http://127.0.0.1:1/" + String(repeating: "a", count: 8200))!
        for url in [long, URL(filePath: "/tmp/a")] {
            let error = await #expect(throws: DownloadError.self) { try await manager.store.pin(url) }
            guard case .invalidRequest = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
        await manager.close()
    }
}
