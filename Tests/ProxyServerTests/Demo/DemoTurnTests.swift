// Sequences, turns, scenarios and outages over connections, across a reload and by the daemon's clock.

import EventLoop
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct DemoTurnTests {
    static func text(_ demo: String, shop: String = "shop") -> String {
        """
        services:
          - name: \(shop)
            match: { prefix: /shop }
            base_url: http://127.0.0.1:1
            demo:
              enabled: true
        \(demo)
        """
    }

    @Test func statesAndSequencesOutliveAReload() async throws {
        let text = Self.text(
            """
                  rules:
                    - name: jobs
                      when: { path: { matches: "^/jobs" } }
                      sequence: [{ status: 202, headers: { Retry-After: "1" } }, { status: 202 }, { status: 200 }]
                    - { name: pay, when: { method: POST }, state: { scenario: order, then: paid }, status: 201 }
                    - { name: paid, state: { scenario: order, is: paid }, status: 203 }
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            let first = try client.exchange("/shop/jobs/1")
            #expect(first.status == 202 && first.field("Retry-After") == "1")
            #expect(first.field("Drydock-Demo")?.contains("rule=jobs; outcome=success; status=202") == true)
            #expect(try client.exchange("/shop/cart").status == 404)
            #expect(try client.exchange("POST", "/shop/cart", body: []).status == 201)
            try harness.reload(text)
            #expect(try client.exchange("/shop/cart").status == 203)
            #expect(try client.exchange("POST", "/shop/cart", body: []).status == 203)
            #expect(try client.exchange("/shop/jobs/1").status == 202)
            #expect(try client.exchange("/shop/jobs/1").status == 200)
            #expect(try client.exchange("/shop/jobs/1").status == 200)
            #expect(try client.exchange("/shop/jobs/2").status == 202)
        }
    }

    @Test func outagesFollowTheClock() async throws {
        let text = Self.text(
            """
                  status: { 200: 100% }
                  rules: [{ name: down, outage: { after: 2h, for: 1h, every: 1d }, status: 503 }]
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            #expect(try client.exchange("/shop/a").status == 200)
            for (hours, status) in [(2, 503), (1, 200), (23, 503), (2, 200)] {
                harness.clock.advance(seconds: Int64(hours * 3600))
                #expect(try client.exchange("/shop/a").status == status)
            }
        }
    }

    /// The first attempts fail, and a retry draws the answer behind them.
    @Test func retriesTakeTurns() async throws {
        let text = Self.text(
            """
                  status: { 200: 100% }
                  rules:
                    - name: fails
                      when: { first: 2 }
                      failure: { chance: 100%, status: 503 }
                retry: { count: 5, delay: 1ms, when: [503] }
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            let answer = try client.exchange("/shop/a")
            #expect(answer.status == 200 && answer.field("Drydock-Demo")?.contains("rule=") == false)
        }
    }

    @Test func eachOfSeveralAnswersHasItsContent() async throws {
        let text = Self.text(
            """
                  body: shared
                  sequence:
                    - { json: { state: waiting }, status: 202 }
                    - { body: "{{request.json.a}} of {{request.method}}", template: true, headers: { Content-Type: text/x } }
                    - {}
                    - { status: 404 }
                    - { status: 500, body: "{{oops}}" }
                  rules:
                    - name: drawn
                      when: { path: /drawn }
                      answers: [{ weight: 50%, body: left }, { weight: 50%, json: [right] }]
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            let answers = try (0..<5).map { _ in
                try client.exchange("POST", "/shop/a", body: Array(#"{"a":1}"#.utf8))
            }
            #expect(answers.map(\.status) == [202, 200, 200, 404, 500])
            #expect(answers.map(\.text) == [#"{"state":"waiting"}"#, "1 of POST", "shared", "", "{{oops}}"])
            #expect(
                answers.map { $0.field("Content-Type") } == [
                    "application/json", "text/x", "text/plain; charset=utf-8", nil, "text/plain; charset=utf-8",
                ]
            )
            let drawn = Set(try (0..<40).map { _ in try client.exchange("/shop/drawn").text })
            #expect(drawn == ["left", #"["right"]"#])
        }
    }

    @Test func weightedStatusesTakeTheFile() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("body.json", "{}")
        let text = Self.text(
            """
                  file: \(file)
                  random_seed: 3
                  status: { 200: 50%, 503: 50% }
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            let answers = try (0..<100).map { _ in try client.exchange("/shop/a") }
            #expect(answers.allSatisfy { $0.status == 200 ? $0.text == "{}" : $0.status == 503 && $0.text.isEmpty })
            #expect((30...70).contains(answers.count { $0.status == 503 }))
        }
    }
}
