// Bodies on their way: cut short, left by their clients, too large, invalidated, short of room.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing
import Upstream

private let truncated = FetchError.upstream(UpstreamError(.truncated, detail: "the origin closed within the body"))

@Suite(.timeLimit(.minutes(5)))
struct IncomingResponseTests {
    @Test(
        "a body that is cut ends well for nobody, and is not stored",
        arguments: [
            (10, true), (10, false), (400_000, true), (400_000, false),
        ]
    )
    func cut(_ size: Int, _ hasLength: Bool) async throws {
        try await withRig(disk: true) { rig in
            let middle = Valve()
            let bytes = Pattern.bytes(0..<size)
            rig.origin.answers { _ in
                .pieces(length: hasLength ? size * 2 : nil, [.bytes(bytes), .valve(middle), .fail(truncated)])
            }
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            middle.open()
            for task in tasks {
                let got = await task.value
                #expect(got.status == 200 && got.body == bytes)
                #expect(got.error == .source("the origin closed within the body"))
            }
            #expect(await rig.settle())
            #expect(rig.memory.variants(rig.key()).isEmpty && rig.disk?.lookup(rig.key()).isEmpty == true)
            rig.origin.answers { _ in .whole() }
            #expect(await rig.get().cache == "fwd=uri-miss; fwd-status=200; stored")
        }
    }

    @Test(
        "an end that may be a cut is passed on as whole, told, and never stored",
        arguments: [(5, true), (5, false), (2 << 20, true), (2 << 20, false)]
    )
    func unproven(_ size: Int, _ hasDisk: Bool) async throws {
        try await withRig(disk: hasDisk) { rig in
            let fields = Fields([("Cache-Control", "max-age=6000")])
            let body = Pattern.bytes(0..<size)
            let cuts = Valve()
            rig.origin.answers { _ in
                let head = Reply.Step.head(ResponseHead(status: 200, reason: "R", fields: fields), .untilClose)
                return Reply(steps: [head, .bytes(body), cuts.isOpen ? .end(Fields()) : .unprovenEnd])
            }
            // Those who wait for it get it, too.
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask())]
            for task in tasks {
                let got = await task.value
                #expect(got.status == 200 && got.body == body && got.error == nil)
            }
            #expect(await rig.settle())
            #expect(rig.memory.variants(rig.key()).isEmpty && rig.disk?.lookup(rig.key()).isEmpty != false)
            #expect(rig.reports.count == 1)
            #expect(rig.reports.first?.hasPrefix("\(rig.key()) of service s ended with its TLS connection") == true)
            #expect(rig.reports.first?.contains("without close_notify") == true)
            // The next one says so with its head, and there is one line of it.
            var got = await rig.get()
            #expect(got.body == body && got.cache == "fwd=uri-miss; fwd-status=200; detail=unproven-end")
            #expect(await rig.settle())
            #expect(rig.reports.count == 1)
            // Once an end is proven again, the next is stored again.
            cuts.open()
            got = await rig.get()
            #expect(got.body == body && got.cache == "fwd=uri-miss; fwd-status=200; detail=unproven-end")
            #expect(await rig.settle())
            #expect(await rig.get().cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            #expect(await rig.get().cache.hasPrefix("hit"))
        }
    }

    @Test("a stored response stays where what would replace it may have been cut")
    func unprovenReplacement() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                if asked.number == 1 { return .whole(200, [("Cache-Control", "max-age=6000")], Array("old".utf8)) }
                let head = ResponseHead(status: 200, reason: "R", fields: Fields([("Cache-Control", "max-age=6000")]))
                return Reply(steps: [.head(head, .untilClose), .bytes(Array("ne".utf8)), .unprovenEnd])
            }
            _ = await rig.get()
            #expect(await rig.get("/a", [("Cache-Control", "no-cache")]).text == "ne")
            #expect(await rig.settle())
            #expect(await rig.get().text == "old")
        }
    }

    @Test("an end before the declared length is a cut, whatever the source says")
    func short() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .pieces(length: 5, [.bytes([1, 2]), .end(Fields())]) }
            #expect(await rig.get().error == .truncated)
            #expect(await rig.settle())
            #expect(rig.memory.variants(rig.key()).isEmpty)
        }
    }

    @Test(
        "a client that leaves mid-body does not stop a fill that can be stored",
        arguments: [
            // memory, disk, length, is declared
            (true, true, 3 << 20, true), (true, true, 3 << 20, false), (true, false, 3 << 20, true),
            (true, false, 3 << 20, false), (false, true, 3 << 20, false), (false, true, 100_000, true),
            (true, false, 100_000, true), (false, true, 100_000, false), (true, true, 9 << 20, true),
        ]
    )
    func clientLeaves(_ memory: Bool, _ disk: Bool, _ size: Int, _ isDeclared: Bool) async throws {
        try await withRig(disk: disk) { rig in
            let policy = CachePolicy(memory: memory, disk: disk)
            let middle = Valve()
            let bytes = Pattern.bytes(0..<size)
            rig.origin.answers { _ in
                var steps: [Reply.Step] = [.bytes(Array(bytes[..<1000])), .valve(middle)]
                for start in stride(from: 1000, to: size, by: 65536) {
                    steps.append(.bytes(Array(bytes[start..<min(size, start + 65536)])))
                }
                return .pieces(length: isDeclared ? size : nil, steps + [.end(Fields())])
            }
            let answered = Valve()
            let task = await rig.start(rig.ask(policy: policy), answered: answered)
            #expect(await eventually { answered.isOpen })
            task.cancel()
            #expect(await task.value.error == .cancelled)
            middle.open()
            #expect(await rig.settle())
            let got = await rig.get("/a", policy: policy)
            let tier = memory && size <= 8 << 20 ? "memory" : "disk"
            #expect(got.body == bytes && got.cache == "hit; ttl=6000; detail=\(tier)")
            #expect(rig.origin.count == 1 && rig.origin.cancelled == 0)
        }
    }

    @Test("what fits the memory tier is stored before its reader reads", arguments: [1 << 20, 3 << 20])
    func stalledLeader(_ size: Int) async throws {
        try await withRig { rig in
            let stall = Valve()
            let bytes = Pattern.bytes(0..<size)
            rig.origin.answers { _ in .pieces(length: size, [.bytes(bytes), .end(Fields())]) }
            let task = await rig.start(rig.ask(), reading: stall)
            #expect(await eventually { !rig.memory.variants(rig.key()).isEmpty })
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            stall.open()
            #expect(await task.value.body == bytes)
            #expect(rig.origin.count == 1)
        }
    }

    @Test(
        "a client that leaves ends the fetch of what cannot be stored",
        arguments: [
            ("no-store", 1000), ("max-age=6000", 9 << 20),
        ]
    )
    func clientLeavesUnstored(_ control: String, _ size: Int) async throws {
        try await withRig { rig in
            let never = Valve()
            rig.origin.answers { _ in
                .pieces([("Cache-Control", control)], length: size, [.bytes([1]), .valve(never), .end(Fields())])
            }
            let answered = Valve()
            let task = await rig.start(rig.ask(), answered: answered)
            #expect(await eventually { answered.isOpen })
            task.cancel()
            #expect(await task.value.error == .cancelled)
            #expect(await eventually { rig.origin.cancelled == 1 })
            never.open()
        }
    }

    @Test(
        "the leader leaves before the head, and nobody reads: what can be stored is stored, the rest given up",
        arguments: [
            (3 << 20, false), (3 << 20, true), (12 << 20, false), (12 << 20, true),
        ]
    )
    func leaderLeavesMuch(_ size: Int, _ isDeclared: Bool) async throws {
        try await withRig { rig in
            let head = Valve()
            rig.origin.answers { _ in
                let part = Reply.Step.bytes([UInt8](repeating: 1, count: 1 << 20))
                let steps = Array(repeating: part, count: size >> 20) + [.end(Fields())]
                return Reply(steps: [.valve(head)] + Reply.pieces(length: isDeclared ? size : nil, steps).steps)
            }
            let task = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            task.cancel()
            _ = await task.value
            head.open()
            #expect(await rig.settle())
            let isStored = size <= 8 << 20
            #expect(rig.memory.variants(rig.key()).count == (isStored ? 1 : 0))
            #expect(rig.origin.cancelled == (isStored ? 0 : 1))
        }
    }

    @Test("http-rules B: a fill that began before an invalidation is not stored, nor joined afterwards")
    func invalidated() async throws {
        try await withRig(disk: true) { rig in
            let tail = Valve()
            rig.origin.answers { asked in
                asked.number == 1
                    ? .pieces(length: 2, [.bytes([1]), .valve(tail), .bytes([1]), .end(Fields())])
                    : .whole(200, [("Cache-Control", "max-age=6000")], [2])
            }
            let first = await rig.start(rig.ask())
            #expect(await eventually { rig.core.fillCount == 1 })
            #expect(await rig.relay(.post).cache == "fwd=method; fwd-status=200")
            rig.core.housekeeping.invalidate(rig.key())
            let after = await rig.get()
            #expect(after.body == [2], "what was asked after a change must not be older than it")
            tail.open()
            #expect(await first.value.body == [1, 1])
            #expect(await rig.settle())
            #expect(await rig.get().body == [2])
            rig.memory.removeAll()
            #expect(await rig.get().body == [2])
        }
    }

    @Test("an invalidation during a check keeps the freshened response from coming back")
    func invalidatedCheck() async throws {
        try await withRig(disk: true) { rig in
            let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .whole(200, fields) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let head = Valve()
            rig.origin.answers { _ in Reply(steps: [.valve(head)] + Reply.headOnly(200, fields).steps) }
            let task = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 2 })
            rig.core.housekeeping.invalidate(rig.key())
            head.open()
            #expect(await task.value.text == "hello")
            #expect(rig.memory.variants(rig.key()).isEmpty && rig.disk?.lookup(rig.key()).isEmpty == true)
        }
    }

    @Test("where the budget is spent nobody waits, and memory alone keeps nothing until there is room again")
    func budget() async throws {
        try await withRig(budget: 400_000) { rig in
            let reading = Valve()
            let (long, bytes) = (Pattern.bytes(0..<300_000), Pattern.bytes(0..<200_000))
            rig.origin.answers { asked in
                switch asked.path {
                case "/first": .pieces(length: nil, [.bytes(long), .end(Fields())])
                case "/small": .whole()
                default: .whole(200, [("Cache-Control", "max-age=6000")], bytes)
                }
            }
            let first = await rig.start(rig.ask("/first"), reading: reading)
            #expect(await eventually { rig.budget.used >= 300_000 })
            #expect(await rig.get("/a").body == bytes)
            #expect(await rig.get("/a").cache == "fwd=uri-miss; fwd-status=200; detail=no-memory")
            #expect(rig.budget.refusals >= 2)
            #expect(await rig.get("/small").cache == "fwd=uri-miss; fwd-status=200; stored", "no more than any window")
            #expect(await rig.get("/c", [("Cache-Control", "no-store")]).body == bytes)
            #expect(await rig.get("/d", policy: CachePolicy(mode: .none)).body == bytes)
            reading.open()
            #expect(await first.value.body == long)
            #expect(await eventually { rig.budget.used == 0 })
            #expect(await rig.get("/a").cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            #expect(await rig.get("/a").cache.hasPrefix("hit"))
        }
    }

    @Test("a stalled reader of a shared fill does not slow the others")
    func stalledReader() async throws {
        try await withRig(loops: 2, disk: true) { rig in
            let stall = Valve()
            let bytes = Pattern.bytes(0..<4_000_000)
            rig.origin.answers { _ in
                let steps = stride(from: 0, to: bytes.count, by: 65536).map {
                    Reply.Step.bytes(Array(bytes[$0..<min(bytes.count, $0 + 65536)]))
                }
                return .pieces(length: bytes.count, steps + [.end(Fields())])
            }
            let stalled = await rig.start(rig.ask(), reading: stall)
            let quick = await rig.start(rig.ask(), loop: 1)
            #expect(await quick.value.body == bytes)
            stall.open()
            #expect(await stalled.value.body == bytes)
            #expect(rig.origin.count == 1)
        }
    }
}
