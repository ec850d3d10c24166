// The disk under the core: found after memory is emptied, promoted, freshened in place, and never the loser of a race.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let tagged = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]

@Suite(.timeLimit(.minutes(5)))
struct DiskTests {
    @Test(
        "a hit from the disk once memory is empty; a small body is promoted, a large one is not",
        arguments: [
            (5, true), (256 * 1024, true), (256 * 1024 + 1, false), (2_000_000, false),
        ]
    )
    func promotion(_ size: Int, _ isPromoted: Bool) async throws {
        try await withRig(disk: true) { rig in
            let bytes = Pattern.bytes(0..<size)
            rig.origin.answers { _ in .whole(200, tagged, bytes) }
            #expect(await rig.get().body == bytes)
            #expect(await rig.settle())
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            rig.memory.removeAll()
            let loaded = await rig.get()
            #expect(loaded.body == bytes && loaded.cache == "hit; ttl=6000; detail=disk")
            #expect(await rig.get().cache == "hit; ttl=6000; detail=\(isPromoted ? "memory" : "disk")")
            #expect(rig.origin.count == 1)
        }
    }

    @Test(
        "freshening reaches the file, wherever the stored response came from",
        arguments: [
            (5, false), (5, true), (2_000_000, true),
        ]
    )
    func freshening(_ size: Int, _ fromDisk: Bool) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers {
                $0.method == .head
                    ? .headOnly(200, tagged + [("X-New", "1")]) : .whole(200, tagged, Pattern.bytes(0..<size))
            }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            if fromDisk { rig.memory.removeAll() }
            #expect(await rig.get().cache.hasSuffix("detail=revalidated"))
            rig.memory.removeAll()
            let got = await rig.get()
            #expect(got.cache == "hit; ttl=6000; detail=disk" && got.fields.first("X-New") == "1")
            #expect(got.body?.count == size)
            #expect(rig.origin.methods == "GET HEAD")
        }
    }

    @Test("a response that is in memory only, its file gone, is freshened in memory")
    func memoryOnly() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(304, tagged) : .whole(200, tagged) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.disk?.remove(rig.key())
            rig.clock.advance(seconds: 6100)
            #expect(await rig.get().cache.hasSuffix("detail=revalidated"))
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            #expect(rig.disk?.lookup(rig.key()).isEmpty == true)
        }
    }

    @Test("a check whose answer forbids storing removes that variant from both tiers, and no other")
    func takenBack() async throws {
        try await withRig(disk: true) { rig in
            let vary = ("Vary", "Accept-Language")
            rig.origin.answers { asked in
                asked.method == .head
                    ? .headOnly(200, [("Cache-Control", "private"), ("ETag", "\"1\""), vary])
                    : .whole(200, tagged + [vary])
            }
            for language in ["en", "fr"] { _ = await rig.get("/a", [("Accept-Language", language)]) }
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            #expect(await rig.get("/a", [("Accept-Language", "en")]).text == "hello")
            #expect(rig.memory.variants(rig.key()).count == 1)
            #expect(await eventually { rig.disk?.lookup(rig.key()).count == 1 })
        }
    }

    @Test("variants come back from the disk, each to its own request")
    func variants() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { asked in
                let language = asked.fields.first(.acceptLanguage) ?? "-"
                return .whole(
                    200,
                    [("Cache-Control", "max-age=6000"), ("Vary", "Accept-Language")],
                    Array(language.utf8)
                )
            }
            for language in ["en", "fr"] { _ = await rig.get("/a", [("Accept-Language", language)]) }
            #expect(await rig.settle())
            rig.memory.removeAll()
            for language in ["fr", "en"] {
                let got = await rig.get("/a", [("Accept-Language", language)])
                #expect(got.text == language && got.cache == "hit; ttl=6000; detail=disk")
            }
            #expect(await rig.get("/a", [("Accept-Language", "de")]).cache == "fwd=vary-miss; fwd-status=200; stored")
        }
    }

    /// Bodies that nobody has asked for are neither read nor verified: damage in them would show.
    @Test(
        "a hit among many variants opens the heads of all of them, and the body of one",
        arguments: [(32, 500), (5, 300_000)]
    )
    func manyVariants(_ count: Int, _ size: Int) async throws {
        try await withRig(disk: true) { rig in
            let vary = [("Cache-Control", "max-age=6000"), ("Vary", "Accept-Language")]
            rig.origin.answers { asked in
                let language = asked.fields.first(.acceptLanguage) ?? "-"
                let text = Array("\(language):".utf8)
                return .whole(200, vary, text + [UInt8](repeating: 7, count: size - text.count))
            }
            for number in 0..<count { _ = await rig.get("/a", [("Accept-Language", "l\(number)")]) }
            #expect(await rig.settle())
            let files = try Shell.must("find", [rig.folder.file("cache/objects"), "-type", "f"]).split(separator: "\n")
            #expect(files.count == count)
            for file in files {
                let bytes = try readBytes(String(file))
                guard !bytes[4096...].starts(with: "l3:".utf8) else { continue }
                let descriptor = open(String(file), O_WRONLY)
                #expect(pwrite(descriptor, [UInt8(8)], 1, off_t(4096 + size - 1)) == 1)
                close(descriptor)
            }
            rig.memory.removeAll()
            let used = rig.disk?.statistics.hits ?? 0
            for _ in 0..<2 {
                let got = await rig.get("/a", [("Accept-Language", "l3")])
                #expect(got.cache.hasPrefix("hit; ttl=6000; detail=") && got.body?.count == size)
                #expect(got.text?.hasPrefix("l3:") == true)
                #expect(rig.disk?.statistics.damaged == 0 && rig.disk?.lookup(rig.key()).count == count)
            }
            #expect((rig.disk?.statistics.hits ?? 0) - used <= 2, "the others were not used")
            // A selected body that is damaged is a miss.
            let other = await rig.get("/a", [("Accept-Language", "l4")])
            #expect(other.cache == "fwd=vary-miss; fwd-status=200; stored" && other.text?.hasPrefix("l4:") == true)
            #expect((rig.disk?.statistics.damaged ?? 0) > 0)
        }
    }

    @Test("a damaged file is a plain miss, and is fetched again")
    func damaged() async throws {
        try await withRig(disk: true) { rig in
            _ = await rig.get()
            #expect(await rig.settle())
            rig.memory.removeAll()
            let command = "find '\(rig.folder.path)' -type f -path '*objects*' -exec truncate -s 10 {} + -print"
            let damaged = try Shell.must("sh", ["-c", command])
            #expect(damaged.split(separator: "\n").count == 1)
            #expect(await rig.get().cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            rig.memory.removeAll()
            #expect(await rig.get().cache == "hit; ttl=6000; detail=disk")
        }
    }

    @Test("a body longer than the disk takes is answered whole, and kept nowhere")
    func tooLarge() async throws {
        try await withRig(disk: true) { rig in
            let size = (64 << 20) + 1
            rig.origin.answers { _ in
                let part = Reply.Step.bytes([UInt8](repeating: 9, count: 1 << 20))
                return .pieces(length: size, Array(repeating: part, count: 64) + [.bytes([9]), .end(Fields())])
            }
            let got = await rig.get()
            #expect(got.body?.count == size && got.error == nil)
            #expect(got.cache == "fwd=uri-miss; fwd-status=200; detail=too-large")
            #expect(await rig.settle())
            #expect(rig.disk?.lookup(rig.key()).isEmpty == true)
        }
    }

    @Test("invalidations in the middle of everything: what is stored afterwards was asked for afterwards")
    func racing() async throws {
        try await withRig(loops: 2, disk: true) { rig in
            // The body says how many invalidations the origin had seen when it was asked.
            let changes = Counter()
            rig.origin.answers { _ in .whole(200, tagged, Array("\(changes.value)".utf8)) }
            for round in 0..<60 {
                var tasks: [Task<Got, Never>] = []
                for number in 0..<4 { tasks.append(await rig.start(rig.ask(), loop: number % 2)) }
                if round % 3 == 0 { rig.memory.removeAll() }
                changes.add()
                rig.core.housekeeping.invalidate(rig.key())
                let after = await rig.get(rig.ask(), loop: round % 2)
                #expect(after.text == "\(changes.value)")
                for task in tasks { _ = await task.value }
                #expect(await rig.get().text == "\(changes.value)")
            }
        }
    }
}
