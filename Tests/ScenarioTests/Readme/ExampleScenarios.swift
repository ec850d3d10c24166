// The three files of Documentation/guide/examples.md do what the page says, against scripted origins.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Examples {
        @Test func thePageIsAboutTheFilesOfTheFolder() throws {
            #expect(ExamplePage.text.unknown == [], "neither commands nor a file that the text before it names")
            let paths = ExamplePage.examples.map(\.path)
            let names = try FileManager.default.contentsOfDirectory(atPath: ExamplePage.root + "/config/examples")
            #expect(paths.sorted() == names.filter { $0.hasSuffix(".yaml") }.map { "config/examples/\($0)" }.sorted())
        }

        @Test func theRESTAPI() throws {
            let origin = try ScriptedOrigin { request in
                switch (request.method, request.target) {
                case ("GET", "/v2/results?q=ada&limit=2"):
                    .answer(
                        to: request,
                        fields: [("Content-Type", "application/json")],
                        """
                        {"info": {"count": 2}, "results": [
                          {"login": {"uuid": 7}, "name": {"first": "Ada"}, "dob": {"date": "1815-12-10"}, "phones": [{"number": "555-1"}]},
                          {"login": {"uuid": 8}, "name": {"first": "Adam"}, "dob": {"date": "1906-12-09"}, "phones": []}]}
                        """
                    )
                case ("GET", "/v2/results?q=nobody&limit=2"):
                    .answer(
                        404,
                        to: request,
                        fields: [("Content-Type", "application/json")],
                        "{\"error\": {\"text\": \"no such person\"}}"
                    )
                case ("POST", "/v2/people"):
                    .answer(
                        201,
                        to: request,
                        fields: [("Content-Type", "application/json")],
                        "{\"login\": {\"uuid\": 9}}"
                    )
                default: .answer(500, to: request, "not what the page promises")
                }
            }
            let reader = try ExampleReader(
                "rest-api.yaml",
                base: "https://people.example.com",
                ["PEOPLE_URL": origin.url]
            )
            try reader.type("curl -s 'http://localhost:8080/people/search?name=ada'")
            try reader.type("curl -si 'http://localhost:8080/people/search?name=ada'")
            try reader.type("curl -s http://localhost:8080/people/members")
            try reader.type("curl -s 'http://localhost:8080/people/search?name=nobody'")
            try reader.type("curl -s http://localhost:8080/people/search")
            #expect(reader.isAtEnd)
            #expect(try reader.daemon.exchange("/people/other").status == 404)
            #expect(
                origin.log.map { "\($0.method) \($0.target)" } == [
                    "GET /v2/results?q=ada&limit=2", "POST /v2/people", "GET /v2/results?q=nobody&limit=2",
                ]
            )
            let sent = origin.log.first { $0.method == "POST" }
            #expect(sent.map { String(decoding: $0.body, as: UTF8.self) } == "{\"first_name\":\"Grace\"}")
        }

        @Test func theFlakyAPI() throws {
            let failures = Monitor(2)
            let origin = try ScriptedOrigin { request in
                if request.target == "/orders" { return .answer(201, to: request, "{\"order\": 1}") }
                let fails = failures.update { left -> Bool in
                    left -= 1
                    return left >= 0
                }
                return fails ? .answer(503, to: request, "no") : .answer(to: request, "{\"tea\": 3}")
            }
            let reader = try ExampleReader("flaky-api.yaml", base: "https://shop.example.com", ["SHOP_URL": origin.url])
            try reader.type("curl -s http://localhost:8080/shop/prices")
            #expect(origin.log.map(\.target) == ["/prices", "/prices", "/prices"])
            origin.stop()
            #expect(try reader.daemon.command("clock", "advance", "10s").succeeded)
            try reader.type("curl -si http://localhost:8080/shop/prices")
            try reader.type("curl -si http://localhost:8080/shop/pictures/tea.png")
            // Another failure opens the breaker again.
            try reader.type("drydock status", origin: origin.url) { _ = try reader.daemon.exchange("/shop/pictures/x") }
            let end = try reader.begin("curl -s http://localhost:8080/shop/orders")
            #expect(try eventually { try reader.daemon.metric("drydock_parked_calls") == 1 })
            try reader.type("drydock parked list")
            #expect(reader.isAtEnd)
            origin.forgetRequests()
            try origin.restart()
            end()
            #expect(origin.log.map { "\($0.method) \($0.target)" } == ["POST /orders"])
            #expect(origin.log.first.map { String(decoding: $0.body, as: UTF8.self) } == "{\"tea\": 2}")
        }

        @Test func theGroupThatLogsIn() throws {
            let origin = try ScriptedOrigin { request in
                guard request.target != "/login" else {
                    let isRight = request.body == Array(#"{"user": "me", "password": "correct-horse"}"#.utf8)
                    return isRight
                        ? .answer(to: request, #"{"session": {"token": "t/1"}, "user": {"id": 7, "plan": "free"}}"#)
                        : .answer(401, to: request, "{}")
                }
                return .answer(request.field("Authorization") == "Bearer t/1" ? 200 : 401, to: request, "{}")
            }
            let base = "https://reports.example.com"
            let environment = ["REPORTS_URL": origin.url, "REPORTS_PASSWORD": "correct-horse"]
            let reader = try ExampleReader("login-group.yaml", base: base, environment)
            try reader.type("drydock run morning")
            #expect(reader.isAtEnd)
            #expect(origin.log.map { "\($0.method) \($0.target)" } == ["POST /login", "GET /users/7", "GET /daily"])
            // Without the right password nothing follows the login.
            origin.forgetRequests()
            let other = environment.merging(["REPORTS_PASSWORD": "wrong"]) { $1 }
            let refused = try ExampleReader("login-group.yaml", base: base, other)
            let run = try refused.daemon.command("run", "morning")
            #expect(run.end == .exited(1), "\(run.report)")
            #expect(origin.log.map { "\($0.method) \($0.target)" } == ["POST /login"])
        }
    }
}
