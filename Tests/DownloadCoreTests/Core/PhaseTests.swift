// Two-phase answers: the placeholder while there is nothing yet, the fallback where there will be nothing.

import CacheStore
import Content
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import TestSupport
import Testing
import Upstream

private let loading = SubstituteResponse(
    path: "/l.png",
    status: 202,
    bytes: Array("loading".utf8),
    contentType: "image/png"
)
private let broken = SubstituteResponse(
    path: "/b.png",
    status: 200,
    bytes: Array("broken".utf8),
    contentType: "image/gif"
)

extension Rig {
    /// A question of a route with a placeholder that answers at once.
    fileprivate func waiting(
        _ path: String = "/a",
        method: Method = .get,
        _ fields: [(String, String)] = [],
        timeout: UInt64 = 1_000_000,
        policy: CachePolicy = CachePolicy(),
        onClientAbort: AbandonmentPolicy = .finish
    ) -> CacheRequest {
        var ask = ask(path, method: method, fields, policy: policy)
        ask.phases = PhasePlan(placeholder: loading, placeholderDelay: timeout)
        ask.onClientAbort = onClientAbort
        return ask
    }

    fileprivate func failing(_ path: String = "/a", method: Method = .get, policy: CachePolicy = CachePolicy())
        -> CacheRequest
    {
        var ask = ask(path, method: method, policy: policy)
        ask.phases = PhasePlan(fallback: broken)
        return ask
    }
}

@Suite(.timeLimit(.minutes(5)))
struct PlaceholderTests {
    @Test(
        "the placeholder answers, may be kept by nobody, and the fetch goes on for the next, whatever becomes of clients",
        arguments: [AbandonmentPolicy.finish, .abort, .finishBeyond(0.5)]
    )
    func goesOn(_ policy: AbandonmentPolicy) async throws {
        try await withRig(disk: true) { rig in
            let head = Valve()
            let bytes = Pattern.bytes(0..<600_000)
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000")], bytes, head: head) }
            let got = await rig.get(rig.waiting(onClientAbort: policy))
            #expect(got.status == 202 && got.text == "loading" && got.length == 7)
            #expect(got.cache == "fwd=uri-miss; detail=placeholder" && got.age == nil)
            #expect(got.fields.combined(.cacheControl) == "no-store")
            #expect(got.fields.combined(.contentType) == "image/png")
            let joined = await rig.get(rig.waiting(onClientAbort: policy))
            #expect(joined.cache == "fwd=uri-miss; collapsed; detail=placeholder" && joined.text == "loading")
            head.open()
            #expect(await rig.settle())
            let next = await rig.get(rig.waiting(onClientAbort: policy))
            #expect(next.body == bytes && next.cache.hasPrefix("hit"))
            #expect(rig.origin.count == 1 && rig.origin.cancelled == 0)
            #expect(rig.core.counts.placeholders == 2)
        }
    }

    @Test("who comes in time gets the answer itself, and so does who waits beside a placeholder")
    func inTime() async throws {
        try await withRig(loops: 2) { rig in
            rig.origin.answers { _ in .whole() }
            let first = await rig.get(rig.waiting(timeout: patience))
            #expect(first.text == "hello" && first.cache == "fwd=uri-miss; fwd-status=200; stored")
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let patient = await rig.start(rig.ask("/b"), loop: 1)
            #expect(await eventually { rig.origin.count == 2 })
            #expect(await rig.get(rig.waiting("/b")).text == "loading")
            head.open()
            #expect(await patient.value.text == "hello")
            #expect(rig.origin.count == 2)
        }
    }

    @Test("an answer that is stored, fresh or stale, is never covered by the placeholder")
    func somethingIsStored() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]) }
            _ = await rig.get(rig.waiting(timeout: patience))
            #expect(await rig.get(rig.waiting()).cache.hasPrefix("hit"))
            rig.clock.advance(seconds: 6100)
            let head = Valve()
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000")], Array("new".utf8), head: head) }
            let task = await rig.start(rig.waiting())
            #expect(await eventually { rig.origin.count == 2 })
            #expect(await rig.start(rig.waiting("/b")).value.text == "loading", "as long as another waits for its own")
            head.open()
            #expect(await task.value.text == "new")
        }
    }

    @Test(
        "whose answer is for one request alone waits for it",
        arguments: [
            ("Cache-Control", "no-store"), ("Cache-Control", "no-cache"), ("Authorization", "Basic eDp5"),
            ("Range", "bytes=1-2"), ("If-Match", "\"1\""),
        ]
    )
    func forItself(_ name: String, _ value: String) async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let task = await rig.start(rig.waiting("/a", [(name, value)]))
            #expect(await eventually { rig.origin.active == 1 })
            #expect(await rig.get(rig.waiting("/b")).text == "loading")
            head.open()
            let got = await task.value
            #expect(got.text == (name == "Range" ? "el" : "hello"), "\(got.cache)")
        }
    }

    @Test("HEAD waits for its answer, and so does every method where nothing is stored")
    func otherWays() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { asked in
                asked.method == .head
                    ? Reply(steps: [.valve(head)] + Reply.headOnly(200, [("Content-Length", "5")]).steps)
                    : .whole(head: head)
            }
            let tasks = [
                await rig.start(rig.waiting("/h", method: .head)),
                await rig.start(rig.waiting("/n", policy: CachePolicy(mode: .none))),
            ]
            #expect(await eventually { rig.origin.active == 2 })
            #expect(await rig.get(rig.waiting("/b")).text == "loading")
            head.open()
            #expect(await tasks[0].value.status == 200)
            #expect(await tasks[1].value.text == "hello")
        }
    }

    @Test(
        "what turns out not to be stored ends, and the next one waits for it, so that nobody sees placeholders for ever"
    )
    func uncacheable() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "no-store")], head: head) }
            #expect(await rig.get(rig.waiting()).text == "loading")
            head.open()
            #expect(await rig.settle())
            #expect(await eventually { rig.origin.active == 0 })
            let again = Valve()
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "no-store")], head: again) }
            let task = await rig.start(rig.waiting())
            #expect(await eventually { rig.origin.count == 2 })
            #expect(await rig.get(rig.waiting("/b")).text == "loading")
            again.open()
            #expect(await task.value.text == "hello")
        }
    }

    @Test("so is what no tier keeps, or what is not what the route expects", arguments: [true, false])
    func unkept(_ isTooLarge: Bool) async throws {
        try await withRig(memoryMaxObject: 1000) { rig in
            let head = Valve()
            let bytes = Array(repeating: UInt8(ascii: "x"), count: isTooLarge ? 2000 : 20)
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000")], bytes, head: head) }
            var ask = rig.waiting()
            if !isTooLarge { ask.phases?.expect = .image }
            #expect(await rig.get(ask).text == "loading")
            head.open()
            #expect(await rig.settle())
            let again = Valve()
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=6000")], bytes, head: again) }
            let task = await rig.start(ask)
            #expect(await eventually { rig.origin.count == 2 })
            #expect(await rig.get(rig.waiting("/b")).text == "loading")
            again.open()
            let got = await task.value
            #expect(got.body == bytes)
            #expect(got.cache.hasSuffix(isTooLarge ? "detail=too-large" : "detail=unexpected-content"))
        }
    }

    @Test("so is what turns out too large only as it comes", arguments: [10_000, 3_000_000])
    func outgrown(_ size: Int) async throws {
        try await withRig(memoryMaxObject: 1000) { rig in
            let bytes = Pattern.bytes(0..<size)
            let head = Valve()
            rig.origin.answers { _ in
                Reply(steps: [.valve(head)] + Reply.pieces(length: nil, [.bytes(bytes), .end(Fields())]).steps)
            }
            #expect(await rig.get(rig.waiting()).text == "loading")
            head.open()
            #expect(await rig.settle())
            let again = Valve()
            rig.origin.answers { _ in
                Reply(steps: [.valve(again)] + Reply.pieces(length: nil, [.bytes(bytes), .end(Fields())]).steps)
            }
            let task = await rig.start(rig.waiting())
            #expect(await eventually { rig.origin.count == 2 })
            #expect(await rig.get(rig.waiting("/b")).text == "loading")
            again.open()
            #expect(await task.value.body == bytes)
        }
    }

    @Test("a fetch that fails after its placeholder is forgotten: the next one begins another")
    func failsLater() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(head)] + Reply.down.steps) }
            #expect(await rig.get(rig.waiting()).text == "loading")
            head.open()
            #expect(await rig.settle())
            rig.origin.answers { _ in .whole() }
            #expect(await rig.get(rig.waiting(timeout: patience)).text == "hello")
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct FallbackTests {
    private static let down = Reply.down

    @Test("an origin that cannot be asked", arguments: [Method.get, .head])
    func down(_ method: Method) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .down }
            let got = await rig.get(rig.failing(method: method))
            #expect(got.status == 200 && got.text == (method == .head ? nil : "broken") && got.length == 6)
            #expect(got.failure == nil && got.cache == "fwd=uri-miss; detail=fallback")
            #expect(got.fields.combined(.cacheControl) == "no-store")
            #expect(got.fields.combined(.contentType) == "image/gif")
            #expect(rig.core.counts.fallbacks == 1)
            #expect(rig.memory.statistics.objects == 0)
            rig.origin.answers { asked in asked.method == .head ? .headOnly(200, []) : .whole() }
            #expect(await rig.get(rig.failing(method: method)).cache.hasPrefix("fwd=uri-miss; fwd-status=200"))
        }
    }

    @Test("a status of 500 and above, stored or not, in every mode", arguments: [500, 502, 503, 504, 599])
    func errorStatus(_ status: Int) async throws {
        for fields in [[], [("Cache-Control", "max-age=6000")]] {
            for policy in [CachePolicy(), CachePolicy(mode: .none)] {
                try await withRig { rig in
                    rig.origin.answers { _ in .whole(status, fields, Array("oops".utf8)) }
                    for _ in 0..<2 {
                        let got = await rig.get(rig.failing(policy: policy))
                        #expect(got.text == "broken" && got.status == 200)
                        #expect(got.cache.hasSuffix("detail=fallback") && !got.cache.contains("hit"))
                        #expect(await rig.settle())
                    }
                }
            }
        }
    }

    @Test("other statuses are answers", arguments: [200, 301, 404, 410, 429])
    func answers(_ status: Int) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(status, [], Array("theirs".utf8)) }
            let got = await rig.get(rig.failing())
            #expect(got.status == status && got.text == "theirs")
        }
    }

    @Test("what may be served stale comes before the fallback; what may not does not", arguments: [true, false])
    func stale(_ mayServe: Bool) async throws {
        try await withRig { rig in
            let control = mayServe ? "max-age=6000" : "max-age=6000, must-revalidate"
            rig.origin.answers { _ in .whole(200, [("Cache-Control", control)]) }
            _ = await rig.get(rig.failing())
            rig.clock.advance(seconds: 6100)
            for reply in [Reply.down, .whole(503, [])] {
                rig.origin.answers { _ in reply }
                // Past the pause that follows a check that failed.
                rig.clock.advance(seconds: 60)
                let got = await rig.get(rig.failing())
                #expect(got.text == (mayServe ? "hello" : "broken"))
                #expect(got.cache.hasSuffix(mayServe ? "detail=stale-if-error" : "detail=fallback"))
            }
        }
    }

    @Test(
        "every waiter gets it, from one fetch; offline, too; only-if-cached keeps its 504, a client that left nothing"
    )
    func others() async throws {
        try await withRig(loops: 2) { rig in
            let head = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(head)] + Reply.down.steps) }
            let tasks = [await rig.start(rig.failing()), await rig.start(rig.failing(), loop: 1)]
            let leaving = await rig.start(rig.failing())
            leaving.cancel()
            #expect(await leaving.value.failure == .cancelled)
            head.open()
            for task in tasks { #expect(await task.value.text == "broken") }
            #expect(rig.origin.count == 1)
            rig.core.isOffline = true
            #expect(await rig.get(rig.failing()).text == "broken")
            rig.core.isOffline = false
            var ask = rig.ask("/a", [("Cache-Control", "only-if-cached")])
            ask.phases = PhasePlan(fallback: broken)
            #expect(await rig.get(ask).status == 504)
        }
    }

    @Test("a body that breaks in the middle is cut, never followed by a fallback")
    func cut() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .pieces(length: 10, [.bytes([1, 2]), .fail(.inner("broke"))]) }
            let got = await rig.get(rig.failing())
            #expect(got.status == 200 && got.error != nil && got.body == [1, 2])
        }
    }
}
