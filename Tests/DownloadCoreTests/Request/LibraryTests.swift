// mode: library over a scripted origin: what is asked, how often, and what the client gets.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let modified = [("Last-Modified", "Mon, 02 Jan 2023 00:00:00 GMT"), ("Cache-Control", "no-cache, max-age=0")]
private let newer = [("Last-Modified", "Tue, 03 Jan 2023 00:00:00 GMT")]
private let older = [("Last-Modified", "Sun, 01 Jan 2023 00:00:00 GMT")]

@Suite(.timeLimit(.minutes(5)))
struct LibraryTests {
    static let policy = CachePolicy(mode: .library)

    @Test("a download is fresh for two hours, whatever the origin says; then a HEAD without conditions renews it")
    func lifetime() async throws {
        try await withRig { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(200, modified) : .whole(200, modified) }
            #expect(await rig.get("/a", policy: Self.policy).cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 7100)
            #expect(await rig.get("/a", policy: Self.policy).cache == "hit; ttl=100; detail=memory")
            rig.clock.advance(seconds: 200)
            let checked = await rig.get("/a", policy: Self.policy)
            #expect(checked.cache == "fwd=stale; fwd-status=200; ttl=7200; detail=revalidated")
            #expect(checked.text == "hello")
            #expect(rig.origin.log[1].fields.isEmpty)
            // From the check on it is fresh for two hours again.
            rig.clock.advance(seconds: 7100)
            #expect(await rig.get("/a", policy: Self.policy).cache == "hit; ttl=100; detail=memory")
            #expect(rig.origin.methods == "GET HEAD")
        }
    }

    @Test("a lifetime of 0 asks every time")
    func zero() async throws {
        let policy = CachePolicy(mode: .library, ttl: 0)
        try await withRig { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(200, modified) : .whole(200, modified) }
            for _ in 0..<3 {
                #expect(await rig.get("/a", policy: policy).text == "hello")
                #expect(await rig.settle())
            }
            #expect(rig.origin.methods == "GET HEAD HEAD")
        }
    }

    @Test("revalidate: never makes what is there valid for ever")
    func never() async throws {
        let policy = CachePolicy(mode: .library, ttl: 10, revalidate: .never)
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, modified) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 1_000_000_000)
            #expect(await rig.get("/a", policy: policy).cache.hasPrefix("hit; ttl="))
            #expect(rig.origin.count == 1)
        }
    }

    @Test("another Last-Modified is a change, also an older one", arguments: [newer, older])
    func changed(_ fields: [(String, String)]) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, modified, Array("old".utf8)) }
            _ = await rig.get("/a", policy: Self.policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 7300)
            rig.origin.answers {
                $0.method == .head ? .headOnly(200, fields) : .whole(200, fields, Array("new".utf8))
            }
            let got = await rig.get("/a", policy: Self.policy)
            #expect(got.text == "new" && got.cache == "fwd=stale; fwd-status=200; stored; detail=replaced")
            #expect(rig.origin.methods == "GET HEAD GET")
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: Self.policy).text == "new")
            #expect(rig.origin.count == 3)
        }
    }

    @Test("without anything to compare the whole is fetched; compare says what counts")
    func compare() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                let fields = [("ETag", "\"\(asked.number)\""), ("Last-Modified", modified[0].1)]
                return asked.method == .head ? .headOnly(200, fields) : .whole(200, fields)
            }
            let byDate = CachePolicy(mode: .library, ttl: 10, compare: [.lastModified])
            _ = await rig.get("/a", policy: byDate)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 20)
            #expect(await rig.get("/a", policy: byDate).cache.hasSuffix("detail=revalidated"))
            rig.clock.advance(seconds: 20)
            let byTag = CachePolicy(mode: .library, ttl: 10)
            #expect(await rig.get("/a", policy: byTag).cache.hasSuffix("detail=replaced"))
            #expect(rig.origin.methods == "GET HEAD HEAD GET")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 20)
            let byNothing = CachePolicy(mode: .library, ttl: 10, compare: [])
            #expect(await rig.get("/a", policy: byNothing).cache.contains("stored"))
            #expect(rig.origin.methods == "GET HEAD HEAD GET HEAD GET")
            #expect(!rig.origin.log[5].fields.contains(.ifNoneMatch))
        }
    }

    @Test("a check that fails: the stale copy, without a new lifetime, and nobody asks again for check_pause")
    func failed() async throws {
        let policy = CachePolicy(mode: .library, checkPause: 300)
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, modified) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 7300)
            rig.origin.answers { _ in .down }
            let failed = await rig.get("/a", policy: policy)
            #expect(failed.text == "hello" && failed.cache == "fwd=stale; ttl=-100; detail=stale-if-error")
            rig.clock.advance(seconds: 200)
            #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=-300; detail=check-pause")
            #expect(rig.origin.methods == "GET HEAD")
            rig.clock.advance(seconds: 100)
            rig.origin.answers { _ in .headOnly(429, []) }
            let refused = await rig.get("/a", policy: policy)
            #expect(refused.cache == "fwd=stale; fwd-status=429; ttl=-400; detail=stale-if-error")
            #expect(rig.origin.methods == "GET HEAD HEAD GET")
            // A reload does not wait, and when it succeeds the pause is over.
            rig.origin.answers { $0.method == .head ? .headOnly(200, modified) : .whole(200, modified) }
            let reload = await rig.get("/a", [("Cache-Control", "max-age=0")], policy: policy)
            #expect(reload.cache.hasSuffix("detail=revalidated"), "\(reload.cache)")
            rig.clock.advance(seconds: 7200)
            #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=revalidated"))
        }
    }

    @Test("the answers to all who wait come of one transfer, also with a lifetime of 0")
    func shared() async throws {
        let policy = CachePolicy(mode: .library, ttl: 0)
        try await withRig { rig in
            let valve = Valve()
            rig.origin.answers {
                $0.method == .head
                    ? Reply(steps: [.valve(valve)] + Reply.headOnly(200, modified).steps)
                    : .whole(200, modified, head: valve)
            }
            let first = await rig.start(rig.ask(policy: policy))
            #expect(await eventually { rig.origin.count == 1 })
            var others: [Task<Got, Never>] = []
            for _ in 0..<10 { others.append(await rig.start(rig.ask(policy: policy))) }
            valve.open()
            #expect(await first.value.text == "hello")
            for other in others {
                let got = await other.value
                #expect(got.text == "hello" && got.cache == "fwd=uri-miss; fwd-status=200; stored; collapsed")
            }
            #expect(await rig.settle())
            #expect(rig.origin.methods == "GET")
        }
    }

    @Test("a transfer that began before the lifetime of what it brings is no answer to who asks after it")
    func longTransfer() async throws {
        let policy = CachePolicy(mode: .library, ttl: 1000)
        try await withRig { rig in
            let valve = Valve()
            rig.origin.answers { asked in
                asked.number == 1
                    ? .pieces(
                        [],
                        length: 5,
                        [.bytes(Array("he".utf8)), .valve(valve), .bytes(Array("llo".utf8)), .end(Fields())]
                    )
                    : .whole(200, [], Array("newer".utf8))
            }
            let answered = Valve()
            let first = await rig.start(rig.ask(policy: policy), answered: answered)
            #expect(await eventually { answered.isOpen })
            rig.clock.advance(seconds: 6000)
            #expect(await rig.get("/a", policy: policy).text == "newer")
            valve.open()
            #expect(await first.value.text == "hello")
            #expect(rig.origin.methods == "GET GET")
            #expect(await rig.settle())
            // What was asked for later stays.
            #expect(await rig.get("/a", policy: policy).text == "newer")
        }
    }

    @Test("no-cache fetches the whole and stores it; where that fails the good copy stays")
    func force() async throws {
        let noCache = [("Cache-Control", "no-cache")]
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, modified, Array("one".utf8)) }
            _ = await rig.get("/a", policy: Self.policy)
            #expect(await rig.settle())
            rig.origin.answers { _ in .whole(200, modified, Array("two".utf8)) }
            let forced = await rig.get("/a", noCache, policy: Self.policy)
            #expect(forced.text == "two")
            #expect(forced.cache == "fwd=request; fwd-status=200; stored; detail=request-no-cache")
            #expect(!rig.origin.log[1].fields.contains(.ifModifiedSince))
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: Self.policy).text == "two")
            // One that is cut short, one that is refused, and one that is an error.
            let cut = Reply.pieces(modified, length: 10, [.bytes([1, 2]), Reply.down.steps[0]])
            for reply in [cut, Reply.down, .whole(500, [], Array("no".utf8)), .whole(404, [], Array("no".utf8))] {
                rig.origin.answers { _ in reply }
                let failed = await rig.get("/a", noCache, policy: Self.policy)
                #expect(failed.text != "two")
                #expect(await rig.settle())
                #expect(await rig.get("/a", policy: Self.policy).text == "two")
            }
            #expect(rig.origin.methods == "GET GET GET GET GET GET")
        }
    }

    @Test("no-cache in standard mode: a conditional GET, and the good copy stays where it fails")
    func forceInStandardMode() async throws {
        let noCache = [("Cache-Control", "no-cache")]
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]) }
            _ = await rig.get()
            #expect(await rig.settle())
            let cut = Reply.pieces([], length: 10, [.bytes([1, 2]), Reply.down.steps[0]])
            for reply in [cut, Reply.down, .whole(503, [], Array("no".utf8))] {
                rig.origin.answers { _ in reply }
                _ = await rig.get("/a", noCache)
                #expect(await rig.settle())
                #expect(await rig.get().text == "hello")
            }
            #expect(rig.origin.log[1].fields.first(.ifNoneMatch) == "\"1\"")
            #expect(rig.origin.count == 4)
        }
    }

    @Test("what is not for all is not stored", arguments: ["no-store", "private"])
    func notForAll(_ control: String) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", control)]) }
            for _ in 0..<2 {
                #expect(
                    await rig.get("/a", policy: Self.policy).cache == "fwd=uri-miss; fwd-status=200; detail=\(control)"
                )
            }
            #expect(rig.origin.count == 2)
        }
    }

    @Test("only what succeeds is stored, unless ttl_by_status says otherwise")
    func statuses() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(404, [], Array("none".utf8)) }
            let got = await rig.get("/a", policy: Self.policy)
            #expect(got.cache == "fwd=uri-miss; fwd-status=404; detail=status-not-successful")
            let kept = CachePolicy(mode: .library, ttlByStatus: [404: 60])
            #expect(await rig.get("/a", policy: kept).cache == "fwd=uri-miss; fwd-status=404; stored")
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: kept).cache == "hit; ttl=100; detail=memory")
        }
    }
}
