// Stale responses: checked by HEAD or by a conditional GET, replaced, answered stale, refreshed behind.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing
import Upstream

/// Stored once, stale since a second.
private func withStale(
    _ extra: [(String, String)] = [("ETag", "\"1\"")],
    control: String = "max-age=6000",
    disk: Bool = false,
    policy: CachePolicy = CachePolicy(),
    by seconds: Int64 = 100,
    _ test: (Rig) async throws -> Void
) async throws {
    try await withRig(disk: disk) { rig in
        rig.origin.answers { _ in .whole(200, [("Cache-Control", control)] + extra) }
        _ = await rig.get("/a", policy: policy)
        #expect(await rig.settle())
        rig.clock.advance(seconds: 6000 + seconds)
        try await test(rig)
    }
}

private let tagged = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]

@Suite(.timeLimit(.minutes(5)))
struct RevalidationTests {
    @Test("a HEAD with the same validator, or 304 to it, freshens: one HEAD, no GET", arguments: [200, 304])
    func headUnchanged(_ status: Int) async throws {
        try await withStale { rig in
            rig.origin.answers { _ in .headOnly(status, tagged) }
            let checked = await rig.get()
            #expect(checked.text == "hello" && checked.status == 200)
            #expect(checked.cache == "fwd=stale; fwd-status=\(status); ttl=6000; detail=revalidated")
            #expect(rig.origin.log[1].fields.first(.ifNoneMatch) == "\"1\"")
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.methods == "GET HEAD")
        }
    }

    @Test("a HEAD with another validator: exactly one GET without conditions")
    func headChanged() async throws {
        try await withStale { rig in
            let new = [("Cache-Control", "max-age=6000"), ("ETag", "\"2\"")]
            rig.origin.answers { $0.method == .head ? .headOnly(200, new) : .whole(200, new, Array("new".utf8)) }
            let got = await rig.get()
            #expect(got.text == "new")
            #expect(got.cache == "fwd=stale; fwd-status=200; stored; detail=replaced")
            #expect(rig.origin.methods == "GET HEAD GET")
            #expect(!rig.origin.log[2].fields.contains(.ifNoneMatch))
            #expect(await rig.get().text == "new")
            #expect(rig.origin.count == 3)
        }
    }

    @Test(
        "an origin that refuses HEAD is asked by a conditional GET",
        arguments: [403, 405, 501]
    )
    func headRefused(_ status: Int) async throws {
        try await withStale { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(status, []) : .whole(304, tagged) }
            #expect(await rig.get().cache == "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated")
            #expect(rig.origin.methods == "GET HEAD GET")
            #expect(rig.origin.log[2].fields.first(.ifNoneMatch) == "\"1\"")
            rig.clock.advance(seconds: 6100)
            #expect(await rig.get().cache == "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated")
            // HEAD is tried again after five minutes.
            #expect(rig.origin.methods == "GET HEAD GET HEAD GET")
        }
    }

    @Test("a HEAD that says gone leads to a GET that says so")
    func headGone() async throws {
        try await withStale { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(404, []) : .whole(404, [], Array("none".utf8)) }
            let got = await rig.get()
            #expect(got.status == 404 && got.text == "none")
            #expect(rig.origin.methods == "GET HEAD GET")
        }
    }

    @Test("a HEAD that fails, and the GET after it: the stale response where it may be used")
    func headFails() async throws {
        try await withStale { rig in
            rig.origin.answers { _ in .headOnly(503, []) }
            let got = await rig.get()
            #expect(got.text == "hello" && got.age == 6100)
            #expect(got.cache == "fwd=stale; fwd-status=503; ttl=-100; detail=stale-if-error")
            #expect(rig.origin.methods == "GET HEAD GET")
        }
    }

    @Test("a HEAD that fails and nothing stale to use: nothing is known, so a conditional GET asks again")
    func headFailsNoStale() async throws {
        try await withStale(control: "max-age=6000, must-revalidate") { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(503, []) : .whole(304, tagged) }
            #expect(await rig.get().cache == "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated")
            #expect(rig.origin.methods == "GET HEAD GET")
            #expect(rig.origin.log[2].fields.first(.ifNoneMatch) == "\"1\"")
        }
    }

    @Test("revalidate: conditional asks by GET: 304 freshens, 200 replaces")
    func conditional() async throws {
        let policy = CachePolicy(revalidate: .conditional)
        try await withStale(policy: policy) { rig in
            rig.origin.answers { _ in .whole(304, tagged) }
            let checked = await rig.get("/a", policy: policy)
            #expect(checked.cache == "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated")
            #expect(checked.status == 200 && checked.text == "hello")
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .whole(200, tagged, Array("new".utf8)) }
            let replaced = await rig.get("/a", policy: policy)
            #expect(replaced.cache == "fwd=stale; fwd-status=200; stored; detail=replaced")
            #expect(replaced.text == "new")
            #expect(rig.origin.methods == "GET GET GET")
            #expect(rig.origin.log[1].fields.first(.ifNoneMatch) == "\"1\"")
        }
    }

    @Test("revalidate: never fetches in full, and nothing was replaced after a check")
    func never() async throws {
        let policy = CachePolicy(revalidate: .never)
        try await withStale(policy: policy) { rig in
            #expect(await rig.get("/a", policy: policy).cache == "fwd=stale; fwd-status=200; stored; detail=expired")
            #expect(rig.origin.methods == "GET GET")
            #expect(!rig.origin.log[1].fields.contains(.ifNoneMatch))
        }
    }

    @Test("http-rules 34: a 304 that nobody asked for is an error of the origin")
    func unsolicited() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(304, tagged) }
            let got = await rig.get("/a", [("If-None-Match", "\"1\"")])
            #expect(got.status == 502 && got.failure?.proxyStatus == "http_protocol_error")
            #expect(got.cache == "fwd=uri-miss; detail=http_protocol_error")
        }
    }

    @Test("an end-to-end reload asks by a conditional GET", arguments: ["no-cache", "max-age=0"])
    func reload(_ control: String) async throws {
        try await withStale(by: -3000) { rig in
            rig.origin.answers { _ in .whole(304, tagged) }
            let got = await rig.get("/a", [("Cache-Control", control)])
            #expect(got.cache == "fwd=request; fwd-status=304; ttl=6000; detail=revalidated")
            #expect(rig.origin.methods == "GET GET")
        }
    }

    @Test(
        "RFC 5861 section 3: stale-while-revalidate answers at once, and refreshes behind, once",
        arguments: [
            Method.get, .head,
        ]
    )
    func whileRevalidate(_ method: Method) async throws {
        try await withStale([], control: "max-age=6000, stale-while-revalidate=3000") { rig in
            let valve = Valve()
            rig.origin.answers { _ in .whole(200, tagged, Array("new".utf8), head: valve) }
            for _ in 0..<3 {
                let got = await rig.get(rig.ask(method: method))
                #expect(got.cache == "hit; ttl=-100; detail=refreshing" && got.length == 5)
            }
            #expect(rig.origin.count == 2)
            valve.open()
            #expect(await rig.settle())
            let fresh = await rig.get()
            #expect(fresh.text == "new" && fresh.cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.methods == "GET GET")
        }
    }

    @Test(
        "a refresh behind that nobody reads is stored, however long it is, and whether or not it says so",
        arguments: [
            false, true,
        ]
    )
    func refreshOfMuch(_ hasLength: Bool) async throws {
        try await withStale([], control: "max-age=6000, stale-while-revalidate=3000") { rig in
            let part = [UInt8](repeating: 3, count: 1 << 20)
            rig.origin.answers { _ in
                .pieces(length: hasLength ? 3 << 20 : nil, [.bytes(part), .bytes(part), .bytes(part), .end(Fields())])
            }
            #expect(await rig.get().cache == "hit; ttl=-100; detail=refreshing")
            #expect(await rig.settle())
            let got = await rig.get()
            #expect(got.body?.count == 3 << 20 && got.cache == "hit; ttl=6000; detail=memory")
        }
    }

    @Test("a refresh behind that no tier can take is given up, not left hanging")
    func refreshOfTooMuch() async throws {
        try await withStale([], control: "max-age=6000, stale-while-revalidate=3000") { rig in
            let part = [UInt8](repeating: 3, count: 1 << 20)
            rig.origin.answers { _ in .pieces(length: nil, Array(repeating: .bytes(part), count: 12) + [.end(Fields())])
            }
            #expect(await rig.get().text == "hello")
            #expect(await rig.settle())
            #expect(rig.origin.cancelled == 1)
        }
    }

    @Test(
        "what may not be stored any more takes what was stored along; what is gone is asked for, and an error changes nothing",
        arguments: [
            (200, "no-store", "fwd=uri-miss"), (404, "private", "fwd=stale"), (403, "no-store", "hit"),
            (500, "no-store", "hit"),
        ]
    )
    func outdated(_ status: Int, _ control: String, _ next: String) async throws {
        try await withStale([], control: "max-age=6000, stale-while-revalidate=3000", disk: true) { rig in
            rig.origin.answers { _ in .whole(status, [("Cache-Control", control)], [9]) }
            #expect(await rig.get().cache == "hit; ttl=-100; detail=refreshing")
            #expect(await eventually { rig.origin.count == 2 && rig.origin.active == 0 })
            #expect(await rig.settle())
            #expect(await rig.get().cache.hasPrefix(next))
            #expect(await eventually { rig.origin.active == 0 })
        }
    }

    @Test("a refresh behind that fails leaves what is stored")
    func refreshFails() async throws {
        let policy = CachePolicy(checkPause: 0)
        try await withStale([], control: "max-age=6000, stale-while-revalidate=3000") { rig in
            rig.origin.answers { _ in .down }
            for _ in 0..<2 {
                #expect(await rig.get("/a", policy: policy).cache == "hit; ttl=-100; detail=refreshing")
                #expect(await rig.settle())
            }
            #expect(rig.origin.count == 3)
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct StaleIfErrorTests {
    @Test(
        "RFC 5861 section 4: within the smaller of the response's and the configured bound",
        arguments: [
            ("max-age=6000", Int64(1000), Int64(900), nil), ("max-age=6000", 1000, 1100, "too-stale"),
            ("max-age=6000, stale-if-error=500", 1000, 400, nil),
            ("max-age=6000, stale-if-error=500", 1000, 600, "too-stale"),
            ("max-age=6000, must-revalidate", 1000, 100, "must-revalidate"),
            ("max-age=6000, proxy-revalidate", 1000, 100, "proxy-revalidate"),
            ("s-maxage=6000", 1000, 100, "s-maxage"), ("max-age=6000", 0, 100, "too-stale"),
        ]
    )
    func bounds(_ control: String, _ configured: Int64, _ by: Int64, _ refusal: String?) async throws {
        let policy = CachePolicy(staleIfError: configured, checkPause: 0)
        try await withStale(control: control, policy: policy, by: by) { rig in
            rig.origin.answers { _ in .down }
            for method in [Method.get, .head] {
                let got = await rig.get(rig.ask(method: method, policy: policy))
                #expect(got.status == (refusal == nil ? 200 : 502))
                let status = refusal.map { "fwd=stale; detail=\($0)" }
                #expect(got.cache == status ?? "fwd=stale; ttl=-\(by); detail=stale-if-error")
            }
        }
    }

    @Test("a 5xx to the fetch is replaced by the stale response, for GET and HEAD", arguments: [Method.get, .head])
    func serverError(_ method: Method) async throws {
        let policy = CachePolicy(revalidate: .conditional)
        try await withStale(policy: policy) { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(500, []) : .whole(500, [], [1, 2, 3]) }
            let got = await rig.get(rig.ask(method: method, policy: policy))
            #expect(got.status == 200 && got.length == 5)
            #expect(got.cache == "fwd=stale; fwd-status=500; ttl=-100; detail=stale-if-error")
        }
    }

    @Test("nothing stored: the failure itself")
    func nothingStored() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .down }
            let got = await rig.get()
            #expect(got.status == 502 && got.cache == "fwd=uri-miss; detail=connection_refused")
            rig.origin.answers { _ in Reply(refusal: .notAdmitted("full")) }
            let full = await rig.get()
            #expect(full.status == 503 && full.cache == "fwd=uri-miss; detail=connection_limit_reached")
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct HeadFreshensTests {
    @Test("RFC 9111 section 4.3.5: a client's HEAD freshens the stored GET")
    func freshens() async throws {
        try await withStale { rig in
            rig.origin.answers { _ in .headOnly(200, tagged) }
            #expect(await rig.get(rig.ask(method: .head)).cache == "fwd=stale; fwd-status=200; detail=expired")
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.methods == "GET HEAD")
        }
    }

    @Test(
        "RFC 9111 section 4.3.5: a client's HEAD that shows a change makes the stored GET unusable",
        arguments: [
            [("ETag", "\"2\"")], [("ETag", "\"1\""), ("Content-Length", "6")],
        ]
    )
    func invalidates(_ fields: [(String, String)]) async throws {
        try await withStale(disk: true, by: -3000) { rig in
            rig.origin.answers { $0.method == .head ? .headOnly(200, fields) : .whole(200, tagged, [1]) }
            let head = await rig.get(rig.ask(method: .head, [("Cache-Control", "no-cache")]))
            #expect(head.cache == "fwd=request; fwd-status=200; detail=request-no-cache")
            #expect(await rig.get().body == [1])
        }
    }
}
