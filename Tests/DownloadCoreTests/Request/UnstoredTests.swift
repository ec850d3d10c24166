// What cannot be stored does not say `stored`; where that shows after the head only, the log and `explain` say it.

import CacheStore
import Content
import DiskStore
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite(.timeLimit(.minutes(5)))
struct UnstoredTests {
    private static let fresh = [("Cache-Control", "max-age=6000")]

    /// Files can neither be made nor moved: a plain file stands in the place of the folder of the temporaries.
    private func breakDisk(_ rig: Rig) throws {
        let path = rig.folder.file("cache/tmp")
        _ = try Shell.must("sh", ["-c", "rm -rf '\(path)' && : > '\(path)'"])
    }

    private func mendDisk(_ rig: Rig) throws {
        let path = rig.folder.file("cache/tmp")
        _ = try Shell.must("sh", ["-c", "rm '\(path)' && mkdir '\(path)'"])
    }

    @Test("what the disk cannot write is not said to be stored again, and explain says why", arguments: [5, 400_000])
    func diskFails(_ size: Int) async throws {
        try await withRig(disk: true, memoryMaxObject: 300_000) { rig in
            let policy = CachePolicy(memory: false)
            rig.origin.answers { _ in .whole(200, Self.fresh, Pattern.bytes(0..<size)) }
            try breakDisk(rig)
            // Nobody knows before it is tried.
            #expect(await rig.get("/a", policy: policy).cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask("/a", policy: policy)).unstored?.reason == "disk-fails")
            #expect(rig.core.counts.unstored == 1 && rig.reports.isEmpty, "the disk tells it")
            for path in ["/a", "/b"] {
                let got = await rig.get(path, policy: policy)
                #expect(got.cache == "fwd=uri-miss; fwd-status=200; detail=disk-fails" && got.body?.count == size)
            }
            // Memory takes it: then it is stored.
            if size == 5 { #expect(await rig.get("/c").cache == "fwd=uri-miss; fwd-status=200; stored") }
            #expect(await rig.settle())
            try mendDisk(rig)
            let now = rig.clock.now()
            let head = StoredHead(
                status: 200,
                reason: "OK",
                fields: Fields(Self.fresh),
                requestTime: now,
                responseTime: now,
                validatedAt: now,
                initialAge: 0,
                varyFields: Fields(),
                varyNames: [],
                bodyLength: 1,
                requestMethod: .get,
                hadAuthorization: false
            )
            _ = try await rig.disk?.commit(.complete([1]), key: rig.key("/other"), head: head)
            #expect(await rig.get("/a", policy: policy).cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask("/a", policy: policy)).unstored == nil)
            #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=6000; detail=disk")
        }
    }

    @Test(
        "a folder that was removed is made again for the next response: it is stored, as it says",
        arguments: [5, 400_000]
    )
    func removed(_ size: Int) async throws {
        try await withRig(disk: true, memoryMaxObject: 300_000) { rig in
            let policy = CachePolicy(memory: false)
            rig.origin.answers { _ in .whole(200, Self.fresh, Pattern.bytes(0..<size)) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            _ = try Shell.must("sh", ["-c", "rm -rf '\(rig.folder.file("cache"))'/*"])
            for path in ["/a", "/b"] {
                #expect(await rig.get(path, policy: policy).cache == "fwd=uri-miss; fwd-status=200; stored")
                #expect(await rig.settle())
                let got = await rig.get(path, policy: policy)
                #expect(got.cache == "hit; ttl=6000; detail=disk" && got.body?.count == size)
            }
        }
    }

    @Test("a body that is cut is told, and explained, until one comes whole", arguments: [true, false])
    func cut(_ hasDisk: Bool) async throws {
        try await withRig(disk: hasDisk) { rig in
            let cut = FetchError.upstream(UpstreamError(.truncated, detail: "cut"))
            rig.origin.answers { _ in .pieces(length: 100_000, [.bytes(Pattern.bytes(0..<50_000)), .fail(cut)]) }
            for _ in 0..<3 {
                let got = await rig.get()
                #expect(got.cache == "fwd=uri-miss; fwd-status=200; stored" && got.error != nil)
            }
            #expect(await rig.settle())
            let explained = await rig.explain(rig.ask())
            #expect(explained.unstored?.reason == "cut" && (explained.unstored?.time ?? 0) > rig.clock.now() - 100)
            #expect(rig.core.counts.unstored == 3)
            #expect(rig.reports.count == 1, "\(rig.reports)")
            #expect(rig.reports.first?.contains("\(host)/a of service s was answered and not stored (cut)") == true)
            #expect(await rig.explain(rig.ask("/b")).unstored == nil)
            rig.origin.answers { _ in .whole(200, Self.fresh) }
            #expect(await rig.get().text == "hello")
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask()).unstored == nil)
        }
    }

    @Test("what is told of a response names no key of a configuration: a program that uses the library has none")
    func namesNoKeys() {
        let key = CacheKey(service: "s", url: host + "/a")
        let reports: [CoreEvent] =
            UnstoredReason.allCases.map { .unstored(key, $0) }
            + [.unexpected(key, .image, found: "is empty"), .abandoned(key, received: 5), .unproven(key)]
        for report in reports {
            let text = report.text.split(separator: " ").filter { $0 != "close_notify," && $0 != "close_notify" }
            #expect(!text.contains { $0.contains("_") || $0.contains("cache.") || $0.contains("response.") }, "\(text)")
        }
    }

    @Test("a body of unknown length that turns out too long or too short is explained", arguments: [true, false])
    func length(_ isLong: Bool) async throws {
        try await withRig(memoryMaxObject: 100_000) { rig in
            var policy = CachePolicy()
            policy.minLength = isLong ? 0 : 10
            let body = [UInt8](repeating: 1, count: isLong ? 300_000 : 5)
            rig.origin.answers { _ in .pieces(length: nil, [.bytes(body), .end(Fields())]) }
            let got = await rig.get("/a", policy: policy)
            #expect(got.cache == "fwd=uri-miss; fwd-status=200; stored" && got.body == body)
            #expect(await rig.settle())
            let reason = await rig.explain(rig.ask("/a", policy: policy)).unstored?.reason
            #expect(reason == (isLong ? "too-large" : "too-short"))
            #expect(rig.reports.count == 1)
        }
    }
}
