// Spans on their way to a collector: in batches, at the end, and where it takes none.

import Foundation
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct SpanSenderTests {
    /// The spans of a document as pairs of name and kind.
    private static func spans(_ request: OriginRequest) throws -> [[String: Any]] {
        let object = try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
        let resource = try #require((object?["resourceSpans"] as? [[String: Any]])?.first)
        let scope = try #require((resource["scopeSpans"] as? [[String: Any]])?.first)
        return try #require(scope["spans"] as? [[String: Any]])
    }

    private static func put(_ count: Int, into queue: SpanQueue) {
        for number in 0..<count {
            let context = TraceContext(trace: (1, 2), span: UInt64(number + 1), isSampled: true)
            queue.put(TraceSpan(context, parent: nil, name: "GET", kind: .server, start: 1, end: 2))
        }
    }

    private static func counts(_ daemon: DrydockDaemon.Daemon) -> [String: Int] {
        let gauges = daemon.metrics.gauges.filter { $0.name == "drydock_spans_total" }
        return Dictionary(uniqueKeysWithValues: gauges.map { ($0.label?.value ?? "", $0.read()) })
    }

    @Test func whatWaitsIsSentAtTheEnd() async throws {
        let collector = try ScriptedOrigin { .answer(to: $0, "{}") }
        let origin = try ScriptedOrigin { .answer(to: $0, "fine") }
        let text = """
            tracing: { otlp: "\(collector.url)/otel/", sample: 100% }
            services: [{ name: api, match: { prefix: /api }, base_url: "\(origin.url)" }]
            """
        try await DaemonHarness.run(text) { harness throws in
            let client = try RawClient(unix: harness.folder.file("proxy.sock"))
            #expect(try client.exchange("/api/a").text == "fine")
        }
        #expect(collector.requests() == 1)
        let sent = try #require(collector.log.first)
        #expect(sent.method == "POST" && sent.target == "/otel/v1/traces")
        #expect(sent.field("Content-Type") == "application/json")
        // What leads to the collector is traced nowhere.
        #expect(sent.field("traceparent")?.hasSuffix("-00") == true)
        let spans = try Self.spans(sent)
        #expect(spans.compactMap { $0["name"] as? String }.sorted() == ["GET", "GET", "look-up"])
        let trace = try #require(spans.first?["traceId"] as? String)
        #expect(spans.allSatisfy { $0["traceId"] as? String == trace })
        #expect(origin.log.first?.field("traceparent")?.hasPrefix("00-\(trace)-") == true)
    }

    @Test func aFullBatchIsSentAtOnceAndWhatIsNotTakenIsDropped() async throws {
        let takes = Monitor(true)
        let collector = try ScriptedOrigin { request in
            takes.read { $0 } ? .answer(to: request, "{}") : .answer(503, to: request, "busy")
        }
        try await DaemonHarness.run("tracing: { otlp: \"\(collector.url)\", sample: 0% }") { harness throws in
            let (daemon, queue) = (harness.daemon, harness.daemon.context.parts.spans)
            #expect(Self.counts(daemon) == ["sent": 0, "dropped": 0])
            Self.put(SpanQueue.batch, into: queue)
            #expect(blockUntil { Self.counts(daemon) == ["sent": 512, "dropped": 0] })
            takes.update { $0 = false }
            Self.put(SpanQueue.batch, into: queue)
            #expect(blockUntil { Self.counts(daemon) == ["sent": 512, "dropped": 512] })
            #expect(collector.requests(target: "/v1/traces") == 2)
            #expect(try collector.log.allSatisfy { try Self.spans($0).count == 512 })
        }
    }

    @Test(arguments: [(#""2""#, 510, 2), ("2", 510, 2), (#""600""#, 0, 512), ("-1", 512, 0), (#""many""#, 512, 0)])
    func whatACollectorRejectsIsDropped(rejected: String, sent: Int, dropped: Int) async throws {
        let collector = try ScriptedOrigin { request in
            let body = #"{"partialSuccess": {"rejectedSpans": \#(rejected), "errorMessage": "too old"}}"#
            return .answer(to: request, fields: [("Content-Type", "application/json")], body)
        }
        try await DaemonHarness.run("tracing: { otlp: \"\(collector.url)\", sample: 0% }") { harness throws in
            Self.put(SpanQueue.batch, into: harness.daemon.context.parts.spans)
            #expect(blockUntil { Self.counts(harness.daemon) == ["sent": sent, "dropped": dropped] })
        }
    }

    @Test func anAnswerIsReadAsFarAsItIsShort() {
        func rejection(_ pieces: [String], of count: Int = 9) -> CollectorAnswer.Rejection? {
            var answer = CollectorAnswer()
            for piece in pieces { Array(piece.utf8).withUnsafeBytes { answer.append($0) } }
            return answer.rejection(of: count)
        }
        let text = #"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no room"}}"#
        #expect(rejection([text]) == CollectorAnswer.Rejection(spans: 3, reason: "no room"))
        #expect(rejection(text.map { String($0) })?.spans == 3)
        #expect(rejection([text], of: 2)?.spans == 2)
        #expect(rejection([text.dropLast().description + String(repeating: " ", count: 4096) + "}"]) == nil)
        for other in [
            "", "{}", "[]", "no JSON", #"{"partialSuccess":{}}"#, #"{"partialSuccess":{"errorMessage":"hm"}}"#,
        ] {
            #expect(rejection([other]) == nil, "\(other)")
        }
        let long = #"{"partialSuccess":{"rejectedSpans":1,"errorMessage":"\#(String(repeating: "x", count: 999))"}}"#
        #expect(rejection([long])?.reason.count == 200)
    }

    @Test func aCollectorThatIsAwayDelaysNoEnd() async throws {
        let gate = Gate()
        let collector = try ScriptedOrigin { _ in OriginReply([.wait(gate)]) }
        defer { gate.open() }
        let daemon = Monitor(DrydockDaemon.Daemon?.none)
        try await DaemonHarness.run("tracing: \"\(collector.url)\"") { harness throws in
            daemon.update { $0 = harness.daemon }
            Self.put(SpanQueue.batch + 3, into: harness.daemon.context.parts.spans)
            #expect(collector.waitForRequests(1))
        }
        let ended = try #require(daemon.read { $0 })
        #expect(Self.counts(ended) == ["sent": 0, "dropped": 515])
    }
}
