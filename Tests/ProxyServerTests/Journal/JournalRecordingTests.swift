// What of requests and answers is recorded, and that nothing is while the journal is off.

import TestSupport
import Testing

@testable import ProxyServer

@Suite struct JournalRecordingTests {
    private static func text(_ origin: ScriptedOrigin, _ folder: TemporaryFolder) throws -> String {
        try folder.write("order.json", #"{"id": 1}"#)
        return """
            services:
              - name: live
                match: { prefix: /live }
                base_url: \(origin.url)
                query: { key: { value: s3cret, secret: true } }
              - { name: front, match: { prefix: /front }, base_url: "service:shop" }
              - name: shop
                match: { prefix: /shop }
                demo: { enabled: true, files: \(folder.path) }
                endpoints:
                  - { name: order, method: POST, path: /orders, demo: { file: order.json, status: 201 } }
                  - { name: seen, path: /seen, demo: { file: order.json } }
            """
    }

    /// The entries that there are as soon as there are so many.
    private static func entries(_ journal: Journal, _ count: Int) throws -> [JournalEntry] {
        #expect(blockUntil { journal.extent.entries >= count })
        var cursor = journal.start
        return journal.page(&cursor).map(\.entry)
    }

    @Test func requestsAndAnswers() async throws {
        let origin = try ScriptedOrigin { _ in .answer("fresh", fields: [("Cache-Control", "max-age=60")]) }
        let folder = try TemporaryFolder()
        let journal = Journal(JournalSettings(size: 1 << 20, bodies: 8, redacted: ["Authorization"]))
        let text = try Self.text(origin, folder)
        try await HandlerHarness.run(text, journal: journal) { harness in
            for _ in 0..<2 { _ = try harness.exchange("GET", "/live/a?x=1") }
            let fields = [("Authorization", "Bearer s3cret"), ("X-A", "b"), ("Content-Type", "text/plain")]
            let client = try harness.client()
            let created = try client.exchange("POST", "/shop/orders", fields: fields, body: Array("0123456".utf8))
            #expect(created.status == 201 && created.text == #"{"id": 1}"#)
            // More of the body than the journal takes: the rest of it is not read, and the answer says so.
            let long = [UInt8](repeating: 0x78, count: 200_000)
            let cut = try harness.exchange("POST", "/shop/orders", body: long)
            #expect(cut.status == 201 && cut.field("Connection") == "close")
            #expect(try client.exchange("POST", "/live/a", body: Array("to origin".utf8)).text == "fresh")
            #expect(try client.exchange("POST", "/live/a", body: Array("whole".utf8)).text == "fresh")
            #expect(try client.exchange("POST", "/front/orders", body: Array("inner".utf8)).status == 201)
            #expect(try client.exchange("GET", "/nowhere").status == 404)
            for _ in 0..<2 { #expect(try client.exchange("GET", "/shop/seen").status == 200) }
            let found = try Self.entries(journal, 10)
            #expect(found.map(\.status) == [200, 200, 201, 201, 200, 200, 201, 404, 200, 200])
            #expect(
                found.map(\.source) == [
                    "miss", "hit", "demo", "demo", "bypass", "bypass", "bypass", "error", "demo", "demo",
                ]
            )
            #expect(
                found.map(\.service) == ["live", "live", "shop", "shop", "live", "live", "front", "", "shop", "shop"]
            )
            #expect(found.map(\.endpoint) == ["", "", "order", "order", "", "", "", "", "seen", "seen"])
            #expect(found[1].target == "/live/a?x=1" && found[1].cacheStatus.contains("hit"))
            #expect(found[2].demo.hasPrefix("endpoint=order; outcome=success; status=201"))
            let shown = Dictionary(found[2].fields.map { ($0.name, $0.value) }) { $1 }
            #expect(shown["Authorization"] == JournalEntry.hidden && shown["X-A"] == "b")
            #expect(found[2].body == Array("0123456".utf8) && !found[2].isBodyCut)
            #expect(found[3].body == Array(long.prefix(8)) && found[3].isBodyCut)
            #expect(found[4].body == Array("to origi".utf8) && found[4].isBodyCut)
            // Whoever has read as much as Content-Length says asks for no more; and what an inner service is sent is read.
            #expect(found[5].body == Array("whole".utf8) && !found[5].isBodyCut)
            #expect(found[6].body == Array("inner".utf8) && !found[6].isBodyCut)
            #expect(found[8].demo != found[9].demo && found.allSatisfy { !$0.isAborted && $0.time > 0 })
        }
        #expect(
            origin.log.filter { $0.method == "POST" }.map(\.body) == [Array("to origin".utf8), Array("whole".utf8)]
        )
    }

    @Test func nothingWhileItIsOff() async throws {
        let origin = try ScriptedOrigin { _ in .answer("fresh", fields: [("Cache-Control", "max-age=60")]) }
        let folder = try TemporaryFolder()
        let journal = Journal()
        let text = try Self.text(origin, folder)
        try await HandlerHarness.run(text, journal: journal) { harness in
            for _ in 0..<3 { _ = try harness.exchange("GET", "/shop/seen") }
            #expect(journal.extent == JournalExtent())
            // A reload switches it on for the next request.
            journal.update(JournalSettings(size: 1 << 20), now: 1)
            try harness.reload(text)
            _ = try harness.exchange("GET", "/shop/seen")
            #expect(try Self.entries(journal, 1).map(\.target) == ["/shop/seen"])
        }
    }
}
