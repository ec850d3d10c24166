// What becomes of a fetch when everybody who waited for it or read it has left.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ClientAbortTests {
    private static func ask(_ rig: Rig, _ policy: AbandonmentPolicy, _ fields: [(String, String)] = []) -> CacheRequest
    {
        var ask = rig.ask("/a", fields)
        ask.onClientAbort = policy
        return ask
    }

    @Test(
        "nobody waits for the head any more",
        arguments: [AbandonmentPolicy.finish, .abort, .finishBeyond(0.01)],
        [1, 2, 3]
    )
    func beforeTheHead(_ policy: AbandonmentPolicy, _ count: Int) async throws {
        try await withRig(loops: 2) { rig in
            let head = Valve()
            rig.origin.answers { _ in .whole(head: head) }
            var tasks: [Task<Got, Never>] = []
            for number in 0..<count { tasks.append(await rig.start(Self.ask(rig, policy), loop: number % 2)) }
            #expect(await eventually { rig.origin.active == 1 })
            // In every order: the leader last, too.
            for task in count == 3 ? tasks.reversed() : tasks {
                #expect(rig.origin.cancelled == 0, "somebody waits still")
                task.cancel()
                #expect(await task.value.failure == .cancelled)
            }
            if policy == .finish {
                head.open()
                #expect(await rig.settle())
                #expect(rig.origin.cancelled == 0)
                #expect(await rig.get().cache.hasPrefix("hit"))
            } else {
                #expect(await eventually { rig.origin.cancelled == 1 })
                #expect(rig.core.counts.abandoned == 1)
                #expect(rig.reports.first?.contains("/a of service s: the fetch was ended after 0 bytes") == true)
                head.open()
                #expect(await rig.get().text == "hello")
                #expect(rig.origin.count == 2)
            }
        }
    }

    @Test("nobody reads the body any more", arguments: [false, true], [100, 3_000_000])
    func inTheBody(_ disk: Bool, _ size: Int) async throws {
        let half = size / 2
        let cases: [(AbandonmentPolicy, Bool, Bool)] = [
            (.finish, true, true), (.abort, true, false), (.finishBeyond(0.4), true, true),
            (.finishBeyond(0.6), true, false),
            (.finishBeyond(0.4), false, false), (.finishBeyond(1), true, false),
        ]
        for (policy, isLengthKnown, goesOn) in cases {
            try await withRig(disk: disk) { rig in
                let tail = Valve()
                let bytes = Pattern.bytes(0..<size)
                rig.origin.answers { _ in .halting(bytes, after: half, tail, isLengthKnown: isLengthKnown) }
                let (answered, reading) = (Valve(), Valve())
                let task = await rig.start(Self.ask(rig, policy), answered: answered, reading: reading)
                #expect(await eventually { answered.isOpen })
                // The bytes of the first half are there: they came with the head, in one go.
                task.cancel()
                #expect(await task.value.error == .cancelled)
                if goesOn {
                    tail.open()
                    #expect(await rig.settle(), "\(policy)")
                    #expect(rig.origin.cancelled == 0, "\(policy)")
                    let next = await rig.get()
                    #expect(next.body == bytes && next.cache.hasPrefix("hit"), "\(policy) \(next.cache)")
                } else {
                    #expect(await eventually { rig.origin.cancelled == 1 }, "\(policy)")
                    #expect(await rig.settle())
                    tail.open()
                    #expect(await rig.get().body == bytes)
                    #expect(rig.origin.count == 2)
                }
            }
        }
    }

    @Test("one of many who leaves changes nothing for the others; the last one ends it", arguments: [false, true])
    func oneOfMany(_ disk: Bool) async throws {
        try await withRig(loops: 2, disk: disk) { rig in
            let (tail, reading) = (Valve(), Valve())
            let bytes = Pattern.bytes(0..<900_000)
            rig.origin.answers { _ in .halting(bytes, after: 9, tail) }
            var tasks: [Task<Got, Never>] = []
            for number in 0..<8 {
                let answered = Valve()
                tasks.append(
                    await rig.start(Self.ask(rig, .abort), loop: number % 2, answered: answered, reading: reading)
                )
                #expect(await eventually { answered.isOpen })
            }
            for task in tasks[..<7] {
                task.cancel()
                #expect(await task.value.error == .cancelled)
            }
            #expect(rig.origin.cancelled == 0 && rig.origin.active == 1)
            reading.open()
            tail.open()
            #expect(await tasks[7].value.body == bytes)
            #expect(await rig.settle())
            #expect(await rig.get().cache.hasPrefix("hit"))
            #expect(rig.origin.count == 1)
        }
    }

    @Test("who joins while the last reader leaves gets every byte", arguments: 0..<30)
    func race(_ round: Int) async throws {
        try await withRig(loops: 2) { rig in
            let tail = Valve()
            let bytes = Pattern.bytes(0..<400_000)
            rig.origin.answers { _ in .halting(bytes, after: 9, tail) }
            let answered = Valve()
            let first = await rig.start(Self.ask(rig, .abort), answered: answered)
            if round % 3 > 0 { #expect(await eventually { answered.isOpen }) }
            first.cancel()
            if round % 2 == 0 { await Task.yield() }
            let second = await rig.start(Self.ask(rig, .abort), loop: 1)
            tail.open()
            let got = await second.value
            #expect(got.body == bytes && got.error == nil, "\(got.cache)")
        }
    }

    @Test("what came before the end can be completed by a range request")
    func resumed() async throws {
        try await withRig { rig in
            let tail = Valve()
            let bytes = Pattern.bytes(0..<600_000)
            let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\""), ("Accept-Ranges", "bytes")]
            rig.origin.answers { asked in
                guard let range = asked.fields.first(.range) else {
                    return .pieces(fields, length: bytes.count, [.bytes(Array(bytes[..<500_000])), .valve(tail)])
                }
                #expect(range == "bytes=500000-599999")
                let content = [("Content-Range", "bytes 500000-599999/600000")]
                return .whole(206, fields + content, Array(bytes[500_000...]))
            }
            let (answered, reading) = (Valve(), Valve())
            let task = await rig.start(Self.ask(rig, .abort), answered: answered, reading: reading)
            #expect(await eventually { answered.isOpen })
            task.cancel()
            _ = await task.value
            #expect(await eventually { rig.origin.cancelled == 1 })
            #expect(await rig.settle())
            let got = await rig.get(Self.ask(rig, .abort))
            #expect(got.body == bytes && got.status == 200 && got.error == nil)
            #expect(rig.origin.methods == "GET GET")
            tail.open()
        }
    }

    @Test("a part that nobody reads any more", arguments: [AbandonmentPolicy.finish, .abort])
    func part(_ policy: AbandonmentPolicy) async throws {
        try await withRig { rig in
            let tail = Valve()
            let bytes = Pattern.bytes(0..<100_000)
            rig.origin.answers { _ in .haltingPart(bytes, of: 200_000, after: 1000, tail) }
            let (answered, reading) = (Valve(), Valve())
            let ask = Self.ask(rig, policy, [("Range", "bytes=0-99999")])
            let task = await rig.start(ask, answered: answered, reading: reading)
            #expect(await eventually { answered.isOpen })
            task.cancel()
            _ = await task.value
            if policy == .finish {
                tail.open()
                #expect(await rig.settle())
                #expect(await rig.get(ask).cache.hasPrefix("hit"))
                #expect(rig.origin.count == 1 && rig.origin.cancelled == 0)
            } else {
                #expect(await eventually { rig.origin.cancelled == 1 })
                tail.open()
            }
        }
    }

    @Test(
        "who gets a 304 or a range of what arrives has not left",
        arguments: [("If-None-Match", "\"1\""), ("Range", "bytes=1-2")]
    )
    func servedWithLess(_ name: String, _ value: String) async throws {
        try await withRig { rig in
            let tail = Valve()
            let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .halting(Pattern.bytes(0..<100_000), after: 9, tail, fields: fields) }
            let got = await rig.get(Self.ask(rig, .abort, [(name, value)]))
            #expect(got.status == (name == "Range" ? 206 : 304), "\(got.cache)")
            tail.open()
            #expect(await rig.settle())
            #expect(rig.origin.cancelled == 0)
            #expect(await rig.get().body == Pattern.bytes(0..<100_000))
            #expect(rig.origin.count == 1)
        }
    }

    @Test("a refresh behind an answer goes on by itself")
    func refresh() async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", "max-age=6000, stale-while-revalidate=3000")]
            rig.origin.answers { _ in .whole(200, fields) }
            _ = await rig.get(Self.ask(rig, .abort))
            rig.clock.advance(seconds: 6100)
            let head = Valve()
            rig.origin.answers { _ in .whole(200, fields, Array("new".utf8), head: head) }
            #expect(await rig.get(Self.ask(rig, .abort)).cache.hasSuffix("detail=refreshing"))
            #expect(await eventually { rig.origin.active == 1 })
            // One that waits for it and leaves again does not end it.
            let waiter = await rig.start(Self.ask(rig, .abort, [("Cache-Control", "max-stale=0, min-fresh=1")]))
            waiter.cancel()
            _ = await waiter.value
            head.open()
            #expect(await rig.settle())
            #expect(await rig.get(Self.ask(rig, .abort)).text == "new")
        }
    }
}
