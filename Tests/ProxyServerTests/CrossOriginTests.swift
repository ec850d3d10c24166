// Web pages as clients: who may ask a service that adds credentials, and what CORS adds to answers.

import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct CrossOriginTests {
    private static let page = "http://page.test"

    @Test(
        arguments: [
            ("auth: { bearer: x }", 403), ("headers: { set: { Authorization: x } }", 403),
            ("headers: { add: { Cookie: a=b } }", 403), ("headers: { set: { X-Api-Key: x } }", 403),
            ("headers: { set: { PRIVATE-TOKEN: x } }", 403), ("headers: { set: { X-Debug: x } }", 200),
            ("endpoints: [{ name: e, path: /e, headers: { set: { Authorization: x } } }]", 403),
            ("auth: { bearer: x }, cors: { origins: [\"http://page.test\"] }", 200),
        ] as [(String, Int)]
    )
    func `a foreign origin is refused where credentials are added`(keys: String, status: Int) async throws {
        let origin = try ScriptedOrigin { request in
            .answer(to: request, fields: [("Cache-Control", "max-age=60")], "x")
        }
        let text = """
            services:
              - { name: s, match: { prefix: /s }, base_url: "\(origin.url)", \(keys) }
              - { name: outer, match: { prefix: /outer }, base_url: service:s }
            """
        let isNamed = keys.contains("cors")
        try await HandlerHarness.run(text) { harness throws in
            // Also when the answer is stored already, and so could come from the hot path.
            for _ in 0..<2 {
                #expect(try harness.get("/s/x").status == 200)
                let foreign = [("Origin", Self.page)]
                #expect(try harness.get("/s/x", fields: foreign).status == status)
                // The service in front does not name the page.
                #expect(try harness.get("/outer/x", fields: foreign).status == (isNamed ? 403 : status))
                #expect(try harness.get("/s/x", fields: [("Origin", "http://localhost")]).status == 200)
                let null = try harness.get("/s/x", fields: [("Origin", "null")])
                #expect(null.status == (isNamed ? 403 : status))
            }
            #expect(origin.requests() <= 2)
        }
    }

    @Test func `a page that is named may read every answer, and caches keep them apart`() async throws {
        let origin = try ScriptedOrigin { request in
            let fields = [
                ("Cache-Control", "max-age=60"), ("Access-Control-Allow-Origin", "http://other.test"),
                ("Vary", "Accept"),
            ]
            return .answer(to: request, fields: fields, "x")
        }
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                cors: { origins: ["\(Self.page)"] }
                unlisted: 404
                endpoints: [{ name: x, path: /x }]
            """
        try await HandlerHarness.run(text) { harness throws in
            for path in ["/s/x", "/s/x", "/s/none"] {
                let answer = try harness.get(path, fields: [("Origin", Self.page)])
                #expect(answer.status == (path == "/s/none" ? 404 : 200))
                #expect(answer.head.all("Access-Control-Allow-Origin") == [Self.page])
                #expect(answer.head.all("Vary").joined(separator: ", ").contains("Origin"))
            }
            let plain = try harness.get("/s/x")
            #expect(plain.head.all("Vary").joined(separator: ", ") == "Accept, Origin")
            #expect(plain.head.all("Access-Control-Allow-Origin") == ["http://other.test"])
            let asking = [("Origin", Self.page), ("Access-Control-Request-Method", "PUT")]
            let preflight = try harness.exchange("OPTIONS", "/s/x", fields: asking)
            #expect(preflight.status == 204)
            #expect(preflight.field("Access-Control-Allow-Methods") == "PUT")
            #expect(origin.requests() == 1)
        }
    }
}
