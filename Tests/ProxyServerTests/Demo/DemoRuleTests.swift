// Rules of demo mode over connections: which one answers, what becomes of the others, and that no body is lost.

import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct DemoRuleTests {
    static func text(_ demo: String, baseURL: String = "http://127.0.0.1:1", endpoint: String = "") -> String {
        """
        services:
          - name: shop
            match: { prefix: /shop }
            base_url: \(baseURL)
            demo:
        \(demo)
            endpoints: [{ name: user, path: "/users/:id", \(endpoint)demo: { enabled: false } }]
        """
    }

    static let rules = """
              enabled: true
              headers: { X-Demo: all }
              rules:
                - { name: admin, when: { query: { role: admin } }, status: 201 }
                - { name: tenant, when: { fields: { X-Tenant: { matches: "^a" } }, method: [GET, PUT] }, status: 202 }
                - name: order
                  when: { method: POST, path: /orders, body: { json: { "item.id": { one_of: [1, 2] } } } }
                  status: 207
                  headers: { X-Demo: order, X-More: "1" }
                - { name: form, when: { method: POST, body: { form: { name: Ann } } }, status: 208 }
        """

    @Test func theFirstRuleWhoseConditionHoldsAnswers() async throws {
        try await HandlerHarness.run(Self.text(Self.rules)) { harness throws in
            let client = try harness.client()
            let admin = try client.exchange("/shop/a?role=admin", fields: [("X-Tenant", "acme")])
            #expect(admin.status == 201 && admin.field("X-Demo") == "all")
            #expect(
                admin.field("Drydock-Demo")?.hasPrefix("endpoint=shop; rule=admin; outcome=success; status=201") == true
            )
            #expect(try client.exchange("/shop/a", fields: [("X-Tenant", "acme")]).status == 202)
            #expect(try client.exchange("/shop/a", fields: [("X-Tenant", "bcme")]).status == 404)
            let order = try client.exchange("POST", "/shop/orders", body: Array(#"{"item": {"id": 2}}"#.utf8))
            #expect(order.status == 207 && order.field("X-Demo") == "order" && order.field("X-More") == "1")
            let form = try client.exchange("POST", "/shop/orders", body: Array("name=Ann".utf8))
            #expect(form.status == 208)
            // The connection goes on behind a body that was read.
            #expect(try client.exchange("/shop/a?role=admin").status == 201)
        }
    }

    @Test func aRequestThatNoRuleAnswersLearnsWhatTheNearestWant() async throws {
        try await HandlerHarness.run(Self.text(Self.rules)) { harness throws in
            let client = try harness.client()
            let answer = try client.exchange("POST", "/shop/orders", body: Array(#"{"item": {"id": 3}}"#.utf8))
            #expect(answer.status == 404 && answer.field("Content-Type") == "application/problem+json")
            for part in [
                "no rule of service shop answers this request; the nearest are order: body.json.item.id is 3, not one of 1, 2",
                "form: body.form.name is missing, not 'Ann'", "admin: query.role is missing, not 'admin'",
            ] { #expect(answer.text.contains(part), "\(answer.text)") }
            #expect(!answer.text.contains("tenant:"))
        }
    }

    @Test func unmatchedRequestsPassOnWithTheirWholeBody() async throws {
        let origin = try ScriptedOrigin { request in
            .answer("\(request.method) \(request.target) \(request.body.count)")
        }
        let demo = Self.rules.replacing(
            "enabled: true",
            with: "enabled: true\n      unmatched: pass\n      body_limit: 32KiB"
        )
        let text = Self.text(demo, baseURL: "http://127.0.0.1:\(origin.port)")
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            for size in [0, 1, 32 << 10, (32 << 10) + 1, 300_000] {
                let answer = try client.exchange("POST", "/shop/orders", body: [UInt8](repeating: 32, count: size))
                #expect(answer.text == "POST /orders \(size)" && answer.field("Drydock-Demo") == nil)
            }
            #expect(try client.exchange("/shop/live").text == "GET /live 0")
            #expect(try client.exchange("/shop/live?role=admin").status == 201)
            // What is stored answers here, too.
            #expect(try client.exchange("/shop/live").field("Cache-Status")?.contains("drydock") == true)
        }
    }

    @Test func aBodyOverTheLimitMeetsNoCondition() async throws {
        let text = Self.text(
            """
                  enabled: true
                  body_limit: 16B
                  rules: [{ name: long, when: { body: { text: { matches: x } } } }]
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            #expect(try client.exchange("POST", "/shop/a", body: [UInt8](repeating: 120, count: 16)).status == 200)
            let long = try client.exchange("POST", "/shop/a", body: [UInt8](repeating: 120, count: 17))
            #expect(long.status == 404 && long.text.contains("needs a body that is shorter than 'body_limit'"))
            #expect(try client.exchange("POST", "/shop/a", body: [120]).status == 200)
        }
    }

    @Test func parametersOfThePathChooseARule() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("user.json", "{}")
        let text = """
            services:
              - name: shop
                match: { prefix: /shop }
                endpoints:
                  - name: user
                    path: /users/:id
                    demo:
                      enabled: true
                      file: \(file)
                      rules: [{ name: nobody, when: { params: { id: { one_of: ["0", "a b"] } } }, status: 410 }]
            """
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            #expect(try client.exchange("/shop/users/0").status == 410)
            #expect(try client.exchange("/shop/users/a%20b").status == 410)
            let own = try client.exchange("/shop/users/1")
            #expect(own.status == 200 && own.text == "{}")
            #expect(own.field("Drydock-Demo")?.hasPrefix("endpoint=user; outcome=success") == true)
        }
    }
}
