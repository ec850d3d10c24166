// `GET /v1/events`: which events are meant, and how one looks as a line.

import AdminAPI
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite struct EventRouteTests {
    private final class Actions: EventActions {
        let hub = EventHub(now: { 1_769_860_800_123_456_789 })
        let asked = Monitor([EventFilter]())

        func events(_ filter: EventFilter) async throws(Problem) -> EventReader {
            asked.update { $0.append(filter) }
            guard let reader = await hub.listen(filter, services: ["api"]) else { throw .badQuery("none") }
            return reader
        }
    }

    @Test(
        arguments: [
            ([], EventFilter()), ([("service", "api")], EventFilter(service: "api")),
            ([("endpoint", "user"), ("service", "api")], EventFilter(service: "api", endpoint: "user")),
        ]
    )
    func understood(_ members: [(String, String)], _ filter: EventFilter) async throws {
        let actions = Actions()
        let route = try #require(actions.eventRoutes.first)
        #expect(route.method == .get && route.path == .events)
        let answer = try await route.perform(AdminRequest(queryItems: members.map { (name: $0.0, value: $0.1) }))
        #expect(answer.status == 200 && answer.type == "application/jsonl")
        #expect(actions.asked.read { $0 } == [filter])
        let stream = try #require(answer.stream)
        let lines = try #require(await stream.next())
        #expect(
            String(decoding: lines, as: UTF8.self)
                == "{\"time\":\"2026-01-31T12:00:00.123Z\",\"event\":\"state\",\"service\":\"api\",\"state\":\"idle\",\"calls\":0}\n"
        )
        stream.close()
        #expect(actions.hub.readerCount == 0)
    }

    @Test(
        arguments: [
            [("service", "")], [("endpoint", "")], [("service", "a"), ("service", "b")], [("services", "a")],
            [("endpoint", "a"), ("endpoint", "a")],
        ]
    )
    func refused(_ members: [(String, String)]) async throws {
        let actions = Actions()
        let route = try #require(actions.eventRoutes.first)
        await #expect(throws: Problem.self) {
            try await route.perform(AdminRequest(queryItems: members.map { (name: $0.0, value: $0.1) }))
        }
        #expect(actions.asked.read { $0 }.isEmpty && actions.hub.readerCount == 0)
    }

    @Test("a line has what is known, and leaves out what is not")
    func lines() {
        var facts = CallFacts(service: "api", endpoint: "", method: "GET", toSend: nil)
        facts.number = 7
        facts.url = "http://origin/a\"b"
        func line(_ kind: CallEventKind) -> String {
            var bytes: [UInt8] = []
            EventLine.write(CallEvent(time: 1_000_000, kind: kind, subject: .call(facts)), to: &bytes)
            return String(decoding: bytes, as: UTF8.self)
        }
        let time = "{\"time\":\"1970-01-01T00:00:00.001Z\",\"event\":"
        let call = "\"call\":7,\"service\":\"api\",\"method\":\"GET\",\"url\":\"http://origin/a\\\"b\",\"attempt\":1,"
        #expect(line(.started) == "\(time)\"started\",\(call)\"received\":0}\n")
        facts.status = 503
        facts.waits = 1_500_000_000
        facts.reason = "why"
        #expect(
            line(.retrying)
                == "\(time)\"retrying\",\(call)\"status\":503,\"received\":0,\"waits\":1500,\"reason\":\"why\"}\n"
        )
        facts.phase = .parked
        facts.waits = nil
        #expect(
            line(.state)
                == "\(time)\"state\",\"state\":\"parked\",\(call)\"status\":503,\"received\":0,\"reason\":\"why\"}\n"
        )
        facts.toSend = 9
        facts.sent = 4
        facts.expected = 20
        facts.received = 10
        facts.error = "connection_terminated"
        #expect(
            line(.failed)
                == "\(time)\"failed\",\(call)\"status\":503,\"received\":10,\"expected\":20,\"sent\":4,\"to_send\":9,"
                + "\"outcome\":\"failed\",\"error\":\"connection_terminated\",\"reason\":\"why\"}\n"
        )
        var lost: [UInt8] = []
        EventLine.write(CallEvent(time: 0, kind: .lost, subject: .reader(lost: 3)), to: &lost)
        #expect(String(decoding: lost, as: UTF8.self).hasSuffix("\"event\":\"lost\",\"count\":3}\n"))
    }
}
