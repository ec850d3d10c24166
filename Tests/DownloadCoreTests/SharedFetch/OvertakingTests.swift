// Answers that overtake one another: what was asked for later wins, in both tiers, and nothing of
// one user reaches another.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let tagged = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
private let newer = [("Cache-Control", "max-age=6000"), ("ETag", "\"2\"")]

@Suite(.timeLimit(.minutes(5)))
struct OvertakingTests {
    @Test("a check that is answered late does not undo a reload, in memory or on the disk", arguments: [true, false])
    func lateCheck(_ isPrivate: Bool) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, tagged, Array("old".utf8)) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let late = Valve()
            let control = isPrivate ? [("Cache-Control", "private")] : newer
            rig.origin.answers { asked in
                asked.method == .head
                    ? Reply(steps: [.valve(late)] + Reply.headOnly(304, tagged).steps)
                    : .whole(200, control, Array("new".utf8))
            }
            let check = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 2 })
            #expect(await rig.get("/a", [("Cache-Control", "no-cache")]).text == "new")
            #expect(await eventually { isPrivate || rig.disk?.lookup(rig.key()).count == 1 })
            late.open()
            #expect(await check.value.text == "old", "what the origin has just called current")
            #expect(await rig.settle())
            for _ in 0..<2 {
                let got = await rig.get()
                #expect(got.text == "new" && got.fields.first(.etag) == (isPrivate ? nil : "\"2\""))
                rig.memory.removeAll()
            }
        }
    }

    @Test("of two fetches within a second the one that began later wins, whichever ends last")
    func withinASecond() async throws {
        try await withRig(disk: true) { rig in
            let tail = Valve()
            rig.origin.answers { asked in
                asked.number == 1
                    ? .pieces(tagged, length: 2, [.bytes([1]), .valve(tail), .bytes([1]), .end(Fields())])
                    : .whole(200, newer, [2])
            }
            let slow = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            #expect(await rig.get("/a", [("Cache-Control", "no-cache")]).body == [2])
            tail.open()
            #expect(await slow.value.body == [1, 1])
            #expect(await rig.settle())
            for _ in 0..<2 {
                #expect(await rig.get().body == [2])
                rig.memory.removeAll()
            }
            // A clock that went back keeps nothing from being replaced.
            rig.clock.advance(seconds: -5000)
            rig.origin.answers { _ in .whole(200, tagged, [3]) }
            _ = await rig.get("/a", [("Cache-Control", "no-cache")])
            #expect(await rig.settle())
            rig.memory.removeAll()
            #expect(await rig.get().body == [3])
        }
    }

    @Test("what a tier does not take leaves nothing older behind in it")
    func tooLongForMemory() async throws {
        try await withRig(disk: true, memoryMaxObject: 1000) { rig in
            rig.origin.answers { _ in .whole(200, tagged) }
            _ = await rig.get()
            #expect(await rig.settle())
            for fields in [newer, newer + [("Vary", "Accept-Language")]] {
                rig.origin.answers { _ in .whole(200, fields, [UInt8](repeating: 7, count: 300_000)) }
                _ = await rig.get("/a", [("Cache-Control", "no-cache")])
                #expect(await rig.settle())
                #expect(rig.memory.variants(rig.key()).isEmpty)
                #expect(await rig.get().body?.count == 300_000)
            }
            rig.origin.answers { _ in .whole(200, tagged, [1]) }
            _ = await rig.get("/b")
            #expect(await rig.settle())
            rig.origin.answers { _ in .whole(200, newer, [2]) }
            _ = await rig.get("/b", [("Cache-Control", "no-cache")], policy: CachePolicy(disk: false))
            #expect(await rig.settle())
            rig.memory.removeAll()
            rig.origin.answers { _ in .whole(200, newer, [3]) }
            #expect(await rig.get("/b").body == [3], "not the one that the file still had")
        }
    }

    @Test("RFC 9111 section 3.5: a 304 to a request with Authorization is not merged into what all share")
    func authorizedCheck() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, tagged) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .headOnly(304, tagged + [("Set-Cookie", "sid=alice"), ("X-User", "alice")]) }
            let alice = await rig.get("/a", [("Authorization", "Basic eDp5")])
            #expect(alice.text == "hello" && alice.fields.first("X-User") == "alice")
            rig.origin.answers { _ in .headOnly(304, tagged) }
            for _ in 0..<2 {
                let bob = await rig.get()
                #expect(!bob.fields.contains("X-User") && !bob.fields.contains(.setCookie))
                rig.memory.removeAll()
            }
            #expect(rig.origin.methods == "GET HEAD HEAD")
            // What allows sharing allows this, too.
            rig.clock.advance(seconds: 6100)
            let open = [("Cache-Control", "public, max-age=6000"), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .headOnly(304, open) }
            _ = await rig.get("/a", [("Authorization", "Basic eDp5")])
            #expect(await rig.get().cache.hasPrefix("hit"))
        }
    }

    @Test("the answer to a POST that another request overtook is not stored")
    func overtakenPost() async throws {
        try await withRig { rig in
            let late = Valve()
            rig.origin.answers { asked in
                switch asked.method {
                case .post: .whole(200, tagged + [("Content-Location", "/a")], [1], head: late)
                case .put: .whole(204, [])
                default: .whole(200, newer, [2])
                }
            }
            async let post = rig.pass(.post)
            #expect(await eventually { rig.origin.count == 1 })
            _ = await rig.pass(.put)
            late.open()
            #expect(await post.body == [1])
            #expect(await rig.settle())
            #expect(await rig.get().body == [2])
        }
    }

    @Test("a 304 to a client's list of tags says nothing about the stored one unless it names it")
    func foreignTags() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, tagged) }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .headOnly(304, []) }
            _ = await rig.get(rig.ask(method: .head, [("If-None-Match", "\"1\", \"2\"")]))
            rig.origin.answers { _ in .whole(200, newer, [2]) }
            #expect(await rig.get().body == [2])
        }
    }

    @Test("what is not to be stored and what nobody waits for is not fetched any further")
    func nobodysStream() async throws {
        try await withRig { rig in
            let (head, never) = (Valve(), Valve())
            rig.origin.answers { _ in
                Reply(
                    steps: [.valve(head)]
                        + Reply.pieces(
                            [("Content-Type", "text/event-stream")],
                            [.bytes([1]), .valve(never), .end(Fields())]
                        )
                        .steps
                )
            }
            let client = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            client.cancel()
            _ = await client.value
            head.open()
            #expect(await eventually { rig.origin.cancelled == 1 })
        }
    }

    @Test("a group that is invalidated twice within a second is invalid twice")
    func groupTwice() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { asked in
                asked.method == .post
                    ? .whole(200, [("Cache-Group-Invalidation", "\"g\"")])
                    : .whole(200, tagged + [("Cache-Groups", "\"g\"")])
            }
            for round in 1...4 {
                #expect(await rig.get().cache.hasPrefix("fwd=uri-miss"))
                #expect(await rig.settle())
                #expect(await rig.get().cache.hasPrefix("hit"))
                _ = await rig.pass(.post, "/form")
                #expect(rig.origin.count == 2 * round)
            }
        }
    }
}
