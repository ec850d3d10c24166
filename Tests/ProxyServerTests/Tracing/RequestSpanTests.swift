// Which requests are traced, what their spans say, and what origins are told of them.

import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct RequestSpanTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let sampled = ("traceparent", "00-\(trace)-00f067aa0ba902b7-01")
    private static let left = ("traceparent", "00-\(trace)-00f067aa0ba902b7-00")

    private static func queue(_ sample: Double) -> SpanQueue {
        let collector = OriginAddress(scheme: "http", host: "collector.test", port: 4318, basePath: "")
        return SpanQueue(TracingSettings(collector: collector, sample: sample))
    }

    /// The spans as soon as there are so many, in the order of their ends.
    private static func spans(_ queue: SpanQueue, _ count: Int) -> [TraceSpan] {
        var spans: [TraceSpan] = []
        #expect(
            blockUntil {
                spans += queue.take()
                return spans.count >= count
            }
        )
        #expect(spans.count == count, "\(spans.map(\.name))")
        return spans
    }

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "fine") }
    }

    private static func text(_ origin: ScriptedOrigin, _ more: String = "") -> String {
        """
        services:
          - name: api
            match: { prefix: /api }
            base_url: "\(origin.url)/v1"
            \(more)
          - { name: front, match: { prefix: /front }, base_url: "service:api" }
        """
    }

    private static func value(_ span: TraceSpan, _ name: String) -> TraceSpan.Value? {
        span.attributes.first { $0.name == name }?.value
    }

    @Test func aMissIsARequestALookUpAndAFetch() async throws {
        let (origin, queue) = (try Self.origin(), Self.queue(0))
        try await HandlerHarness.run(
            Self.text(origin, "endpoints: [{ name: user, path: \"/users/:id\" }]"),
            spans: queue
        ) {
            harness throws in
            let fields = [Self.sampled, ("tracestate", "vendor=1")]
            #expect(try harness.exchange("GET", "/api/users/1?a=b&token=s3cret", fields: fields).text == "fine")
            let spans = Self.spans(queue, 3)
            let lookup = try #require(spans.first { $0.name == "look-up" })
            let fetch = try #require(spans.first { $0.kind == .client })
            let request = try #require(spans.first { $0.kind == .server })
            #expect(spans.allSatisfy { $0.context.traceText == Self.trace && $0.context.state == "vendor=1" })
            #expect(request.parent == 0x00F0_67AA_0BA9_02B7 && request.name == "GET" && request.error == nil)
            #expect(lookup.parent == request.context.span && Self.value(lookup, "drydock.lookup") == .text("fetch"))
            #expect(fetch.parent == request.context.span && fetch.name == "GET" && fetch.error == nil)
            #expect(request.start <= lookup.start && fetch.start <= fetch.end && lookup.end <= request.end)
            let asked = try #require(origin.log.first)
            #expect(asked.all("traceparent") == ["00-\(Self.trace)-\(fetch.context.spanText)-01"])
            #expect(asked.all("tracestate") == ["vendor=1"])
            for (name, value) in [
                ("http.request.method", "GET"), ("url.path", "/api/users/1"), ("url.query", "a=b&token=***"),
                ("url.scheme", "http"), ("server.address", "localhost"), ("client.address", "127.0.0.1"),
                ("drydock.service", "api"), ("drydock.endpoint", "user"), ("drydock.outcome", "miss"),
                ("drydock.tier", "none"),
            ] {
                #expect(Self.value(request, name) == .text(value), "\(name)")
            }
            #expect(Self.value(request, "http.response.status_code") == .number(200))
            #expect(Self.value(fetch, "url.full") == .text("\(origin.url)/v1/users/1?a=b&token=***"))
            #expect(Self.value(fetch, "server.port") == .number(origin.port))
            #expect(Self.value(fetch, "drydock.endpoint") == .text("user"))
            #expect(Self.value(fetch, "http.response.status_code") == .number(200))
            // A hit that is traced asks nobody.
            #expect(try harness.exchange("GET", "/api/users/1?a=b&token=s3cret", fields: fields).text == "fine")
            let hit = Self.spans(queue, 2)
            #expect(hit.map(\.name) == ["look-up", "GET"])
            #expect(Self.value(hit[0], "drydock.lookup") == .text("answer"))
            #expect(Self.value(hit[1], "drydock.outcome") == .text("hit"))
            #expect(Self.value(hit[1], "drydock.tier") == .text("memory"))
            let answers = try harness.counters().answers
            let traces = answers.services.flatMap { row in
                [CacheOutcome.miss, .hit].map { answers.exemplars.buckets(ofService: row, $0).values.map(\.trace) }
            }
            #expect(traces == [[Self.trace], [Self.trace]])
            #expect(origin.requests() == 1)
        }
    }

    @Test func whatIsNotSampledIsToldToTheOriginAndStaysOnTheHotPath() async throws {
        let (origin, queue) = (try Self.origin(), Self.queue(0))
        try await HandlerHarness.run(Self.text(origin), spans: queue) { harness throws in
            let client = try harness.client()
            let way = { (fields: [(String, String)]) throws in
                let names = try client.exchange("/api/a", fields: fields).head.fields.map(\.name)
                // The hot path writes Age behind Via.
                return (names.firstIndex(of: "Via") ?? .max) < (names.firstIndex(of: "Age") ?? 0)
            }
            #expect(try client.exchange("/api/a").text == "fine")
            try harness.settle()
            // Made, since the client brought none, and not sampled.
            let made = try #require(origin.log.first?.field("traceparent"))
            #expect(made.hasSuffix("-00") && made.utf8.count == 55)
            #expect(try way([]))
            #expect(try way([Self.left]))
            #expect(try !way([Self.sampled]))
            // Two lines are none.
            #expect(try way([Self.sampled, Self.sampled]))
            #expect(try client.exchange("/api/b", fields: [Self.left, ("tracestate", "a=b")]).text == "fine")
            let told = try #require(origin.log.last?.field("traceparent"))
            #expect(told.hasPrefix("00-\(Self.trace)-") && told.hasSuffix("-00") && told != Self.left.1)
            #expect(origin.log.last?.field("tracestate") == "a=b")
            // A state without a valid parent is dropped with it.
            #expect(
                try client.exchange("/api/c", fields: [("traceparent", "x"), ("tracestate", "a=b")]).text == "fine"
            )
            #expect(origin.log.last?.field("tracestate") == nil)
            #expect(Self.spans(queue, 2).map(\.name) == ["look-up", "GET"])
        }
    }

    @Test func whileTracingIsOffBothFieldsPassAndAreNoPartOfTheKey() async throws {
        let (origin, queue) = (try Self.origin(), SpanQueue())
        try await HandlerHarness.run(Self.text(origin), spans: queue) { harness throws in
            #expect(try harness.exchange("GET", "/api/a").text == "fine")
            #expect(origin.log.first?.field("traceparent") == nil)
            let fields = [Self.sampled, ("tracestate", "a=b")]
            #expect(try harness.exchange("GET", "/api/b", fields: fields).text == "fine")
            #expect(origin.log.last?.all("traceparent") == [Self.sampled.1])
            #expect(origin.log.last?.all("tracestate") == ["a=b"])
            try harness.settle()
            #expect(try harness.exchange("GET", "/api/b", fields: [Self.left]).text == "fine")
            #expect(origin.requests() == 2)
            #expect(queue.take().isEmpty)
        }
    }

    @Test func aSharedFetchIsAStepOfTheRequestThatBeganIt() async throws {
        let gate = Gate()
        let origin = try ScriptedOrigin { _ in
            OriginReply([.wait(gate)]).then(.answer("fine", fields: [("Cache-Control", "max-age=600")]))
        }
        let queue = Self.queue(1)
        try await HandlerHarness.run(Self.text(origin), spans: queue) { harness throws in
            defer { gate.open() }
            let clients = (try harness.client(), try harness.client())
            try clients.0.request("GET", "/api/a", fields: [Self.sampled])
            #expect(origin.waitForRequests(1))
            try clients.1.request("GET", "/api/a")
            try harness.turn()
            gate.open()
            #expect(try clients.0.readResponse().text == "fine")
            #expect(try clients.1.readResponse().text == "fine")
            let spans = Self.spans(queue, 5)
            let fetches = spans.filter { $0.kind == .client }
            #expect(fetches.count == 1 && fetches.first?.context.traceText == Self.trace)
            #expect(spans.count { $0.kind == .server } == 2 && origin.requests() == 1)
            let told = try #require(origin.log.first?.field("traceparent"))
            #expect(told == "00-\(Self.trace)-\(fetches.first?.context.spanText ?? "")-01")
        }
    }

    @Test func anInnerServiceIsAStepOfTheFetchThatAsksIt() async throws {
        let (origin, queue) = (try Self.origin(), Self.queue(0))
        try await HandlerHarness.run(Self.text(origin), spans: queue) { harness throws in
            #expect(try harness.exchange("GET", "/front/a", fields: [Self.sampled]).text == "fine")
            let spans = Self.spans(queue, 5)
            let request = try #require(spans.first { $0.kind == .server })
            let outer = try #require(spans.first { $0.kind == .client && $0.parent == request.context.span })
            let inner = try #require(spans.first { $0.kind == .client && $0.parent == outer.context.span })
            #expect(Self.value(outer, "drydock.service") == .text("front"))
            #expect(Self.value(inner, "drydock.service") == .text("api"))
            #expect(origin.log.first?.field("traceparent") == "00-\(Self.trace)-\(inner.context.spanText)-01")
            #expect(spans.count { $0.name == "look-up" } == 2)
        }
    }

    @Test func aRepeatedFetchAndItsMappingAreSteps() async throws {
        let origin = try ScriptedOrigin { request in
            request.ordinal == 1 && request.connection == 1
                ? .answer(503, to: request, "busy")
                : .answer(to: request, fields: [("Content-Type", "application/json")], #"{"user":{"name":"Ada"}}"#)
        }
        let queue = Self.queue(1)
        let more = "retry: { count: 1, delay: 1ms, when: [503] }\n    response: { map: { name: user.name } }"
        try await HandlerHarness.run(Self.text(origin, more), spans: queue) { harness throws in
            #expect(try harness.exchange("GET", "/api/a").text == #"{"name":"Ada"}"#)
            let spans = Self.spans(queue, 6)
            let fetch = try #require(spans.first { $0.kind == .client && $0.name == "GET" })
            let again = try #require(spans.first { $0.name == "retry" })
            #expect(again.parent == fetch.context.span && again.kind == .client)
            #expect(Self.value(again, "http.request.resend_count") == .number(1))
            // The document of the failure was one, too.
            let mapped = spans.filter { $0.name == "mapping" }
            #expect(mapped.count == 2 && Set(mapped.map(\.parent)) == [fetch.context.span, again.context.span])
            #expect(
                origin.log.map { $0.field("traceparent") } == [fetch.context.parentValue, again.context.parentValue]
            )
        }
    }

    @Test func failuresAreToldAsSuch() async throws {
        let origin = try ScriptedOrigin { _ in OriginReply([.cut]) }
        let queue = Self.queue(1)
        try await HandlerHarness.run(Self.text(origin, "cache: { mode: none }"), spans: queue) { harness throws in
            #expect(try harness.exchange("GET", "/api/a").status == 502)
            let spans = Self.spans(queue, 2)
            #expect(spans.map(\.kind) == [.client, .server])
            #expect(spans[0].error?.isEmpty == false && spans[1].error?.isEmpty == false)
            #expect(Self.value(spans[1], "error.type") == .text("502"))
            #expect(Self.value(spans[1], "drydock.outcome") == .text("error"))
            #expect(try harness.exchange("BREW", "/nowhere").status == 404)
            let refused = Self.spans(queue, 1)
            #expect(refused[0].name == "_OTHER" && refused[0].error == nil)
            #expect(Self.value(refused[0], "http.request.method_original") == .text("BREW"))
        }
    }

    @Test(arguments: [(0.0, 0...0), (0.5, 1600...2400), (1.0, 4000...4000)])
    func theShareIsDrawn(sample: Double, expected: ClosedRange<Int>) throws {
        let sampler = try #require(RequestSampler(Self.queue(sample)))
        let count = (0..<4000).count { _ in sampler.begin(Fields(), at: 0).isSampled }
        #expect(expected.contains(count))
        #expect(sampler.begin(Fields([Self.sampled]), at: 0).isSampled)
        #expect(!sampler.begin(Fields([Self.left]), at: 0).isSampled)
    }

    @Test func withoutACollectorThereIsNoSampler() {
        #expect(RequestSampler(SpanQueue(TracingSettings(sample: 1))) == nil)
    }
}
