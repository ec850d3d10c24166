// gone, check_pause, min_length and set_cookie over a scripted origin: what stays stored, and what is asked.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let tagged = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
private let text = Array("hello".utf8)

/// Stored once, stale since 100 seconds.
private func withStale(
    _ fields: [(String, String)] = tagged,
    policy: CachePolicy,
    disk: Bool = false,
    _ test: (Rig) async throws -> Void
) async throws {
    try await withRig(disk: disk) { rig in
        rig.origin.answers { _ in .whole(200, fields, text) }
        _ = await rig.get("/a", policy: policy)
        #expect(await rig.settle())
        rig.clock.advance(seconds: policy.mode == .library ? 7300 : 6100)
        try await test(rig)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct GoneTests {
    static let modes: [(CacheMode, Int)] = [(.standard, 404), (.standard, 410), (.library, 404), (.library, 410)]

    @Test("gone: pass hands the answer on, and the copy stays for when nobody can be asked", arguments: modes)
    func pass(_ mode: CacheMode, _ status: Int) async throws {
        let policy = CachePolicy(mode: mode, checkPause: 0)
        try await withStale(policy: policy, disk: true) { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(status, []) : .whole(status, [], Array("gone".utf8)) }
            let got = await rig.get("/a", policy: policy)
            #expect(got.status == status && got.text == "gone")
            #expect(await rig.settle())
            rig.origin.answers { _ in .down }
            let stale = await rig.get("/a", policy: policy)
            #expect(stale.text == "hello" && stale.cache == "fwd=stale; ttl=-100; detail=stale-if-error")
            #expect(rig.origin.methods == "GET HEAD GET HEAD")
        }
    }

    @Test("gone: evict hands the answer on, and the copy goes from both tiers", arguments: modes)
    func evict(_ mode: CacheMode, _ status: Int) async throws {
        let policy = CachePolicy(mode: mode, gone: .remove)
        try await withStale(policy: policy, disk: true) { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(status, []) : .whole(status, [], Array("gone".utf8)) }
            #expect(await rig.get("/a", policy: policy).status == status)
            #expect(await rig.settle())
            rig.origin.answers { _ in .down }
            #expect(await rig.get("/a", policy: policy).failure != nil)
            #expect(await rig.explain(rig.ask(policy: policy)).locations.isEmpty)
        }
    }

    @Test("gone: serve-stale answers with the copy, and asks again after check_pause", arguments: modes)
    func serveStale(_ mode: CacheMode, _ status: Int) async throws {
        let policy = CachePolicy(mode: mode, checkPause: 300, gone: .useStored)
        try await withStale(policy: policy) { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(status, []) : .whole(status, [], Array("gone".utf8)) }
            let got = await rig.get("/a", policy: policy)
            #expect(got.text == "hello")
            #expect(got.cache == "fwd=stale; fwd-status=\(status); ttl=-100; detail=stale-if-error")
            #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=-100; detail=check-pause")
            rig.clock.advance(seconds: 300)
            #expect(await rig.get("/a", policy: policy).text == "hello")
            #expect(rig.origin.methods == "GET HEAD GET HEAD GET")
        }
    }

    @Test("gone: serve-stale does not overrule must-revalidate")
    func mustRevalidate() async throws {
        let policy = CachePolicy(gone: .useStored)
        try await withStale([("Cache-Control", "max-age=6000, must-revalidate"), ("ETag", "\"1\"")], policy: policy) {
            rig in
            rig.origin.answers { $0.method == .head ? .headOnly(404, []) : .whole(404, [], Array("gone".utf8)) }
            #expect(await rig.get("/a", policy: policy).status == 404)
        }
    }

    // MARK: - check_pause

    @Test("standard mode: after a failed check nobody asks for check_pause; 0 asks every time")
    func checkPause() async throws {
        for (pause, methods) in [(3000, "GET HEAD HEAD"), (0, "GET HEAD HEAD HEAD")] as [(Int64, String)] {
            let policy = CachePolicy(checkPause: pause)
            try await withStale(policy: policy) { rig in
                rig.origin.answers { _ in .down }
                #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=stale-if-error"))
                rig.clock.advance(seconds: 2000)
                let second = await rig.get("/a", policy: policy)
                #expect(second.text == "hello")
                #expect(second.cache.hasSuffix(pause == 0 ? "stale-if-error" : "check-pause"))
                rig.clock.advance(seconds: 1000)
                #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=stale-if-error"))
                #expect(rig.origin.methods == methods)
            }
        }
    }

    @Test("what must not be used stale waits for no pause")
    func pauseOfWhatMustBeChecked() async throws {
        let policy = CachePolicy()
        try await withStale([("Cache-Control", "max-age=6000, must-revalidate"), ("ETag", "\"1\"")], policy: policy) {
            rig in
            rig.origin.answers { _ in .down }
            for _ in 0..<2 { #expect(await rig.get("/a", policy: policy).failure != nil) }
            #expect(rig.origin.methods == "GET HEAD HEAD")
        }
    }

    @Test("a refresh behind that fails waits, too, and an explanation says so")
    func pauseBehind() async throws {
        let policy = CachePolicy(staleWhileRevalidate: 1000, checkPause: 300)
        try await withStale(policy: policy) { rig in
            rig.origin.answers { _ in .down }
            #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=-100; detail=refreshing")
            #expect(await rig.settle())
            #expect(rig.origin.count == 2)
            for _ in 0..<3 { #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=-100; detail=check-pause") }
            #expect(rig.origin.count == 2)
            let explained = await rig.explain(rig.ask(policy: policy))
            #expect(explained.rules.reason == "check-pause" && explained.rules.check == nil)
            #expect(explained.rules.section == "configuration, cache.check_pause")
            rig.clock.advance(seconds: 300)
            rig.origin.answers { _ in .headOnly(304, tagged) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=6000; detail=memory")
        }
    }

    // MARK: - What replaces a copy

    @Test("an answer that is not stored takes the copy's place only when all of it has come")
    func notDroppedBeforeTheEnd() async throws {
        let policy = CachePolicy(checkPause: 0)
        try await withStale(policy: policy, disk: true) { rig in
            let cut = Reply.pieces([("Cache-Control", "no-store")], length: 9, [.bytes([1]), Reply.down.steps[0]])
            rig.origin.answers { $0.method == .head ? .headOnly(200, [("ETag", "\"2\"")]) : cut }
            #expect(await rig.get("/a", policy: policy).error != nil)
            #expect(await rig.settle())
            rig.origin.answers { _ in .down }
            #expect(await rig.get("/a", policy: policy).text == "hello")
            rig.origin.answers {
                $0.method == .head ? .headOnly(200, [("ETag", "\"2\"")]) : .whole(200, [("Cache-Control", "no-store")])
            }
            #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=no-store"))
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask(policy: policy)).locations.isEmpty)
        }
    }

    @Test(
        "min_length: what is declared or turns out shorter is passed on, and the good copy stays",
        arguments: [true, false]
    )
    func minLength(_ isDeclared: Bool) async throws {
        let policy = CachePolicy(checkPause: 0, minLength: 5)
        try await withStale(policy: policy, disk: true) { rig in
            let new = [("ETag", "\"2\""), ("Cache-Control", "max-age=6000")]
            let short =
                isDeclared
                ? Reply.whole(200, new, Array("tiny".utf8))
                : Reply.pieces(new, [.bytes(Array("tiny".utf8)), .end(Fields())])
            rig.origin.answers { $0.method == .head ? .headOnly(200, new) : short }
            let got = await rig.get("/a", policy: policy)
            #expect(got.text == "tiny")
            if isDeclared { #expect(got.cache == "fwd=stale; fwd-status=200; detail=too-short") }
            #expect(await rig.settle())
            rig.origin.answers { _ in .down }
            #expect(await rig.get("/a", policy: policy).text == "hello")
        }
    }

    @Test(
        "set_cookie: who asks gets the cookie; explicit keeps it for all, strict and strip for nobody, skip keeps nothing"
    )
    func setCookie() async throws {
        let fields = [("Cache-Control", "max-age=6000"), ("Set-Cookie", "id=1")]
        for (rule, cookie, asked) in [(.strict, nil, 1), (.explicit, "id=1", 1), (.strip, nil, 1), (.skip, "id=1", 2)]
            as [(SetCookiePolicy, String?, Int)]
        {
            try await withRig { rig in
                let policy = CachePolicy(setCookie: rule)
                rig.origin.answers { _ in .whole(200, fields) }
                #expect(await rig.get("/a", policy: policy).fields.first(.setCookie) == "id=1")
                #expect(await rig.settle())
                #expect(await rig.get("/a", policy: policy).fields.first(.setCookie) == cookie, "\(rule)")
                #expect(rig.origin.count == asked)
            }
        }
    }

    @Test(
        "what is not stored of an answer is not for those who wait for it either (RFC 9111 sections 5.2.2.4 and 5.2.2.7)",
        arguments: [
            (SetCookiePolicy.strict, ""), (.strict, ", public"), (.explicit, ""), (.strip, ""),
            (.explicit, ", no-cache=\"set-cookie\""),
            (.explicit, ", private=\"set-cookie\""),
        ]
    )
    func fieldsOfWaiters(_ rule: SetCookiePolicy, _ control: String) async throws {
        let policy = CachePolicy(setCookie: rule)
        try await withRig { rig in
            let valve = Valve()
            rig.origin.answers { _ in
                .whole(200, [("Cache-Control", "max-age=6000\(control)"), ("Set-Cookie", "id=1")], head: valve)
            }
            let first = await rig.start(rig.ask(policy: policy))
            #expect(await eventually { rig.origin.count == 1 })
            let second = await rig.start(rig.ask(policy: policy))
            valve.open()
            #expect(await first.value.fields.first(.setCookie) == "id=1")
            let got = await second.value
            #expect(got.text == "hello" && !got.fields.contains(.setCookie))
            #expect(rig.origin.count == 1)
        }
    }
}
