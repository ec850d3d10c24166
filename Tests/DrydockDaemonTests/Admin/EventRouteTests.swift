// `GET /v1/events`: which events are meant, and how one looks as a line.

import HTTPWire
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct EventRouteTests {
    @Test(
        arguments: [
            ([], EventFilter()), ([("service", "api")], EventFilter(service: "api")),
            ([("endpoint", "user"), ("service", "api")], EventFilter(service: "api", endpoint: "user")),
        ]
    )
    func understood(_ members: [(String, String)], _ filter: EventFilter) throws {
        #expect(try EventFilter(members: members.map { (name: $0.0, value: $0.1) }) == filter)
    }

    @Test func `a stream begins with the state of each service`() async throws {
        let hub = EventHub(now: { 1_769_860_800_123_456_789 })
        let stream = EventStream(reader: try #require(await hub.listen(EventFilter(), services: ["api"])))
        let lines = try #require(await stream.next())
        #expect(
            String(decoding: lines, as: UTF8.self)
                == "{\"time\":\"2026-01-31T12:00:00.123Z\",\"event\":\"state\",\"service\":\"api\",\"state\":\"idle\",\"calls\":0}\n"
        )
        stream.close()
        #expect(hub.readerCount == 0)
    }

    @Test(
        arguments: [
            [("service", "")], [("endpoint", "")], [("service", "a"), ("service", "b")], [("services", "a")],
            [("endpoint", "a"), ("endpoint", "a")],
        ]
    )
    func refused(_ members: [(String, String)]) {
        #expect(throws: Problem.self) { try EventFilter(members: members.map { (name: $0.0, value: $0.1) }) }
    }

    @Test func `nobody listens to what is not there`() async throws {
        try await DaemonHarness.run(
            "services: [{ name: api, match: { prefix: /a }, base_url: \"http://127.0.0.1:9\" }]"
        ) {
            harness throws in
            for query in ["service=shop", "endpoint=user", "service=api&endpoint=user"] {
                #expect(try harness.ask("GET", "/v1/events?\(query)").status == 404, "\(query)")
            }
            let head = try harness.ask("HEAD", "/v1/events?service=api")
            #expect(head.status == 200 && head.field("Content-Type") == "application/jsonl")
        }
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
