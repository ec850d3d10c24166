// Pinned seeds in the order of search: before memory, disk and origin, whatever those have.

import CacheStore
import DownloadCore
import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SeedTests {
    /// A folder with one seed for `/a`, whose head has validators.
    private func seed(_ rig: Rig) throws -> SeedFolder {
        let folder = rig.folder.file("seed")
        let directory = "\(folder)/origin.test"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try Data("0123456789".utf8).write(to: URL(fileURLWithPath: "\(directory)/a"))
        let head = "{ \"fields\": [[\"ETag\", \"\\\"e\\\"\"], [\"Cache-Control\", \"no-store, max-age=1\"]] }"
        try Data(head.utf8).write(to: URL(fileURLWithPath: "\(directory)/a.head.json"))
        return try SeedFolder(path: folder, pool: rig.pool)
    }

    private func with(_ seed: SeedFolder, _ ask: CacheRequest) -> CacheRequest {
        var ask = ask
        ask.seed = seed
        return ask
    }

    @Test("a pinned seed is looked at first, in every mode, and never replaced or checked")
    func first() async throws {
        try await withRig(disk: true) { rig in
            #expect(await rig.get().text == "hello")
            #expect(await rig.settle())
            let seed = try seed(rig)
            for mode in [CacheMode.standard, .none] {
                rig.clock.advance(seconds: 100_000)
                let got = await rig.get(with(seed, rig.ask(policy: CachePolicy(mode: mode))))
                #expect(got.status == 200 && got.text == "0123456789" && got.length == 10)
                #expect(got.cache == "hit; detail=seed")
                #expect(got.age.map { $0 >= 100_000 } == true)
            }
            #expect(rig.origin.count == 1 && rig.core.seeds.answerCount == 2)
            // What has no seed goes on as ever.
            let other = await rig.get(with(seed, rig.ask("/b")))
            #expect(other.cache == "fwd=uri-miss; fwd-status=200; stored")
            // It has not taken the place of what is stored.
            rig.clock.reset()
            #expect(await rig.get().text == "hello")
            #expect(rig.core.memory.statistics.objects == 2)
        }
    }

    @Test("HEAD, conditions and ranges are answered from a seed")
    func parts() async throws {
        try await withRig { rig in
            let seed = try seed(rig)
            let head = await rig.get(with(seed, rig.ask(method: .head)))
            #expect(head.status == 200 && head.body == nil && head.length == 10 && head.cache == "hit; detail=seed")
            let matching = await rig.get(with(seed, rig.ask("/a", [("If-None-Match", "\"e\"")])))
            #expect(matching.status == 304 && matching.cache == "hit; detail=seed")
            let part = await rig.get(with(seed, rig.ask("/a", [("Range", "bytes=2-4"), ("If-Range", "\"e\"")])))
            #expect(part.status == 206 && part.text == "234")
            #expect(part.fields.first(.contentRange) == "bytes 2-4/10")
            let outside = await rig.get(with(seed, rig.ask("/a", [("Range", "bytes=20-")])))
            #expect(outside.status == 416)
            let cached = await rig.get(with(seed, rig.ask("/a", [("Cache-Control", "only-if-cached")])))
            #expect(cached.text == "0123456789")
            #expect(rig.origin.count == 0)
        }
    }

    @Test("no-cache passes a seed by, stores what comes, and leaves the seed in its place")
    func force() async throws {
        try await withRig { rig in
            let seed = try seed(rig)
            for field in [("Cache-Control", "no-cache"), ("Pragma", "no-cache")] {
                let got = await rig.get(with(seed, rig.ask("/a", [field])))
                #expect(got.text == "hello" && got.cache.contains("; stored"), "\(got.cache)")
            }
            #expect(rig.origin.count == 2)
            #expect(await rig.get(with(seed, rig.ask())).text == "0123456789")
            // The hot path looks at no seed.
            #expect(rig.memory.peek(rig.key()).map { $0.hot == nil } == [true])
            #expect(await rig.get(rig.ask(headFormatID: 2)).text == "hello")
            #expect(rig.memory.peek(rig.key()).map { $0.hot == nil } == [false])
            rig.core.isOffline = true
            #expect(await rig.get(with(seed, rig.ask("/a", [("Cache-Control", "no-cache")]))).text == "0123456789")
            #expect(rig.origin.count == 2)
        }
    }

    @Test("a seed that cannot be read any more counts as absent")
    func lost() async throws {
        try await withRig { rig in
            let seed = try seed(rig)
            try FileManager.default.removeItem(atPath: rig.folder.file("seed/origin.test/a"))
            #expect(await rig.get(with(seed, rig.ask())).text == "hello")
        }
    }
}
