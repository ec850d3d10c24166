// Stale responses that answer at once and are refreshed behind, exactly once; and those that stand
// in when the origin fails.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Testing
import Upstream

private let dropped = FetchError.upstream(
    UpstreamError(.truncated, detail: "the origin closed the connection within the head")
)

@Suite(.timeLimit(.minutes(5)))
struct RefreshTests {
    @Test(
        "RFC 5861 section 3: the directive, else the policy's own value; prohibitions hold",
        arguments: [
            ("max-age=6000, stale-while-revalidate=3000", Int64(0), Int64(2900), true),
            ("max-age=6000, stale-while-revalidate=3000", 0, 3100, false),
            ("max-age=6000", 3000, 2900, true), ("max-age=6000", 3000, 3100, false), ("max-age=6000", 0, 100, false),
            ("max-age=6000, stale-while-revalidate=0", 3000, 100, false),
            ("max-age=6000, must-revalidate", 3000, 100, false), ("s-maxage=6000", 3000, 100, false),
            ("max-age=6000, proxy-revalidate", 3000, 100, false),
        ]
    )
    func bounds(_ control: String, _ configured: Int64, _ by: Int64, _ isAllowed: Bool) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", control)]) }
            let policy = CachePolicy(staleWhileRevalidate: configured)
            _ = await rig.get("/a", policy: policy)
            rig.clock.advance(seconds: 6000 + by)
            let got = await rig.get("/a", policy: policy)
            #expect(got.cache.hasSuffix("detail=refreshing") == isAllowed)
            #expect(await rig.settle())
            #expect(rig.origin.count == 2)
            #expect(await rig.get("/a", policy: policy).cache.hasPrefix("hit; ttl=6000"))
        }
    }

    @Test("one refresh for all who ask meanwhile, on all loops, and none for who looked before it ended")
    func once() async throws {
        try await withRig(loops: 3, disk: true) { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000, stale-while-revalidate=3000")]) }
            for round in 1...20 {
                _ = await rig.get()
                #expect(await rig.settle())
                rig.clock.advance(seconds: 6100)
                if round % 2 == 0 { rig.memory.removeAll() }
                var tasks: [Task<Got, Never>] = []
                for number in 0..<12 { tasks.append(await rig.start(rig.ask(), loop: number % 3)) }
                for task in tasks { #expect(await task.value.cache.hasPrefix("hit")) }
                #expect(await rig.settle())
                #expect(rig.origin.count == 1 + round)
            }
        }
    }

    @Test("each variant has a refresh of its own")
    func perVariant() async throws {
        try await withRig { rig in
            let valve = Valve()
            rig.origin.answers { asked in
                .whole(
                    200,
                    [("Cache-Control", "max-age=6000, stale-while-revalidate=3000"), ("Vary", "Accept-Language")],
                    head: asked.number > 2 ? valve : nil
                )
            }
            for language in ["en", "fr"] { _ = await rig.get("/a", [("Accept-Language", language)]) }
            rig.clock.advance(seconds: 6100)
            for _ in 0..<3 {
                for language in ["en", "fr"] {
                    let got = await rig.get("/a", [("Accept-Language", language)])
                    #expect(got.cache == "hit; ttl=-100; detail=refreshing")
                }
            }
            #expect(rig.origin.count == 4)
            valve.open()
            #expect(await rig.settle())
            for language in ["en", "fr"] {
                #expect(await rig.get("/a", [("Accept-Language", language)]).cache.hasPrefix("hit; ttl=6000"))
            }
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct DroppedTests {
    @Test(
        "an origin that closes within the head: stale where allowed, else the failure with the reason",
        arguments: [
            ("max-age=6000", true), ("max-age=6000, must-revalidate", false), ("max-age=6000, no-cache", false),
        ],
        [ValidationMethod.head, .conditional, .never]
    )
    func head(_ allowed: (control: String, isAllowed: Bool), _ method: ValidationMethod) async throws {
        let (control, isAllowed) = allowed
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", control), ("ETag", "\"1\"")]) }
            let policy = CachePolicy(revalidate: method)
            _ = await rig.get("/a", policy: policy)
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in Reply(steps: [.interim(103), .fail(dropped)]) }
            let got = await rig.get("/a", policy: policy)
            if isAllowed {
                #expect(got.text == "hello" && got.cache == "fwd=stale; ttl=-100; detail=stale-if-error")
            } else {
                let reason = control.hasSuffix("no-cache") ? "no-cache" : "must-revalidate"
                #expect(got.status == 502 && got.cache == "fwd=stale; detail=\(reason)")
            }
            // A HEAD that was dropped is followed by a GET; `no-cache` is checked by GET alone.
            let isAskedTwice = method == .head && !control.hasSuffix("no-cache")
            #expect(rig.origin.count == (isAskedTwice ? 3 : 2))
        }
    }

    @Test("a timeout is 504, with the same reason")
    func timeout() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in
                .whole(200, [("Cache-Control", "max-age=6000, must-revalidate"), ("ETag", "\"1\"")])
            }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in
                Reply(steps: [.fail(.upstream(UpstreamError(.timeout(.firstByte), detail: "too slow")))])
            }
            let got = await rig.get()
            #expect(got.status == 504 && got.cache == "fwd=stale; detail=must-revalidate")
        }
    }
}
