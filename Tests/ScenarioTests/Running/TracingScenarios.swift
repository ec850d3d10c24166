// Traces as a collector gets them from a running daemon, and what its operator is told where the collector takes none.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct Tracing {
        @Test func aCollectorGoesAwayAndComesBack() throws {
            let takes = Monitor(false)
            let collector = try ScriptedOrigin { request in
                takes.read { $0 } ? .answer(to: request, "{}") : .answer(503, to: request, "busy")
            }
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "fine") }
            var settings = services(service("api", origin.url))
            settings.rest += "\ntracing: { otlp: \"\(collector.url)\", sample: 100% }\n"
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/api/a").text == "fine")
            #expect(eventually { daemon.errors.contains("spans are dropped, since the collector at \(collector.url)") })
            #expect(daemon.errors.contains("it answered 503; start it, or correct 'tracing.otlp'"))
            takes.update { $0 = true }
            #expect(try daemon.exchange("/api/a").text == "fine")
            #expect(eventually { daemon.errors.contains("takes spans again, after 3 were dropped") })
            let metrics = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            #expect(metrics.contains("drydock_spans_total{result=\"sent\"} 2\n"))
            #expect(metrics.contains("drydock_spans_total{result=\"dropped\"} 3\n"))
            let last = try #require(collector.log.last)
            let text = String(decoding: last.body, as: UTF8.self)
            #expect(last.target == "/v1/traces" && text.contains(#""stringValue":"hit""#), "\(text)")
            #expect(origin.requests() == 1)
            // The trace goes on at the origin.
            let told = try #require(origin.log.first?.field("traceparent"))
            #expect(told.wholeMatch(of: #/00-[0-9a-f]{32}-[0-9a-f]{16}-01/#) != nil)
            origin.stop()
            collector.stop()
        }
    }
}
