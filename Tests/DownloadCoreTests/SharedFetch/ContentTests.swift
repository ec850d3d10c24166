// A POST whose answer is stored under its own key: asked once for each content, and never as anything but a POST.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import LoopSupport
import TestSupport
import Testing
import Upstream

extension Rig {
    /// The question of a POST in library mode.
    fileprivate func post(_ content: String, _ fields: [(String, String)] = [], ttl: Int64 = 7200) -> CacheRequest {
        var ask = ask("/a", fields, policy: CachePolicy(mode: .library, ttl: ttl))
        let bytes = Array(content.utf8)
        let lines = KeyRules.lines(post: bytes, ask.request.fields)
        ask.key = CacheKey(service: "s", url: host + "/a", lines: lines)
        ask.content = RequestContent(bytes)
        ask.sharesURL = true
        return ask
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ContentTests {
    @Test("one fetch for each content; a GET of the URL is another question")
    func stored() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { .whole(200, [], Array("\($0.method.name) \($0.content)".utf8)) }
            for _ in 0..<2 {
                #expect(await rig.get(rig.post("one")).text == "POST one")
                #expect(await rig.get(rig.post("two")).text == "POST two")
                #expect(await rig.get("/a", policy: CachePolicy(mode: .library)).text == "GET ")
                #expect(await rig.settle())
            }
            #expect(rig.origin.methods == "POST POST GET")
            #expect(await rig.get(rig.post("one")).cache == "hit; ttl=7200; detail=memory")
            #expect(await rig.get(rig.post("one", [("Content-Type", "a/b")])).cache.contains("fwd=uri-miss"))
        }
    }

    @Test("what is stale is posted again, without HEAD and without conditions; a failure serves the copy")
    func stale() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("ETag", "\"1\""), ("Last-Modified", "x")]) }
            _ = await rig.get(rig.post("one"))
            #expect(await rig.settle())
            rig.clock.advance(seconds: 7300)
            _ = await rig.get(rig.post("one"))
            #expect(rig.origin.methods == "POST POST")
            #expect(!rig.origin.log[1].fields.contains(.ifNoneMatch))
            #expect(rig.origin.log[1].content == "one")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 7300)
            rig.origin.answers { _ in .down }
            #expect(await rig.get(rig.post("one")).cache == "fwd=stale; ttl=-100; detail=stale-if-error")
            #expect(await rig.get(rig.post("one")).cache == "hit; ttl=-100; detail=check-pause")
            #expect(rig.origin.methods == "POST POST POST")
        }
    }

    @Test("those who post the same wait for one fetch")
    func shared() async throws {
        try await withRig { rig in
            let valve = Valve()
            rig.origin.answers { .whole(200, [], Array($0.content.utf8), head: valve) }
            let first = await rig.start(rig.post("one"))
            #expect(await eventually { rig.origin.count == 1 })
            let second = await rig.start(rig.post("one"))
            let other = await rig.start(rig.post("two"))
            #expect(await eventually { rig.origin.count == 2 })
            valve.open()
            #expect(await first.value.text == "one")
            #expect(await second.value.cache == "fwd=uri-miss; fwd-status=200; stored; collapsed")
            #expect(await other.value.text == "two")
            #expect(rig.origin.count == 2)
        }
    }

    @Test("what is cut short is not kept in parts")
    func cut() async throws {
        try await withRig { rig in
            let fields = [("ETag", "\"1\""), ("Accept-Ranges", "bytes")]
            rig.origin.answers { _ in
                .pieces(fields, length: 10, [.bytes(Array("half ".utf8)), Reply.down.steps[0]])
            }
            #expect(await rig.get(rig.post("one")).error != nil)
            #expect(await rig.settle())
            #expect(rig.core.partialStatistics.objects == 0)
            rig.origin.answers { _ in .whole(200, fields, Array("0123456789".utf8)) }
            #expect(await rig.get(rig.post("one")).text == "0123456789")
            #expect(!rig.origin.log[1].fields.contains(.range))
        }
    }

    @Test(
        "an unsafe request to the URL invalidates all that is stored under it, and nothing else",
        arguments: [true, false]
    )
    func invalidation(_ disk: Bool) async throws {
        try await withRig(disk: disk) { rig in
            rig.origin.answers { .whole(200, [], Array("\($0.method.name) \($0.content)".utf8)) }
            _ = await rig.get(rig.post("one"))
            _ = await rig.get(rig.ask("/b", policy: CachePolicy(mode: .library)))
            #expect(await rig.settle())
            rig.clock.advance(seconds: 5)
            var unsafe = rig.ask("/a", method: .put, policy: CachePolicy(mode: .library))
            unsafe.sharesURL = true
            let (core, origin, ask) = (rig.core, rig.origin, unsafe)
            await onLoop(rig.loops[0]) { loop in
                let request = FetchRequest(method: .put, path: "/a", fields: Fields())
                let answer = await core.pass(
                    UncachedRequest(request, ask, url: host + "/a") { _ in [] },
                    from: ScriptedSource(origin),
                    on: loop
                )
                answer.reader?.close()
            }
            rig.clock.advance(seconds: 5)
            #expect(await rig.get(rig.post("one")).cache.contains("fwd=uri-miss"))
            #expect(await rig.get("/b", policy: CachePolicy(mode: .library)).cache.hasPrefix("hit"))
            #expect(await rig.settle())
            #expect(await rig.get(rig.post("one")).cache.hasPrefix("hit"))
            #expect(rig.origin.methods == "POST GET PUT POST")
        }
    }

    @Test("a source gives its bytes, then those of what follows")
    func source() {
        var read: [UInt8] = []
        let source = ContentSource(Array("abcdef".utf8), then: ContentSource(Array("gh".utf8)))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4, alignment: 1)
        defer { buffer.deallocate() }
        for _ in 0..<10 {
            guard case .bytes(let count) = source.read(into: buffer) else { break }
            read += buffer[..<count]
        }
        #expect(String(decoding: read, as: UTF8.self) == "abcdefgh")
        #expect(source.read(into: buffer) == .end)
    }
}
