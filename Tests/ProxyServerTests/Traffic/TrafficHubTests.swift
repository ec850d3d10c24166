// The lines of those who watch the traffic: which answers they are told of, in which form, and what a slow reader loses.

import LoopSupport
import ServiceCore
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(3))) struct TrafficHubTests {
    private static func entry(_ target: String = "/api/a", status: Int = 200, service: String = "api") -> AccessEntry {
        var entry = AccessEntry(client: "127.0.0.1", method: "GET", target: .string(target), status: status)
        entry.route = service
        entry.bytes = 4
        entry.duration = 1_500_000
        entry.cacheStatus = .string("drydock; hit")
        return entry
    }

    private static func kind(_ outcome: CacheOutcome = .hit) -> AnswerKind {
        AnswerKind(number: .none, outcome: outcome, tier: outcome == .hit ? .memory : .none, status: 200)
    }

    private static func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }

    @Test func `each member of a filter has to fit`() {
        var filter = TrafficFilter()
        #expect(filter.admits(Self.entry(), Self.kind()))
        filter.service = "api"
        filter.status = 200...299
        filter.outcome = .hit
        filter.client = "127.0.0.1"
        filter.url = "pi/"
        #expect(filter.admits(Self.entry(), Self.kind()))
        #expect(!filter.admits(Self.entry(service: "shop"), Self.kind()))
        #expect(!filter.admits(Self.entry(status: 300), Self.kind()))
        #expect(!filter.admits(Self.entry(), Self.kind(.miss)))
        #expect(!filter.admits(Self.entry("/other"), Self.kind()))
        filter.client = "127.0.0.2"
        #expect(!filter.admits(Self.entry(), Self.kind()))
    }

    @Test func `a line says what the access log does, and what gave the answer`() async throws {
        let hub = TrafficHub()
        #expect(!hub.isListening)
        let json = try #require(hub.listen(TrafficFilter(), isText: false))
        let text = try #require(hub.listen(TrafficFilter(), isText: true))
        #expect(hub.isListening && hub.readerCount == 2)
        hub.put(Self.entry("/api/\"q\""), Self.kind())
        let line = Self.text(await json.next())
        #expect(line.hasPrefix("{\"time\":\"20") && line.hasSuffix("\n"))
        #expect(line.contains(#""client":"127.0.0.1","method":"GET","target":"/api/\"q\"","status":200,"bytes":4"#))
        #expect(line.hasSuffix(#","aborted":false,"outcome":"hit","tier":"memory"}"# + "\n"))
        #expect(line.filter { $0 == "\n" }.count == 1)
        let words = Self.text(await text.next())
        #expect(words.hasSuffix("127.0.0.1 GET /api/\\x22q\\x22 200 4B 1.500ms api [drydock; hit]\n"), "\(words)")
        json.close()
        text.close()
        #expect(!hub.isListening && hub.readerCount == 0)
    }

    @Test func `a reader that is too slow is told how much it has lost, and the others lose nothing`() async throws {
        let hub = TrafficHub()
        let slow = try #require(hub.listen(TrafficFilter(), isText: false))
        var filter = TrafficFilter()
        filter.outcome = .stale
        let other = try #require(hub.listen(filter, isText: false))
        let count = 5_000
        for number in 0..<count { hub.put(Self.entry("/api/\(number)"), Self.kind()) }
        hub.put(Self.entry("/api/last"), Self.kind(.stale))
        #expect(hub.lostCount > 0)
        let lines = Self.text(await slow.next()).split(separator: "\n")
        // One line may pass the limit, and the one that says how many are missing follows.
        #expect(lines.reduce(0) { $0 + $1.utf8.count + 1 } < TrafficHub.queueLimit + 1_024)
        #expect(lines.first?.contains("\"/api/0\"") == true)
        #expect(lines.last == "{\"lost\":\(count + 2 - lines.count)}")
        #expect(hub.lostCount == count + 2 - lines.count)
        #expect(Self.text(await other.next()).contains("/api/last"))
        hub.put(Self.entry("/api/more"), Self.kind())
        #expect(Self.text(await slow.next()).contains("/api/more"))
    }

    @Test func `a reader that waits is woken by an answer, by its end, and by the end of all`() async throws {
        let hub = TrafficHub()
        let first = try #require(hub.listen(TrafficFilter(), isText: false))
        let second = try #require(hub.listen(TrafficFilter(), isText: false))
        async let one = first.next()
        async let two = second.next()
        hub.put(Self.entry(), Self.kind())
        #expect(Self.text(await one).contains("/api/a"))
        #expect(Self.text(await two).contains("/api/a"))
        let waiting = Task { await first.next() }
        waiting.cancel()
        #expect(await waiting.value == nil)
        async let end = second.next()
        hub.end()
        #expect(await end == nil)
        #expect(await first.next() == nil && hub.listen(TrafficFilter(), isText: true) == nil && !hub.isListening)
    }

    @Test func `answers of both paths are told while the access log is off`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "fine") }
        let text = """
            listen: 127.0.0.1:0
            services: [{ name: api, match: { prefix: /api }, base_url: "\(origin.url)" }]
            """
        let reader = Monitor<TrafficReader?>(nil)
        try await HandlerHarness.run(text) { harness throws in
            reader.update { $0 = harness.server.traffic.listen(TrafficFilter(), isText: false) }
            for _ in 0..<3 { #expect(try harness.get("/api/a").text == "fine") }
            #expect(blockUntil { (try? harness.counters().answers.count) == 3 })
        }
        let lines = Self.text(await reader.read { $0 }?.next()).split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines.map { $0.contains("\"outcome\":\"hit\",\"tier\":\"memory\"") } == [false, true, true])
        #expect(lines.allSatisfy { $0.contains("\"id\":\"") && $0.contains("\"host\":") })
        origin.stop()
    }

    @Test func `there are sixteen readers at most`() {
        let hub = TrafficHub()
        let readers = (0..<20).compactMap { _ in hub.listen(TrafficFilter(), isText: false) }
        #expect(readers.count == TrafficHub.maximumReaders)
    }
}
