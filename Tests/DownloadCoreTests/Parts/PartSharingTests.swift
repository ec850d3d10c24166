// What the answers to one request do to the parts that are stored for all: groups, Authorization, no-store.

import CacheStore
import DownloadCore
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let checked = ("Cache-Control", "max-age=0")
private let alice = ("Authorization", "Basic x")
private let never = ("Cache-Control", "no-store")

@Suite(.timeLimit(.minutes(5)))
struct PartSharingTests {
    private func file(_ fields: [(String, String)]) -> RangedFile {
        var file = RangedFile(1000)
        file.fields = fields
        return file
    }

    @Test(
        "RFC 9875 section 2: parts belong to the groups that the latest part or check tells",
        arguments: [
            // asked next, the groups then, whether an invalidation of g concerns the parts
            ("0-19", [("Cache-Groups", "\"g\"")], true), ("0-9", [("Cache-Groups", "\"g\"")], true),
            ("0-19", [("Cache-Groups", "\"h\"")], false), ("0-9", [("Cache-Groups", "\"h\", \"g\"")], true),
        ],
        [[], [("Cache-Groups", "\"g\"")]] as [[(String, String)]]
    )
    func groups(
        _ next: (range: String, groups: [(String, String)], isMember: Bool),
        _ first: [(String, String)]
    ) async throws {
        try await withRig { rig in
            rig.origin.answers(file([next.range == "0-9" ? checked : lasting] + first).reply)
            _ = await rig.range("0-9")
            #expect(await rig.settle())
            rig.origin.answers(file([lasting] + next.groups).reply)
            _ = await rig.range(next.range)
            #expect(await rig.settle())
            #expect(rig.ranges == ["0-9", next.range == "0-9" ? "0-9 unless \"a\"" : "10-19 if \"a\""])
            let reply = file([lasting])
            rig.origin.answers {
                $0.method == .post ? .whole(200, [("Cache-Group-Invalidation", "\"g\"")]) : reply.reply($0)
            }
            _ = await rig.pass(.post, "/form")
            #expect(await rig.range("0-9").cache.hasPrefix(next.isMember ? "fwd=uri-miss" : "hit"))
        }
    }

    @Test("a part that tells of a group which has been invalidated while it was asked for is not kept")
    func groupMeanwhile() async throws {
        try await withRig { rig in
            rig.origin.answers(file([lasting]).reply)
            _ = await rig.range("0-9")
            #expect(await rig.settle())
            let valve = Valve()
            var late = file([lasting, ("Cache-Groups", "\"g\"")])
            late.end = valve
            let slow = late
            rig.origin.answers {
                $0.method == .post ? .whole(200, [("Cache-Group-Invalidation", "\"g\"")]) : slow.reply($0)
            }
            let reading = await rig.start(rig.ask("/a", [("Range", "bytes=0-19")]))
            #expect(await eventually { rig.origin.count == 2 })
            _ = await rig.pass(.post, "/form")
            valve.open()
            #expect(await reading.value.body == Array(slow.bytes[0..<20]))
            #expect(await rig.range("0-19").cache.hasPrefix("fwd=uri-miss"))
        }
    }

    @Test("RFC 9875 section 2.2.1: stored parts that are invalidated take the members of their groups along")
    func alongWith() async throws {
        try await withRig { rig in
            let part = file([lasting, ("Cache-Groups", "\"1\"")])
            rig.origin.answers { asked in
                switch (asked.method, asked.path) {
                case (.put, _): .whole(204, [])
                case (_, "/a"): part.reply(asked)
                case (_, "/b"): .whole(200, [lasting, ("Cache-Groups", "\"1\"")])
                default: .whole(200, [lasting, ("Cache-Groups", "\"2\"")])
                }
            }
            _ = await rig.range("0-9")
            for path in ["/b", "/c"] { _ = await rig.get(path) }
            #expect(await rig.settle())
            _ = await rig.pass(.put, "/a")
            #expect(await rig.get("/b").cache.hasPrefix("fwd=uri-miss"))
            #expect(await rig.get("/c").cache.hasPrefix("hit"))
        }
    }

    @Test(
        "what one request may not leave behind comes for it alone, and leaves the parts as they are",
        arguments: [
            (never, "bytes=0-19", ["0-19"], "request-no-store"), (never, "", ["all"], "request-no-store"),
            (alice, "bytes=0-19", ["10-19 if \"a\"", "0-19"], "authorization"),
            (alice, "", ["10-999 if \"a\"", "all"], "authorization"),
        ]
    )
    func alone(_ field: (String, String), _ range: String, _ asked: [String], _ reason: String) async throws {
        try await withRig { rig in
            let file = file([lasting])
            rig.origin.answers(file.reply)
            _ = await rig.range("0-9")
            let got = await rig.get("/a", [field] + (range.isEmpty ? [] : [("Range", range)]))
            #expect(got.status == (range.isEmpty ? 200 : 206))
            #expect(got.body == Array(file.bytes[0..<(range.isEmpty ? 1000 : 20)]))
            #expect(got.cache == "fwd=partial; fwd-status=\(got.status); detail=\(reason)")
            #expect(await rig.range("0-9").cache == "hit; ttl=6000; detail=memory")
            #expect(await rig.range("0-19").cache == "fwd=partial; fwd-status=206; stored")
            #expect(rig.ranges == ["0-9"] + asked + ["10-19 if \"a\""])
        }
    }

    @Test("several parts for one user say nothing about the next request")
    func aloneOnMiss() async throws {
        try await withRig { rig in
            let file = file([lasting])
            rig.origin.answers { asked in
                asked.fields.first(.range) == "bytes=0-1,5-6"
                    ? .whole(206, [("Content-Type", "multipart/byteranges; boundary=x")], [1]) : file.reply(asked)
            }
            #expect(await rig.range("0-1,5-6", [alice]).body == [1])
            #expect(await rig.range("0-9").cache == "fwd=uri-miss; fwd-status=206; stored")
            #expect(rig.ranges == ["0-1", "0-1,5-6", "0-9"])
        }
    }

    @Test(
        "RFC 9111 sections 3.5 and 5.2.1.5: a 304 for one user updates nothing that is stored for all",
        arguments: [
            (alice, "max-age=6000", false), (alice, "public, max-age=6000", true), (alice, "private", false),
            (never, "max-age=6000", false), (("X-A", "1"), "max-age=6000", true),
        ]
    )
    func privateCheck(_ field: (String, String), _ control: String, _ isForAll: Bool) async throws {
        try await withRig { rig in
            rig.origin.answers(file([checked]).reply)
            _ = await rig.range("0-9")
            #expect(await rig.settle())
            rig.origin.answers(file([("Cache-Control", control), ("X-User", "alice")]).reply)
            let own = await rig.range("0-9", [field])
            #expect(own.status == 206 && own.fields.first("X-User") == "alice")
            #expect(own.cache.hasPrefix("fwd=stale; fwd-status=304"))
            rig.origin.answers(file([checked]).reply)
            let other = await rig.range("0-9")
            #expect(other.body == own.body && other.fields.contains("X-User") == isForAll)
            #expect(other.cache.hasPrefix(isForAll ? "hit" : "fwd=stale"))
        }
    }

    @Test(
        "bytes that came for one user while an answer was read are nobody else's",
        arguments: [("max-age=6000", false), ("private", false), ("public, max-age=6000", true)]
    )
    func privateHole(_ control: String, _ isForAll: Bool) async throws {
        try await withRig { rig in
            let shared = file([("Cache-Control", "public, max-age=6000")])
            let own = file([("Cache-Control", control), ("X-User", "alice")])
            rig.origin.answers { $0.number == 4 ? own.reply($0) : shared.reply($0) }
            _ = await rig.range("100-199")
            _ = await rig.range("300-399")
            let got = await rig.range("0-399", [alice])
            #expect(got.status == 206 && got.body == Array(shared.bytes[0..<400]) && got.error == nil)
            #expect(await rig.settle())
            let other = await rig.range("200-299")
            #expect(other.body == Array(shared.bytes[200..<300]))
            #expect(other.cache.hasPrefix(isForAll ? "hit" : "fwd=partial"))
            #expect(other.fields.contains("X-User") == isForAll)
            let asked = ["100-199", "300-399 if \"a\"", "0-99 if \"a\"", "200-299 if \"a\""]
            #expect(rig.ranges == asked + (isForAll ? [] : ["200-299 if \"a\""]))
        }
    }
}
