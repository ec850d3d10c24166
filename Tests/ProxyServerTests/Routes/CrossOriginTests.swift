// Web pages as clients: who may ask a service that adds credentials, and what CORS adds to answers.

import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct CrossOriginTests {
    private static let page = "http://page.test"

    @Test(
        arguments: [
            ("auth: { bearer: x }", 403), ("headers: { set: { Authorization: x } }", 403),
            ("headers: { add: { Cookie: a=b } }", 403), ("headers: { set: { X-Api-Key: x } }", 403),
            ("headers: { set: { PRIVATE-TOKEN: x } }", 403), ("headers: { set: { X-Debug: x } }", 200),
            ("endpoints: [{ name: e, path: /e, headers: { set: { Authorization: x } } }]", 403),
            ("query: { api_key: x }", 403), ("query: { q: { value: x, secret: true } }", 403),
            ("query: { api_key: { value: x, secret: false } }", 200), ("query: { page: 2 }", 200),
            ("endpoints: [{ name: e, path: /e, query: { token: x } }]", 403),
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

    /// What browsers say of scripts, images, frames and links, which come without Origin (Fetch Metadata).
    @Test(
        arguments: [
            (["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"], 403),
            (["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"], 403),
            (["Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"], 403),
            (["Sec-Fetch-Site": "cross-site"], 403), (["Sec-Fetch-Site": "something-new"], 403),
            (["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"], 403),
            (["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "object"], 403),
            (["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"], 200),
            (["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"], 200),
            (["Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"], 200),
            (["Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"], 200),
            (["Sec-Fetch-Mode": "no-cors"], 200),
            // Where Origin is sent, that decides.
            (["Sec-Fetch-Site": "cross-site", "Origin": "http://named.test"], 200),
            (["Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"], 403),
        ] as [([String: String], Int)]
    )
    func `what a page of another origin loads is refused where credentials are added`(
        fields: [String: String],
        status: Int
    ) async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "x") }
        let folder = try TemporaryFolder()
        let file = try folder.write("demo.txt", "demo")
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                auth: { bearer: x }
                cors: { origins: ["http://named.test"] }
                endpoints: [{ name: demo, path: /demo, demo: { enabled: true, file: "\(file)" } }]
              - { name: none, match: { prefix: /none }, base_url: "\(origin.url)", auth: { bearer: x }, cache: { mode: none } }
              - { name: any, match: { prefix: /any }, base_url: "\(origin.url)", headers: { set: { X-Api-Key: x } },
                  cors: { origins: ["*"] } }
              - { name: open, match: { prefix: /open }, base_url: "\(origin.url)" }
            """
        let sent = fields.map { ($0.key, $0.value) }
        try await HandlerHarness.run(text) { harness throws in
            // Stored, so that the hot path would answer.
            for path in ["/s/x", "/any/x", "/open/x", "/none/x"] { #expect(try harness.get(path).status == 200) }
            try harness.settle()
            let asked = origin.requests()
            for _ in 0..<2 {
                for path in ["/s/x", "/s/demo"] {
                    #expect(try harness.get(path, fields: sent).status == status, "\(path)")
                }
                if fields["Origin"] == nil { #expect(try harness.get("/none/x", fields: sent).status == status) }
                #expect(try harness.get("/any/x", fields: sent).status == 200)
                #expect(try harness.get("/open/x", fields: sent).status == 200)
            }
            #expect(try harness.exchange("HEAD", "/s/x", fields: sent).status == status)
            if status == 403 {
                #expect(origin.requests() == asked)
                #expect(try harness.explanation("/s/x", fields: sent).contains("403 Foreign origin"))
                #expect(try harness.exchange("POST", "/s/x", fields: sent, body: [1]).status == 403)
            }
        }
    }

    /// Following a link does not change anything; sending a form does.
    @Test func `only what reads may be opened from elsewhere`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let text = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\", auth: { bearer: x } }]"
        let link = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.get("/s/x", fields: link).status == 200)
            for method in ["POST", "PUT", "DELETE"] {
                #expect(try harness.exchange(method, "/s/x", fields: link, body: [1]).status == 403)
            }
            #expect(origin.requests() == 1)
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
