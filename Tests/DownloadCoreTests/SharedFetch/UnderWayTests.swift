// Whoever ends a core waits until nothing is under way: as long as it takes, and no longer.

import DownloadCore
import EventLoop
import HTTPWire
import LoopSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct UnderWayTests {
    /// Nanoseconds that no test waits through.
    private static let long: UInt64 = 600_000_000_000

    @Test("nobody waits where nothing is under way")
    func nothing() async throws {
        try await withRig { rig in
            #expect(await rig.core.settle(timeout: Self.long, on: rig.loops[0]))
        }
    }

    @Test("all who wait, on whatever loop, go on when what is under way is stored")
    func ended() async throws {
        try await withRig(loops: 2, disk: true) { rig in
            let tail = Valve()
            rig.origin.answers { _ in
                .pieces(length: 2, [.bytes([1]), .valve(tail), .bytes([2]), .end(Fields())])
            }
            let first = await rig.start(rig.ask())
            #expect(await eventually { rig.core.fillCount == 1 })
            var waiting: [Task<Bool, Never>] = []
            for loop in rig.loops {
                waiting.append(
                    await begin(on: loop) { [core = rig.core] loop in await core.settle(timeout: Self.long, on: loop) }
                )
            }
            #expect(await !rig.core.settle(timeout: 1_000_000, on: rig.loops[0]), "it is under way")
            tail.open()
            for task in waiting { #expect(await task.value) }
            #expect(rig.core.fillCount == 0)
            #expect(await first.value.body == [1, 2])
        }
    }

    @Test("a task that is cancelled does not wait")
    func cancelled() async throws {
        try await withRig { rig in
            let tail = Valve()
            rig.origin.answers { _ in .pieces(length: 1, [.valve(tail), .bytes([1]), .end(Fields())]) }
            let first = await rig.start(rig.ask())
            let waiter = await begin(on: rig.loops[0]) { [core = rig.core] loop in
                await core.settle(timeout: Self.long, on: loop)
            }
            waiter.cancel()
            #expect(await !waiter.value)
            tail.open()
            #expect(await first.value.body == [1])
        }
    }

    @Test("a fetch that ends at the moment when somebody begins to wait does not leave him waiting")
    func race() async throws {
        try await withRig(loops: 2) { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "no-store")], [1]) }
            for number in 0..<200 {
                let task = await rig.start(rig.ask("/\(number)"))
                #expect(await rig.core.settle(timeout: Self.long, on: rig.loops[1]))
                #expect(await task.value.body == [1])
            }
        }
    }
}
