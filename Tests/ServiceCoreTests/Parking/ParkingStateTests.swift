// The calls that wait for an origin, as a value: who may go, when, and what becomes of the others.

import Policies
import Testing

@testable import ServiceCore

/// An expectation of what a mutating function returns, which `#expect` cannot call.
private func same<Value: Equatable>(_ value: Value, _ expected: Value, at location: SourceLocation = #_sourceLocation) {
    #expect(value == expected, sourceLocation: location)
}

@Suite struct ParkingStateTests {
    private static let second: UInt64 = 1_000_000_000
    private static let policy = ParkPolicy(time: 100 * second, calls: 5, size: 1000)

    private static func call(_ id: UInt64, size: Int = 10, since: UInt64 = 0) -> ParkedCall {
        ParkedCall(
            id: id,
            method: "GET",
            path: "/",
            size: size,
            since: since,
            until: since + policy.time,
            reason: "refused"
        )
    }

    /// With calls 1 to `count`, parked at 0.
    private static func state(_ count: UInt64) -> ParkingState {
        var state = ParkingState()
        for id in 1...count { same(state.park(call(id), policy, now: 0), nil) }
        return state
    }

    @Test("as many as may be, with as many bytes as they may have")
    func bounds() {
        var state = Self.state(4)
        same(state.park(Self.call(5, size: 961), Self.policy, now: 0), .size(1000))
        same(state.park(Self.call(5, size: 960), Self.policy, now: 0), nil)
        same(state.park(Self.call(6, size: 0), Self.policy, now: 0), .calls(5))
        #expect(state.size == 1000 && state.calls.count == 5)
        same(state.leave(5, width: 9, now: 0), [])
        #expect(state.size == 40)
        same(state.leave(5, width: 9, now: 0), nil)
    }

    @Test("one probe at a time, after waits that double up to half a minute")
    func probes() {
        var state = Self.state(3)
        var now: UInt64 = 0
        same(state.replayDue(width: 9, now: now), [])
        for wait in [1, 2, 4, 8, 16, 30, 30] as [UInt64] {
            #expect(state.probeAt == now + wait * Self.second)
            same(state.replayDue(width: 9, now: state.probeAt - 1), [])
            now = state.probeAt
            same(state.replayDue(width: 9, now: now), [1])
            same(state.replayDue(width: 9, now: now + 1000 * Self.second), [])
            same(state.returned(1, isAway: true, reason: "still", now: now), .parked)
        }
        #expect(state.calls[1]?.reason == "still" && state.calls[1]?.replays == 7)
        same(state.originAnswered(width: 9, now: 0), [1, 2, 3])
    }

    @Test("when the origin is back, they leave in order, no more at a time than may be, and each one once")
    func release() {
        var state = Self.state(5)
        same(state.originAnswered(width: 2, now: 0), [1, 2])
        same(state.originAnswered(width: 2, now: 0), [])
        same(state.leave(2, width: 2, now: 0), [3])
        same(state.leave(1, width: 2, now: 0), [4])
        same(state.leave(4, width: 2, now: 0), [5])
        same(state.leave(5, width: 2, now: 0), [])
        same(state.leave(3, width: 2, now: 0), [])
        #expect(state.calls.isEmpty && state.size == 0 && state.heldCount == 0)
    }

    @Test("one that comes back stops the others, and waits by itself for longer each time")
    func back() {
        var state = Self.state(4)
        same(state.originAnswered(width: 2, now: 0), [1, 2])
        same(state.returned(2, isAway: true, reason: "", now: 0), .parked)
        #expect(state.isAway)
        same(state.leave(1, width: 2, now: 0), [])
        // The origin answers others: what call 2 wants is not there.
        same(state.originAnswered(width: 2, now: 0), [3, 4])
        same(state.leave(3, width: 2, now: 0), [])
        same(state.replayDue(width: 2, now: Self.second - 1), [])
        same(state.replayDue(width: 2, now: Self.second), [2])
        same(state.returned(2, isAway: true, reason: "", now: Self.second), .parked)
        same(state.originAnswered(width: 2, now: 3 * Self.second - 1), [])
        same(state.originAnswered(width: 2, now: 3 * Self.second), [2])
        // Not admitted: another second, or the next answer of the origin.
        same(state.returned(4, isAway: false, reason: "full", now: 7), .parked)
        #expect(state.probeAt == 7 + Self.second)
        same(state.originAnswered(width: 3, now: 7), [4])
    }

    @Test("a probe that comes back has no wait of its own: when the origin is back, it is first again")
    func probeComesBack() {
        var state = Self.state(2)
        same(state.replayDue(width: 9, now: Self.second), [1])
        same(state.returned(1, isAway: true, reason: "", now: Self.second), .parked)
        same(state.originAnswered(width: 9, now: Self.second), [1, 2])
    }

    @Test("an operator's order ends all waits")
    func all() {
        var state = Self.state(2)
        same(state.originAnswered(width: 9, now: 0), [1, 2])
        for id in 1...2 as ClosedRange<UInt64> { same(state.returned(id, isAway: true, reason: "", now: 0), .parked) }
        same(state.originAnswered(width: 9, now: 0), [])
        same(state.replayAll(width: 1, now: 0), [1])
        same(state.leave(1, width: 1, now: 0), [2])
    }

    @Test("the time of a call ends it where it is held, or when it comes back")
    func expiry() {
        var state = Self.state(2)
        same(state.expire(2), true)
        same(state.expire(2), false)
        same(state.originAnswered(width: 1, now: 0), [1])
        same(state.expire(1), false)
        same(state.returned(1, isAway: true, reason: "", now: Self.policy.time), .expired)
        #expect(state.calls.isEmpty && state.size == 0)
    }

    @Test("a probe that leaves without an outcome makes room for the next one")
    func probeLeaves() {
        var state = Self.state(2)
        same(state.replayDue(width: 9, now: Self.second), [1])
        same(state.leave(1, width: 9, now: Self.second), [])
        same(state.replayDue(width: 9, now: Self.second), [])
        same(state.replayDue(width: 9, now: 2 * Self.second), [2])
    }

    @Test("an operator replays one, whatever is known of the origin")
    func one() {
        var state = Self.state(3)
        same(state.replay(2), true)
        same(state.replay(2), false)
        same(state.replay(9), false)
        #expect(state.calls[2]?.phase == .replaying && state.heldCount == 2 && state.isAway)
        same(state.originAnswered(width: 9, now: 0), [1, 3])
    }

    @Test("at the end those that are held leave, those that are away from home end if they come back")
    func end() {
        var state = Self.state(3)
        same(state.originAnswered(width: 1, now: 0), [1])
        same(state.endAll("gone"), [2, 3])
        same(state.park(Self.call(4), Self.policy, now: 0), .ended)
        state.begin()
        same(state.park(Self.call(4), Self.policy, now: 0), nil)
        // It was for what has ended, although calls are parked again.
        same(state.returned(1, isAway: true, reason: "", now: 0), .ended("gone"))
        #expect(Array(state.calls.keys) == [4])
    }
}
