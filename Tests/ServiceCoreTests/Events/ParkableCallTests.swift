// A call that may be parked: its fetches, and the waits between them, as the events of one call.

import DownloadCore
import HTTPWire
import TestSupport
import Testing
import Upstream

@testable import ServiceCore

@Suite struct ParkableCallTests {
    /// A call with a reader that has told all states.
    private struct Rig {
        let hub = EventHub()
        let reader: EventReader
        let calls: CallsUnderWay
        let call: ParkableCall

        init() async throws {
            reader = try #require(await hub.listen(services: ["s"]))
            _ = await reader.next()
            calls = CallsUnderWay(hub)
            call = ParkableCall(
                CallDestination(service: "s", endpoint: "", root: "http://origin", secrets: SecretQuery()),
                calls
            )
        }

        func begin() -> CallRecord { call.begin(.get, "/a", toSend: nil) }

        /// `started 1`: kind and attempt.
        func words() async -> [String] {
            hub.end()
            var words: [String] = []
            while let events = await reader.next() {
                for event in events {
                    guard case .call(let facts) = event.subject else { continue }
                    words.append("\(event.kind) \(facts.attempt)")
                }
            }
            return words
        }
    }

    private static let away = FetchError.upstream(UpstreamError(.connectionRefused, detail: "away"))

    @Test("the end of a fetch is not told if the call is parked then, and its replay is the next attempt")
    func replayed() async throws {
        let rig = try await Rig()
        let first = rig.begin()
        first.end(.failed(Self.away), in: first.run)
        rig.call.park(.get, "/a", why: "away")
        let second = rig.begin()
        #expect(second === first)
        // The body of the failed answer is closed late.
        first.end(.cancelled, in: 1)
        first.received(100, in: 1)
        rig.call.settle(200, nil)
        second.end(.finished, in: second.run)
        #expect(rig.calls.count == 0)
        #expect(await rig.words() == ["started 1", "parked 1", "started 2", "finished 2"])
    }

    @Test("an end is told when it is clear that the call is not parked", arguments: [false, true])
    func held(endsFirst: Bool) async throws {
        let rig = try await Rig()
        let record = rig.begin()
        if endsFirst { record.end(.failed(Self.away), in: record.run) }
        // As a fetch tells it that is released after its end.
        if endsFirst { record.end(.cancelled, in: record.run) }
        rig.call.settle(502, Self.away)
        if !endsFirst { record.end(.failed(Self.away), in: record.run) }
        #expect(rig.calls.count == 0)
        #expect(await rig.words() == ["started 1", "failed 1"])
    }

    @Test("a check that ended before the fetch of the same call is a call of its own")
    func checked() async throws {
        let rig = try await Rig()
        let check = rig.begin()
        check.end(.finished, in: check.run)
        let fetch = rig.begin()
        #expect(fetch !== check)
        fetch.end(.finished, in: fetch.run)
        rig.call.settle(200, nil)
        #expect(await rig.words() == ["started 1", "finished 1", "started 1", "finished 1"])
    }

    @Test("who waited for the fetch of another call begins with being parked")
    func shared() async throws {
        let rig = try await Rig()
        rig.call.park(.get, "/a", why: "away")
        rig.call.park(.get, "/a", why: "still away")
        // Its replay shared a fetch, too.
        rig.call.settle(200, nil)
        #expect(rig.calls.count == 0)
        #expect(await rig.words() == ["parked 0", "parked 0", "finished 0"])
    }

    @Test(
        "a parked call ends as its client hears it",
        arguments: [
            (FetchError.parkExpired("late"), "failed 1"), (.cancelled, "cancelled 1"),
            (.stopped("order"), "cancelled 1"),
        ]
    )
    func ended(_ error: FetchError, _ wanted: String) async throws {
        let rig = try await Rig()
        let record = rig.begin()
        record.end(.failed(Self.away), in: record.run)
        rig.call.park(.get, "/a", why: "away")
        rig.call.settle(504, error)
        #expect(rig.calls.count == 0)
        #expect(await rig.words() == ["started 1", "parked 1", wanted])
    }

    @Test("a call that is refused without an answer leaves nothing behind")
    func refused() async throws {
        let rig = try await Rig()
        rig.call.park(.get, "/a", why: "away")
        rig.call.settle(nil, nil)
        #expect(rig.calls.count == 0)
        #expect(await rig.words() == ["parked 0", "cancelled 0"])
    }
}
