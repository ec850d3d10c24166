// What is one user's: Set-Cookie, and answers to requests with Cookie (RFC 9111 section 7.3; http-rules.md A).

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CookieTests {
    private let fresh = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
    private let tagged = [("ETag", "\"1\""), ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")]
    private let alice = [("Cookie", "id=alice")]

    @Test(
        "an answer to a request with Cookie is stored where it says its freshness itself",
        arguments: [
            (CachePolicy(ttl: 6000), [], false), (CachePolicy(mode: .library, ttl: 6000), [], false),
            (CachePolicy(), [("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")], false),
            (CachePolicy(), [("Cache-Control", "max-age=6000")], true),
            (CachePolicy(mode: .library, ttl: 6000), [("Cache-Control", "max-age=6000")], true),
            (CachePolicy(ttl: 6000, cookies: .any), [], true),
            (CachePolicy(cookies: .never), [("Cache-Control", "max-age=6000")], false),
        ] as [(CachePolicy, [(String, String)], Bool)]
    )
    func storing(_ policy: CachePolicy, _ fields: [(String, String)], _ isStored: Bool) async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                .whole(200, fields, Array((asked.fields.first(.cookie) ?? "nobody").utf8))
            }
            let first = await rig.get("/a", alice, policy: policy)
            #expect(first.text == "id=alice")
            #expect(first.cache == "fwd=uri-miss; fwd-status=200; \(isStored ? "stored" : "detail=request-cookie")")
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: policy).text == (isStored ? "id=alice" : "nobody"))
            #expect(await rig.settle())
            // What came for nobody in particular is stored, and answers whoever asks.
            #expect(await rig.get("/a", alice, policy: policy).cache.hasPrefix("hit"))
            #expect(rig.origin.count == (isStored ? 1 : 2))
        }
    }

    @Test("what a request with Cookie is refused leaves what others have stored as it is")
    func othersKeepTheirs() async throws {
        try await withRig { rig in
            let policy = CachePolicy(ttl: 6000)
            rig.origin.answers { _ in .whole(200, tagged) }
            #expect(await rig.get("/a", policy: policy).text == "hello")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let new = [("ETag", "\"2\""), ("X-User", "alice")]
            rig.origin.answers { _ in .whole(200, new, Array("for alice".utf8)) }
            let own = await rig.get("/a", alice, policy: policy)
            #expect(own.text == "for alice" && own.cache.hasSuffix("detail=request-cookie"))
            #expect(await rig.settle())
            rig.origin.answers { _ in .down }
            let other = await rig.get("/a", policy: policy)
            #expect(other.text == "hello" && other.cache.hasSuffix("detail=stale-if-error"))
        }
    }

    @Test(
        "a check with Cookie changes nothing that others get, unless it says its freshness",
        arguments: [false, true]
    )
    func checks(_ saysFreshness: Bool) async throws {
        try await withRig(disk: true) { rig in
            let policy = CachePolicy(ttl: 6000)
            rig.origin.answers { _ in .whole(200, tagged) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let answer = tagged + [("X-User", "alice")] + (saysFreshness ? [("Cache-Control", "max-age=6000")] : [])
            rig.origin.answers { _ in .headOnly(304, answer) }
            let own = await rig.get("/a", alice, policy: policy)
            #expect(own.text == "hello" && own.fields.first("X-User") == "alice")
            rig.origin.answers { _ in .headOnly(304, tagged) }
            for _ in 0..<2 {
                let other = await rig.get("/a", policy: policy)
                #expect(other.text == "hello" && other.fields.contains("X-User") == saysFreshness)
                rig.memory.removeAll()
            }
            #expect(rig.origin.count == (saysFreshness ? 2 : 3))
        }
    }

    @Test("in library mode, who waits for a check with Cookie asks for itself")
    func waitersOfAChecksCookie() async throws {
        try await withRig { rig in
            let policy = CachePolicy(mode: .library, ttl: 6000)
            rig.origin.answers { _ in .whole(200, tagged) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let valve = Valve()
            rig.origin.answers { asked in
                let isAlice = asked.fields.contains(.cookie)
                let own = isAlice ? [("X-User", "alice"), ("Set-Cookie", "id=2")] : []
                let head = ResponseHead(status: 200, reason: "R", fields: Fields(tagged + own))
                return Reply(steps: (isAlice ? [.valve(valve)] : []) + [.head(head, .none), .end(Fields())])
            }
            let first = await rig.start(rig.ask("/a", alice, policy: policy))
            #expect(await eventually { rig.origin.count == 2 })
            let second = await rig.start(rig.ask("/a", policy: policy))
            valve.open()
            let own = await first.value
            #expect(own.text == "hello" && own.fields.first("X-User") == "alice")
            #expect(own.fields.first(.setCookie) == "id=2")
            let other = await second.value
            #expect(other.text == "hello" && !other.fields.contains("X-User") && !other.fields.contains(.setCookie))
            #expect(rig.origin.count == 3)
        }
    }

    @Test("once an answer was refused for its cookie, requests with cookies wait for one another no longer; others do")
    func collapsing() async throws {
        try await withRig { rig in
            let policy = CachePolicy(ttl: 6000)
            rig.origin.answers { _ in .whole(200, []) }
            _ = await rig.get("/a", alice, policy: policy)
            let valve = Valve()
            rig.origin.answers { _ in .whole(200, [], head: valve) }
            var all: [Task<Got, Never>] = []
            for _ in 0..<3 { all.append(await rig.start(rig.ask("/a", alice, policy: policy))) }
            // None of them waits for another's head.
            #expect(await eventually { rig.origin.count == 4 })
            for _ in 0..<3 { all.append(await rig.start(rig.ask("/a", policy: policy))) }
            #expect(await eventually { rig.origin.count == 5 })
            valve.open()
            for task in all { #expect(await task.value.text == "hello") }
            #expect(rig.origin.count == 5, "those without a cookie share one fetch")
        }
    }

    @Test(
        "the Set-Cookie of a check is for the client whose request asked, however it is checked",
        arguments: [ValidationMethod.head, .conditional],
        [SetCookiePolicy.strict, .strip, .explicit]
    )
    func cookiesOfAnOwnCheck(_ method: ValidationMethod, _ rule: SetCookiePolicy) async throws {
        try await withRig { rig in
            let policy = CachePolicy(revalidate: method, setCookie: rule)
            rig.origin.answers { _ in .whole(200, fresh) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .headOnly(304, fresh + [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]) }
            let own = await rig.get("/a", policy: policy)
            #expect(own.text == "hello" && own.fields.all(.setCookie) == ["a=1", "b=2"])
            let other = await rig.get("/a", policy: policy)
            #expect(other.cache.hasPrefix("hit"))
            // A HEAD says nothing of cookies that is kept.
            let isKept = rule == .explicit && method != .head
            #expect(other.fields.all(.setCookie) == (isKept ? ["a=1", "b=2"] : []))
        }
    }

    @Test("the Set-Cookie of a part is for the client whose request asked for it")
    func cookiesOfAPart() async throws {
        try await withRig { rig in
            var file = RangedFile(1000)
            file.fields.append(("Set-Cookie", "a=1"))
            rig.origin.answers(file.reply)
            let own = await rig.range("100-199")
            #expect(own.status == 206 && own.fields.all(.setCookie) == ["a=1"])
            #expect(await rig.settle())
            let other = await rig.range("100-199")
            #expect(other.cache.hasPrefix("hit") && !other.fields.contains(.setCookie))
        }
    }

    @Test("a cookie in the trailers is for nobody who waited, and the other trailers go on")
    func cookiesInTrailers() async throws {
        try await withRig { rig in
            let valve = Valve()
            let trailers = Fields([("X-Sum", "1"), ("Set-Cookie", "id=1")])
            let control = [("Cache-Control", "max-age=6000, public")]
            rig.origin.answers { _ in .pieces(control, [.valve(valve), .bytes([7]), .end(trailers)]) }
            let first = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            let second = await rig.start(rig.ask())
            valve.open()
            for got in [await first.value, await second.value] {
                #expect(got.body == [7] && got.trailers.lines.map(\.name) == ["X-Sum"])
            }
            #expect(rig.origin.count == 1)
        }
    }

    @Test(
        "what was stored with a cookie under another policy answers without it",
        arguments: [false, true],
        [100, 300_000]
    )
    func storedBefore(_ isOnDisk: Bool, _ count: Int) async throws {
        try await withRig(disk: true) { rig in
            let fields = fresh + [("Set-Cookie", "a=1")]
            rig.origin.answers { _ in .whole(200, fields, Array(repeating: 7, count: count)) }
            let before = CachePolicy(setCookie: .explicit)
            _ = await rig.get("/a", policy: before)
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: before).fields.first(.setCookie) == "a=1")
            for rule in [SetCookiePolicy.strict, .strip, .skip] {
                if isOnDisk { rig.memory.removeAll() }
                let got = await rig.get(rig.ask("/a", policy: CachePolicy(setCookie: rule), headFormatID: 2))
                #expect(got.cache.hasPrefix("hit") && got.body?.count == count && !got.fields.contains(.setCookie))
            }
            #expect(rig.origin.count == 1)
        }
    }
}
