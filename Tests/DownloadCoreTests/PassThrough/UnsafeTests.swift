// Methods that change something: what they invalidate, what of their answers is stored, and groups (RFC 9875).

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import LoopSupport
import TestSupport
import Testing

private let fresh = ("Cache-Control", "max-age=6000")

@Suite(.timeLimit(.minutes(5)))
struct UnsafeTests {
    @Test(
        "RFC 9111 section 4.4: a non-error answer to any method that is not safe invalidates, known or not",
        arguments: [
            (Method.post, 200, true), (.put, 204, true), (.delete, 302, true), (.patch, 201, true),
            (.other("FROB"), 200, true), (.other("QUERY"), 200, true), (.post, 404, false), (.put, 500, false),
            (.options, 200, false), (.trace, 200, false),
        ]
    )
    func invalidates(_ method: Method, _ status: Int, _ isInvalidated: Bool) async throws {
        try await withRig(disk: true) { rig in
            for path in ["/a", "/b", "/c"] { _ = await rig.get(path) }
            #expect(await rig.settle())
            rig.origin.answers { $0.method == .get ? .whole() : .whole(status, []) }
            let got = await rig.pass(method, "/a", named: ["/b"])
            #expect(got.status == status && got.cache == "fwd=method; fwd-status=\(status)")
            let cache = isInvalidated ? "fwd=uri-miss; fwd-status=200; stored" : "hit; ttl=6000; detail=memory"
            for path in ["/a", "/b"] { #expect(await rig.get(path).cache == cache) }
            #expect(await rig.get("/c").cache.hasPrefix("hit"))
        }
    }

    @Test("an answer that is refused for what it holds invalidates, too: the origin has acted")
    func refused() async throws {
        for (error, isInvalidated) in [(FetchError.type("html"), true), (.mapping("bad"), true), (.inner("no"), false)]
        {
            for method in [Method.put, .options] {
                try await withRig { rig in
                    _ = await rig.get()
                    #expect(await rig.settle())
                    rig.origin.answers { $0.method == .get ? .whole() : Reply(steps: [.fail(error)]) }
                    #expect(await rig.pass(method).failure == error)
                    #expect(await rig.get().cache.hasPrefix("hit") != (isInvalidated && method == .put))
                }
            }
        }
    }

    @Test("whoever gives the store away knows how long a request may change it", arguments: [true, false])
    func mayChange(_ isUnsafe: Bool) async throws {
        try await withRig { rig in
            let tail = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(tail)] + Reply.whole(204, []).steps) }
            #expect(!rig.core.housekeeping.isChanging)
            async let got = rig.pass(isUnsafe ? .put : .options)
            #expect(await eventually { rig.origin.count == 1 })
            #expect(rig.core.housekeeping.isChanging == isUnsafe)
            tail.open()
            #expect(await got.status == 204)
            #expect(!rig.core.housekeeping.isChanging)
        }
    }

    @Test("RFC 9110 section 9.3.3: the answer to a POST that is a representation of its target is stored for GET")
    func postStored() async throws {
        try await withRig(disk: true) { rig in
            _ = await rig.get()
            rig.origin.answers { _ in .whole(200, [fresh, ("Content-Location", "/a")], Array("new".utf8)) }
            let post = await rig.pass(.post)
            #expect(post.text == "new" && post.cache == "fwd=method; fwd-status=200; stored")
            #expect(await rig.settle())
            for method in [Method.get, .head] {
                let got = await rig.get(rig.ask(method: method))
                #expect(got.cache == "hit; ttl=6000; detail=memory" && got.length == 3)
            }
            rig.memory.removeAll()
            #expect(await rig.get().text == "new")
            // A POST itself is never answered from the store.
            #expect(await rig.pass(.post).text == "new")
            #expect(rig.origin.methods == "GET POST POST")
        }
    }

    @Test(
        "what is not such a representation is not stored, and what was stored has gone",
        arguments: [
            [fresh], [fresh, ("Content-Location", "/b")], [("Content-Location", "/a")],
            [("Cache-Control", "max-age=6000, private"), ("Content-Location", "/a")],
            [("Cache-Control", "no-store"), ("Content-Location", "/a")],
        ]
    )
    func postNotStored(_ fields: [(String, String)]) async throws {
        try await withRig { rig in
            _ = await rig.get()
            rig.origin.answers { $0.method == .post ? .whole(200, fields, [1]) : .whole() }
            #expect(await rig.pass(.post).cache == "fwd=method; fwd-status=200")
            #expect(await rig.get().text == "hello")
            #expect(rig.origin.methods == "GET POST GET")
        }
    }

    @Test(
        "a long answer to a POST streams, and is stored when it is whole; one that is cut is not",
        arguments: [true, false]
    )
    func longPost(_ isWhole: Bool) async throws {
        try await withRig(disk: true) { rig in
            let bytes = Pattern.bytes(0..<600_000)
            rig.origin.answers { asked in
                guard asked.method == .post else { return .whole() }
                return .pieces(
                    [fresh, ("Content-Location", host + "/a")],
                    length: 600_000,
                    [.bytes(Array(bytes[..<300_000]))] + (isWhole ? [.bytes(Array(bytes[300_000...]))] : []) + [
                        .end(Fields())
                    ]
                )
            }
            let post = await rig.pass(.post)
            #expect(isWhole ? post.body == bytes : post.error == .truncated)
            #expect(await rig.settle())
            #expect(await eventually { rig.budget.used == 0 })
            #expect(await rig.get().body?.count == (isWhole ? 600_000 : 5))
        }
    }

    @Test("a fill that began before a POST succeeded is not stored after it, and is not joined after it")
    func fillBefore() async throws {
        try await withRig(disk: true) { rig in
            let tail = Valve()
            rig.origin.answers { asked in
                asked.number == 1
                    ? .pieces(length: 2, [.bytes([1]), .valve(tail), .bytes([1]), .end(Fields())])
                    : .whole(200, [fresh], [2])
            }
            let old = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            _ = await rig.pass(.post)
            #expect(await rig.get().body == [2], "does not join what is older than the POST")
            tail.open()
            #expect(await old.value.body == [1, 1])
            #expect(await rig.settle())
            #expect(await rig.get().body == [2])
            rig.memory.removeAll()
            #expect(await rig.get().body == [2])
        }
    }

    /// A copy of the folder at that moment is what kill -9 would leave.
    @Test("once an unsafe request is answered, nothing that it invalidated comes back", arguments: [false, true])
    func killedAfterwards(_ losesIndex: Bool) async throws {
        try await withRig(disk: true) { rig in
            let vary = [fresh, ("Vary", "Accept-Language"), ("Cache-Groups", "\"g\"")]
            rig.origin.answers { $0.method == .get ? .whole(200, vary) : .whole(204, []) }
            var keyed = rig.ask("/3")
            keyed.key = CacheKey(service: "s", url: host + "/3", lines: ["x-user: 1"])
            let asks = (0..<10).map { rig.ask("/\($0)") } + [keyed]
            for ask in asks {
                // Only the member that is asked for is invalidated with its group, and all of them have the group.
                _ = await rig.get(ask)
            }
            rig.origin.answers { $0.method == .get ? .whole(200, [fresh]) : .whole(204, []) }
            for path in ["/20", "/21"] { _ = await rig.get(path) }
            #expect(await rig.settle())
            await rig.disk?.settle()
            #expect(await rig.pass(.put, "/3").status == 204)
            #expect(await rig.pass(.delete, "/20").status == 204)
            let copy = rig.folder.file("killed")
            // What is removed meanwhile is not copied.
            _ = try Shell.run("cp", ["-R", rig.folder.file("cache"), copy])
            if losesIndex { try Shell.must("sh", ["-c", "rm -f '\(copy)'/index.sqlite*"]) }
            let (core, disk) = try await rig.another(on: copy)
            defer { disk.close() }
            for isSettled in [false, true] {
                if isSettled { await disk.settle() }
                for ask in asks + [rig.ask("/20"), rig.ask("/21")] {
                    var ask = ask
                    ask.request.fields.append("Cache-Control", "only-if-cached")
                    let (asked, origin) = (ask, rig.origin)
                    let status = await onLoop(rig.loops[0]) { loop in
                        let answer = await core.answer(asked, from: ScriptedSource(origin), on: loop)
                        answer.reader?.close()
                        return answer.head.status
                    }
                    if ask.path == "/21" {
                        #expect(status == 200, "nobody has invalidated it")
                    } else {
                        #expect(status == 504, "\(ask.key)")
                    }
                }
            }
        }
    }

    @Test("thousands of invalidations of keyed URLs cost nothing but these", arguments: [true, false])
    func manyKeyed(_ hasDisk: Bool) async throws {
        try await withRig(disk: hasDisk) { rig in
            func ask(_ service: String, _ path: String) -> CacheRequest {
                var ask = rig.ask(path)
                ask.key = CacheKey(service: service, url: host + path, lines: ["x-user: 1"])
                ask.sharesURL = true
                return ask
            }
            let others = [ask("t", "/other"), ask("s", "/same"), rig.ask("/plain")]
            for ask in others { _ = await rig.get(ask) }
            for number in 0..<300 { _ = await rig.get(ask("s", "/k\(number)")) }
            #expect(await rig.settle())
            let count = 9000
            for number in 0..<count { await rig.core.housekeeping.invalidate([rig.key("/k\(number)")]) }
            for ask in others { #expect(await rig.get(ask).cache.hasPrefix("hit")) }
            rig.memory.removeAll()
            if hasDisk { for ask in others { #expect(await rig.get(ask).cache.hasPrefix("hit")) } }
            for number in [0, 150, 299] {
                #expect(await rig.get(ask("s", "/k\(number)")).cache.hasPrefix("fwd=uri-miss"))
            }
        }
    }

    @Test("interim answers to other methods reach the client")
    func interim() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in Reply(steps: [.interim(103)] + Reply.whole(200, []).steps) }
            let told = Counter()
            _ = await rig.pass(.post, onInterim: { told.add($0) })
            #expect(told.value == 103)
        }
    }

    @Test("a GET with content is no other method: it passes by")
    func getWithContent() async throws {
        try await withRig { rig in
            #expect(await rig.pass(.get).cache == "fwd=bypass; fwd-status=200; detail=content")
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct GroupTests {
    private static func grouped(_ group: String, _ length: Int = 5) -> Reply {
        .whole(200, [fresh, ("Cache-Groups", group)], [UInt8](repeating: 3, count: length))
    }

    @Test(
        "RFC 9875 section 3: Cache-Group-Invalidation invalidates the members on the same origin, at once",
        arguments: [5, 2_000_000]
    )
    func named(_ length: Int) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { asked in
                switch (asked.method, asked.path) {
                case (.post, _): .whole(200, [("Cache-Group-Invalidation", "\"g\"")])
                case (_, "/c"): Self.grouped("\"other\"", length)
                default: Self.grouped("\"other\", \"g\"", length)
                }
            }
            for path in ["/a", "/b", "/c"] { _ = await rig.get(path) }
            var elsewhere = rig.ask()
            elsewhere.key = CacheKey(service: "t", url: host + "/a")
            _ = await rig.get(elsewhere)
            #expect(await rig.settle())
            let other = await rig.pass(.post, "/form")
            #expect(other.status == 200)
            for path in ["/a", "/b"] { #expect(await rig.get(path).cache.hasPrefix("fwd=uri-miss")) }
            for ask in [rig.ask("/c"), elsewhere] { #expect(await rig.get(ask).cache.hasPrefix("hit")) }
            #expect(await rig.settle())
            // What was fetched in the very second of the invalidation, but after it, is a member in good standing.
            for path in ["/a", "/b"] { #expect(await rig.get(path).cache.hasPrefix("hit")) }
            rig.memory.removeAll()
            for path in ["/a", "/b"] { #expect(await rig.get(path).cache.hasPrefix("hit")) }
        }
    }

    @Test("RFC 9875 section 2.2.1: what is invalidated takes the members of its groups along, and theirs no further")
    func alongWith() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { asked in
                switch asked.path {
                case "/a": Self.grouped("\"1\"")
                case "/b": Self.grouped("\"1\", \"2\"")
                default: Self.grouped("\"2\"")
                }
            }
            for path in ["/a", "/b", "/c"] { _ = await rig.get(path) }
            rig.origin.answers { $0.method == .put ? .whole(204, []) : .whole() }
            _ = await rig.pass(.put, "/a")
            #expect(await rig.get("/b").cache.hasPrefix("fwd=uri-miss"))
            #expect(await rig.get("/c").cache.hasPrefix("hit"))
        }
    }

    @Test(
        "an error, or an answer to a safe method, invalidates no group",
        arguments: [(Method.post, 400), (.options, 200)]
    )
    func notNamed(_ method: Method, _ status: Int) async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                asked.method == .get ? Self.grouped("\"g\"") : .whole(status, [("Cache-Group-Invalidation", "\"g\"")])
            }
            _ = await rig.get()
            _ = await rig.pass(method, "/form")
            #expect(await rig.get().cache.hasPrefix("hit"))
        }
    }

    @Test("a member that is on its way when its group is invalidated is neither stored nor shared from then on")
    func onItsWay() async throws {
        try await withRig(disk: true) { rig in
            let tail = Valve()
            rig.origin.answers { asked in
                switch (asked.method, asked.number) {
                case (.post, _): .whole(200, [("Cache-Group-Invalidation", "\"g\"")])
                case (_, 1):
                    .pieces(
                        [fresh, ("Cache-Groups", "\"g\"")],
                        length: 2,
                        [.bytes([1]), .valve(tail), .bytes([1]), .end(Fields())]
                    )
                default: .whole(200, [fresh, ("Cache-Groups", "\"g\"")], [2])
                }
            }
            let answered = Valve()
            let old = await rig.start(rig.ask(), answered: answered)
            #expect(await eventually { answered.isOpen })
            _ = await rig.pass(.post, "/form")
            #expect(await rig.get().body == [2])
            tail.open()
            #expect(await old.value.body == [1, 1])
            #expect(await rig.settle())
            #expect(await rig.get().body == [2])
            rig.memory.removeAll()
            #expect(await rig.get().body == [2])
        }
    }

    @Test("a restart brings no member of an invalidated group back, and leaves the others")
    func restart() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { asked in Self.grouped(asked.path == "/a" ? "\"g\"" : "\"h\"") }
            for path in ["/a", "/b"] { _ = await rig.get(path) }
            #expect(await rig.settle())
            await rig.core.housekeeping.invalidate([], [.group("g", of: rig.key())])
            rig.disk?.close()
            let disk = try await DiskTier.open(
                path: rig.folder.file("cache"),
                limits: DiskLimits(size: 1 << 30, minFree: 0),
                pool: rig.pool
            )
            let core = DownloadCore(
                cacheName: "drydock",
                memory: MemoryTier(),
                memoryMaxObject: 1 << 20,
                behind: [disk],
                diskMaxObject: 1 << 20,
                budget: rig.budget,
                clock: rig.clock
            )
            let (origin, asks) = (rig.origin, [rig.ask("/a"), rig.ask("/b")])
            let found = await onLoop(rig.loops[0]) { loop in
                var found: [String] = []
                for ask in asks {
                    let answer = await core.answer(ask, from: ScriptedSource(origin), on: loop)
                    answer.reader?.close()
                    found.append(answer.cacheStatus?.forward?.rawValue ?? "hit")
                }
                return found
            }
            #expect(found == ["uri-miss", "hit"])
            #expect(await eventually { core.fillCount == 0 })
            disk.close()
        }
    }

    @Test("a member never answers without a look at its groups; who has none stays on the hot path")
    func hotPath() async throws {
        try await withRig { rig in
            rig.origin.answers { $0.path == "/a" ? Self.grouped("\"g\"") : .whole() }
            for path in ["/a", "/b"] { _ = await rig.get(path) }
            #expect(rig.memory.variants(rig.key("/a")).first?.hot == nil)
            #expect(rig.memory.variants(rig.key("/b")).first?.hot != nil)
        }
    }
}
