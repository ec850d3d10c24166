// revalidate: auto: which of HEAD and conditional GET an origin is asked by, as it is seen to answer them.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Testing

private let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
private let auto = CachePolicy(revalidate: .auto)
private let long = [UInt8](repeating: 1, count: 100_000)

/// What an origin does with checks.
private struct Manner: Sendable {
    var answersHead = true
    var answersConditions = true

    func callAsFunction(_ asked: Asked, _ body: [UInt8]) -> Reply {
        let isKnown = answersConditions && asked.fields.first(.ifNoneMatch) == "\"1\""
        if asked.method == .head {
            guard answersHead else { return .headOnly(405, []) }
            return .headOnly(isKnown ? 304 : 200, fields + [("Content-Length", "\(body.count)")])
        }
        return isKnown ? .whole(304, fields) : .whole(200, fields, body)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct HabitTests {
    @Test(
        "what is asked, over three checks of a short and of a long response, one after the other",
        arguments: [
            // An origin that honours both: HEAD for what is long until it has shown that it answers 304.
            (true, true, false, "GET GET GET GET"), (true, true, true, "GET HEAD GET GET"),
            // One that ignores conditions: a body for what is short, HEAD for what is long.
            (true, false, false, "GET GET GET GET"), (true, false, true, "GET HEAD HEAD HEAD"),
            // One that refuses HEAD: asked once.
            (false, true, true, "GET HEAD GET GET GET"), (false, true, false, "GET GET GET GET"),
        ]
    )
    func sequence(_ head: Bool, _ conditions: Bool, _ isLong: Bool, _ expected: String) async throws {
        try await withRig { rig in
            let manner = Manner(answersHead: head, answersConditions: conditions)
            let body = isLong ? long : Array("hello".utf8)
            rig.origin.answers { manner($0, body) }
            _ = await rig.get("/a", policy: auto)
            for _ in 0..<3 {
                rig.clock.advance(seconds: 6100)
                let got = await rig.get("/a", policy: auto)
                #expect(got.body == body && got.status == 200)
            }
            #expect(rig.origin.methods == expected)
        }
    }

    @Test("what one resource has shown counts for the whole origin, and for no other service or origin")
    func perOrigin() async throws {
        try await withRig { rig in
            let manner = Manner(answersHead: false)
            rig.origin.answers { manner($0, long) }
            for path in ["/a", "/b"] { _ = await rig.get(path, policy: auto) }
            rig.clock.advance(seconds: 6100)
            for path in ["/a", "/b"] { _ = await rig.get(path, policy: auto) }
            #expect(rig.origin.methods == "GET GET HEAD GET GET")
            var other = rig.ask(policy: auto)
            other.key = CacheKey(service: "t", url: host + "/a")
            _ = await rig.get(other)
            rig.clock.advance(seconds: 6100)
            _ = await rig.get(other)
            #expect(rig.origin.methods == "GET GET HEAD GET GET GET HEAD GET")
        }
    }

    @Test(
        "what the client sees is the same, whichever way is chosen",
        arguments: [RevalidateMethod.head, .conditional, .auto],
        [true, false]
    )
    func sameForTheClient(_ method: RevalidateMethod, _ isLong: Bool) async throws {
        let policy = CachePolicy(revalidate: method, checkPause: 0)
        try await withRig(disk: true) { rig in
            let body = isLong ? long : Array("hello".utf8)
            let manner = Manner()
            rig.origin.answers { manner($0, body) }
            var seen: [String] = []
            func note(_ got: Got) { seen.append("\(got.status) \(got.body?.count ?? -1) \(got.age ?? -1)") }
            note(await rig.get("/a", policy: policy))
            rig.clock.advance(seconds: 6100)
            note(await rig.get("/a", policy: policy))
            note(await rig.get("/a", policy: policy))
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .down }
            note(await rig.get("/a", policy: policy))
            rig.origin.answers { asked in
                let new = [("Cache-Control", "max-age=6000"), ("ETag", "\"2\"")]
                return asked.method == .head ? .headOnly(200, new) : .whole(200, new, [1, 2])
            }
            note(await rig.get("/a", policy: policy))
            #expect(
                seen == [
                    "200 \(body.count) -1", "200 \(body.count) 0", "200 \(body.count) 0", "200 \(body.count) 6100",
                    "200 2 -1",
                ]
            )
        }
    }
}
