// What explain says: the decision that answering takes, where the responses are, and what is remembered about the key.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let fresh = ("Cache-Control", "max-age=6000")

@Suite(.timeLimit(.minutes(5)))
struct ExplainTests {
    @Test("nothing stored; stored in memory, on the disk, in both; and explaining asks nobody and moves nothing")
    func locations() async throws {
        try await withRig(disk: true) { rig in
            let nothing = await rig.explain(rig.ask())
            #expect(nothing.rules.variants.isEmpty && nothing.rules.reason == "uri-miss" && nothing.fills == 0)
            #expect(nothing.key == rig.key())
            _ = await rig.get()
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask()).locations == [.init(tiers: [.memory, .disk], isInvalidated: false)])
            rig.memory.removeAll()
            let onDisk = await rig.explain(rig.ask())
            #expect(onDisk.locations == [.init(tiers: [.disk], isInvalidated: false)])
            #expect(rig.memory.variants(rig.key()).isEmpty)
            #expect(onDisk.rules.variant?.lifetime == Lifetime(seconds: 6000, source: .maxAge))
            _ = await rig.get("/b", policy: CachePolicy(disk: false))
            #expect(await rig.explain(rig.ask("/b")).locations == [.init(tiers: [.memory], isInvalidated: false)])
            #expect(rig.origin.count == 2)
        }
    }

    @Test(
        "the decision is the one that answering takes, with the reason that Cache-Status prints",
        arguments: [
            ([], Int64(0), "hit; ttl=6000; detail=memory", "fresh"),
            ([], 6100, "fwd=stale; fwd-status=200; stored; detail=expired", "expired"),
            (
                [("Cache-Control", "no-cache")], 0, "fwd=request; fwd-status=200; stored; detail=request-no-cache",
                "request-no-cache"
            ),
            ([("Cache-Control", "max-stale")], 6100, "hit; ttl=-100; detail=max-stale", "max-stale"),
            ([("Accept-Language", "fr")], 0, "fwd=vary-miss; fwd-status=200; stored", "vary-miss"),
        ]
    )
    func same(_ wish: [(String, String)], _ later: Int64, _ cache: String, _ reason: String) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [fresh, ("Vary", "Accept-Language")]) }
            _ = await rig.get()
            rig.clock.advance(seconds: later)
            let explained = await rig.explain(rig.ask("/a", wish))
            #expect(explained.rules.reason == reason)
            #expect(!explained.rules.section.isEmpty)
            #expect(await rig.get("/a", wish).cache == cache)
        }
    }

    @Test("fills under way, keys that are remembered as uncacheable, and offline")
    func remembered() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "private")], head: head) }
            let task = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            #expect(await rig.explain(rig.ask()).fills == 1)
            head.open()
            _ = await task.value
            let after = await rig.explain(rig.ask())
            #expect(after.isRememberedAsUncacheable && after.fills == 0)
            rig.clock.advance(seconds: 121)
            rig.core.isOffline = true
            let later = await rig.explain(rig.ask())
            #expect(!later.isRememberedAsUncacheable && later.rules.isOffline && later.rules.check == nil)
        }
    }

    @Test(
        "why the last answer was not stored",
        arguments: [
            ([("Cache-Control", "no-store")], 200, "no-store", "RFC 9111 section 5.2.2.5"),
            ([("Cache-Control", "private")], 200, "private", "RFC 9111 section 5.2.2.7"),
            ([fresh, ("Vary", "*")], 200, "vary-star", "RFC 9111 section 4.1"),
            ([fresh], 429, "status-never-stored", ""),
        ]
    )
    func unstored(_ fields: [(String, String)], _ status: Int, _ reason: String, _ section: String) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(status, fields) }
            #expect(await rig.explain(rig.ask()).unstored == nil)
            let before = rig.clock.now()
            _ = await rig.get()
            let now = rig.clock.now()
            rig.clock.advance(seconds: 50)
            let unstored = try #require(await rig.explain(rig.ask()).unstored)
            #expect(unstored.reason == reason && (before...now).contains(unstored.time))
            #expect(section.isEmpty || unstored.section == section)
            #expect(await rig.explain(rig.ask("/b")).unstored == nil)
            // What is stored takes it back.
            rig.origin.answers { _ in .whole(200, [fresh]) }
            rig.clock.advance(seconds: 200)
            _ = await rig.get()
            #expect(await rig.settle())
            let stored = await rig.explain(rig.ask())
            #expect(stored.unstored == nil && stored.rules.variants.count == 1)
            let wish = await rig.explain(rig.ask("/c", [("Cache-Control", "no-store")]))
            #expect(wish.unstored?.reason == "request-no-store")
        }
    }

    @Test("bodies that no tier takes, that are cut, and fetches that fail are reasons, too")
    func unkept() async throws {
        try await withRig(memoryMaxObject: 1000) { rig in
            rig.origin.answers { _ in .whole(200, [fresh], [UInt8](repeating: 1, count: 2000)) }
            _ = await rig.get()
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask()).unstored?.reason == "too-large")
            rig.origin.answers { _ in .pieces([fresh], length: 100, [.bytes([1, 2]), .end(Fields())]) }
            _ = await rig.get("/b")
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask("/b")).unstored?.reason == "cut")
        }
    }

    @Test("how long a failed check is not made again")
    func pause() async throws {
        try await withRig { rig in
            _ = await rig.get()
            #expect(await rig.explain(rig.ask()).checkPause == nil)
            rig.clock.advance(seconds: 7000)
            rig.origin.answers { _ in .whole(503, []) }
            _ = await rig.get()
            let until = try #require(await rig.explain(rig.ask()).checkPause)
            #expect((1...30).contains(until - rig.clock.now()))
            rig.clock.advance(seconds: 31)
            #expect(await rig.explain(rig.ask()).checkPause == nil)
        }
    }

    @Test("what a placeholder and a fallback would do")
    func standing() async throws {
        try await withRig { rig in
            let file = { (path: String) in
                SubstituteResponse(path: path, status: 202, bytes: [1], contentType: "image/png")
            }
            let phases = PhasePlan(placeholder: file("/p.png"), placeholderDelay: 250_000_000, fallback: file("/f.png"))
            var ask = rig.ask()
            ask.phases = phases
            let nothing = await rig.explain(ask)
            let waits = try #require(nothing.placeholder)
            #expect(
                waits.path == "/p.png" && waits.status == 202 && waits.placeholderDelay == 250_000_000
                    && waits.mayAnswer
            )
            let fails = try #require(nothing.fallback)
            #expect(fails.path == "/f.png" && fails.status == 202 && fails.placeholderDelay == 0 && fails.mayAnswer)
            #expect(await rig.explain(rig.ask()).placeholder == nil)
            var reload = rig.ask("/a", [("Cache-Control", "no-cache")])
            reload.phases = phases
            let reloaded = await rig.explain(reload)
            #expect(reloaded.placeholder?.mayAnswer == false && reloaded.fallback?.mayAnswer == true)
            _ = await rig.get()
            let stored = await rig.explain(ask)
            #expect(stored.placeholder?.mayAnswer == false && stored.fallback?.mayAnswer == false)
            rig.clock.advance(seconds: 7000)
            let stale = await rig.explain(ask)
            #expect(stale.placeholder?.mayAnswer == false && stale.fallback?.mayAnswer == true)
        }
    }

    @Test("what a check would send, and by which method, as the origin's habits have it")
    func check() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                asked.method == .head ? .headOnly(405, []) : .whole(200, [fresh, ("ETag", "\"1\"")])
            }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            let before = await rig.explain(rig.ask())
            #expect(before.rules.check?.kind == .head && before.capabilities.head == .unknown)
            #expect(before.rules.check?.conditions.first(.ifNoneMatch) == "\"1\"")
            _ = await rig.get()
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask()).capabilities.head == .refused)
            rig.clock.advance(seconds: 6100)
            let after = await rig.explain(rig.ask())
            #expect(after.rules.check?.kind == .head && after.capabilities.head == .unknown)
        }
    }

    @Test("a response whose group was invalidated is shown as that, and decides nothing")
    func invalidated() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, [fresh, ("Cache-Groups", "\"g\"")]) }
            _ = await rig.get()
            #expect(await rig.settle())
            await rig.core.housekeeping.invalidate([], [.group("g", of: rig.key())])
            let explained = await rig.explain(rig.ask())
            #expect(explained.locations == [.init(tiers: [.memory, .disk], isInvalidated: true)])
            #expect(explained.rules.chosen == nil && explained.rules.variants.first?.groups == ["g"])
            #expect(explained.rules.decision == nil)
        }
    }
}
