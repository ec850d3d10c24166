// Purges: whatever tier it is in, on its way, or met only after a restart, nothing that was purged answers a request.

import DownloadCore
import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import LoopSupport
import Synchronization
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskStore

private let tagged = [
    ("Cache-Control", "max-age=6000"), ("ETag", "\"1\""), ("Cache-Tag", "page, red"), ("Surrogate-Key", "s1 s2"),
]

extension Rig {
    fileprivate func purge(_ target: PurgeRule.Target, service: String? = nil, isSoft: Bool = false) async throws -> Int
    {
        try await core.housekeeping.purge([PurgeRule(target, service: service, isSoft: isSoft)], on: pool)
    }

    /// Answers of the origin that say which one they are.
    fileprivate func count(_ fields: [(String, String)] = tagged) {
        origin.answers { asked in .whole(200, fields, Array("\(asked.number)".utf8)) }
    }
}

private struct Way: Sendable, CustomTestStringConvertible {
    var target: PurgeRule.Target
    /// Of /a, /b/1 and /b/2.
    var purges: Set<String>
    var service: String?
    var testDescription: String { "\(PurgeRule(target, service: service))" }

    static let all: [Way] = [
        Way(target: .url(host + "/a"), purges: ["/a"]),
        Way(target: .url(host + "/a"), purges: ["/a"], service: "s"),
        Way(target: .url(host + "/b/"), purges: []),
        Way(target: .prefix(host + "/b/"), purges: ["/b/1", "/b/2"]),
        Way(target: .glob("*/b/*2"), purges: ["/b/2"]),
        Way(target: .tag("red"), purges: ["/a", "/b/1", "/b/2"]),
        Way(target: .tag("s2"), purges: ["/a", "/b/1", "/b/2"], service: "s"),
        Way(target: .tag("blue"), purges: []),
        Way(target: .all, purges: ["/a", "/b/1", "/b/2"]),
        Way(target: .all, purges: [], service: "other"),
        Way(target: .olderThan(0), purges: []),
        Way(target: .olderThan(1 << 40), purges: ["/a", "/b/1", "/b/2"]),
    ]
    static let paths = ["/a", "/b/1", "/b/2"]
}

@Suite(.timeLimit(.minutes(5)))
struct PurgeTests {
    @Test(
        "each kind takes what it names from every tier, at once, and nothing else",
        arguments: Way.all,
        [false, true]
    )
    private func kinds(_ way: Way, _ inMemory: Bool) async throws {
        try await withRig(disk: true) { rig in
            rig.count()
            for path in Way.paths { _ = await rig.get(path) }
            #expect(await rig.settle())
            // As long as the index is read, the disk tier does not say how many files it has.
            #expect(await eventually { rig.disk?.parts.state.withLock { $0.phase == .settled } ?? false })
            if !inMemory { rig.memory.removeAll() }
            let count1 = try await rig.purge(way.target, service: way.service)
            #expect(count1 == way.purges.count)
            for (number, path) in Way.paths.enumerated() {
                let got = await rig.get(path)
                let isGone = way.purges.contains(path)
                #expect(
                    got.cache.hasPrefix(isGone ? "fwd=uri-miss; fwd-status=200; stored" : "hit"),
                    "\(path): \(got.cache)"
                )
                #expect((got.text == "\(number + 1)") != isGone)
            }
            #expect(await rig.settle())
            await rig.disk?.settleSweep()
            #expect(rig.disk?.statistics.objects == 3)
            rig.memory.removeAll()
            for path in Way.paths { #expect(await rig.get(path).cache.hasPrefix("hit")) }
        }
    }

    @Test("a sweep that comes between a purge and its count removes nothing that is still to be counted")
    func countedFirst() async throws {
        try await withRig(disk: true) { rig in
            let disk = try #require(rig.disk)
            rig.count()
            for path in Way.paths { _ = await rig.get(path) }
            #expect(await rig.settle())
            #expect(await eventually { disk.parts.state.withLock { $0.phase == .settled } })
            rig.memory.removeAll()
            // The purge is in force, and counts only when the one thread of its pool is free.
            let pool = try IOPool(threads: 1)
            defer { pool.stop() }
            let gate = DispatchSemaphore(value: 0)
            async let held: Void = pool.run { gate.wait() }
            async let counted = rig.core.housekeeping.purge([PurgeRule(.all)], on: pool)
            #expect(await eventually { disk.invalidations.unsweptCount == 1 })
            // As the load of an index does at its end.
            disk.sweep()
            await disk.settleSweep()
            gate.signal()
            try await held
            #expect(try await counted == Way.paths.count)
            await disk.settleSweep()
            #expect(disk.statistics.objects == 0 && disk.invalidations.unsweptCount == 0)
        }
    }

    @Test("what memory alone holds is counted and named as that while the index of the disk is still read")
    func whileLoading() async throws {
        try await withRig(disk: true) { rig in
            let disk = try #require(rig.disk)
            rig.count()
            // As long as not all rows are known, any key may have a file.
            disk.parts.state.withLock { $0.phase = .loading }
            let policy = CachePolicy(disk: false)
            _ = await rig.get(policy: policy)
            #expect(await rig.explain(rig.ask()).locations == [.init(tiers: [.memory], isInvalidated: false)])
            let count = try await rig.purge(.url(host + "/a"))
            #expect(count == 1)
            #expect(await rig.get(policy: policy).cache.hasPrefix("fwd=uri-miss"))
            disk.parts.state.withLock { $0.phase = .settled }
        }
    }

    @Test(
        "soft: stale from that moment, usable by the rules of staleness, renewed by a check",
        arguments: [false, true]
    )
    func soft(_ inMemory: Bool) async throws {
        try await withRig(disk: true) { rig in
            rig.count()
            _ = await rig.get()
            _ = await rig.get("/b")
            #expect(await rig.settle())
            if !inMemory { rig.memory.removeAll() }
            let count2 = try await rig.purge(.url(host + "/a"), isSoft: true)
            #expect(count2 == 1)
            #expect(await rig.get("/b").cache.hasPrefix("hit"))
            // The origin fails: it stands in.
            let policy = CachePolicy(checkPause: 0)
            rig.origin.answers { _ in .headOnly(503, []) }
            let standIn = await rig.get(policy: policy)
            #expect(standIn.text == "1" && standIn.cache.hasSuffix("detail=stale-if-error"))
            let unasked = await rig.get("/a", [("Cache-Control", "max-stale=9")], policy: policy)
            #expect(unasked.cache.hasSuffix("detail=max-stale"))
            // A clock that goes back does not make it fresh.
            rig.clock.advance(seconds: -3000)
            #expect(await rig.get(policy: policy).cache.hasSuffix("detail=stale-if-error"))
            rig.clock.advance(seconds: 3000)
            rig.origin.answers { _ in .headOnly(304, tagged) }
            let checked = await rig.get(policy: policy)
            #expect(checked.text == "1" && checked.cache.hasSuffix("detail=revalidated"))
            #expect(await rig.settle())
            for _ in 0..<2 {
                #expect(await rig.get().cache.hasPrefix("hit; ttl=6000"))
                rig.memory.removeAll()
            }
        }
    }

    @Test("what was asked for before a purge is not stored after it, nor joined", arguments: [false, true])
    func underWay(_ isSoft: Bool) async throws {
        try await withRig(disk: true) { rig in
            let tail = Valve()
            rig.origin.answers { asked in
                asked.number == 1
                    ? .pieces(tagged, length: 2, [.bytes([1]), .valve(tail), .bytes([1]), .end(Fields())])
                    : .whole(200, tagged, [2])
            }
            let slow = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            _ = try await rig.purge(.tag("red"), isSoft: isSoft)
            #expect(await rig.get().body == [2], "not what is on its way")
            tail.open()
            #expect(await slow.value.body == [1, 1], "who asked before gets it")
            #expect(await rig.settle())
            for _ in 0..<2 {
                #expect(await rig.get().body == [2])
                rig.memory.removeAll()
            }
        }
    }

    @Test("a 304 that arrives after a purge brings nothing back", arguments: [false, true], [false, true])
    func lateCheck(_ isSoft: Bool, _ byHead: Bool) async throws {
        try await withRig(disk: true) { rig in
            rig.count()
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let late = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(late)] + Reply.headOnly(304, tagged).steps) }
            let policy = CachePolicy(revalidate: byHead ? .head : .conditional)
            let check = await rig.start(rig.ask(policy: policy))
            #expect(await eventually { rig.origin.count == 2 })
            _ = try await rig.purge(.prefix(host), isSoft: isSoft)
            late.open()
            #expect(await check.value.text == "1", "it is what the origin has just called current")
            #expect(await rig.settle())
            rig.origin.answers { _ in .whole(200, tagged, Array("new".utf8)) }
            for _ in 0..<2 {
                #expect(await rig.get("/a", policy: policy).text == "new")
                rig.memory.removeAll()
                #expect(await rig.settle())
            }
        }
    }

    @Test("what is purged while its origin is asked stands in for no failure")
    func failure() async throws {
        try await withRig(disk: true) { rig in
            rig.count()
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            let late = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(late)] + Reply.headOnly(503, []).steps) }
            let check = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 2 })
            _ = try await rig.purge(.all)
            late.open()
            #expect(await check.value.status == 503)
        }
    }

    @Test("all variants go, HEAD finds nothing, and stored parts go, too")
    func variantsAndParts() async throws {
        try await withRig(disk: true) { rig in
            rig.count(tagged + [("Vary", "Accept-Language")])
            for language in ["de", "fr"] { _ = await rig.get("/a", [("Accept-Language", language)]) }
            #expect(await rig.settle())
            rig.origin.answers { _ in
                .whole(206, tagged + [("Content-Range", "bytes 0-1/9")], [1, 2])
            }
            _ = await rig.get("/part", [("Range", "bytes=0-1")])
            #expect(await rig.settle())
            #expect(rig.core.partialStatistics.objects == 1)
            let count3 = try await rig.purge(.prefix(host))
            #expect(count3 == 3)
            #expect(rig.core.partialStatistics.objects == 0)
            rig.origin.answers { _ in .headOnly(200, tagged) }
            let head = await rig.get(rig.ask("/a", method: .head, [("Accept-Language", "de")]))
            #expect(!head.cache.hasPrefix("hit"))
            #expect(
                await rig.get("/a", [("Cache-Control", "only-if-cached"), ("Accept-Language", "fr")]).status == 504
            )
        }
    }

    @Test("a restart right after the purge undoes nothing, whatever was swept", arguments: Way.all, [false, true])
    private func restart(_ way: Way, _ isSoft: Bool) async throws {
        try await withRig(disk: true) { rig in
            rig.count()
            for path in Way.paths { _ = await rig.get(path) }
            #expect(await rig.settle())
            await rig.disk?.settle()
            let before = rig.folder.file("before")
            // The files as they were before the purge, the rules as they were after it.
            try FileManager.default.copyItem(atPath: rig.folder.file("cache"), toPath: before)
            // What a purge does first, before anything is swept.
            let rule = PurgeRule(way.target, service: way.service, isSoft: isSoft)
            let (invalidations, now) = (rig.core.invalidations, rig.clock.now())
            let number = invalidations.purge([rule], now: now)
            try await rig.pool.run { try invalidations.persist([rule], number: number, now: now) }
            try readBytes("\(rig.folder.file("cache"))/rules").withUnsafeBytes {
                #expect(FileManager.default.createFile(atPath: "\(before)/rules", contents: Data($0)))
            }
            let (core, disk) = try await rig.another(on: before)
            defer { disk.close() }
            for path in Way.paths {
                let origin = rig.origin
                let ask = rig.ask(path, [("Cache-Control", "only-if-cached")])
                let status = await onLoop(rig.loops[0]) { loop in
                    await core.answer(ask, from: ScriptedSource(origin), on: loop).head.status
                }
                #expect(status == (way.purges.contains(path) ? 504 : 200), "\(path)")
            }
            if !isSoft {
                await disk.settle()
                disk.sweep()
                await disk.settleSweep()
                #expect(disk.statistics.objects == 3 - way.purges.count)
                #expect(disk.invalidations.unsweptCount == 0)
            }
        }
    }

    @Test("pinned: an age does not purge it, everything else does")
    func pins() async throws {
        try await withRig(disk: true) { rig in
            rig.count()
            _ = await rig.get("/a")
            _ = await rig.get("/b")
            #expect(await rig.settle())
            let isPinned = try await rig.core.housekeeping.pin(host + "/a", on: rig.pool)
            #expect(isPinned)
            let count4 = try await rig.purge(.olderThan(1 << 40))
            #expect(count4 == 1)
            #expect(await rig.get("/a").cache.hasPrefix("hit"))
            #expect(!(await rig.get("/b").cache.hasPrefix("hit")))
            await rig.disk?.settleSweep()
            rig.memory.removeAll()
            #expect(await rig.get("/a").cache.hasPrefix("hit"))
            let count5 = try await rig.purge(.url(host + "/a"))
            #expect(count5 == 1)
            #expect(!(await rig.get("/a").cache.hasPrefix("hit")))
            #expect(rig.core.invalidations.pins.all == [host + "/a"])
            let isUnpinned = try await rig.core.housekeeping.unpin(host + "/a", on: rig.pool)
            #expect(isUnpinned)
        }
    }

    @Test("a purge that cannot be written says so, and is in force all the same")
    func unwritten() async throws {
        try await withRig(disk: true) { rig in
            rig.count()
            _ = await rig.get()
            #expect(await rig.settle())
            #expect(unlink(rig.folder.file("cache/rules")) == 0)
            _ = try rig.folder.folder("cache/rules")
            await #expect(throws: PurgeError.self) { try await rig.purge(.all) }
            #expect(!(await rig.get().cache.hasPrefix("hit")))
        }
    }
}
