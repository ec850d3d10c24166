// Targets in absolute form: those of the daemon itself, UTF-8 in them, and https.

import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct AbsoluteTargetTests {
    @Test(arguments: ["forward: { enabled: true }", "forward: { enabled: false }"])
    func `a target of the daemon itself is served as in origin form`(forward: String) async throws {
        let origin = try ScriptedOrigin { request in
            let fields = [("Cache-Control", "max-age=600")]
            return .answer(to: request, fields: fields, "\(request.field("Host") ?? "") \(request.target)")
        }
        let text = """
            \(forward)
            hosts: [drydock, "*.lan"]
            services:
              - { name: api, match: { prefix: /api }, base_url: "\(origin.url)" }
              - { name: kept, match: { prefix: /kept }, base_url: "\(origin.url)", host: preserve }
              - { name: app, match: { host: app.test }, base_url: "\(origin.url)" }
            """
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            for host in ["localhost", "127.0.0.1", "api.localhost", "drydock", "DryDock."] {
                let target = "http://\(host):\(harness.port)/api/x?q"
                // Host is not what counts (RFC 9112 section 3.2.2).
                for said in [host, "evil.example"] {
                    let answer = try client.exchange("GET", target, host: said)
                    #expect(answer.text == "\(origin.authority) /x?q", "\(host)")
                }
                // The key is that of the origin form.
                #expect(try client.exchange("/api/x?q").field("Cache-Status")?.contains("hit") == true)
            }
            #expect(origin.requests() == 1)
            let kept = try client.exchange("GET", "http://drydock:\(harness.port)/kept/x", host: "other.test")
            #expect(kept.text == "drydock:\(harness.port) /x")
            let named = try client.exchange("POST", "http://app.test:\(harness.port)/p", host: "app.test", body: [1])
            #expect(named.text == "\(origin.authority) /p")
            let options = try client.exchange("OPTIONS", "http://localhost:\(harness.port)", host: "localhost")
            #expect(options.status == 200 && options.field("Allow") != nil)
            #expect(try client.exchange("GET", "http://localhost:\(harness.port)", host: "localhost").status == 404)
            // A name that others may have, too, and another port are targets as any other.
            for target in ["http://nas.lan:\(harness.port)/api/x", "http://drydock:\(harness.port + 1)/api/x"] {
                let answer = try harness.get(target)
                #expect(answer.field("Via")?.contains("drydock") != true || answer.status >= 400, "\(target)")
                #expect(!answer.text.contains(origin.authority), "\(answer.text)")
            }
            #expect(origin.requests() == 3)
        }
    }

    @Test func `a loop is told by Via in absolute form, too`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let text = "services: [{ name: api, match: { prefix: /api }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(text) { harness throws in
            let target = "http://localhost:\(harness.port)/api/x"
            #expect(try harness.exchange("GET", target, fields: [("Via", "1.1 drydock")]).status == 508)
            #expect(try harness.get(target).status == 200)
            #expect(origin.requests() == 1)
        }
    }

    @Test func `the rules for pages hold in absolute form`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let text = """
            services:
              - { name: api, match: { prefix: /api }, base_url: "\(origin.url)", auth: { bearer: token } }
            """
        try await HandlerHarness.run(text) { harness throws in
            let (own, target) = ("http://localhost:\(harness.port)", "http://localhost:\(harness.port)/api/x")
            for (page, status) in [(own, 200), ("http://evil.example", 403), ("http://localhost:1", 403)] {
                // Were Host to count, the page could say that it is at home.
                let said = String(page.dropFirst(7))
                let answer = try harness.exchange("GET", target, host: said, fields: [("Origin", page)])
                #expect(answer.status == status, "\(page)")
            }
            #expect(origin.requests() == 1)
        }
    }

    @Test func `UTF-8 in a forwarded target is one resource with its percent-encoded form`() async throws {
        let origin = try ScriptedOrigin { request in
            .answer(to: request, fields: [("Cache-Control", "max-age=600")], "for \(request.target)")
        }
        try await HandlerHarness.run("forward: { enabled: true, allow: [\"127.0.0.1\"] }") { harness throws in
            let client = try harness.client()
            for path in ["/ü?q=€", "/%C3%BC?q=%E2%82%AC", "/ü?q=€"] {
                let answer = try client.exchange("GET", origin.url + path, host: origin.authority)
                #expect(answer.text == "for /%C3%BC?q=%E2%82%AC", "\(path)")
            }
            #expect(origin.requests() == 1)
        }
    }

    @Test(
        arguments: [
            ("https://a.test/x", "127.0.0.1", nil), ("https://a.test/x", "::1", nil), ("https://a.test/x", "unix", nil),
            ("https://a.test/x", "0.0.0.0", "unencrypted"), ("https://a.test/x", "192.0.2.1", "unencrypted"),
            ("http://a.test/x", "0.0.0.0", nil), ("https://a.test:443/x", "127.0.0.1", nil),
            ("https://a.test:8443/x", "127.0.0.1", nil),
            ("https://a.test:9443/x", "127.0.0.1", "no rule allows a.test:9443"),
            ("https://b.test/x", "127.0.0.1", "no rule allows b.test:443"),
            ("http://b.test/x", "127.0.0.1", "no rule allows b.test"),
            ("ftp://a.test/x", "127.0.0.1", "not ftp"),
        ] as [(String, String, String?)]
    )
    func `https is taken where CONNECT is, of clients of this machine`(
        url: String,
        listener: String,
        refusal: String?
    ) async throws {
        let text = "forward: { allow: [a.test], connect: { allow: [\"*:443\", \"*:8443\"] } }"
        let target = try RequestTarget.parse(url, method: .get)
        guard case .absolute(let scheme, let authority, _) = target.form else {
            Issue.record("\(url) is not in absolute form")
            return
        }
        let request = RequestHead(method: .get, target: url, fields: Fields())
        let address =
            listener == "unix"
            ? SocketAddress(unixPath: "/run/x.sock") : SocketAddress(numericHost: listener, port: 8080)
        let listener = try #require(address)
        try await HandlerHarness.run(text) { harness throws in
            let said = try harness.ask { handler -> String in
                do throws(RouteRefusal) {
                    let found = try handler.routes.router.destination(
                        request,
                        target,
                        over: ConnectionContext(listener: listener),
                        known: { _ in nil }
                    )
                    guard case .service(let match) = found else { return "\(found)" }
                    return "\(match.origin?.root ?? "") \(match.target)"
                } catch {
                    return Problem(error, handler.routes.plan).detail
                }
            }
            if let refusal {
                #expect(said.contains(refusal), "\(said)")
            } else {
                #expect(said.hasPrefix("\(scheme)://\(authority.host)"), "\(said)")
            }
        }
    }

    @Test func `what only https may reach gives away no stored answer of http`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "x") }
        try await HandlerHarness.run("forward: { allow: [localhost] }") { harness throws in
            let target = "localhost:\(origin.port)/x"
            for _ in 0..<2 { #expect(try harness.get("http://\(target)").text == "x") }
            try harness.reload("forward: { allow: [], connect: { allow: [\"localhost:\(origin.port)\"] } }")
            // Allowed, and not stored.
            let cached = [("Cache-Control", "only-if-cached")]
            #expect(try harness.exchange("GET", "https://\(target)", fields: cached).status == 504)
            #expect(try harness.get("http://\(target)").status == 403)
            #expect(origin.requests() == 1)
        }
    }

    @Test func `what a listener on every address is called by its interfaces is served`() throws {
        #expect(Machine.has(try #require(SocketAddress(numericHost: "127.0.0.1", port: 1))))
        #expect(!Machine.has(try #require(SocketAddress(numericHost: "192.0.2.77", port: 1))))
    }
}
