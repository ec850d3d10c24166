// The last client leaves at every moment around the head: what nobody reads and nothing keeps is
// ended, and counts go back.

import CacheStore
import DownloadCore
import EventLoop
import HTTPWire
import Policies
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LeavingTests {
    /// What no tier keeps, with a body that stalls.
    enum Unkept: CaseIterable, Sendable {
        case tooLarge, tooLargeAndSilent, noStore, outgrown

        /// In bytes.
        var memoryMaxObject: Int { self == .outgrown ? 100_000 : 8 << 20 }

        private static let fourPieces = (0..<4).map { Reply.Step.bytes(Pattern.bytes($0 * 50_000..<($0 + 1) * 50_000)) }

        func reply(head: Valve, _ never: Valve) -> Reply {
            let stalls = [Reply.Step.valve(never), .end(Fields())]
            let reply: Reply =
                switch self {
                case .tooLarge: .pieces(length: 9 << 20, [.bytes([1])] + stalls)
                case .tooLargeAndSilent: .pieces(length: 9 << 20, stalls)
                case .noStore: .pieces([("Cache-Control", "no-store")], length: 1000, [.bytes([1])] + stalls)
                case .outgrown: .pieces(length: nil, Self.fourPieces + stalls)
                }
            return Reply(steps: [.valve(head)] + reply.steps)
        }
    }

    /// Lets the head come, and the client leave as many turns of the loop later: before the head (0), between the head
    /// and the outcome (1), with the outcome (2), as a reader (3).
    private static func leave(_ task: Task<Got, Never>, after turns: Int, opening head: Valve, on loop: EventLoop) {
        loop.submit { _ in
            head.open()
            later(turns, on: loop) { task.cancel() }
        }
    }

    private static func later(_ turns: Int, on loop: EventLoop, _ action: @escaping @Sendable () -> Void) {
        if turns == 0 { return action() }
        loop.submit { _ in later(turns - 1, on: loop, action) }
    }

    /// A body of a declared length, held back behind its first bytes.
    private static func held(
        _ status: Int = 200,
        _ fields: [(String, String)],
        _ bytes: [UInt8],
        head: Valve,
        tail: Valve
    ) -> Reply {
        let lines = Fields(fields + [("Content-Length", "\(bytes.count)")])
        let first = Reply.Step.head(
            ResponseHead(status: status, reason: "R", fields: lines),
            .length(UInt64(bytes.count))
        )
        var steps = [.valve(head), first, .bytes(Array(bytes[..<1000])), .valve(tail)]
        for start in stride(from: 1000, to: bytes.count, by: 65536) {
            steps.append(.bytes(Array(bytes[start..<min(bytes.count, start + 65536)])))
        }
        return Reply(steps: steps + [.end(Fields())])
    }

    @Test("what nothing keeps ends with its only client, whenever that leaves", arguments: 0...3, Unkept.allCases)
    func unkept(_ turns: Int, _ what: Unkept) async throws {
        try await withRig(memoryMaxObject: what.memoryMaxObject) { rig in
            let (head, never) = (Valve(), Valve())
            rig.origin.answers { _ in what.reply(head: head, never) }
            let task = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.active == 1 })
            Self.leave(task, after: turns, opening: head, on: rig.loops[0])
            _ = await task.value
            #expect(await eventually { rig.origin.cancelled == 1 })
            #expect(await rig.settle())
            never.open()
        }
    }

    @Test("what is kept goes on, whenever its only client leaves", arguments: 0...3, [false, true])
    func kept(_ turns: Int, _ isPart: Bool) async throws {
        try await withRig { rig in
            let (head, tail) = (Valve(), Valve())
            let bytes = Pattern.bytes(0..<(isPart ? 100_000 : 3 << 20))
            var fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
            if isPart { fields.append(("Content-Range", "bytes 0-99999/200000")) }
            rig.origin.answers { [fields] _ in Self.held(isPart ? 206 : 200, fields, bytes, head: head, tail: tail) }
            let ask = rig.ask("/a", isPart ? [("Range", "bytes=0-99999")] : [("Cache-Control", "no-cache")])
            let task = await rig.start(ask)
            #expect(await eventually { rig.origin.active == 1 })
            Self.leave(task, after: turns, opening: head, on: rig.loops[0])
            _ = await task.value
            if turns == 0, !isPart {
                // A reload is for one client alone, as long as nothing has come.
                #expect(await eventually { rig.origin.cancelled == 1 })
                #expect(await rig.settle())
                return tail.open()
            }
            #expect(await eventually { rig.core.fillCount == 1 })
            tail.open()
            #expect(await rig.settle(), "the fetch has ended, and nobody has heard of it")
            #expect(rig.origin.cancelled == 0)
            let next = await rig.get(isPart ? ask : rig.ask())
            #expect(next.body == bytes && next.cache.hasPrefix("hit"), "\(next.cache)")
        }
    }

    @Test("what nothing keeps ends where all have left before the head", arguments: [false, true])
    func beforeTheHead(_ isLeaderLast: Bool) async throws {
        try await withRig(loops: 2) { rig in
            let (head, never) = (Valve(), Valve())
            rig.origin.answers { _ in Unkept.tooLarge.reply(head: head, never) }
            let tasks = [await rig.start(rig.ask()), await rig.start(rig.ask(), loop: 1)]
            #expect(await eventually { rig.origin.active == 1 })
            for task in isLeaderLast ? tasks.reversed() : tasks {
                task.cancel()
                #expect(await task.value.failure == .cancelled)
            }
            head.open()
            #expect(await eventually { rig.origin.cancelled == 1 })
            #expect(await rig.settle())
            #expect(rig.origin.count == 1)
            never.open()
        }
    }

    @Test("who waits gets what nothing keeps, whenever the leader leaves", arguments: 0...3)
    func waiterStays(_ turns: Int) async throws {
        try await withRig(loops: 2) { rig in
            let (head, tail, answered) = (Valve(), Valve(), Valve())
            let bytes = Pattern.bytes(0..<(9 << 20))
            rig.origin.answers { _ in
                Self.held(200, [("Cache-Control", "max-age=6000")], bytes, head: head, tail: tail)
            }
            let leader = await rig.start(rig.ask())
            let waiter = await rig.start(rig.ask(), loop: 1, answered: answered)
            #expect(await eventually { rig.origin.active == 1 })
            Self.leave(leader, after: turns, opening: head, on: rig.loops[0])
            _ = await leader.value
            #expect(await eventually { answered.isOpen })
            tail.open()
            let got = await waiter.value
            #expect(got.body == bytes && got.error == nil, "\(got.cache)")
            #expect(rig.origin.count == 1 && rig.origin.cancelled == 0)
        }
    }

    @Test("what nothing keeps ends where the only one who waited may not read it")
    func waiterLooksAgain() async throws {
        try await withRig(loops: 2) { rig in
            let (head, never) = (Valve(), Valve())
            rig.origin.answers { $0.number == 1 ? Unkept.tooLarge.reply(head: head, never) : .whole() }
            let leader = await rig.start(rig.ask())
            let waiter = await rig.start(rig.ask(), loop: 1)
            leader.cancel()
            #expect(await leader.value.failure == .cancelled)
            // The waiter has asked before this, and must not get what is older than it.
            rig.core.housekeeping.invalidate(rig.key())
            head.open()
            #expect(await waiter.value.text == "hello")
            #expect(await eventually { rig.origin.cancelled == 1 })
            #expect(await rig.settle())
            #expect(rig.origin.count == 2)
            never.open()
        }
    }

    @Test("what nothing keeps ends where the only one who waited has lost its patience and asks alone")
    func waiterAsksAlone() async throws {
        try await withRig(loops: 2) { rig in
            let (head, never, second) = (Valve(), Valve(), Valve())
            rig.origin.answers { asked in
                asked.number == 1 ? Unkept.tooLarge.reply(head: head, never) : .whole(head: second)
            }
            let leader = await rig.start(rig.ask())
            let waiter = await rig.start(rig.ask(collapse: CollapseLimits(wait: 1_000_000)), loop: 1)
            #expect(await eventually { rig.origin.count == 2 })
            leader.cancel()
            #expect(await leader.value.failure == .cancelled)
            head.open()
            #expect(await eventually { rig.origin.cancelled == 1 }, "it is no waiter of the first fetch any more")
            second.open()
            #expect(await waiter.value.text == "hello")
            never.open()
        }
    }

    @Test(
        "a refresh behind an answer ends where nothing keeps what it brings; what is outdated goes",
        arguments: [1, 0]
    )
    func refresh(_ first: Int) async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", "max-age=6000, stale-while-revalidate=3000")]
            rig.origin.answers { _ in .whole(200, fields) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let never = Valve()
            rig.origin.answers { _ in
                let bytes = [Reply.Step.bytes([1])].prefix(first)
                return .pieces(fields, length: 9 << 20, bytes + [.valve(never), .end(Fields())])
            }
            #expect(await rig.get().cache.hasSuffix("detail=refreshing"))
            #expect(await eventually { rig.origin.cancelled == 1 })
            #expect(await rig.settle())
            #expect(rig.memory.variants(rig.key()).isEmpty)
            never.open()
        }
    }
}
