// An explanation knows what the request itself would meet on its way to the origin: breaker, queue and parking; and
// what a stored response costs that hardly anybody else selects.

import DrydockDaemon
import EventLoop
import TestSupport
import Testing

@testable import ProxyServer

extension HandlerHarness {
    /// Blocks until it is known.
    fileprivate func explained(_ url: String) throws -> AdminExplanation {
        let found = Monitor(AdminExplanation?.none)
        Task(executorPreference: BlockingExecutor.shared) { [server] in
            let result = await server.explain(RequestQuestion(url: url, fields: []))
            found.update { $0 = (try? result?.get()).map { AdminExplanation($0) } }
        }
        guard found.wait(120, until: { $0 != nil }), let explanation = found.read({ $0 }) else {
            throw TestSupportError.timedOut("the explanation")
        }
        return explanation
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ExplainedMeetingTests {
    /// Fails for every path but those that begin with `/stored`, whose answers are stale at once.
    private static func failing() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            request.target.hasPrefix("/stored")
                ? .answer(200, fields: [("Cache-Control", "max-age=0, stale-if-error=600"), ("ETag", "\"1\"")], "kept")
                : .cut
        }
    }

    @Test func `an open breaker refuses the request, and a stored response stands in`() async throws {
        let origin = try Self.failing()
        let text = """
            services:
              - name: api
                match: { prefix: /api }
                base_url: "\(origin.url)"
                breaker: { failures: 1, open: 1h }
                cache: { stale_if_error: 1h }
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.get("/api/stored").text == "kept")
            try harness.settle()
            #expect(try harness.explained("/api/x").meets == nil)
            #expect(try harness.get("/api/x").status == 502)
            let asked = origin.requests()
            let meets = try #require(try harness.explained("/api/x").meets)
            #expect(meets.kind == .refused && meets.instead == .nothing && meets.status == 503)
            #expect(1...3600 ~= meets.retryAfter ?? 0)
            let refused = try harness.get("/api/x")
            let said = "the circuit breaker of \(origin.url) is open after failures in a row"
            #expect(meets.reason.contains(said) && refused.text.contains(said) && refused.status == 503)
            #expect(try harness.explained("/api/x").text.contains("the request is answered 503, with Retry-After: "))
            #expect(try harness.explained("/api/stored").meets?.instead == .stale)
            #expect(try harness.get("/api/stored").field("Cache-Status")?.contains("stale-if-error") == true)
            #expect(origin.requests() == asked, "nobody has asked the origin since")
        }
    }

    @Test func `another variant stands in where the configuration lets it`() async throws {
        let origin = try ScriptedOrigin { request in
            guard request.field("Accept-Language") == "de" else { return OriginReply([.cut]) }
            let fields = [("Cache-Control", "max-age=600"), ("Vary", "Accept-Language"), ("Content-Language", "de")]
            return .answer(200, fields: fields, "da")
        }
        let text = """
            services:
              - name: api
                match: { prefix: /api }
                base_url: "\(origin.url)"
                breaker: { failures: 1, open: 1h }
                cache: { other_variant: serve }
                endpoints: [{ name: off, path: /off, cache: { other_variant: none } }]
            """
        try await HandlerHarness.run(text) { harness throws in
            for path in ["/api/x", "/api/off"] { _ = try harness.get(path, fields: [("Accept-Language", "de")]) }
            try harness.settle()
            let before = try harness.explained("/api/x")
            #expect(before.cache?.otherVariant == 0 && before.meets == nil)
            let said = "answers with response 1, which the request does not select: other-variant"
            #expect(before.text.contains("\(said) (configuration, cache.other_variant)"), "\(before.text)")
            #expect(try harness.explained("/api/off").cache?.otherVariant == nil)
            #expect(try harness.get("/api/x").text == "da")
            let meets = try #require(try harness.explained("/api/x").meets)
            #expect(meets.kind == .refused && meets.instead == .otherVariant)
            let asked = origin.requests()
            let answer = try harness.get("/api/x")
            #expect(answer.text == "da" && answer.field("Cache-Status")?.contains("other-variant") == true)
            #expect(try harness.explained("/api/off").meets?.instead == .nothing)
            #expect(try harness.get("/api/off").status == 503)
            #expect(origin.requests() == asked, "nobody has asked the origin since")
        }
    }

    @Test func `a Vary on what only one client sends is told with its cost`() async throws {
        let origin = try ScriptedOrigin { request in
            let vary = request.target == "/own" ? "Accept-Language, User-Agent" : "Accept-Language"
            return .answer(200, fields: [("Cache-Control", "max-age=60"), ("Vary", vary)], "text")
        }
        let text = "services: [{ name: api, match: { prefix: /api }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(text) { harness throws in
            for path in ["/api/own", "/api/shared"] { _ = try harness.get(path) }
            try harness.settle()
            #expect(try harness.explained("/api/own").text.contains("user-agent differs from client to client: each"))
            #expect(try !harness.explained("/api/shared").text.contains("from client to client"))
        }
    }

    @Test func `a refused request is parked where there is room`() async throws {
        let origin = try Self.failing()
        let breaker = "breaker: { failures: 1, open: 1h }"
        let text = """
            services:
              - { name: held, match: { prefix: /held }, base_url: "\(origin.url)", \(breaker), park: { time: 10m, calls: 2 } }
              - { name: full, match: { prefix: /full }, base_url: "\(origin.url)", \(breaker), park: { time: 10m, calls: 1 } }
            """
        try await HandlerHarness.run(text) { harness throws in
            let clients = (try harness.client(), try harness.client())
            try clients.0.request("GET", "/held/x")
            try clients.1.request("GET", "/full/x")
            let areHeld = try blockUntil {
                let meets = try (harness.explained("/held/y").meets, harness.explained("/full/y").meets)
                return meets.0?.instead == .parked && meets.1?.parking?.contains("raise park.calls") == true
            }
            #expect(areHeld)
            let parked = try #require(try harness.explained("/held/y").meets)
            #expect(parked.kind == .refused && parked.status == nil && parked.parking?.contains("600 s") == true)
            let refused = try #require(try harness.explained("/full/y").meets)
            #expect(refused.instead == .nothing && refused.status == 503)
            #expect(try harness.get("/full/y").status == 503)
        }
    }

    @Test func `a request waits for a slot, or finds the queue full`() async throws {
        let (gate, origin) = try {
            let gate = Gate()
            return (gate, try ScriptedOrigin { _ in OriginReply([.wait(gate)] + OriginReply.answer("done").steps) })
        }()
        let text = """
            services:
              - name: narrow
                match: { prefix: /narrow }
                base_url: "\(origin.url)"
                max_concurrent: 1
                max_queue: { length: 1, wait: 10m }
                cache: { mode: none }
            """
        try await HandlerHarness.run(text) { harness throws in
            defer { gate.open() }
            #expect(try harness.explained("/narrow/x").meets == nil)
            let clients = (try harness.client(), try harness.client())
            try clients.0.request("GET", "/narrow/x")
            #expect(origin.waitForRequests(1))
            let waits = try #require(try harness.explained("/narrow/x").meets)
            #expect(waits.kind == .waits && waits.reason.contains("600000 ms") && waits.status == nil)
            try clients.1.request("GET", "/narrow/x")
            #expect(try blockUntil { try harness.explained("/narrow/x").meets?.kind == .refused })
            let meets = try #require(try harness.explained("/narrow/x").meets)
            #expect(meets.instead == .nothing && meets.status == 503 && meets.retryAfter == 1)
            let refused = try harness.get("/narrow/x")
            #expect(refused.status == 503 && refused.text.contains(meets.reason))
            gate.open()
            #expect(try clients.0.readResponse().text == "done")
            #expect(try clients.1.readResponse().text == "done")
        }
    }
}
