// Calls that wait for their origin as tasks: each hears of its replay or its end exactly once.

import EventLoop
import LoopSupport
import Policies
import TestSupport
import Testing

@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct ParkedCallsTests {
    private static let patient = ParkPolicy(time: 600_000_000_000)
    private static let origin = "http://origin.test"

    /// The calls of a service, on a loop.
    private struct Rig {
        let loop: EventLoop
        let admission = Admission(AdmissionLimits(concurrent: 2))
        let reports = Monitor<[ServiceReport]>([])
        let parked: ParkedCalls

        init(now: @escaping @Sendable () -> UInt64) throws {
            loop = try EventLoop.start()
            parked = ParkedCalls(admission, now: now) { [reports] report in
                reports.update { $0.append(report) }
            }
            parked.serve(ParkedCallsTests.origin, why: "")
        }

        /// A call that is parked and waits for what becomes of it; nil where it was not parked.
        func park(_ policy: ParkPolicy = patient, size: Int = 1) async -> Task<ParkVerdict?, Never> {
            await begin(on: loop) { [parked] loop in
                let result = parked.park(
                    method: "POST",
                    path: "/a",
                    origin: ParkedCallsTests.origin,
                    size: size,
                    reason: "refused",
                    policy,
                    on: loop
                )
                guard case .success(let call) = result else { return nil }
                let verdict = await parked.wait(for: call, on: loop)
                if verdict == .replay { parked.answered(call) }
                return verdict
            }
        }
    }

    /// - Parameter now: stands still by default, so that no probe becomes due, however long a test takes.
    private static func withRig(
        now: @escaping @Sendable () -> UInt64 = { 1_000_000_000 },
        _ body: (Rig) async throws -> Void
    ) async throws {
        let rig = try Rig(now: now)
        defer { rig.loop.stop() }
        try await body(rig)
    }

    @Test("an answer of the origin replays all, two at a time, each once")
    func replay() async throws {
        try await Self.withRig { rig in
            var calls: [Task<ParkVerdict?, Never>] = []
            for _ in 0..<50 { calls.append(await rig.park()) }
            #expect(rig.parked.callCount == 50 && rig.parked.size == 50)
            rig.parked.originAnswered()
            for call in calls { #expect(await call.value == .replay) }
            #expect(rig.parked.callCount == 0 && rig.parked.size == 0)
            #expect(rig.parked.counts == .init(parked: 50, replayed: 50))
            #expect(rig.reports.read { $0.count } == 100)
        }
    }

    @Test("nobody answers: a probe goes by itself, and the others stay")
    func probe() async throws {
        try await Self.withRig(now: Monotonic.now) { rig in
            let start = Monotonic.now()
            let first = await begin(on: rig.loop) { [parked = rig.parked] loop in
                let result = parked.park(
                    method: "GET",
                    path: "/",
                    origin: Self.origin,
                    size: 0,
                    reason: "",
                    Self.patient,
                    on: loop
                )
                guard case .success(let call) = result else { return ParkVerdict.left }
                while true {
                    let verdict = await parked.wait(for: call, on: loop)
                    guard verdict == .replay else { return verdict }
                    if let end = parked.returned(call, isAway: true, reason: "still away") { return end }
                }
            }
            let second = await rig.park()
            // However many probes there have been when this is looked at: they are the first call's.
            #expect(
                await eventually { rig.parked.all.first.map { $0.replays > 0 && $0.reason == "still away" } ?? false }
            )
            #expect(Monotonic.now() - start >= ParkingState.shortestWait)
            #expect(rig.parked.all.last?.replays == 0 && rig.parked.all.last?.reason == "refused")
            var ended = 0
            #expect(
                await eventually {
                    ended += rig.parked.cancel()
                    return ended == 2
                }
            )
            #expect(await first.value == .cancelled)
            #expect(await second.value == .cancelled)
            #expect(rig.parked.counts == .init(parked: 2, dropped: 2))
        }
    }

    @Test("a call whose client leaves is dropped, and one whose time is over expires")
    func ends() async throws {
        try await Self.withRig { rig in
            let left = await rig.park()
            left.cancel()
            #expect(await left.value == .left)
            let start = Monotonic.now()
            #expect(await rig.park(ParkPolicy(time: 30_000_000)).value == .expired)
            #expect(Monotonic.now() - start >= 30_000_000)
            #expect(rig.parked.callCount == 0)
            #expect(rig.parked.counts == .init(parked: 2, expired: 1, dropped: 1))
        }
    }

    @Test("a call that fails while others are answered is replayed after waits that grow, however many these are")
    func failsAlone() async throws {
        let now = Monitor<UInt64>(0)
        try await Self.withRig(now: { now.read { $0 } }) { rig in
            let parked = rig.parked
            let call = await begin(on: rig.loop) { loop in
                let result = parked.park(
                    method: "GET",
                    path: "/fails",
                    origin: Self.origin,
                    size: 0,
                    reason: "",
                    Self.patient,
                    on: loop
                )
                guard case .success(let call) = result else { return ParkVerdict.left }
                while true {
                    let verdict = await parked.wait(for: call, on: loop)
                    guard verdict == .replay else { return verdict }
                    if let end = parked.returned(call, isAway: true, reason: "the status was 503") { return end }
                }
            }
            for (seconds, replays) in [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (3, 3), (4, 4)] as [(UInt64, Int)] {
                now.update { $0 += seconds * 1_000_000_000 }
                for _ in 0..<20 {
                    parked.originAnswered()
                    // The call has come back, or had nothing to come back from.
                    await begin(on: rig.loop) { _ in await Task.yield() }.value
                }
                #expect(await eventually { parked.all.first?.phase == .parked })
                #expect(parked.all.first?.replays == replays, "after \(seconds) s more")
            }
            #expect(await eventually { parked.cancel() == 1 })
            #expect(await call.value == .cancelled)
        }
    }

    @Test("a call whose client leaves as the origin comes back is not replayed, and the next one is")
    func leavesAtTheReplay() async throws {
        try await Self.withRig { rig in
            let left = await rig.park()
            let others = [await rig.park(), await rig.park()]
            // In one turn of the loop, so that the call hears of both at once.
            await begin(on: rig.loop) { [parked = rig.parked] _ in
                parked.originAnswered()
                left.cancel()
            }.value
            #expect(await left.value == .left)
            for call in others { #expect(await call.value == .replay) }
            #expect(rig.parked.callCount == 0)
            #expect(rig.parked.counts == .init(parked: 3, replayed: 2, dropped: 1))
        }
    }

    @Test("a reload to another origin ends the calls of the old one, and takes those of the new one")
    func otherOrigin() async throws {
        try await Self.withRig { rig in
            let call = await rig.park()
            rig.parked.serve(Self.origin, why: "not this")
            #expect(rig.parked.callCount == 1)
            rig.parked.serve("http://other.test", why: "a reload has changed base_url")
            #expect(await call.value == .ended("a reload has changed base_url"))
            #expect(await rig.park().value == nil)
            #expect(rig.parked.counts == .init(parked: 1, dropped: 1, refused: 1))
        }
    }

    @Test("an operator's order concerns one call, or all")
    func orders() async throws {
        try await Self.withRig { rig in
            let calls = [await rig.park(), await rig.park(), await rig.park(), await rig.park()]
            let ids = rig.parked.all.map(\.id)
            #expect(rig.parked.replay(ids[1]) == 1)
            #expect(await calls[1].value == .replay)
            #expect(rig.parked.replay(ids[1]) == 0 && rig.parked.cancel(ids[1]) == 0)
            #expect(rig.parked.cancel(ids[0]) == 1)
            #expect(await calls[0].value == .cancelled)
            #expect(rig.parked.replay() == 2)
            for call in calls[2...] { #expect(await call.value == .replay) }
        }
    }
}
