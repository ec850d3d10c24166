// From a target to whoever answers: prefixes, hosts, reloads, services in front of services,
// demo answers, own listeners.

import EventLoop
import HTTPWire
import Plans
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct RoutingTests {
    @Test(
        arguments: [
            ("/", "root"), ("/a", "a"), ("/a/", "a"), ("/a?q", "a"), ("/ab", "root"), ("/a/b", "ab"), ("/a/bc", "a"),
            ("/a/b/c", "ab"), ("/A", "root"), ("/%61", "root"), ("//a", "root"),
        ] as [(String, String)]
    )
    func `the longest prefix wins, on a segment boundary`(target: String, expected: String) throws {
        let services = [("root", "/"), ("a", "/a"), ("ab", "/a/b")].map {
            "{ name: \($0.0), match: { prefix: \($0.1) }, base_url: \"http://o.test\" }"
        }
        let plan = try compile("services: [\(services.joined(separator: ", "))]")
        let host = KnownHost("localhost", Authority(host: "localhost"), plan, isOwn: true)
        let found = Array(target.utf8).withUnsafeBytes { host.service(target: $0) }
        #expect(found?.plan.name == expected)
    }

    @Test func `a reload counts at once, also for what the hot path has seen`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "x") }
        let named = "services: [{ name: s, match: { host: api.test }, base_url: \"\(origin.url)\" }]"
        let other = "services: [{ name: s, match: { host: other.test }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(named) { harness throws in
            for _ in 0..<2 { #expect(try harness.get("/x", host: "api.test").status == 200) }
            try harness.reload(other)
            #expect(try harness.get("/x", host: "api.test").status == 421)
            #expect(try harness.get("/x", host: "other.test").field("Cache-Status")?.contains("hit") == true)
            #expect(origin.requests() == 1)
        }
    }

    @Test(arguments: ["10.0.2.2", "192.0.2.8:8080", "[2001:db8::1]", "[2001:db8::1]:80", "10.0.2.2."])
    func `an address as Host is answered at once and by the hot path, whatever the listener`(host: String) async throws
    {
        let origin = try ScriptedOrigin {
            .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "for \($0.target)")
        }
        let text = """
            services:
              - { name: root, match: { prefix: / }, base_url: "\(origin.url)" }
              - { name: none, match: { prefix: /none }, hosts: [], base_url: "\(origin.url)" }
              - { name: own, match: { prefix: /own }, hosts: [only.test], base_url: "\(origin.url)", cache: { mode: none } }
            """
        try await HandlerHarness.run(text) { harness throws in
            // The first one is routed by the waiting path, which tells the hot path of the Host.
            for path in ["/x", "/none/x"] {
                for _ in 0..<3 {
                    let answer = try harness.get(path, host: host)
                    #expect(answer.status == 200 && answer.text == "for /x", "\(path): \(answer.text)")
                }
            }
            // What is passed through is found by the same Host.
            for _ in 0..<2 { #expect(try harness.get("/own/y", host: host).text == "for /y") }
            #expect(origin.requests() == 4)
            let refused = try harness.get("/x", host: "evil.example")
            #expect(refused.status == 421)
            // A target in absolute form names an origin, and Host does not change that.
            #expect(try harness.get("http://10.0.2.2:\(harness.port)/x", host: host).status != 200)
            let via = [("Via", "1.1 drydock")]
            #expect(try harness.exchange("GET", "/x", host: host, fields: via).status == 508)
        }
    }

    @Test func `demo answers count by method, path and query, and stand in for what they name`() async throws {
        let origin = try ScriptedOrigin { request in .answer(to: request, "live \(request.target)") }
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                endpoints:
                  - name: d
                    path: /d
                    demo:
                      { enabled: true, status: 204, headers: { X-Demo: "1" }, failure: { chance: 50%, status: 503 }, random_seed: 7 }
                  - { name: post, path: /d, method: POST, demo: { enabled: true, status: 204 } }
            """
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            func draws(_ target: String) throws -> [Int] {
                try (0..<24).map { _ in try client.exchange(target).status }
            }
            let first = try draws("/s/d")
            #expect(Set(first) == [204, 503])
            #expect(try draws("/s/d?q") != first)
            let live = try client.exchange("/s/other")
            #expect(live.text == "live /other")
            #expect(live.field("Drydock-Demo") == nil)
            let posted = try client.exchange("POST", "/s/d", body: [UInt8](repeating: 1, count: 1000))
            #expect(posted.status == 204)
            #expect(posted.field("Drydock-Demo")?.hasPrefix("endpoint=post; outcome=success; status=204") == true)
            let head = try client.exchange("HEAD", "/s/d")
            #expect(head.body.isEmpty && head.field("Drydock-Demo") != nil)
            #expect(try client.exchange("/s/other").status == 200)
            #expect(origin.requests() == 2)
        }
    }

    @Test func `limits change with the plan and not before`() throws {
        let registry = PlanRegistry()
        func text(_ limit: Int) -> String {
            "services: [{ name: s, match: { prefix: /s }, base_url: \"http://o.test\", max_concurrent: \(limit) }]"
        }
        try compile(text(1), registry).takeEffect()
        let next = try compile(text(7), registry)
        let runtime = try #require(next.service(named: "s")).runtime
        #expect(runtime.admission.limits.concurrent == 1)
        next.takeEffect()
        #expect(runtime.admission.limits.concurrent == 7)
    }

    @Test(arguments: ["127.0.0.1", "localhost", "localhost.", "127.1", "2130706433", "a.localhost"])
    func `no listener of the daemon is a target, whatever it is called`(host: String) async throws {
        // What clients reach is answered as if it had been asked directly; the admin API is not.
        let admin = try ScriptedOrigin { _ in .answer("admin") }
        let text = """
            forward:
              enabled: true
              allow: ["127.0.0.1", "localhost", "*.localhost"]
              connect: { allow: ["*:*"] }
            """
        try await HandlerHarness.run(text, adminPort: admin.port) { harness throws in
            for (port, status) in [(harness.port, 404), (admin.port, 508)] {
                #expect(try harness.get("http://\(host):\(port)/x").status == status)
                let client = try harness.client()
                try client.send("CONNECT \(host):\(port) HTTP/1.1\r\nHost: \(host):\(port)\r\n\r\n")
                #expect(try client.readResponse(method: "CONNECT").status == 508)
            }
            #expect(admin.connections == 0)
        }
    }

    @Test func `a service asks another one as it would ask an origin`() async throws {
        let origin = try ScriptedOrigin { request in
            let seen = ["X-Rule", "Authorization"].map { request.field($0) ?? "none" }.joined(separator: ",")
            return .answer(to: request, fields: [("Cache-Control", "no-store")], seen)
        }
        let text = """
            services:
              - name: outer
                match: { prefix: /outer }
                base_url: service:inner
                headers: { set: { X-Rule: outer } }
                auth: { bearer: token }
              - { name: late, match: { prefix: /late }, base_url: service:inner, timeout: { first_byte: 200ms } }
              - name: hurried
                match: { prefix: /hurried }
                base_url: service:inner
                timeout: { first_byte: none, total: 200ms }
              - name: inner
                match: { prefix: /inner }
                base_url: "\(origin.url)"
                unlisted: 404
                endpoints:
                  - { name: x, path: /x }
                  - { name: post, path: /x, method: POST }
                  - { name: slow, path: /slow, demo: { enabled: true, status: 204, latency: 10m..10m } }
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.get("/outer/x").text == "outer,Bearer token")
            #expect(try harness.exchange("POST", "/outer/x", body: [1, 2, 3]).text == "outer,Bearer token")
            #expect(origin.log.last?.body == [1, 2, 3])
            #expect(try harness.get("/inner/x").text == "none,none")
            for method in ["GET", "HEAD"] {
                let client = try harness.client()
                let missing = try client.exchange(method, "/outer/none")
                #expect(missing.status == 404)
                #expect(missing.head.all("Via") == ["1.1 drydock"])
                // The connection is still in step.
                #expect(try client.exchange("/outer/x").status == 200)
            }
            for (method, target, near) in [
                (
                    "PUT", "/inner/x?a",
                    "none of them is PUT /x; the nearest: x takes GET, not PUT, post takes POST, not PUT"
                ),
                ("GET", "/inner/slwo", "none of them is GET /slwo; the nearest: slow is GET /slow"),
                ("GET", "/inner/else/where", "none of them is GET /else/where\""),
                ("GET", "/inner", "none of them is GET /\""),
            ] {
                let text = try harness.exchange(method, target).text
                #expect(
                    text.contains("service inner answers only what its endpoints name (unlisted: 404), and \(near)"),
                    "\(text)"
                )
            }
            let late = try harness.get("/late/slow")
            #expect(late.status == 504)
            #expect(late.text.contains("first_byte"))
            let hurried = try harness.get("/hurried/slow")
            #expect(hurried.status == 504)
            #expect(hurried.text.contains("timeout.total"))
        }
    }
}
