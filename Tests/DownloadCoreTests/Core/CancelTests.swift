// Fetches that an operator ends: an explicit outcome for everybody who waits, and nothing else changes.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CancelTests {
    @Test("who waits for a head is answered 503 with the reason, on every loop; the next request fetches anew")
    func beforeTheHead() async throws {
        try await withRig(loops: 2) { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            var tasks: [Task<Got, Never>] = []
            for number in 0..<10 { tasks.append(await rig.start(rig.ask(), loop: number % 2)) }
            let other = await rig.start(rig.ask("/b"))
            #expect(await eventually { rig.origin.active == 2 })
            let key = rig.key()
            #expect(rig.core.housekeeping.cancel { $0 == key } == CancelledFetches(fetches: 1, waiters: 10))
            for task in tasks {
                let got = await task.value
                guard case .stopped(let detail)? = got.failure else {
                    Issue.record("\(got.cache) \(String(describing: got.failure))")
                    continue
                }
                #expect(detail.contains("drydock cancel") && got.failure?.title == "Cancelled")
                #expect(got.failure?.proxyStatus == "connection_terminated")
                #expect(got.status == 503 && got.body == nil)
                #expect(got.cache.hasPrefix("fwd=uri-miss") && got.cache.hasSuffix("detail=connection_terminated"))
            }
            #expect(await eventually { rig.origin.cancelled == 1 })
            #expect(rig.core.housekeeping.cancel { $0 == key } == CancelledFetches())
            let again = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 3 })
            head.open()
            #expect(await again.value.text == "hello")
            #expect(await other.value.text == "hello")
            #expect(rig.core.counts.cancelled == 1)
        }
    }

    @Test("who waits is dropped on every loop, the fetch goes on, and who comes later joins it", arguments: [1, 10])
    func waitersAlone(_ count: Int) async throws {
        try await withRig(loops: 2) { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            var tasks: [Task<Got, Never>] = []
            for number in 0..<count { tasks.append(await rig.start(rig.ask(), loop: number % 2)) }
            #expect(await eventually { rig.origin.active == 1 })
            let key = rig.key()
            // One that was counted may be a moment away from its wait.
            var dropped = CancelledFetches()
            #expect(
                await eventually {
                    dropped.waiters += rig.core.housekeeping.dropWaiters { $0 == key }.waiters
                    return dropped.waiters == count
                }
            )
            for task in tasks {
                let got = await task.value
                guard case .stopped(let detail)? = got.failure else {
                    Issue.record("\(got.cache) \(String(describing: got.failure))")
                    continue
                }
                #expect(detail.contains("drydock cancel --waiters") && got.failure?.title == "Cancelled")
                #expect(got.status == 503 && got.body == nil)
            }
            #expect(rig.core.housekeeping.dropWaiters { $0 == key } == CancelledFetches(fetches: 1, waiters: 0))
            #expect(rig.core.housekeeping.dropWaiters { $0 != key } == CancelledFetches())
            let late = await rig.start(rig.ask())
            head.open()
            #expect(await late.value.text == "hello")
            #expect(await rig.settle())
            #expect(await rig.get().cache.hasPrefix("hit"))
            #expect(rig.origin.count == 1 && rig.origin.cancelled == 0 && rig.core.counts.cancelled == 0)
        }
    }

    @Test("what is forwarded for one request alone has no fetch to keep, and goes on with it")
    func waitersOfForwards() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let task = await rig.start(rig.ask("/a", policy: CachePolicy(mode: .none)))
            #expect(await eventually { rig.origin.active == 1 })
            #expect(rig.core.housekeeping.dropWaiters { _ in true } == CancelledFetches())
            head.open()
            #expect(await task.value.text == "hello")
        }
    }

    @Test(
        "who reads a body is cut off: it never ends as if it were whole",
        arguments: [("max-age=6000", true), ("max-age=6000", false), ("no-store", false)]
    )
    func inTheBody(_ control: String, _ disk: Bool) async throws {
        for isLengthKnown in [true, false] {
            try await withRig(loops: 2, disk: disk) { rig in
                let (tail, reading) = (Valve(), Valve())
                let bytes = Pattern.bytes(0..<3_000_000)
                rig.origin.answers { _ in
                    .halting(
                        bytes,
                        after: 400_000,
                        tail,
                        fields: [("Cache-Control", control)],
                        isLengthKnown: isLengthKnown
                    )
                }
                var tasks: [Task<Got, Never>] = []
                let count = control == "no-store" ? 1 : 4
                for number in 0..<count {
                    let answered = Valve()
                    tasks.append(await rig.start(rig.ask(), loop: number % 2, answered: answered, reading: reading))
                    #expect(await eventually { answered.isOpen })
                }
                #expect(rig.core.housekeeping.cancel { _ in true } == CancelledFetches(fetches: 1, waiters: count))
                reading.open()
                for task in tasks {
                    let got = await task.value
                    #expect(
                        got.error?.description.contains("drydock cancel") == true,
                        "\(String(describing: got.error))"
                    )
                    #expect((got.body?.count ?? 0) <= 400_000)
                }
                #expect(await eventually { rig.origin.cancelled == 1 })
                #expect(await rig.settle())
                tail.open()
                #expect(await rig.get().body == bytes)
            }
        }
    }

    @Test("what is stored stays, with its lifetime: a check that is cancelled neither renews nor removes it")
    func storedCopies() async throws {
        try await withRig(disk: true) { rig in
            let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .whole(200, fields) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            for method in ["head", "get"] {
                let head = Valve()
                rig.origin.answers { _ in .whole(200, fields, Array("new".utf8), head: head) }
                let policy = CachePolicy(revalidate: method == "head" ? .head : .conditional)
                let task = await rig.start(rig.ask(policy: policy))
                #expect(await eventually { rig.origin.active == 1 })
                #expect(rig.core.housekeeping.cancel { _ in true } == CancelledFetches(fetches: 1, waiters: 1))
                #expect(await task.value.status == 503, "not the stale copy either: the outcome is explicit")
                head.open()
            }
            rig.origin.answers { _ in .down }
            for _ in 0..<2 {
                let stale = await rig.get("/a", policy: CachePolicy(checkPause: 0))
                #expect(stale.text == "hello" && stale.cache == "fwd=stale; ttl=-100; detail=stale-if-error")
                rig.memory.removeAll()
            }
        }
    }

    @Test("a refresh behind an answer is cancelled without anybody noticing")
    func refresh() async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", "max-age=6000, stale-while-revalidate=3000")]
            rig.origin.answers { _ in .whole(200, fields) }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            let head = Valve()
            rig.origin.answers { _ in .whole(200, fields, head: head) }
            #expect(await rig.get().cache.hasSuffix("detail=refreshing"))
            #expect(await eventually { rig.origin.active == 1 })
            #expect(rig.core.housekeeping.cancel { _ in true } == CancelledFetches(fetches: 1, waiters: 0))
            #expect(await rig.settle())
            let again = await rig.get()
            #expect(again.cache.hasSuffix("detail=refreshing") && again.text == "hello")
            head.open()
            #expect(await rig.settle())
        }
    }

    @Test("requests that are passed on, alone or without a store", arguments: ["none", "no-store", "HEAD"])
    func relayed(_ way: String) async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            let policy = way == "none" ? CachePolicy(mode: .none) : CachePolicy()
            let fields = way == "no-store" ? [("Cache-Control", "no-store")] : []
            let ask = rig.ask("/a", method: way == "HEAD" ? .head : .get, fields, policy: policy)
            let task = await rig.start(ask)
            #expect(await eventually { rig.origin.active == 1 })
            #expect(rig.core.housekeeping.cancel { $0.service == "s" } == CancelledFetches(fetches: 1, waiters: 1))
            #expect(await task.value.failure?.title == "Cancelled")
            head.open()
        }
    }

    @Test("a request that may have had its effect already goes on")
    func unsafe() async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            async let got = rig.pass(.post)
            #expect(await eventually { rig.origin.active == 1 })
            #expect(rig.core.housekeeping.cancel { _ in true } == CancelledFetches())
            head.open()
            #expect(await got.text == "hello")
            // The same where its answer is being stored.
            let tail = Valve()
            rig.origin.answers { _ in
                .halting(
                    [1, 2],
                    after: 1,
                    tail,
                    fields: [("Cache-Control", "max-age=6000"), ("Content-Location", "/b")]
                )
            }
            async let stored = rig.pass(.post, "/b")
            #expect(await eventually { rig.core.fillCount == 1 })
            #expect(rig.core.housekeeping.cancel { _ in true } == CancelledFetches())
            tail.open()
            let answer = await stored
            #expect(answer.body == [1, 2] && answer.cache.contains("stored"), "\(answer.cache)")
        }
    }

    @Test("parts on their way are cut, and what came of them stays")
    func parts() async throws {
        try await withRig { rig in
            let tail = Valve()
            let bytes = Pattern.bytes(0..<100_000)
            rig.origin.answers { _ in .haltingPart(bytes, of: 200_000, after: 1000, tail) }
            let (answered, reading) = (Valve(), Valve())
            let task = await rig.start(
                rig.ask("/a", [("Range", "bytes=0-99999")]),
                answered: answered,
                reading: reading
            )
            #expect(await eventually { answered.isOpen })
            #expect(rig.core.housekeeping.cancel { _ in true }.fetches >= 1)
            reading.open()
            let got = await task.value
            #expect(got.error != nil && (got.body?.count ?? 0) <= 1000)
            #expect(await eventually { rig.origin.cancelled == 1 })
            tail.open()
            #expect(await rig.settle())
            #expect(await rig.get("/a", [("Range", "bytes=0-999")]).cache.hasPrefix("hit"))
        }
    }

    @Test("cancelling in the middle of everything: each outcome is whole, or an explicit failure", arguments: 0..<3)
    func stress(_ seed: Int) async throws {
        try await withRig(loops: 2, disk: true) { rig in
            let bytes = Pattern.bytes(0..<200_000)
            var (whole, stopped, cut) = (0, 0, 0)
            for round in 0..<40 {
                var tasks: [Task<Got, Never>] = []
                let valve = Valve()
                rig.origin.answers { .halting(bytes, after: $0.number * 977 % 200_000, valve) }
                for number in 0..<6 {
                    let path = "/\(seed)-\(round % 3)"
                    tasks.append(await rig.start(rig.ask(path, [("X", "\(number)")]), loop: number % 2))
                    if number % 2 == round % 2 { _ = rig.core.housekeeping.cancel { _ in true } }
                }
                valve.open()
                for task in tasks {
                    let got = await task.value
                    if got.failure?.title == "Cancelled" {
                        stopped += 1
                    } else if got.error != nil {
                        cut += 1
                    } else {
                        #expect(got.body == bytes, "\(got.cache)")
                        whole += 1
                    }
                }
                rig.core.housekeeping.invalidate(rig.key("/\(seed)-\(round % 3)"))
            }
            #expect(whole + stopped + cut == 240 && stopped + cut > 0)
            #expect(await rig.settle())
        }
    }
}
