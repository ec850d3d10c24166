// Two stores over one tier that is slow or fails: neither answers what the other has invalidated,
// and nothing later is undone.

import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

private let tagged = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\""), ("Cache-Tag", "page")]

/// Whose clock is an hour ahead.
private enum Skew: CaseIterable { case none, first, second }

/// Two stores in front of one server.
private struct Pair {
    let server: SharedServer
    let (a, b): (Rig, Rig)
    let (tierA, tierB): (SharedTier, SharedTier)

    /// Both origins answer with these bytes.
    func answer(_ text: String, _ fields: [(String, String)] = tagged) {
        for rig in [a, b] { rig.origin.answers { _ in .whole(200, fields, Array(text.utf8)) } }
    }

    func settle() async {
        #expect(await a.settle())
        #expect(await b.settle())
    }
}

private func withPair(
    _ skew: Skew = .none,
    disk: Bool = false,
    hearsNews: Bool = true,
    _ test: (Pair) async throws -> Void
) async throws {
    let server = SharedServer()
    let tiers = (SharedTier(server, hearsNews: hearsNews), SharedTier(server, hearsNews: hearsNews))
    try await withRig(disk: disk, shared: [tiers.0]) { a in
        try await withRig(disk: disk, shared: [tiers.1]) { b in
            let ahead = a.core.invalidations.nextNumber() + 3_600_000_000_000
            if skew == .first { a.core.invalidations.advance(past: ahead) }
            if skew == .second { b.core.invalidations.advance(past: ahead) }
            try await test(Pair(server: server, a: a, b: b, tierA: tiers.0, tierB: tiers.1))
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct SharedTierTests {
    @Test("what one store has fetched answers through the other, and comes into its memory", arguments: Skew.allCases)
    fileprivate func found(_ skew: Skew) async throws {
        try await withPair(skew) { pair in
            pair.answer("hello")
            _ = await pair.a.get()
            await pair.settle()
            let got = await pair.b.get()
            #expect(got.text == "hello" && got.cache == "hit; ttl=6000; detail=shared")
            #expect(await pair.b.get().cache == "hit; ttl=6000; detail=memory")
            #expect(pair.b.origin.count == 0)
        }
    }

    @Test("several variants: the one that the request selects", arguments: [false, true])
    func variants(_ hasDisk: Bool) async throws {
        try await withPair(disk: hasDisk) { pair in
            pair.a.origin.answers { asked in
                .whole(200, tagged + [("Vary", "A")], Array((asked.fields.first("A") ?? "").utf8))
            }
            for value in ["1", "2", "3"] { _ = await pair.a.get("/a", [("A", value)]) }
            await pair.settle()
            for value in ["2", "3", "1"] {
                let got = await pair.b.get("/a", [("A", value)])
                #expect(got.text == value && got.cache == "hit; ttl=6000; detail=shared")
            }
            #expect(pair.b.origin.count == 0)
        }
    }

    @Test("a variant that is stored behind memory late does not come back when what has replaced it goes")
    func replacedWhileBeingStored() async throws {
        try await withPair { pair in
            let gate = Valve()
            pair.tierA.commitGate = gate
            pair.answer("old", tagged + [("Vary", "A")])
            #expect(await pair.a.get("/a", [("A", "1")]).text == "old")
            #expect(await eventually { gate.isAwaited })
            pair.tierA.commitGate = nil
            pair.answer("new")
            #expect(await pair.a.get("/a", [("A", "1"), ("Cache-Control", "no-cache")]).text == "new")
            #expect(await eventually { pair.server.bodies(pair.a.key("/a")) == ["new"] })
            gate.open()
            await pair.settle()
            #expect(pair.server.bodies(pair.a.key("/a")) == ["new"])
        }
    }

    @Test("an invalidation through one store is not answered by the other", arguments: Skew.allCases, [0, 1, 2])
    fileprivate func invalidation(_ skew: Skew, _ kind: Int) async throws {
        try await withPair(skew) { pair in
            pair.answer("old")
            _ = await pair.a.get()
            await pair.settle()
            #expect(await pair.b.get().text == "old")
            pair.answer("new")
            let key = pair.a.key()
            switch kind {
            case 0: pair.a.core.housekeeping.invalidate(key)
            case 1: await pair.a.core.housekeeping.invalidate([key])
            default: _ = try await pair.a.core.housekeeping.purge([PurgeRule(.tag("page"))], on: pair.a.pool)
            }
            #expect(pair.server.bodies(key).isEmpty)
            #expect(await pair.b.get().text == "new", "neither from the tier nor from memory, which has been told")
            #expect(await pair.a.get().text == "new")
        }
    }

    @Test(
        "what was asked for before an invalidation through the other store is not stored after it",
        arguments: Skew.allCases,
        [0, 1, 2]
    )
    fileprivate func lateCommit(_ skew: Skew, _ kind: Int) async throws {
        try await withPair(skew, hearsNews: false) { pair in
            let tail = Valve()
            pair.b.origin.answers { _ in
                .halting(Array("old".utf8), after: 1, tail, fields: tagged)
            }
            let slow = await pair.b.start(pair.b.ask())
            #expect(await eventually { pair.b.origin.count == 1 })
            let key = pair.a.key()
            switch kind {
            case 0: pair.a.core.housekeeping.invalidate(key)
            case 1: await pair.a.core.housekeeping.invalidate([key])
            default: _ = try await pair.a.core.housekeeping.purge([PurgeRule(.tag("page"))], on: pair.a.pool)
            }
            tail.open()
            #expect(await slow.value.text == "old", "who asked before may have it")
            await pair.settle()
            #expect(pair.server.bodies(key).isEmpty)
            pair.answer("new")
            #expect(await pair.a.get().text == "new")
            await pair.settle()
            #expect(await pair.b.get().text == "new", "it is not in memory, either")
            #expect(pair.b.origin.count == 1, "the other store has fetched it")
        }
    }

    @Test(
        "a fetch that began earlier does not replace what a later one has stored",
        arguments: Skew.allCases,
        [false, true]
    )
    fileprivate func overtaking(_ skew: Skew, _ hasDisk: Bool) async throws {
        try await withPair(skew, disk: hasDisk) { pair in
            let tail = Valve()
            pair.a.origin.answers { _ in
                .halting(Array("old".utf8), after: 1, tail, fields: tagged)
            }
            let slow = await pair.a.start(pair.a.ask())
            #expect(await eventually { pair.a.origin.count == 1 })
            pair.b.origin.answers { _ in .whole(200, tagged, Array("new".utf8)) }
            _ = await pair.b.get()
            #expect(await pair.b.settle())
            tail.open()
            #expect(await slow.value.text == "old")
            await pair.settle()
            #expect(pair.server.bodies(pair.a.key()) == ["new"])
            #expect(await pair.a.get().text == "new", "what was overtaken is in no tier of its store")
            #expect(pair.a.origin.count == 1)
            // And the other way round: who began later replaces what is there.
            pair.answer("newest")
            _ = await pair.a.get("/a", [("Cache-Control", "no-cache")])
            await pair.settle()
            #expect(pair.server.bodies(pair.a.key()) == ["newest"])
        }
    }

    @Test(
        "a check that one store makes is known to the other; one that ends late undoes nothing",
        arguments: Skew.allCases
    )
    fileprivate func freshening(_ skew: Skew) async throws {
        try await withPair(skew, hearsNews: false) { pair in
            pair.answer("old")
            _ = await pair.a.get()
            await pair.settle()
            for rig in [pair.a, pair.b] { rig.clock.advance(seconds: 6100) }
            pair.a.origin.answers { _ in .headOnly(304, tagged + [("X-New", "1")]) }
            #expect(await pair.a.get().cache.hasSuffix("detail=revalidated"))
            let got = await pair.b.get()
            #expect(
                got.text == "old" && got.fields.first("X-New") == "1" && got.cache == "hit; ttl=6000; detail=shared"
            )
            for rig in [pair.a, pair.b] { rig.clock.advance(seconds: 6100) }
            let late = Valve()
            pair.a.origin.answers { _ in Reply(steps: [.valve(late)] + Reply.headOnly(304, tagged).steps) }
            let check = await pair.a.start(pair.a.ask())
            #expect(await eventually { pair.a.origin.count == 3 })
            pair.b.origin.answers { _ in .whole(200, tagged, Array("new".utf8)) }
            #expect(await pair.b.get("/a", [("Cache-Control", "no-cache")]).text == "new")
            #expect(await pair.b.settle())
            late.open()
            #expect(await check.value.text == "old", "what the origin has just called current")
            await pair.settle()
            #expect(pair.server.bodies(pair.a.key()) == ["new"])
            #expect(await pair.a.get().text == "new", "the one that was checked has left its store")
        }
    }

    @Test("a slow tier costs its time; what is invalidated while it is asked is not answered with")
    func slow() async throws {
        try await withPair { pair in
            pair.answer("old")
            _ = await pair.a.get()
            await pair.settle()
            let gate = Valve()
            pair.tierB.findGate = gate
            let waiting = await pair.b.start(pair.b.ask())
            // The server has answered, and its answer is on its way.
            #expect(await eventually { pair.server.state.withLock { $0.moment } >= 3 })
            pair.answer("new")
            pair.b.core.housekeeping.invalidate(pair.b.key())
            gate.open()
            #expect(await waiting.value.text == "new")
            await pair.settle()
            #expect(pair.server.bodies(pair.b.key()) == ["new"])
            #expect(await pair.b.get().cache == "hit; ttl=6000; detail=memory")
        }
    }

    @Test("memory answers without the tier, however slow that is")
    func memoryFirst() async throws {
        try await withPair { pair in
            pair.answer("hello")
            _ = await pair.a.get()
            await pair.settle()
            pair.tierA.findGate = Valve()
            #expect(await pair.a.get().cache == "hit; ttl=6000; detail=memory")
        }
    }

    @Test("what memory has is judged again where another tier was asked meanwhile")
    func memoryAfterAWait() async throws {
        let tier = SharedTier(SharedServer())
        try await withRig(disk: true, shared: [tier], memoryMaxObject: 100) { rig in
            rig.origin.answers { asked in
                let body = asked.fields.first("A") == "long" ? [UInt8](repeating: 97, count: 1000) : Array("old".utf8)
                return .whole(200, tagged + [("Vary", "A")], body)
            }
            for value in ["short", "long"] {
                _ = await rig.get("/a", [("A", value)])
                #expect(await rig.settle())
            }
            // The long one came later and is not in memory: the tiers are asked for what the request selects.
            let before = tier.server.state.withLock { $0.moment }
            let gate = Valve()
            tier.findGate = gate
            let waiting = await rig.start(rig.ask("/a", [("A", "short")]))
            #expect(await eventually { tier.server.state.withLock { $0.moment } > before })
            rig.origin.answers { _ in .whole(200, tagged, Array("new".utf8)) }
            rig.core.housekeeping.invalidate(rig.key())
            gate.open()
            let got = await waiting.value
            #expect(got.text == "new", "\(got)")
        }
    }

    @Test(
        "a tier that fails costs a miss: everything is answered, and stored where it can be",
        arguments: [false, true]
    )
    func failing(_ hasDisk: Bool) async throws {
        try await withPair(disk: hasDisk) { pair in
            pair.tierA.isDown = true
            pair.answer("hello")
            #expect(await pair.a.get().text == "hello")
            await pair.settle()
            #expect(await pair.a.get().cache == "hit; ttl=6000; detail=memory")
            #expect(pair.server.bodies(pair.a.key()).isEmpty)
            pair.a.memory.removeAll()
            #expect(await pair.a.get().text == "hello")
            #expect(pair.a.origin.count == (hasDisk ? 1 : 2))
            await pair.settle()
            #expect(pair.a.reports.isEmpty)
        }
    }

    @Test("a body that cannot be had, or is damaged, is a miss")
    func lost() async throws {
        try await withPair { pair in
            pair.answer("hello")
            _ = await pair.a.get()
            await pair.settle()
            pair.tierB.losesBodies = true
            #expect(await pair.b.get(policy: CachePolicy(memory: false)).text == "hello")
            #expect(pair.b.origin.count == 1)
            await pair.settle()
            pair.tierB.losesBodies = false
            pair.server.damage()
            #expect(await pair.b.get(policy: CachePolicy(memory: false)).text == "hello")
            #expect(pair.b.origin.count == 2)
            await pair.settle()
        }
    }

    @Test("what could not be removed while the tier was out of reach is removed before it answers again")
    func owed() async throws {
        try await withPair(hearsNews: false) { pair in
            pair.answer("old")
            _ = await pair.a.get()
            await pair.settle()
            pair.tierA.isDown = true
            pair.a.core.housekeeping.invalidate(pair.a.key())
            pair.tierA.isDown = false
            pair.answer("new")
            #expect(await pair.a.get().text == "new")
            await pair.settle()
            #expect(pair.server.bodies(pair.a.key()) == ["new"])
        }
    }

    @Test("both tiers are listed, each response once; a tier that is out of reach is left out")
    func listing() async throws {
        try await withPair(disk: true) { pair in
            pair.answer("hello")
            _ = await pair.a.get("/a")
            _ = await pair.b.get("/b")
            await pair.settle()
            var page = try await pair.a.core.store.listing(on: pair.a.pool).page(ListQuery())
            #expect(page.responses.map { "\($0.key)" } == ["\(host)/a", "\(host)/b"])
            #expect(page.responses.map(\.tiers) == [[.memory, .disk], [.shared]])
            pair.tierA.isDown = true
            page = try await pair.a.core.store.listing(on: pair.a.pool).page(ListQuery())
            #expect(page.responses.map { "\($0.key)" } == ["\(host)/a"])
            #expect(pair.a.core.store.statistics[.shared]?.commits == 1)
        }
    }
}
