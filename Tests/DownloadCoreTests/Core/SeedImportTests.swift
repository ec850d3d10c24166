// Seeds that are copied into the store: once, stale, and never over something newer.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import Policies
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SeedImportTests {
    private func folder(_ rig: Rig, _ name: String = "seed", head: String? = nil, text: String = "seed") throws
        -> SeedFolder
    {
        try rig.folder.write("\(name)/origin.test/a", text)
        let fields = "{ \"fields\": [[\"ETag\", \"\\\"e\\\"\"], [\"Cache-Control\", \"max-age=100000\"]] }"
        try rig.folder.write("\(name)/origin.test/a.head.json", head ?? fields)
        return try SeedFolder(path: rig.folder.file(name), mode: .imported, pool: rig.pool)
    }

    private static let lasting = "\"fields\": [[\"Cache-Control\", \"max-age=1000\"]]"

    private func with(_ seed: SeedFolder, _ ask: CacheRequest) -> CacheRequest {
        var ask = ask
        ask.seed = seed
        return ask
    }

    @Test("an imported seed is stored, stale, and its first use checks it", arguments: [true, false])
    func firstUse(disk: Bool) async throws {
        try await withRig(disk: disk) { rig in
            let seed = try folder(rig)
            rig.origin.answers { _ in .headOnly(304, [("ETag", "\"e\""), ("Cache-Control", "max-age=6000")]) }
            let first = await rig.get(with(seed, rig.ask()))
            #expect(first.text == "seed")
            #expect(first.cache == "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated", "\(first.cache)")
            #expect(rig.origin.log.first?.fields.first(.ifNoneMatch) == "\"e\"")
            let second = await rig.get(with(seed, rig.ask()))
            #expect(second.cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.count == 1)
            // A purge is not undone by the folder.
            rig.core.housekeeping.invalidate(rig.key())
            rig.origin.answers { _ in .whole() }
            #expect(await rig.get(with(seed, rig.ask())).text == "hello")
        }
    }

    @Test("a changed origin replaces it; one that is down does not")
    func changedOrDown() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .down }
            let policy = CachePolicy(checkPause: 0)
            let stale = await rig.get(with(try folder(rig), rig.ask(policy: policy)))
            #expect(stale.text == "seed" && stale.cache.hasSuffix("detail=stale-if-error"), "\(stale.cache)")
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000"), ("ETag", "\"f\"")]) }
            #expect(await rig.get(policy: policy).text == "hello")
            #expect(await rig.settle())
            // Opened anew it does not come back: something newer is stored.
            let again = await rig.get(with(try folder(rig), rig.ask()))
            #expect(again.text == "hello" && again.cache.hasPrefix("hit"))
        }
    }

    @Test("what is stored is overwritten only by what is newer")
    func newer() async throws {
        try await withRig(disk: true) { rig in
            #expect(await rig.get().text == "hello")
            #expect(await rig.settle())
            let now = rig.clock.now()
            for (age, outcome) in [(Int64(-1000), SeedImport.kept), (Int64(1000), .imported)] {
                let date = ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(now + age)))
                let seed = try folder(rig, "seed\(age)", head: "{ \"stored_at\": \"\(date)\", \(Self.lasting) }")
                let copies = await seed.take(rig.key())
                #expect(copies.count == 1)
                for copy in copies {
                    #expect(await rig.core.seeds.adopt(copy, as: rig.key(), CachePolicy()) == outcome)
                }
                #expect(await seed.take(rig.key()).isEmpty)
            }
            let stale = await rig.get(rig.ask("/a", [("Cache-Control", "only-if-cached, max-stale")]))
            #expect(stale.text == "seed")
        }
    }

    @Test("library mode and an expiry of its own", arguments: [CacheMode.standard, .library])
    func lifetimes(_ mode: CacheMode) async throws {
        try await withRig(disk: true) { rig in
            let policy = CachePolicy(mode: mode)
            rig.origin.answers { _ in .headOnly(200, [("ETag", "\"e\"")]) }
            let got = await rig.get(with(try folder(rig), rig.ask(policy: policy)))
            #expect(got.text == "seed" && rig.origin.methods == "HEAD", "\(mode): \(rig.origin.methods)")
        }
        try await withRig(disk: true) { rig in
            let path = "old/\(try Self.dockerName(host + "/a"))"
            try rig.folder.write(path, "old")
            let dates: [String: Any] = [
                String(path.dropFirst(4)): Date(timeIntervalSince1970: Double(rig.clock.now() + 3600))
            ]
            let list = try PropertyListSerialization.data(fromPropertyList: dates, format: .binary, options: 0)
            try rig.folder.write("old/DownloadManagerExpirationDates.plist", Array(list))
            let seed = try SeedFolder(path: rig.folder.file("old"), layout: .hashed, mode: .imported, pool: rig.pool)
            let ask = with(seed, rig.ask(policy: CachePolicy(mode: mode)))
            let fresh = await rig.get(ask)
            #expect(fresh.text == "old" && fresh.cache.hasPrefix("hit; ttl=3600"), "\(fresh.cache)")
            rig.clock.advance(seconds: 3700)
            #expect(await rig.get(ask).text == "hello")
            #expect(rig.origin.count > 0)
        }
    }

    /// The name of a URL in the old layout, made by another program than the one under test.
    private static func dockerName(_ url: String) throws -> String {
        let parent = url.split(separator: "/").dropLast().joined(separator: "/")
        let sum = try Shell.run("/usr/bin/md5sum", [], input: Array(parent.utf8))
        return "\(sum.output.prefix(32))_\(url.split(separator: "/").last ?? "")"
    }

    @Test("what may not be stored is not imported", arguments: ["no-store", "private"])
    func refused(_ directive: String) async throws {
        try await withRig(disk: true) { rig in
            let seed = try folder(rig, head: "{ \"fields\": [[\"Cache-Control\", \"\(directive)\"]] }")
            #expect(await rig.get(with(seed, rig.ask())).text == "hello")
        }
    }

    @Test("a long body goes to the disk without coming into memory whole")
    func long() async throws {
        try await withRig(disk: true) { rig in
            let text = String(repeating: "0123456789", count: 100_000)
            let seed = try folder(rig, text: text)
            rig.origin.answers { _ in .headOnly(304, [("ETag", "\"e\"")]) }
            let got = await rig.get(with(seed, rig.ask()))
            #expect(got.text == text)
            #expect(rig.disk?.statistics.objects == 1 && rig.memory.statistics.objects == 0)
        }
    }

    @Test("the latest stored response is kept as a file")
    func storeAs() async throws {
        try await withRig(disk: true) { rig in
            var ask = rig.ask()
            ask.storeAs = "maps/world.json"
            let path = rig.folder.file("cache/files/maps/world.json")
            #expect(await rig.get(ask).text == "hello")
            #expect(await eventually { readText(path) == "hello" })
            // What fails or is no 200 leaves it alone, and so does a purge.
            rig.core.housekeeping.invalidate(rig.key())
            rig.origin.answers { _ in .whole(404, [("Cache-Control", "max-age=1")]) }
            _ = await rig.get(ask)
            #expect(await rig.settle())
            #expect(readText(path) == "hello")
            rig.core.housekeeping.invalidate(rig.key())
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000")], Array("second".utf8)) }
            _ = await rig.get(ask)
            #expect(await eventually { readText(path) == "second" })
            // Coded content is no use to who reads a file.
            let told = Told()
            rig.core.store.troubles.listen { told.add($0) }
            rig.core.housekeeping.invalidate(rig.key())
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000"), ("Content-Encoding", "gzip")]) }
            _ = await rig.get(ask)
            #expect(await eventually { told.texts.contains { $0.contains("Accept-Encoding: identity") } })
            #expect(readText(path) == "second")
        }
    }
}

/// What was told; any thread.
private final class Told: Sendable {
    private let state = Mutex<[String]>([])
    func add(_ text: String) { state.withLock { $0.append(text) } }
    var texts: [String] { state.withLock { $0 } }
}
