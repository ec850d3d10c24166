// What becomes of the fields of requests that are passed on, on connections whose client says the
// same fields again and again.

import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct OutgoingFieldsTests {
    private static let section = [
        ("X-Forwarded-For", "192.0.2.7"), ("Connection", "X-Private"), ("X-Private", "1"), ("Accept", "text/html"),
    ]

    private static func services(_ origin: ScriptedOrigin, name: String = "drydock", more: String = "") -> String {
        """
        name: \(name)
        services:
          - { name: none, match: { prefix: /none }, base_url: "\(origin.url)", cache: { mode: none } }
          - { name: plain, match: { prefix: /plain }, base_url: "\(origin.url)" }
          - name: rules
            match: { prefix: /rules }
            base_url: "\(origin.url)"
            cache: { mode: none }
            host: preserve
            headers: { set: { X-Of: rules\(more) } }
        """
    }

    /// What the origin gets of a request, as lines.
    private static func outgoing(_ client: RawClient, _ origin: ScriptedOrigin, _ target: String) throws -> [String] {
        let before = origin.requests()
        try client.request("GET", target, fields: section)
        let answer = try client.readResponse()
        #expect(answer.status == 200 && answer.text == "hello")
        guard origin.log.count == before + 1, let request = origin.log.last else { return ["asked too often"] }
        return request.fields.map { "\($0.name): \($0.value)" }
    }

    @Test func `what was worked out for one plan is not sent by another`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "no-store")], "hello") }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            let targets = ["/none/x", "/plain/x", "/rules/x"]
            let host = "127.0.0.1:\(origin.port)"
            func expected(_ target: String, _ name: String = "drydock", _ more: String = "") -> [String] {
                let of = target == "/rules/x"
                let first = of ? "Host: localhost" : "Host: \(host)"
                let from = target == "/plain/x" ? [] : ["X-Forwarded-For: 192.0.2.7"]
                return [first] + from + ["Accept: text/html", "Via: 1.1 \(name)"] + (of ? ["X-Of: rules\(more)"] : [])
            }
            // The Host is known then, and that what is plain cannot be stored.
            for target in targets { _ = try Self.outgoing(harness.client(), origin, target) }
            let client = try harness.client()
            let direct = try harness.direct()
            let order = [0, 0, 1, 1, 2, 2, 0, 2, 1, 0].map { targets[$0] }
            for target in order { #expect(try Self.outgoing(client, origin, target) == expected(target)) }
            #expect(try harness.direct() == direct + order.count)
            // The connection stays, and its next request goes by the new plan.
            try harness.reload(Self.services(origin, name: "dock2", more: "-2"))
            for target in targets + targets {
                #expect(try Self.outgoing(client, origin, target) == expected(target, "dock2", "-2"))
            }
            // Other fields, and the first ones again.
            try client.request("GET", "/none/x", fields: [("X-Other", "2")])
            #expect(try client.readResponse().text == "hello")
            #expect(origin.log.last?.fields.map(\.name) == ["Host", "X-Other", "Via"])
            #expect(try Self.outgoing(client, origin, "/none/x") == expected("/none/x", "dock2"))
        }
    }

    @Test func `another Host with the same other fields leads elsewhere`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "no-store")], $0.target) }
        let text = """
            services:
              - { name: one, match: { host: one.localhost }, base_url: "\(origin.url)/1", cache: { mode: none } }
              - { name: two, match: { host: two.localhost }, base_url: "\(origin.url)/2", cache: { mode: none } }
            """
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            for host in ["one", "one", "two", "one", "two", "two"] {
                try client.request("GET", "/x", host: "\(host).localhost")
                #expect(try client.readResponse().text == (host == "one" ? "/1/x" : "/2/x"))
            }
            // The first of each waits until the Host is known.
            #expect(try harness.direct() == 4)
        }
    }

    @Test func `what is kept goes with the plan, and is nothing where the fields are many`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "no-store")], "hello") }
        try await HandlerHarness.run(Self.services(origin)) { harness throws in
            func kept() throws -> [Bool] {
                try harness.ask { $0.context.connections.map { $0.client.lastOutgoing != nil } }
            }
            _ = try harness.client().exchange("GET", "/none/x", fields: [("Connection", "close")])
            try harness.waitForConnections(0)
            let client = try harness.client()
            for (field, isKept) in [("1", true), (String(repeating: "x", count: 1100), false), ("2", true)] {
                try client.request("GET", "/none/x", fields: [("X-Long", field)])
                #expect(try client.readResponse().text == "hello")
                #expect(origin.log.last?.field("X-Long") == field)
                #expect(try kept() == [isKept])
            }
            try harness.reload(Self.services(origin, name: "dock2"))
            #expect(try kept() == [false])
        }
    }
}
