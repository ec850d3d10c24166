// What must not take the place of a good copy: a client's HEAD, a server error, a variant of old,
// a clock that was set back.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let control = ("Cache-Control", "max-age=6000")
private let tagged = [control, ("ETag", "\"1\"")]
private let reload = ("Cache-Control", "no-cache")

/// Where copies are kept.
enum KeptIn: Sendable, CaseIterable {
    case memory, disk, both

    func policy(_ change: (inout CachePolicy) -> Void = { _ in }) -> CachePolicy {
        var policy = CachePolicy(memory: self != .disk, disk: self != .memory, checkPause: 0)
        change(&policy)
        return policy
    }
}

/// Stored once, and stale by some seconds.
private func withCopy(
    _ fields: [(String, String)] = tagged,
    _ policy: CachePolicy,
    by seconds: Int64 = -3000,
    _ request: [(String, String)] = [],
    _ test: (Rig) async throws -> Void
) async throws {
    try await withRig(disk: true) { rig in
        rig.origin.answers { _ in .whole(200, fields) }
        _ = await rig.get("/a", request, policy: policy)
        #expect(await rig.settle())
        rig.clock.advance(seconds: 6000 + seconds)
        try await test(rig)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ClientsHeadTests {
    @Test(
        "RFC 9111 section 4.3.5: a client's HEAD that shows a change makes the copy stale and removes nothing",
        arguments: KeptIn.allCases,
        [
            [("ETag", "\"2\"")], [("ETag", "\"1\""), ("Content-Length", "6")],
        ]
    )
    func changed(_ tiers: KeptIn, _ fields: [(String, String)]) async throws {
        let policy = tiers.policy()
        try await withCopy(tagged, policy) { rig in
            rig.origin.answers { _ in .headOnly(200, fields) }
            let head = await rig.get(rig.ask(method: .head, [reload], policy: policy))
            #expect(head.cache == "fwd=request; fwd-status=200; detail=request-no-cache")
            rig.clock.advance(seconds: 100)
            let explained = await rig.explain(rig.ask(policy: policy))
            #expect(explained.locations.count == 1 && explained.rules.reason == "expired")
            let lifetime = try #require(explained.rules.variant?.lifetime)
            // The clock goes on while a test runs.
            #expect(lifetime.source == .head && (3000..<3100).contains(lifetime.seconds))
            // Nothing else has come yet: it stands in where the origin fails.
            rig.origin.answers { _ in .down }
            let stale = await rig.get("/a", policy: policy)
            #expect(stale.text == "hello" && stale.cache == "fwd=stale; ttl=-100; detail=stale-if-error")
            // What memory had has gone; what the disk has is stale, too.
            rig.memory.removeAll()
            if tiers != .memory {
                #expect(await rig.get("/a", policy: policy).cache == "fwd=stale; ttl=-100; detail=stale-if-error")
            }
            rig.origin.answers { $0.method == .head ? .headOnly(200, [("ETag", "\"2\"")]) : .whole(200, tagged, [1]) }
            #expect(await rig.get("/a", policy: policy).body == [1])
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: policy).cache.hasPrefix("hit; ttl=6000"))
        }
    }

    @Test("what a HEAD has made stale is fresh again when it is confirmed", arguments: KeptIn.allCases)
    func confirmed(_ tiers: KeptIn) async throws {
        let policy = tiers.policy()
        try await withCopy(tagged, policy) { rig in
            rig.origin.answers { _ in .headOnly(200, [("ETag", "\"2\"")]) }
            _ = await rig.get(rig.ask(method: .head, [reload], policy: policy))
            rig.origin.answers { _ in .headOnly(304, tagged) }
            #expect(await rig.get("/a", policy: policy).cache.hasSuffix("ttl=6000; detail=revalidated"))
            #expect(await rig.get("/a", policy: policy).cache.hasPrefix("hit; ttl=6000"))
            #expect(await rig.explain(rig.ask(policy: policy)).rules.variant?.lifetime.source == .maxAge)
        }
    }

    @Test("with gone: evict, too: only a GET that says so removes it")
    func gone() async throws {
        let policy = CachePolicy(checkPause: 0, gone: .remove)
        try await withCopy(tagged, policy) { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(410, []) : .whole(410, [], Array("gone".utf8)) }
            #expect(await rig.get(rig.ask(method: .head, [reload], policy: policy)).status == 410)
            #expect(await rig.explain(rig.ask(policy: policy)).locations.count == 1)
            #expect(await rig.get("/a", policy: policy).status == 410)
            #expect(await rig.settle())
            #expect(await rig.explain(rig.ask(policy: policy)).locations.isEmpty)
        }
    }

    @Test("a check takes over neither Set-Cookie nor Content-Type from a HEAD", arguments: KeptIn.allCases, [200, 304])
    func fields(_ tiers: KeptIn, _ status: Int) async throws {
        let policy = tiers.policy { $0.setCookie = .explicit }
        let stored = [
            ("Cache-Control", "max-age=6000, public"), ("ETag", "\"1\""), ("Content-Type", "image/png"),
            ("Set-Cookie", "a=stored"),
        ]
        try await withCopy(stored, policy, by: 100) { rig in
            let told = [
                ("Cache-Control", "max-age=6000, public"), ("ETag", "\"1\""), ("Content-Type", "text/html"),
                ("Set-Cookie", "a=told"), ("X-New", "1"),
            ]
            rig.origin.answers { _ in .headOnly(status, told) }
            let checked = await rig.get("/a", policy: policy)
            #expect(checked.cache.hasSuffix("detail=revalidated"))
            #expect(checked.fields.first(.contentType) == "image/png" && checked.fields.first("X-New") == "1")
            let later = await rig.get("/a", policy: policy)
            #expect(later.cache.hasPrefix("hit;") && later.fields.first("X-New") == "1")
            #expect(later.fields.first(.contentType) == "image/png" && later.fields.all(.setCookie) == ["a=stored"])
        }
    }

    @Test("the same of a client's own HEAD")
    func ownFields() async throws {
        try await withCopy(tagged + [("Content-Type", "image/png")], CachePolicy(), by: 100) { rig in
            let told = tagged + [("Content-Type", "text/html"), ("X-New", "1")]
            rig.origin.answers { _ in .headOnly(200, told) }
            #expect(await rig.get(rig.ask(method: .head)).fields.first(.contentType) == "text/html")
            let got = await rig.get()
            #expect(got.cache.hasPrefix("hit;") && got.fields.first(.contentType) == "image/png")
            #expect(got.fields.first("X-New") == "1")
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct VaryGoneTests {
    @Test(
        "a reload whose answer has no Vary any more takes the place of the variant that its request selected",
        arguments: KeptIn.allCases
    )
    func reloaded(_ tiers: KeptIn) async throws {
        let policy = tiers.policy()
        let (english, french) = ([("Accept-Language", "en")], [("Accept-Language", "fr")])
        try await withCopy(tagged + [("Vary", "Accept-Language")], policy, english) { rig in
            rig.origin.answers { _ in .whole(200, tagged + [("Vary", "Accept-Language")], Array("bonjour".utf8)) }
            #expect(await rig.get("/a", french, policy: policy).text == "bonjour")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 10)
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=100")], Array("new".utf8)) }
            #expect(await rig.get("/a", english + [reload], policy: policy).text == "new")
            #expect(await rig.settle())
            // A variant that was fresh when it came is one of a resource that omits Vary from its default response.
            let expected: [(request: [(String, String)], text: String)] = [
                (english, "new"), (french, "bonjour"), ([], "new"),
            ]
            for (request, text) in expected {
                let got = await rig.get("/a", request, policy: policy)
                #expect(got.text == text && got.cache.hasPrefix("hit;"), "\(request) \(got.cache)")
            }
            let variants = await rig.explain(rig.ask("/a", english, policy: policy)).rules.variants
            #expect(
                variants.map { $0.selecting.map { $0.stored ?? "" } }.sorted { $0.count < $1.count } == [[], ["fr"]]
            )
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ServerErrorTests {
    @Test(
        "a 5xx takes the place of no copy that may still serve, and of others as it says",
        arguments: [
            // Fresh, and reloaded.
            ("max-age=6000", -3000, CachePolicy(), true), ("max-age=6000, must-revalidate", -3000, CachePolicy(), true),
            ("max-age=6000, no-cache", -3000, CachePolicy(), false),
            // Stale, and stands in for errors; reloaded, so that the client is told.
            ("max-age=6000", 100, CachePolicy(), true), ("max-age=6000, stale-if-error=50", 100, CachePolicy(), false),
            ("max-age=6000", 100, CachePolicy(staleIfError: 0), false),
            ("max-age=6000, must-revalidate", 100, CachePolicy(), false),
            ("max-age=6000, stale-while-revalidate=500", 100, CachePolicy(staleIfError: 0), true),
            ("max-age=6000", 100, CachePolicy(mode: .library, ttl: 6000), true),
        ] as [(String, Int64, CachePolicy, Bool)],
        KeptIn.allCases
    )
    func kept(_ way: (String, Int64, CachePolicy, Bool), _ tiers: KeptIn) async throws {
        var policy = way.2
        (policy.memory, policy.disk, policy.checkPause) = (tiers != .disk, tiers != .memory, 0)
        policy.ttlByStatus = [503: 60]
        try await withCopy([("Cache-Control", way.0), ("ETag", "\"1\"")], policy, by: way.1) { [policy] rig in
            rig.origin.answers { _ in .whole(503, [("Cache-Control", "max-age=60")], Array("error".utf8)) }
            let got = await rig.get("/a", [reload], policy: policy)
            #expect(got.status == 503 && got.text == "error")
            let kept = "fwd=\(way.1 < 0 ? "request" : "stale"); fwd-status=503; detail=error-over-stored"
            if way.3 { #expect(got.cache == kept) } else { #expect(got.cache.contains("; stored")) }
            #expect(await rig.settle())
            let stored = await rig.explain(rig.ask(policy: policy)).rules.variants.map(\.status)
            #expect(stored == [way.3 ? 200 : 503])
            if way.3, !way.0.contains("no-cache") {
                #expect(await rig.get("/a", policy: policy).text == "hello")
                #expect(await rig.settle())
            }
        }
    }

    @Test("a 5xx for another variant, which names none, hides no copy either; where nothing is stored it is")
    func variants() async throws {
        try await withCopy(tagged + [("Vary", "Accept-Language")], CachePolicy(), [("Accept-Language", "en")]) { rig in
            rig.origin.answers { _ in .whole(503, [("Cache-Control", "max-age=60")]) }
            let got = await rig.get("/a", [("Accept-Language", "fr")])
            #expect(got.cache == "fwd=vary-miss; fwd-status=503; detail=error-over-stored")
            #expect(await rig.settle())
            #expect(await rig.get("/a", [("Accept-Language", "en")]).cache.hasPrefix("hit;"))
            #expect(await rig.get("/b").cache == "fwd=uri-miss; fwd-status=503; stored")
            #expect(await rig.settle())
            // One error takes the place of another.
            #expect(
                await rig.get("/b", [reload]).cache == "fwd=request; fwd-status=503; stored; detail=request-no-cache"
            )
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ClockSetBackTests {
    @Test("what came at a time that is still to come is stale: the clock was set back", arguments: KeptIn.allCases)
    func stale(_ tiers: KeptIn) async throws {
        for mode in [CacheMode.standard, .library] {
            let policy = tiers.policy { ($0.mode, $0.ttl) = (mode, 6000) }
            try await withCopy(tagged, policy, by: -6000) { rig in
                #expect(await rig.get("/a", policy: policy).cache.hasPrefix("hit;"))
                rig.clock.advance(seconds: -1_000_000)
                let explained = await rig.explain(rig.ask(policy: policy))
                #expect(explained.rules.reason == "clock-set-back" && explained.rules.check != nil)
                rig.origin.answers { _ in .down }
                let stale = await rig.get("/a", policy: policy)
                #expect(stale.text == "hello" && stale.cache == "fwd=stale; ttl=0; detail=stale-if-error")
                rig.origin.answers { _ in .headOnly(200, tagged) }
                #expect(await rig.get("/a", policy: policy).cache.hasSuffix("ttl=6000; detail=revalidated"))
                #expect(await rig.get("/a", policy: policy).cache.hasPrefix("hit; ttl=6000"))
                #expect(rig.origin.methods == "GET HEAD HEAD")
            }
        }
    }

    @Test("a pause after a failed check is over when the clock is set back")
    func pause() async throws {
        try await withCopy(tagged, CachePolicy(checkPause: 300), by: 100) { rig in
            rig.origin.answers { _ in .down }
            let policy = CachePolicy(checkPause: 300)
            #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=stale-if-error"))
            #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=check-pause"))
            rig.clock.advance(seconds: -50)
            #expect(await rig.get("/a", policy: policy).cache.hasSuffix("detail=stale-if-error"))
        }
    }
}
