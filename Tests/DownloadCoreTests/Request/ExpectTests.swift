// A route that expects something of its bodies: what is something else is passed on and not stored.

import CacheStore
import Content
import DiskStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ExpectTests {
    private static let fresh = [("Cache-Control", "max-age=6000")]

    private static func ask(_ rig: Rig, _ expect: ContentExpectation, _ fields: [(String, String)] = []) -> CacheRequest
    {
        var ask = rig.ask("/a", fields)
        ask.phases = PhasePlan(expect: expect)
        return ask
    }

    @Test("what is expected is stored, in every coding, and clients get the coded bytes", arguments: [false, true])
    func expected(_ disk: Bool) async throws {
        for (coding, body) in Coded.jsonBy {
            try await withRig(disk: disk) { rig in
                rig.origin.answers { _ in .whole(200, Self.fresh + [("Content-Encoding", coding)], body) }
                let first = await rig.get(Self.ask(rig, .jsonObject))
                #expect(first.cache == "fwd=uri-miss; fwd-status=200; stored" && first.body == body)
                #expect(await rig.settle())
                let second = await rig.get(Self.ask(rig, .jsonObject))
                #expect(second.cache.hasPrefix("hit") && second.body == body)
                #expect(rig.core.counts.unexpected == 0)
            }
        }
    }

    @Test("what is something else is passed on as it came, not stored, counted, and told once")
    func unexpected() async throws {
        for (coding, body) in Coded.htmlBy {
            try await withRig(disk: true) { rig in
                rig.origin.answers { _ in .whole(200, Self.fresh + [("Content-Encoding", coding)], body) }
                for round in 1...3 {
                    let got = await rig.get(Self.ask(rig, .image))
                    #expect(got.cache == "fwd=uri-miss; fwd-status=200; detail=unexpected-content")
                    #expect(got.body == body && got.status == 200 && got.error == nil)
                    #expect(await rig.settle())
                    #expect(rig.origin.count == round)
                    #expect(rig.core.counts.unexpected == round)
                }
                #expect(rig.reports.count == 1)
                #expect(rig.reports.first?.contains("/a of service s should be an image and begins with \"<") == true)
                #expect(rig.memory.statistics.objects == 0 && rig.disk?.statistics.objects == 0)
            }
        }
    }

    @Test("a good copy that is stale stays where its replacement is not what is expected")
    func goodCopyStays() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, Self.fresh, Coded.png) }
            _ = await rig.get(Self.ask(rig, .image))
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .whole(200, Self.fresh, Coded.html) }
            let got = await rig.get(Self.ask(rig, .image))
            #expect(got.cache == "fwd=stale; fwd-status=200; detail=unexpected-content" && got.body == Coded.html)
            #expect(await rig.settle())
            rig.origin.answers { _ in .down }
            let stale = await rig.get(Self.ask(rig, .image))
            #expect(stale.cache.hasSuffix("detail=stale-if-error") && stale.body == Coded.png)
            rig.memory.removeAll()
            #expect(await rig.get(Self.ask(rig, .image)).body == Coded.png)
        }
    }

    @Test("waiters share what is something else; one fetch")
    func shared() async throws {
        try await withRig(loops: 2) { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(200, Self.fresh, Coded.html, head: head) }
            var tasks: [Task<Got, Never>] = []
            for number in 0..<10 { tasks.append(await rig.start(Self.ask(rig, .json), loop: number % 2)) }
            #expect(await eventually { rig.origin.count == 1 })
            let rest = Valve()
            rig.origin.answers { _ in .whole(200, Self.fresh, Coded.html, head: rest) }
            head.open()
            rest.open()
            for task in tasks {
                let got = await task.value
                #expect(got.body == Coded.html && got.cache.contains("detail=unexpected-content"))
            }
            // One that came to look when all was over has asked for itself.
            #expect(rig.core.counts.unexpected == rig.origin.count)
        }
    }

    @Test("the head waits for the first bytes; an origin that breaks before them is a failure, not a cut answer")
    func brokenBeginning() async throws {
        try await withRig { rig in
            let bytes = Valve()
            rig.origin.answers { _ in
                .pieces(
                    length: Coded.png.count,
                    [.valve(bytes), .bytes([0x89]), .bytes(Array(Coded.png[1...])), .end(Fields())]
                )
            }
            let answered = Valve()
            let task = await rig.start(Self.ask(rig, .image), answered: answered)
            #expect(await eventually { rig.origin.active == 1 })
            #expect(!answered.isOpen)
            bytes.open()
            #expect(await task.value.body == Coded.png)
            #expect(await rig.get(Self.ask(rig, .image)).cache.hasPrefix("hit"))
            rig.memory.removeAll()
            rig.origin.answers { _ in
                .pieces(length: 100, [.bytes([0x89]), .fail(FetchError.inner("the origin broke"))])
            }
            let broken = await rig.get(Self.ask(rig, .image))
            #expect(broken.status == 502 && broken.failure == .inner("the origin broke") && broken.body == nil)
        }
    }

    @Test("JSON that turns out broken at its end has been passed on, and is not stored", arguments: [100, 600_000])
    func brokenEnd(_ size: Int) async throws {
        try await withRig(disk: true) { rig in
            let tail = Valve()
            let filler = Array(repeating: UInt8(ascii: " "), count: size)
            let body = Array("[1,2".utf8) + filler + Array("oops]".utf8)
            let isBroken = Mutex(true)
            rig.origin.answers { _ in
                let end = isBroken.withLock { $0 } ? Array("oops]".utf8) : Array(",300]".utf8)
                return .pieces(
                    Self.fresh,
                    length: body.count,
                    [.bytes(Array("[1,2".utf8) + filler), .valve(tail), .bytes(end), .end(Fields())]
                )
            }
            let answered = Valve()
            let task = await rig.start(Self.ask(rig, .json), answered: answered)
            #expect(await eventually { answered.isOpen }, "the head does not wait for the end")
            tail.open()
            let got = await task.value
            #expect(got.body == body && got.error == nil)
            #expect(await rig.settle())
            #expect(rig.core.counts.unexpected == 1)
            isBroken.withLock { $0 = false }
            #expect(await rig.get(Self.ask(rig, .json)).cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            #expect(await rig.get(Self.ask(rig, .json)).cache.hasPrefix("hit"))
            #expect(rig.origin.count == 2)
        }
    }

    @Test(
        "what is cut short leaves parts only where its beginning says it all",
        arguments: [ContentExpectation.image, .json]
    )
    func cut(_ expect: ContentExpectation) async throws {
        try await withRig { rig in
            let start = expect == .image ? Coded.png : Array("[1,2,3,4".utf8)
            rig.origin.answers { _ in
                .pieces(
                    Self.fresh + [("ETag", "\"1\""), ("Accept-Ranges", "bytes")],
                    length: 100,
                    [.bytes(start), .fail(FetchError.inner("broke"))]
                )
            }
            // The first bytes decide, so that the head is out before the break where they come alone.
            _ = await rig.get(Self.ask(rig, expect))
            #expect(rig.core.partialStatistics.objects == (expect == .image ? 1 : 0))
        }
    }

    @Test("other statuses, and what is not stored anyway, are not looked into")
    func otherStatuses() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(404, Self.fresh, Coded.html) }
            #expect(await rig.get(Self.ask(rig, .image)).cache == "fwd=uri-miss; fwd-status=404; stored")
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "no-store")], Coded.html) }
            var other = rig.ask("/b")
            other.phases = PhasePlan(expect: .image)
            #expect(await rig.get(other).cache == "fwd=uri-miss; fwd-status=200; detail=no-store")
            #expect(rig.core.counts.unexpected == 0)
        }
    }

    @Test("parts of what cannot be looked into are passed on, and the whole is stored and serves them")
    func ranges() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                guard asked.fields.contains(.range) else {
                    return .whole(200, Self.fresh + [("ETag", "\"1\"")], Coded.png)
                }
                let fields = Self.fresh + [("ETag", "\"1\""), ("Content-Range", "bytes 2-3/\(Coded.png.count)")]
                return .whole(206, fields, Array(Coded.png[2...3]))
            }
            let part = await rig.get(Self.ask(rig, .image, [("Range", "bytes=2-3")]))
            #expect(part.status == 206 && part.body == Array(Coded.png[2...3]))
            #expect(part.cache == "fwd=bypass; fwd-status=206; detail=range")
            #expect(rig.core.partialStatistics.objects == 0)
            _ = await rig.get(Self.ask(rig, .image))
            let again = await rig.get(Self.ask(rig, .image, [("Range", "bytes=2-3")]))
            #expect(again.status == 206 && again.cache.hasPrefix("hit") && again.body == Array(Coded.png[2...3]))
        }
    }
}
