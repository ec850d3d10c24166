// The rules `allow` and `deny` are about the request of the client, and not about what is made of it on its way.

import TestSupport
import Testing

@testable import ProxyServer

@Suite struct AccessTests {
    @Test func `a rule about fields is about those of the client, and not those of a stage of from`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "here") }
        let text = """
            services:
              - name: api
                match: { prefix: /api }
                base_url: "\(origin.url)"
                deny: [{ fields: { Cache-Control: "*" } }]
                from: [live, stale]
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/api/a").text == "here")
            #expect(try harness.exchange("GET", "/api/a", fields: [("Cache-Control", "no-cache")]).status == 403)
            #expect(origin.requests() == 1)
        }
    }

    @Test func `a rule about the type of a content is about the one that the client sends`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, String(decoding: $0.body, as: UTF8.self)) }
        let form = "application/x-www-form-urlencoded"
        let text = """
            services:
              - name: api
                match: { prefix: /api }
                base_url: "\(origin.url)"
                allow: [{ fields: { Content-Type: \(form) } }]
                endpoints: [{ name: save, method: POST, path: /users, body: { encode: json } }]
            """
        try await HandlerHarness.run(text) { harness throws in
            func status(_ type: String, _ body: String) throws -> (Int, String) {
                let fields = [("Content-Type", type)]
                let answer = try harness.exchange("POST", "/api/users", fields: fields, body: Array(body.utf8))
                return (answer.status, answer.text)
            }
            #expect(try status(form, "a=1") == (200, #"{"a":"1"}"#))
            #expect(try status("application/json", #"{"a":"1"}"#).0 == 403)
            #expect(origin.requests() == 1)
        }
    }
}
