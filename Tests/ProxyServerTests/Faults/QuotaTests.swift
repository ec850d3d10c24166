// Quotas through the real handler: fields, refusals, what counts, and the clock that the windows go by.

import EventLoop
import Plans
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct QuotaTests {
    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "body") }
    }

    @Test func aRequestTooManyIsRefusedUntilTheWindowEnds() async throws {
        let origin = try Self.origin()
        let text = """
            services:
              - { name: s, match: { prefix: /s }, base_url: "\(origin.url)", rate_limit: { limit: 2, window: 1h } }
            """
        let reports = Monitor([String]())
        try await HandlerHarness.run(text) { harness throws in
            harness.registry.services.tell { name, report in reports.update { $0.append(report.text(service: name)) } }
            let client = try harness.client()
            let answers = try (0..<3).map { try client.exchange("/s/\($0)") }
            #expect(answers.map(\.status) == [200, 200, 429])
            #expect(answers.map { $0.field("RateLimit-Policy") } == Array(repeating: "\"s\";q=2;w=3600", count: 3))
            #expect(answers[0].field("RateLimit")?.hasPrefix("\"s\";r=1;t=") == true)
            #expect(answers[1].field("RateLimit")?.hasPrefix("\"s\";r=0;t=") == true)
            let wait = try #require(answers[2].field("Retry-After").flatMap { Int($0) })
            #expect((3500...3600).contains(wait))
            #expect(answers[2].field("RateLimit") == "\"s\";r=0;t=\(wait)")
            #expect(answers[2].field("Content-Type") == "application/problem+json")
            // A reload keeps the count, and time ends the window.
            try harness.reload(text)
            #expect(try client.exchange("/s/1").status == 429)
            #expect(try client.exchange("/s/1").status == 429)
            // Told once for the client and the window.
            let told = reports.read { $0 }
            #expect(told.count == 1)
            #expect(told.first?.hasPrefix("service s: 127.0.0.1 came back ") == true, "\(told)")
            harness.clock.advance(seconds: 3600)
            #expect(try client.exchange("/s/1").status == 200)
        }
        #expect(origin.requests(target: "/2") == 0)
    }

    @Test func hitsAreFreeWhereOnlyTheOriginCounts() async throws {
        let origin = try Self.origin()
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                rate_limit: { limit: 1, window: 1h, status: 503, count: origin, by: all }
            """
        try await HandlerHarness.run(text) { harness throws in
            let first = try harness.exchange("GET", "/s/a")
            #expect(first.status == 200)
            #expect(first.field("RateLimit") != nil)
            try harness.settle()
            for _ in 0..<3 {
                let hit = try harness.exchange("GET", "/s/a")
                #expect(hit.status == 200)
                #expect(hit.field("RateLimit") == nil)
            }
            #expect(try harness.exchange("GET", "/s/b").status == 503)
        }
    }

    @Test func anEndpointHasAQuotaOfItsOwnOrItsService() async throws {
        let origin = try Self.origin()
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                rate_limit: { limit: 1, window: 1h }
                endpoints:
                  - { name: own, path: /own, rate_limit: { limit: 2 } }
                  - { name: shared, path: /shared }
                  - { name: free, path: /free, rate_limit: { limit: none } }
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/s/shared").status == 200)
            #expect(try harness.exchange("GET", "/s/other").status == 429)
            let own = try (0..<3).map { _ in try harness.exchange("GET", "/s/own") }
            #expect(own.map(\.status) == [200, 200, 429])
            #expect(own[0].field("RateLimit-Policy") == "\"own\";q=2;w=3600")
            for _ in 0..<3 { #expect(try harness.exchange("GET", "/s/free").status == 200) }
        }
    }
}
