// Concurrent requests for one key: one fetch, streamed while it arrives; who waits how long; who leaves.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CollapsingTests {
    @Test("a hundred requests on two loops share one fetch, and each gets every byte while it arrives")
    func hundred() async throws {
        try await withRig(loops: 2, disk: true) { rig in
            let (head, middle) = (Valve(), Valve())
            let bytes = Pattern.bytes(0..<600_000)
            rig.origin.answers { _ in
                Reply(
                    steps: [.valve(head)]
                        + Reply.pieces(
                            length: bytes.count,
                            [
                                .bytes(Array(bytes[..<300_000])), .valve(middle), .bytes(Array(bytes[300_000...])),
                                .end(Fields()),
                            ]
                        ).steps
                )
            }
            var tasks: [Task<Got, Never>] = []
            for number in 0..<50 { tasks.append(await rig.start(rig.ask(), loop: number % 2)) }
            head.open()
            for number in 0..<50 { tasks.append(await rig.start(rig.ask(), loop: number % 2)) }
            middle.open()
            var (collapsed, hits) = (0, 0)
            for task in tasks {
                let got = await task.value
                #expect(got.body == bytes && got.error == nil)
                if got.cache == "fwd=uri-miss; fwd-status=200; stored; collapsed" { collapsed += 1 }
                if got.cache.hasPrefix("hit") { hits += 1 }
            }
            #expect(rig.origin.methods == "GET")
            // On a busy machine one may come to look only when everything has been stored.
            #expect(collapsed > 0 && collapsed + hits == 99)
            #expect(await rig.settle())
            rig.memory.removeAll()
            #expect(await rig.get().body == bytes)
        }
    }

    @Test(
        "an answer that turns out private: each fetches for itself, all at once, and the key is remembered",
        arguments: [
            "private, max-age=6000", "no-store",
        ]
    )
    func uncacheable(_ control: String) async throws {
        try await withRig { rig in
            let (head, others) = (Valve(), Valve())
            rig.origin.answers { asked in
                .whole(
                    200,
                    [("Cache-Control", control)],
                    [UInt8(asked.number)],
                    head: asked.number == 1 ? head : others
                )
            }
            var tasks: [Task<Got, Never>] = []
            for _ in 0..<10 { tasks.append(await rig.start(rig.ask())) }
            #expect(await eventually { rig.origin.count == 1 })
            head.open()
            #expect(await eventually { rig.origin.count == 10 }, "the others do not wait for one another")
            others.open()
            var bodies: Set<[UInt8]> = []
            for task in tasks { bodies.insert(await task.value.body ?? []) }
            #expect(bodies.count == 10)
            let again = Valve()
            rig.origin.answers { _ in .whole(200, [("Cache-Control", control)], head: again) }
            let more = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            #expect(await eventually { rig.origin.count == 12 }, "the key is remembered")
            again.open()
            for task in more { _ = await task.value }
            rig.clock.advance(seconds: 121)
            let late = Valve()
            rig.origin.answers { _ in .whole(head: late) }
            let last = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            late.open()
            for task in last { _ = await task.value }
            #expect(rig.origin.count == 13, "and forgotten after a while")
        }
    }

    @Test("one client's no-store does not keep the others from sharing")
    func requestNoStore() async throws {
        try await withRig { rig in
            let alone = await rig.get("/a", [("Cache-Control", "no-store")])
            #expect(alone.cache == "fwd=uri-miss; fwd-status=200; detail=request-no-store")
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            head.open()
            for task in tasks { #expect(await task.value.text == "hello") }
            #expect(rig.origin.count == 2)
        }
    }

    @Test("a request's no-cache never joins an older fill, and the older one does not overwrite what it brought")
    func reloadIsAlone() async throws {
        try await withRig(disk: true) { rig in
            let tail = Valve()
            rig.origin.answers { asked in
                asked.number == 1
                    ? .pieces(
                        [("Cache-Control", "max-age=6000")],
                        length: 2,
                        [.bytes([1]), .valve(tail), .bytes([1]), .end(Fields())]
                    )
                    : .whole(200, [("Cache-Control", "max-age=6000")], [2])
            }
            let first = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            rig.clock.advance(seconds: 200)
            #expect(await rig.get("/a", [("Cache-Control", "no-cache")]).body == [2])
            tail.open()
            #expect(await first.value.body == [1, 1])
            #expect(await rig.settle())
            #expect(await eventually { rig.disk?.lookup(rig.key()).count == 1 })
            #expect(await rig.get().body == [2])
            rig.memory.removeAll()
            #expect(await rig.get().body == [2])
            #expect(rig.origin.count == 2)
        }
    }

    @Test("whoever has waited long enough for a head fetches for itself")
    func waitLimit() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { .whole(head: $0.number == 1 ? head : nil) }
            let leader = await rig.start(rig.ask())
            let impatient = await rig.get(rig.ask(collapse: CollapseLimits(wait: 20_000_000)))
            #expect(impatient.text == "hello" && impatient.cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(rig.origin.count == 2)
            head.open()
            #expect(await leader.value.text == "hello")
        }
    }

    @Test("as many wait as may; the next fetches for itself", arguments: [0, 1, 3])
    func waiterLimit(_ limit: Int) async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            var tasks: [Task<Got, Never>] = []
            for _ in 0..<6 {
                tasks.append(await rig.start(rig.ask(collapse: CollapseLimits(wait: patience, waiters: limit))))
            }
            #expect(await eventually { rig.origin.count == 6 - limit })
            head.open()
            var collapsed = 0
            for task in tasks where await task.value.cache.hasSuffix("collapsed") { collapsed += 1 }
            #expect(collapsed == limit)
        }
    }

    @Test("a leader that leaves before the head: a shared fill goes on for the others, and is stored")
    func leaderLeavesShared() async throws {
        try await withRig(loops: 2) { rig in
            let head = Valve()
            rig.origin.answers { _ in
                Reply(steps: [.interim(103), .valve(head), .interim(103)] + Reply.whole().steps)
            }
            let interims = Mutex(0)
            let told: @Sendable (Int) -> Void = { _ in interims.withLock { $0 += 1 } }
            let leader = await rig.start(rig.ask(), onInterim: told)
            let waiter = await rig.start(rig.ask(), loop: 1)
            #expect(await eventually { interims.withLock { $0 } == 1 })
            leader.cancel()
            #expect(await leader.value.failure == .cancelled)
            head.open()
            #expect(await waiter.value.text == "hello")
            #expect(interims.withLock { $0 } == 1, "a client that has left hears nothing more")
            #expect(await rig.settle())
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.count == 1 && rig.origin.cancelled == 0)
        }
    }

    @Test("a leader that leaves before the head of a fill that nobody else can join ends it")
    func leaderLeavesAlone() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let task = await rig.start(rig.ask("/a", [("Cache-Control", "no-cache")]))
            #expect(await eventually { rig.origin.active == 1 })
            task.cancel()
            #expect(await task.value.failure == .cancelled)
            #expect(await eventually { rig.origin.cancelled == 1 })
            head.open()
        }
    }

    @Test("a waiter that leaves changes nothing for the others")
    func waiterLeaves() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask()), await rig.start(rig.ask())]
            tasks[1].cancel()
            #expect(await tasks[1].value.failure == .cancelled)
            head.open()
            #expect(await tasks[0].value.text == "hello")
            #expect(await tasks[2].value.text == "hello")
            #expect(rig.origin.count == 1)
        }
    }

    @Test("a failure before the head is everybody's failure, of one fetch")
    func sharedFailure() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(head)] + Reply.down.steps) }
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            head.open()
            for task in tasks { #expect(await task.value.status == 502) }
            #expect(rig.origin.count == 1)
        }
    }

    @Test("waiters for a check that succeeds are hits; one check for all")
    func sharedCheck() async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .whole(200, fields) }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            let head = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(head)] + Reply.headOnly(200, fields).steps) }
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            head.open()
            #expect(await tasks[0].value.cache == "fwd=stale; fwd-status=200; ttl=6000; detail=revalidated")
            #expect(await tasks[1].value.cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.methods == "GET HEAD")
        }
    }

    @Test(
        "a purge while a check is under way: who asks after it gets nothing of what was purged",
        arguments: [false, true]
    )
    func purgedDuringACheck(_ isSoft: Bool) async throws {
        try await withRig { rig in
            let policy = CachePolicy(mode: .library, ttl: 6000)
            let fields = [("ETag", "\"1\"")]
            rig.origin.answers { _ in .whole(200, fields, Array("old".utf8)) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let head = Valve()
            rig.origin.answers { asked in
                asked.method == .head
                    ? Reply(steps: [.valve(head)] + Reply.headOnly(200, fields).steps)
                    : .whole(200, [], Array("new".utf8))
            }
            let first = await rig.start(rig.ask("/a", policy: policy))
            #expect(await eventually { rig.origin.methods == "GET HEAD" })
            _ = try await rig.core.housekeeping.purge([PurgeRule(.all, isSoft: isSoft)], on: rig.pool)
            let second = await rig.start(rig.ask("/a", policy: policy))
            head.open()
            _ = await first.value
            let text = await second.value.text
            // After a soft purge, a check of its own may find that it is the same still.
            if isSoft { #expect(rig.origin.methods == "GET HEAD HEAD") } else { #expect(text == "new") }
        }
    }

    @Test("RFC 9111 section 4.1: a waiter never gets a stale or arriving variant that it does not select")
    func variantsOfWaiters() async throws {
        try await withRig { rig in
            @Sendable func reply(_ asked: Asked) -> Reply {
                let language = asked.fields.first(.acceptLanguage) ?? "-"
                return .whole(
                    200,
                    [("Cache-Control", "max-age=6000"), ("Vary", "Accept-Language"), ("ETag", "\"\(language)\"")],
                    Array(language.utf8)
                )
            }
            rig.origin.answers { reply($0) }
            for language in ["en", "de"] { _ = await rig.get("/a", [("Accept-Language", language)]) }
            rig.clock.advance(seconds: 6100)
            let head = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(head)] + Reply.down.steps) }
            var tasks: [String: Task<Got, Never>] = [:]
            for language in ["en", "de", "fr"] {
                tasks[language] = await rig.start(rig.ask("/a", [("Accept-Language", language)]))
            }
            head.open()
            #expect(await tasks["en"]?.value.text == "en")
            #expect(await tasks["de"]?.value.text == "de", "its own stale variant")
            #expect(await tasks["fr"]?.value.status == 502, "none of its own")
            let second = Valve()
            rig.origin.answers { asked in Reply(steps: [.valve(second)] + reply(asked).steps) }
            let (it, es) = (
                await rig.start(rig.ask("/b", [("Accept-Language", "it")])),
                await rig.start(rig.ask("/b", [("Accept-Language", "es")]))
            )
            second.open()
            #expect(await it.value.text == "it")
            #expect(await es.value.text == "es")
        }
    }

    @Test("who joins a fill that is whole but not stored yet waits for it, and finds it")
    func joinsWholeFill() async throws {
        try await withRig(disk: true) { rig in
            let policy = CachePolicy(memory: false)
            let tail = Valve()
            rig.origin.answers { _ in
                .pieces(length: 2, [.bytes([1]), .valve(tail), .bytes([2]), .end(Fields())])
            }
            let first = await rig.start(rig.ask(policy: policy))
            tail.open()
            #expect(await first.value.body == [1, 2])
            let second = await rig.get("/a", policy: policy)
            #expect(second.body == [1, 2])
            #expect(rig.origin.count == 1)
        }
    }

    @Test("who selects another variant than a fill will bring does not wait for it, and shares one with its like")
    func otherVariants() async throws {
        try await withRig(loops: 2) { rig in
            @Sendable func reply(_ asked: Asked, head: Valve? = nil) -> Reply {
                let language = asked.fields.first(.acceptLanguage) ?? "-"
                return .whole(
                    200,
                    [("Cache-Control", "max-age=6000"), ("Vary", "Accept-Language")],
                    Array(language.utf8),
                    head: head
                )
            }
            rig.origin.answers { reply($0) }
            _ = await rig.get("/a", [("Accept-Language", "en")])
            let (de, fr) = (Valve(), Valve())
            rig.origin.answers { reply($0, head: $0.fields.first(.acceptLanguage) == "de" ? de : fr) }
            var tasks: [String: [Task<Got, Never>]] = [:]
            for number in 0..<6 {
                for language in ["de", "fr"] {
                    let task = await rig.start(rig.ask("/a", [("Accept-Language", language)]), loop: number % 2)
                    tasks[language, default: []].append(task)
                }
            }
            fr.open()
            for task in tasks["fr"] ?? [] { #expect(await task.value.text == "fr", "it did not wait for the other") }
            #expect(rig.origin.count == 3)
            de.open()
            for task in tasks["de"] ?? [] { #expect(await task.value.text == "de") }
            #expect(rig.origin.count == 3)
        }
    }

    @Test("who finds that an arriving answer is another's variant shares the next fetch with its like")
    func variantsOnArrival() async throws {
        try await withRig { rig in
            let (tail, second) = (Valve(), Valve())
            rig.origin.answers { asked in
                let fields = [("Cache-Control", "max-age=6000"), ("Vary", "Accept-Language")]
                return asked.number == 1
                    ? .pieces(fields, length: 2, [.bytes([1]), .valve(tail), .bytes([1]), .end(Fields())])
                    : .whole(200, fields, [2], head: second)
            }
            let answered = Valve()
            let first = await rig.start(rig.ask("/a", [("Accept-Language", "en")]), answered: answered)
            #expect(await eventually { answered.isOpen })
            var others: [Task<Got, Never>] = []
            for _ in 0..<5 { others.append(await rig.start(rig.ask("/a", [("Accept-Language", "fr")]))) }
            #expect(await eventually { rig.origin.count == 2 })
            second.open()
            for task in others { #expect(await task.value.body == [2]) }
            #expect(rig.origin.count == 2)
            tail.open()
            #expect(await first.value.body == [1, 1])
        }
    }

    @Test(
        "what needs a check of its own for every request is never waited for",
        arguments: ["no-cache", "max-age=0, must-revalidate"]
    )
    func alwaysChecked(_ control: String) async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", control), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .whole(200, fields) }
            _ = await rig.get()
            let valve = Valve()
            rig.origin.answers { asked in
                Reply(
                    steps: [.valve(valve)]
                        + (asked.method == .head ? Reply.headOnly(304, fields) : .whole(304, fields)).steps
                )
            }
            var tasks: [Task<Got, Never>] = []
            for _ in 0..<5 { tasks.append(await rig.start(rig.ask())) }
            #expect(await eventually { rig.origin.count == 6 }, "all ask at once")
            valve.open()
            for task in tasks { #expect(await task.value.cache.hasSuffix("detail=revalidated")) }
            #expect(rig.origin.count == 6)
        }
    }

    @Test("an error that passes does not keep later requests from sharing", arguments: [503, 429])
    func passingError(_ status: Int) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(status, []) }
            #expect(await rig.get().status == status)
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            head.open()
            for task in tasks { #expect(await task.value.text == "hello") }
            #expect(rig.origin.count == 2)
        }
    }

    @Test("requests with Authorization share nothing while they are on their way")
    func authorized() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            var tasks = [await rig.start(rig.ask())]
            for _ in 0..<2 { tasks.append(await rig.start(rig.ask("/a", [("Authorization", "Basic eDp5")]))) }
            #expect(await eventually { rig.origin.count == 3 })
            head.open()
            for task in tasks { #expect(await task.value.text == "hello") }
        }
    }
}
