// Offline: what is stored answers whatever its age, and nobody is asked for anything.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import LoopSupport
import TestSupport
import Testing

private let tagged = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]

@Suite(.timeLimit(.minutes(5)))
struct OfflineTests {
    @Test(
        "everything stored answers, from either tier, whatever its age and whatever it or the request asks for",
        arguments: ["max-age=6000", "max-age=6000, must-revalidate", "no-cache", "max-age=0"],
        [[], [("Cache-Control", "no-cache")], [("Cache-Control", "max-age=0")]]
    )
    func stored(_ control: String, _ wish: [(String, String)]) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", control), ("ETag", "\"1\"")]) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 1_000_000)
            rig.core.isOffline = true
            for _ in 0..<2 {
                for method in [Method.get, .head] {
                    let got = await rig.get(rig.ask(method: method, wish))
                    #expect(got.status == 200 && got.length == 5 && got.age == 1_000_000)
                    #expect(got.cache.hasPrefix("hit; ttl=-") && got.cache.hasSuffix("detail=offline"))
                }
                rig.memory.removeAll()
            }
            #expect(rig.origin.count == 1)
            rig.core.isOffline = false
            rig.origin.answers { asked in asked.method == .head ? .headOnly(304, tagged) : .whole(304, tagged) }
            #expect(await rig.get().cache.hasSuffix("detail=revalidated"))
        }
    }

    @Test("what is fresh is an ordinary hit, and the client's conditions count")
    func fresh() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, tagged) }
            _ = await rig.get()
            rig.core.isOffline = true
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            rig.clock.advance(seconds: 6100)
            #expect(await rig.get("/a", [("If-None-Match", "\"1\"")]).status == 304)
        }
    }

    @Test("everything else is 504 with the reason, and nobody is asked")
    func refused() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                .whole(200, [("Cache-Control", "max-age=6000"), ("Vary", "X-Language")])
            }
            _ = await rig.get("/vary", [("X-Language", "en")])
            rig.core.isOffline = true
            var answers = [
                await rig.get(), await rig.get(rig.ask(method: .head)),
                await rig.get("/a", policy: CachePolicy(mode: .none)),
                await rig.get("/a", [("Range", "bytes=0-1")]), await rig.get("/a", [("If-Match", "\"x\"")]),
                await rig.get("/vary", [("X-Language", "fr")]),
                await rig.get("/a", [("Cache-Control", "no-store")]),
            ]
            for method in [Method.post, .delete, .options, .other("FROB")] { answers.append(await rig.pass(method)) }
            answers.append(await rig.relay(.get))
            for got in answers {
                #expect(got.status == 504 && got.cache == "detail=offline")
                #expect(got.failure?.description.contains("offline") == true)
            }
            #expect(rig.origin.count == 1)
            // Nothing was invalidated by what never reached the origin.
            _ = await rig.pass(.post, "/vary")
            #expect(await rig.get("/vary", [("X-Language", "en")]).cache == "hit; ttl=6000; detail=memory")
        }
    }

    @Test("no refresh goes on behind")
    func noRefresh() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000, stale-while-revalidate=3000")]) }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            rig.core.isOffline = true
            #expect(await rig.get().cache == "hit; ttl=-100; detail=offline")
            #expect(await rig.settle())
            #expect(rig.origin.count == 1)
        }
    }

    @Test("what is under way when the daemon goes offline ends as it would have")
    func underWay() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let task = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            rig.core.isOffline = true
            head.open()
            #expect(await task.value.text == "hello")
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
        }
    }

    @Test("an origin inside the daemon is asked all the same")
    func inside() async throws {
        try await withRig { rig in
            rig.core.isOffline = true
            let (core, origin, ask) = (rig.core, rig.origin, rig.ask())
            let status = await onLoop(rig.loops[0]) { loop in
                let answer = await core.answer(ask, from: ScriptedSource(origin, opensSockets: false), on: loop)
                answer.reader?.close()
                return answer.head.status
            }
            #expect(status == 200 && rig.origin.count == 1)
        }
    }
}
