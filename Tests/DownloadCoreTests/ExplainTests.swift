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
    func places() async throws {
        try await withRig(disk: true) { rig in
            let nothing = await rig.explain(rig.ask())
            #expect(nothing.rules.variants.isEmpty && nothing.rules.reason == "uri-miss" && nothing.fills == 0)
            #expect(nothing.key == rig.key())
            _ = await rig.get()
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask()).places == [.init(tiers: [.memory, .disk], isInvalidated: false)])
            rig.memory.removeAll()
            let onDisk = await rig.explain(rig.ask())
            #expect(onDisk.places == [.init(tiers: [.disk], isInvalidated: false)])
            #expect(rig.memory.variants(rig.key()).isEmpty)
            #expect(onDisk.rules.variant?.lifetime == Lifetime(seconds: 6000, source: .maxAge))
            _ = await rig.get("/b", policy: CachePolicy(disk: false))
            #expect(await rig.explain(rig.ask("/b")).places == [.init(tiers: [.memory], isInvalidated: false)])
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

    @Test("what a check would send, and by which method, as the origin's habits have it")
    func check() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                asked.method == .head ? .headOnly(405, []) : .whole(200, [fresh, ("ETag", "\"1\"")])
            }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            let before = await rig.explain(rig.ask())
            #expect(before.rules.check?.kind == .head && before.habits.head == .unknown)
            #expect(before.rules.check?.conditions.first(.ifNoneMatch) == "\"1\"")
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            let after = await rig.explain(rig.ask())
            #expect(after.rules.check?.kind == .conditional && after.habits.head == .refused)
        }
    }

    @Test("a response whose group was invalidated is shown as that, and decides nothing")
    func invalidated() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, [fresh, ("Cache-Groups", "\"g\"")]) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.core.invalidate([.group("g", of: rig.key())])
            let explained = await rig.explain(rig.ask())
            #expect(explained.places == [.init(tiers: [.memory, .disk], isInvalidated: true)])
            #expect(explained.rules.chosen == nil && explained.rules.variants.first?.groups == ["g"])
            #expect(explained.rules.decision == nil)
        }
    }
}
