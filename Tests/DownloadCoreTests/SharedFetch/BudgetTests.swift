// The bound of what arriving bodies take: many that stall, readers who stand still, and what others get meanwhile.

import CacheStore
import DiskStore
import DownloadCore
import Glibc
import HTTPCaching
import HTTPWire
import LoopSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct BudgetTests {
    private static let piece = Pattern.bytes(0..<65_536)
    /// What a body holds at most where the budget is spent: its window, and what came at once or waits for the disk.
    private static let least = 4 * BodyBudget.minimumWindow

    /// A body of so many pieces that stops before its last one.
    private static func stalled(_ pieces: Int, until tail: Valve) -> Reply {
        let bytes = Array(repeating: Reply.Step.bytes(piece), count: pieces - 1)
        return .pieces(length: pieces * piece.count, bytes + [.valve(tail), .bytes(piece), .end(Fields())])
    }

    private static func isWhole(_ got: Got, _ pieces: Int) -> Bool {
        guard let body = got.body, got.error == nil, body.count == pieces * piece.count else { return false }
        return body.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return (0..<pieces).allSatisfy { memcmp(start + $0 * piece.count, piece, piece.count) == 0 }
        }
    }

    @Test("bodies that stop before their end stay within the budget", arguments: [true, false], [true, false])
    func manyStall(disk: Bool, reads: Bool) async throws {
        let (count, pieces) = (Thoroughness.attempts(100), 16)
        try await withRig(loops: 2, disk: disk, memoryMaxObject: 1 << 20, budget: 4 << 20) { rig in
            let (tail, reading) = (Valve(), Valve())
            if reads { reading.open() }
            rig.origin.answers { _ in Self.stalled(pieces, until: tail) }
            var tasks: [Task<Got, Never>] = []
            for number in 0..<count {
                tasks.append(await rig.start(rig.ask("/\(number)"), loop: number % 2, reading: reading))
            }
            #expect(await eventually { rig.origin.count == count })
            var (most, last, looks) = (0, 0, 0)
            // Until nothing more comes: the bodies wait for their readers, or for their ends.
            let stands = await eventually {
                let used = rig.budget.used
                looks = used == last && used > 1 << 20 ? looks + 1 : 0
                (most, last) = (max(most, used), used)
                return looks == 50
            }
            #expect(stands)
            #expect(most <= rig.budget.limit + count * Self.least, "\(most) bytes for \(count) bodies")
            tail.open()
            reading.open()
            var whole = 0
            for task in tasks where Self.isWhole(await task.value, pieces) { whole += 1 }
            #expect(whole == count)
            #expect(await rig.settle())
            if disk {
                #expect(rig.disk?.statistics.objects == count, "whatever memory had room for")
            } else {
                #expect(rig.budget.refusals > count / 2)
                #expect(await eventually { rig.budget.used == 0 })
                #expect(await rig.get("/new").cache == "fwd=uri-miss; fwd-status=200; stored", "there is room again")
            }
        }
    }

    @Test("a reader who stands still stops nobody else's miss", arguments: [true, false])
    func othersGoOn(disk: Bool) async throws {
        try await withRig(disk: disk, budget: 1 << 20) { rig in
            let (reading, open) = (Valve(), Valve())
            open.open()
            rig.origin.answers { asked in Self.stalled(asked.path.hasPrefix("/still") ? 32 : 8, until: open) }
            var still: [Task<Got, Never>] = []
            for number in 0..<20 { still.append(await rig.start(rig.ask("/still\(number)"), reading: reading)) }
            #expect(await eventually { rig.origin.count == 20 })
            #expect(await eventually { rig.budget.used > rig.budget.limit })
            for number in 0..<20 { #expect(Self.isWhole(await rig.get("/other\(number)"), 8)) }
            reading.open()
            for task in still { #expect(Self.isWhole(await task.value, 32)) }
        }
    }

    @Test("a stored body costs its slow reader's share of the budget no more")
    func storedIsTheTiers() async throws {
        try await withRig { rig in
            let (reading, open) = (Valve(), Valve())
            open.open()
            rig.origin.answers { _ in Self.stalled(64, until: open) }
            let task = await rig.start(rig.ask(), reading: reading)
            #expect(await eventually { !rig.memory.variants(rig.key()).isEmpty })
            #expect(await eventually { rig.budget.used == 0 })
            rig.memory.removeAll()
            #expect(rig.memory.statistics.lentBytes == 4 << 20, "it has gone from the tier, and is read still")
            reading.open()
            #expect(Self.isWhole(await task.value, 64))
            #expect(await eventually { rig.memory.statistics.lentBytes == 0 })
        }
    }

    @Test("parts in memory count, and take no more than a quarter of the budget")
    func parts() async throws {
        try await withRig(budget: 2 << 20) { rig in
            let bytes = Pattern.bytes(0..<200_000)
            let fields = [
                ("Cache-Control", "max-age=6000"), ("ETag", "\"1\""), ("Content-Range", "bytes 0-199999/400000"),
            ]
            rig.origin.answers { _ in .whole(206, fields, bytes) }
            for number in 0..<10 {
                #expect(await rig.get("/\(number)", [("Range", "bytes=0-199999")]).body == bytes)
                #expect(await rig.settle())
            }
            let held = rig.core.partialStatistics.heldBytes
            #expect(held > 0 && held <= rig.budget.limit / 4)
            #expect(await eventually { rig.budget.used == rig.core.partialStatistics.heldBytes })
        }
    }

    @Test("a body of unknown length that the budget refuses is said to be refused by it", arguments: [8, 40])
    func refusedLate(pieces: Int) async throws {
        try await withRig(memoryMaxObject: 2 << 20, budget: 1 << 20) { rig in
            let (reading, open) = (Valve(), Valve())
            open.open()
            let late = Array(repeating: Reply.Step.bytes(Self.piece), count: pieces) + [.end(Fields())]
            rig.origin.answers {
                $0.path == "/late"
                    ? Reply.pieces([("Cache-Control", "max-age=6000")], late) : Self.stalled(16, until: open)
            }
            var still: [Task<Got, Never>] = []
            for number in 0..<20 { still.append(await rig.start(rig.ask("/still\(number)"), reading: reading)) }
            #expect(await eventually { rig.budget.used > rig.budget.limit })
            let got = await rig.get("/late")
            #expect(Self.isWhole(got, pieces) && got.cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await eventually { rig.core.counts.unstored == 1 })
            let reason = await rig.explain(rig.ask("/late")).unstored?.reason
            #expect(reason == (pieces * Self.piece.count > 2 << 20 ? "too-large" : "no-memory"))
            reading.open()
            for task in still { #expect(Self.isWhole(await task.value, 16)) }
        }
    }
}
