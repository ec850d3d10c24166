// What is found, and how it is answered: hits and misses with their Cache-Status, variants, HEAD, conditions, policies.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LookupTests {
    @Test("a miss is fetched and stored, the next is a hit: one fetch")
    func missThenHit() async throws {
        try await withRig { rig in
            let first = await rig.get()
            #expect(first.cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(first.text == "hello" && first.length == 5 && first.age == nil)
            rig.clock.advance(seconds: 1000)
            let second = await rig.get()
            #expect(second.cache == "hit; ttl=5000; detail=memory")
            #expect(second.text == "hello" && second.length == 5 && second.age == 1000)
            #expect(rig.origin.methods == "GET")
        }
    }

    @Test(
        "what may not be stored says why, and each request fetches",
        arguments: [
            ([("Cache-Control", "no-store")], "no-store"),
            ([("Cache-Control", "private, max-age=6000")], "private"),
            ([], "no-freshness-and-no-validator"), ([("Cache-Control", "max-age=0")], "no-validator"),
            ([("Cache-Control", "max-age=6000"), ("Vary", "*")], "vary-star"),
        ]
    )
    func refusals(_ fields: [(String, String)], _ reason: String) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, fields) }
            for _ in 0..<2 {
                let got = await rig.get()
                #expect(got.cache == "fwd=uri-miss; fwd-status=200; detail=\(reason)")
                #expect(got.text == "hello")
            }
            #expect(rig.origin.methods == "GET GET")
        }
    }

    @Test("RFC 9111 section 4.1: variants live side by side; what none selects is a vary-miss")
    func variants() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                let language = asked.fields.first(.acceptLanguage) ?? "-"
                return .whole(
                    200,
                    [("Cache-Control", "max-age=6000"), ("Vary", "Accept-Language")],
                    Array(language.utf8)
                )
            }
            for (language, cache) in [
                ("en", "fwd=uri-miss; fwd-status=200; stored"), ("fr", "fwd=vary-miss; fwd-status=200; stored"),
                ("en", "hit; ttl=6000; detail=memory"), ("fr", "hit; ttl=6000; detail=memory"),
            ] {
                let got = await rig.get("/a", [("Accept-Language", language)])
                #expect(got.text == language)
                #expect(got.cache == cache)
            }
            #expect(rig.origin.count == 2)
        }
    }

    @Test("HEAD is answered from a stored GET")
    func headFromStored() async throws {
        try await withRig { rig in
            _ = await rig.get()
            let head = await rig.get(rig.ask(method: .head))
            #expect(head.status == 200 && head.body == nil && head.length == 5)
            #expect(head.cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.methods == "GET")
        }
    }

    @Test("HEAD without a stored GET goes on as HEAD, keeps the declared length, and stores nothing")
    func headMiss() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .headOnly(200, [("Content-Length", "1234"), ("Cache-Control", "max-age=6000")]) }
            for _ in 0..<2 {
                let head = await rig.get(rig.ask(method: .head))
                #expect(head.status == 200 && head.body == nil && head.length == 1234)
                #expect(head.cache == "fwd=uri-miss; fwd-status=200")
            }
            #expect(rig.origin.methods == "HEAD HEAD")
            #expect(await eventually { rig.origin.active == 0 })
            #expect(rig.origin.cancelled == 0, "a connection was lost for want of patience")
        }
    }

    @Test("RFC 9111 section 5.2.1.7: only-if-cached is 504 where nothing is stored or it needs a check")
    func onlyIfCached() async throws {
        try await withRig { rig in
            let wish = [("Cache-Control", "only-if-cached")]
            let missing = await rig.get("/a", wish)
            #expect(missing.status == 504 && missing.cache == "detail=only-if-cached")
            #expect(rig.origin.count == 0)
            _ = await rig.get()
            #expect(await rig.get("/a", wish).cache == "hit; ttl=6000; detail=memory")
            rig.clock.advance(seconds: 6100)
            let stale = await rig.get("/a", wish)
            #expect(stale.status == 504 && stale.failure?.status == 504)
            #expect(rig.origin.count == 1)
        }
    }

    @Test("RFC 9111 section 4.3.2: conditions of the client are answered from the store and on arrival")
    func conditions() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]) }
            let arriving = await rig.get("/a", [("If-None-Match", "\"1\"")])
            #expect(arriving.status == 304 && arriving.body == nil)
            #expect(rig.origin.log[0].fields.contains(.ifNoneMatch) == false, "asked for in full")
            #expect(await rig.settle())
            let stored = await rig.get("/a", [("If-None-Match", "\"1\"")])
            #expect(stored.status == 304 && stored.cache == "hit; ttl=6000; detail=memory")
            #expect(await rig.get("/a", [("If-None-Match", "\"2\"")]).text == "hello")
            #expect(await rig.get("/a", [("If-Match", "\"1\"")]).text == "hello")
            #expect(rig.origin.count == 1)
            // Only the origin may refuse, and it is asked with the condition.
            #expect(await rig.get("/a", [("If-Match", "\"2\"")]).text == "hello")
            #expect(rig.origin.count == 2 && rig.origin.log[1].fields.first(.ifMatch) == "\"2\"")
        }
    }

    @Test("mode none looks nothing up, stores nothing, and says so")
    func modeNone() async throws {
        try await withRig(disk: true) { rig in
            _ = await rig.get()
            let off = CachePolicy(mode: .none)
            for _ in 0..<2 {
                #expect(await rig.get("/a", policy: off).cache == "fwd=bypass; fwd-status=200; detail=cache-off")
            }
            #expect(rig.origin.count == 3)
            _ = await rig.get("/b", policy: off)
            #expect(await rig.get("/b").cache == "fwd=uri-miss; fwd-status=200; stored")
        }
    }

    @Test("memory: false keeps nothing in memory, and answers from the disk")
    func memoryOff() async throws {
        try await withRig(disk: true) { rig in
            let policy = CachePolicy(memory: false)
            #expect(await rig.get("/a", policy: policy).cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=6000; detail=disk")
            #expect(rig.memory.variants(rig.key()).isEmpty)
            #expect(rig.origin.count == 1)
        }
    }

    @Test("memory: false holds for a response that a check has freshened, too")
    func memoryOffFreshened() async throws {
        try await withRig(disk: true) { rig in
            let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
            rig.origin.answers { $0.method == .head ? .headOnly(200, fields) : .whole(200, fields) }
            let policy = CachePolicy(memory: false)
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=revalidated"))
            #expect(rig.memory.variants(rig.key()).isEmpty)
            #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=6000; detail=disk")
        }
    }

    @Test("disk: false keeps nothing on the disk")
    func diskOff() async throws {
        try await withRig(disk: true) { rig in
            _ = await rig.get("/a", policy: CachePolicy(disk: false))
            #expect(await rig.settle())
            #expect(rig.disk?.lookup(rig.key()).isEmpty == true)
            #expect(await rig.get("/a", policy: CachePolicy(disk: false)).cache == "hit; ttl=6000; detail=memory")
        }
    }

    @Test("with neither tier nothing is stored, and nothing says that it is")
    func noTier() async throws {
        try await withRig(disk: true) { rig in
            let policy = CachePolicy(memory: false, disk: false)
            for _ in 0..<2 {
                #expect(await rig.get("/a", policy: policy).cache == "fwd=uri-miss; fwd-status=200; detail=tiers-off")
            }
            #expect(rig.origin.count == 2)
        }
    }

    @Test("another shape makes the ready head anew, from memory and from the disk")
    func shapes() async throws {
        try await withRig(disk: true) { rig in
            func ready() -> String {
                String(decoding: rig.memory.variants(rig.key()).first?.preparedHead ?? [], as: UTF8.self)
            }
            _ = await rig.get(rig.ask(headFormatID: 1))
            #expect(await rig.settle())
            #expect(ready().contains("Via: 1.1 shape1\r\n"))
            _ = await rig.get(rig.ask(headFormatID: 2))
            #expect(ready().contains("Via: 1.1 shape2\r\n"))
            #expect(rig.memory.variants(rig.key()).first?.headFormatID == 2)
            rig.memory.removeAll()
            #expect(await rig.get(rig.ask(headFormatID: 3)).cache == "hit; ttl=6000; detail=disk")
            #expect(ready().contains("Via: 1.1 shape3\r\n"))
            #expect(await rig.get(rig.ask(headFormatID: 3)).cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.count == 1)
        }
    }

    @Test("RFC 9110: no content and trailers arrive as they are", arguments: [204, 200])
    func noContent(_ status: Int) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(status, [("Cache-Control", "max-age=6000")], []) }
            for tier in ["", "memory", "disk"] {
                if tier == "disk" { rig.memory.removeAll() }
                let got = await rig.get()
                #expect(got.status == status && got.body ?? [] == [] && got.error == nil)
                #expect(
                    got.cache
                        == (tier.isEmpty
                            ? "fwd=uri-miss; fwd-status=\(status); stored" : "hit; ttl=6000; detail=\(tier)")
                )
                #expect(await rig.settle())
            }
        }
    }

    @Test("trailers go on with an arriving answer, and are not stored")
    func trailers() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .pieces(length: nil, [.bytes([7]), .end(Fields([("X-Sum", "1")]))]) }
            #expect(await rig.get().trailers.first("X-Sum") == "1")
            let stored = await rig.get()
            #expect(stored.body == [7] && stored.trailers.isEmpty && !stored.fields.contains("X-Sum"))
        }
    }

    @Test(
        "why no tier takes what may be stored",
        arguments: [
            (CachePolicy(memory: false, disk: false), 5, "tiers-off"), (CachePolicy(disk: false), 2000, "too-large"),
            (CachePolicy(), 2000, nil), (CachePolicy(), (64 << 20) + 1, "too-large"),
            (CachePolicy(disk: false), 5, nil),
        ]
    )
    func notKept(_ policy: CachePolicy, _ size: Int, _ reason: String?) async throws {
        try await withRig(disk: true, memoryMaxObject: 1000) { rig in
            rig.origin.answers { _ in
                let part = Reply.Step.bytes([UInt8](repeating: 9, count: min(size, 1 << 20)))
                let rest = size - size / (1 << 20) * (1 << 20)
                let last = size > 1 << 20 && rest > 0 ? [Reply.Step.bytes([UInt8](repeating: 9, count: rest))] : []
                return .pieces(
                    length: size,
                    Array(repeating: part, count: max(1, size >> 20)) + last + [.end(Fields())]
                )
            }
            let got = await rig.get("/a", policy: policy)
            #expect(got.body?.count == size && got.error == nil)
            #expect(got.cache == "fwd=uri-miss; fwd-status=200; \(reason.map { "detail=\($0)" } ?? "stored")")
        }
    }

    @Test("a disk that has just refused for want of room is not said to store")
    func noRoom() async throws {
        try await withRig(disk: true, memoryMaxObject: 1000) { rig in
            let policy = CachePolicy(memory: false)
            rig.origin.answers { _ in
                .whole(200, [("Cache-Control", "max-age=6000")], [UInt8](repeating: 1, count: 300_000))
            }
            rig.disk?.close()
            // The first finds out; the tier has been closed, which refuses all room.
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: policy).cache == "fwd=uri-miss; fwd-status=200; detail=no-room")
        }
    }

    @Test("interim answers reach who leads, who is checked for, and who passes by", arguments: [0, 1, 2])
    func interims(_ way: Int) async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .whole(200, fields) }
            if way == 1 { _ = await rig.get() }
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { asked in
                Reply(
                    steps: [.interim(103)]
                        + (asked.method == .head ? Reply.headOnly(200, fields) : .whole(200, fields)).steps
                )
            }
            let told = Counter()
            let policy = way == 2 ? CachePolicy(mode: .none) : CachePolicy()
            let task = await rig.start(rig.ask(policy: policy), onInterim: { told.add($0) })
            #expect(await task.value.text == "hello")
            #expect(told.value == 103)
            let again = await rig.start(rig.ask(), onInterim: { told.add($0) })
            _ = await again.value
            #expect(way == 2 || told.value == 103, "never stored")
        }
    }

    @Test("trailers are neither merged into the head nor stored, on the disk either, and pass by relays")
    func trailersApart() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in
                .pieces(
                    [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")],
                    length: nil,
                    [.bytes([7]), .end(Fields([("Cache-Control", "no-store"), ("ETag", "\"2\""), ("X-Sum", "1")]))]
                )
            }
            let policy = CachePolicy(memory: false)
            #expect(await rig.get("/a", policy: policy).trailers.first("X-Sum") == "1")
            #expect(await rig.settle())
            let stored = await rig.get("/a", policy: policy)
            #expect(stored.cache == "hit; ttl=6000; detail=disk" && stored.fields.first(.etag) == "\"1\"")
            #expect(stored.trailers.isEmpty && !stored.fields.contains("X-Sum"))
            #expect(await rig.pass(.post).trailers.first("X-Sum") == "1")
        }
    }
}
