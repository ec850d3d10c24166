// Parts on their way: shared by several requests, cut short, left by their clients, invalidated.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing
import Upstream

private let truncated = FetchError.upstream(UpstreamError(.truncated, detail: "the origin closed within the body"))

@Suite(.timeLimit(.minutes(5)))
struct IncomingRangeTests {
    private let hit = "hit; ttl=6000; detail=memory"

    @Test(
        "requests for the same part share one fetch, and those for others wait for their bytes",
        arguments: [true, false]
    )
    func together(_ disk: Bool) async throws {
        try await withRig(loops: 2, disk: disk) { rig in
            let end = Valve()
            var file = RangedFile(2_000_000)
            file.end = end
            rig.origin.answers(file.reply)
            var tasks: [(Range<Int>, Task<Got, Never>)] = []
            for number in 0..<20 {
                let range = number % 2 == 0 ? 0..<1_000_000 : 999_000..<1_000_000
                let field = [("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
                tasks.append((range, await rig.start(rig.ask("/a", field), loop: number % 2)))
                if number == 0 { #expect(await eventually { rig.core.partialStatistics.objects == 1 }) }
            }
            end.open()
            for (range, task) in tasks {
                let got = await task.value
                #expect(got.status == 206 && got.body == Array(file.bytes[range]) && got.error == nil)
            }
            #expect(rig.ranges == ["0-999999"])
        }
    }

    @Test("a storm of ranges leaves every byte in its place", arguments: [true, false])
    func storm(_ disk: Bool) async throws {
        try await withRig(loops: 2, disk: disk) { rig in
            let file = RangedFile(1_500_000)
            rig.origin.answers(file.reply)
            var tasks: [(Range<Int>, Task<Got, Never>)] = []
            for number in 0..<60 {
                let first = number * 7919 * 31 % 1_400_000
                let range = first..<min(1_500_000, first + 1 + number * number * 100)
                let field = [("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
                tasks.append((range, await rig.start(rig.ask("/a", field), loop: number % 2)))
            }
            for (range, task) in tasks {
                let got = await task.value
                #expect(got.status == 206 && got.body == Array(file.bytes[range]) && got.error == nil)
            }
            #expect(await rig.get().body == file.bytes)
            #expect(await rig.settle())
            #expect(await rig.get().cache.hasPrefix("hit"))
        }
    }

    @Test("a range waits for a whole that is on its way, unless its bytes are far ahead")
    func joinsWhole() async throws {
        try await withRig(disk: true) { rig in
            let end = Valve()
            let file = RangedFile(20 << 20)
            rig.origin.answers { asked in
                var file = file
                if !asked.fields.contains(.range) { file.end = end }
                var reply = file.reply(asked)
                // The whole stops after its first piece until the test says so.
                if file.end != nil { reply.steps.insert(.valve(end), at: 2) }
                return reply
            }
            let whole = await rig.start(rig.ask())
            #expect(await eventually { rig.origin.count == 1 })
            let near = await rig.start(rig.ask("/a", [("Range", "bytes=1000000-1000009")]))
            let far = await rig.range("15000000-15000009")
            #expect(far.body == Array(file.bytes[15_000_000..<15_000_010]))
            end.open()
            let got = await near.value
            #expect(got.status == 206 && got.body == Array(file.bytes[1_000_000..<1_000_010]))
            #expect(got.cache == "fwd=uri-miss; fwd-status=200; stored; collapsed")
            #expect(await whole.value.body == file.bytes)
            #expect(rig.ranges == ["all", "15000000-15000009"])
            #expect(await rig.settle())
            #expect(rig.core.partialStatistics.objects == 0)
        }
    }

    // MARK: - Cuts

    @Test(
        "a part that is cut ends well for nobody, but what came of it is kept",
        arguments: [true, false],
        [1000, 3_000_000]
    )
    func cut(_ disk: Bool, _ size: Int) async throws {
        try await withRig(disk: disk) { rig in
            let file = RangedFile(size)
            let half = size / 2
            rig.origin.answers { asked in
                var reply = file.reply(asked)
                guard asked.number == 1 else { return reply }
                reply.steps = [reply.steps[0], .bytes(Array(file.bytes[0..<half])), .fail(truncated)]
                return reply
            }
            let got = await rig.range("0-\(size - 2)")
            #expect(got.status == 206 && got.body == Array(file.bytes[0..<half]) && got.error != nil)
            #expect(await rig.settle())
            let next = await rig.range("0-\(size - 2)")
            #expect(next.body == Array(file.bytes[0..<size - 1]) && next.error == nil)
            #expect(rig.ranges == ["0-\(size - 2)", "\(half)-\(size - 2) if \"a\""])
        }
    }

    @Test(
        "a whole that is cut is resumed where it can be",
        arguments: [
            (true, 3_000_000, true), (false, 3_000_000, true), (true, 1000, true), (false, 1000, true),
            (false, 1000, false),
        ]
    )
    func resumed(_ disk: Bool, _ size: Int, _ hasRanges: Bool) async throws {
        try await withRig(disk: disk) { rig in
            let file = RangedFile(size)
            let half = size / 2
            rig.origin.answers { asked in
                var reply = file.reply(asked)
                guard asked.number == 1 else { return reply }
                if case .head(var head, let framing) = reply.steps[0] {
                    if !hasRanges { head.fields.remove(.acceptRanges) }
                    reply.steps = [.head(head, framing), .bytes(Array(file.bytes[0..<half])), .fail(truncated)]
                }
                return reply
            }
            let got = await rig.get()
            #expect(got.status == 200 && got.body == Array(file.bytes[0..<half]) && got.error != nil)
            #expect(await rig.settle())
            let next = await rig.get()
            #expect(next.status == 200 && next.body == file.bytes && next.error == nil)
            #expect(rig.ranges == (hasRanges ? ["all", "\(half)-\(size - 1) if \"a\""] : ["all", "all"]))
            #expect(await rig.settle())
            #expect(await rig.get().cache == hit)
        }
    }

    @Test("a client that leaves does not stop a part", arguments: [true, false])
    func clientLeaves(_ disk: Bool) async throws {
        try await withRig(disk: disk) { rig in
            let end = Valve()
            var file = RangedFile(2_000_000)
            file.end = end
            rig.origin.answers(file.reply)
            let answered = Valve()
            let task = await rig.start(rig.ask("/a", [("Range", "bytes=0-999999")]), answered: answered)
            #expect(await eventually { answered.isOpen })
            task.cancel()
            _ = await task.value
            end.open()
            #expect(await rig.settle())
            #expect(await rig.range("0-999999").body == Array(file.bytes[0..<1_000_000]))
            #expect(rig.origin.count == 1 && rig.origin.cancelled == 0)
        }
    }

    @Test("parts of what was invalidated while they came are kept from nobody who has them, and given to nobody else")
    func invalidated() async throws {
        try await withRig { rig in
            let end = Valve()
            var file = RangedFile(1000)
            file.end = end
            rig.origin.answers(file.reply)
            _ = await rig.start(rig.ask("/a", [("Range", "bytes=0-0")]))
            let task = await rig.start(rig.ask("/a", [("Range", "bytes=100-199")]))
            #expect(await eventually { rig.origin.count == 2 })
            rig.core.housekeeping.invalidate(rig.key())
            var new = RangedFile(1000)
            new.bytes.reverse()
            new.tag = "\"b\""
            rig.origin.answers(new.reply)
            #expect(await rig.range("100-149").body == Array(new.bytes[100..<150]))
            end.open()
            #expect(await task.value.body == Array(file.bytes[100..<200]))
            #expect(await rig.settle())
            #expect(await rig.get().body == new.bytes)
            rig.core.housekeeping.invalidate(rig.key())
            #expect(rig.core.partialStatistics.objects == 0)
        }
    }
}
