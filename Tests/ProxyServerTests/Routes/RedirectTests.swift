// Redirects that a service follows for its clients: which requests go where, with what, and what is stored of the
// answer.

import DownloadCore
import EventLoop
import HTTPWire
import TestSupport
import Testing
import Upstream

@testable import ProxyServer

@Suite struct RedirectTests {
    /// Every name leads to this machine, as in a test of the rules it must not without being allowed.
    private static let lookup: Resolver.Lookup = { _, port in
        .addresses([SocketAddress(numericHost: "127.0.0.1", port: port)].compactMap { $0 })
    }

    private static func text(_ base: String, _ redirects: String, _ more: String = "") -> String {
        let tail = more.isEmpty ? "" : ", \(more)"
        return """
            services:
              - { name: api, match: { prefix: /api }, base_url: "\(base)", redirects: \(redirects)\(tail) }
            """
    }

    /// Redirects by path, and says what else was asked for.
    private static func origin(
        _ redirects: [String: (Int, String)],
        fields: [(String, String)] = []
    ) throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let path = String(request.target.prefix { $0 != "?" })
            guard let (status, location) = redirects[path] else {
                return .answer(to: request, fields: fields, "\(request.method) \(request.target)")
            }
            let cookie = status == 302 ? [("Set-Cookie", "hop=1")] : []
            return .answer(status, to: request, fields: [("Location", location)] + cookie, "moved")
        }
    }

    @Test func `passed on, a redirect leads back here`() async throws {
        let origin = try Self.origin(["/v1/a": (302, "/v1/b"), "/v1/c": (301, "http://other.test/d")])
        try await HandlerHarness.run(Self.text(origin.url + "/v1", "pass")) { harness throws in
            let answer = try harness.exchange("GET", "/api/a")
            #expect(answer.status == 302 && answer.field("Location") == "/api/b")
            #expect(try harness.exchange("GET", "/api/c").field("Location") == "http://other.test/d")
        }
    }

    @Test func `followed, the client gets what they lead to, without the cookies on the way`() async throws {
        let origin = try Self.origin(["/a": (302, "b?x=1"), "/b": (301, "/c/../d")])
        try await HandlerHarness.run(Self.text(origin.url, "follow")) { harness throws in
            let answer = try harness.exchange("GET", "/api/a")
            #expect(answer.status == 200 && answer.text == "GET /d")
            #expect(answer.field("Location") == nil && answer.field("Set-Cookie") == nil)
            #expect(try harness.exchange("HEAD", "/api/a").status == 200)
            #expect(
                origin.log.map { "\($0.method) \($0.target)" }
                    == ["GET /a", "GET /b?x=1", "GET /d", "HEAD /a", "HEAD /b?x=1", "HEAD /d"]
            )
        }
    }

    @Test func `an endpoint has its own`() async throws {
        let origin = try Self.origin(["/a": (302, "/b"), "/c": (302, "/b")])
        let endpoints = "endpoints: [{ name: c, path: /c, redirects: pass }]"
        try await HandlerHarness.run(Self.text(origin.url, "{ follow: 3 }", endpoints)) { harness throws in
            #expect(try harness.exchange("GET", "/api/a").status == 200)
            #expect(try harness.exchange("GET", "/api/c").status == 302)
        }
    }

    @Test func `a 303 is followed by GET, a 307 repeats method and content, and long content is the client's`()
        async throws
    {
        let origin = try Self.origin(["/see": (303, "/z"), "/again": (307, "/z"), "/found": (302, "/z")])
        try await HandlerHarness.run(Self.text(origin.url, "follow")) { harness throws in
            let body = Array("content".utf8)
            let type = [("Content-Type", "text/plain")]
            #expect(try harness.exchange("POST", "/api/see", fields: type, body: body).text == "GET /z")
            let get = try #require(origin.log.last)
            #expect(get.body.isEmpty && get.field("Content-Type") == nil && get.field("Content-Length") == nil)
            #expect(try harness.exchange("POST", "/api/found", fields: type, body: body).text == "GET /z")
            #expect(try harness.exchange("PUT", "/api/again", fields: type, body: body).text == "PUT /z")
            let put = try #require(origin.log.last)
            #expect(put.body == body && put.field("Content-Type") == "text/plain")
            let long = [UInt8](repeating: 7, count: 200_000)
            let passed = try harness.exchange("POST", "/api/again", body: long)
            #expect(passed.status == 307 && passed.field("Location") == "/api/z")
        }
    }

    @Test func `a circle ends at the limit, and the answer says so`() async throws {
        let origin = try Self.origin(["/a": (302, "/b"), "/b": (302, "/a"), "/1": (302, "/2"), "/2": (302, "/3")])
        try await HandlerHarness.run(Self.text(origin.url, "{ follow: 1 }")) { harness throws in
            let circle = try harness.exchange("GET", "/api/a")
            #expect(circle.status == 502)
            #expect(circle.field("Proxy-Status")?.contains("error=http_protocol_error") == true)
            #expect(circle.field("Proxy-Status")?.contains("they lead round in a circle") == true)
            let far = try harness.exchange("GET", "/api/1")
            #expect(far.status == 502 && far.text.contains("raise 'redirects.follow' of the service 'api'"))
            #expect(origin.requests() == 4)
        }
    }

    @Test func `credentials stay with their origin, and do not come back with a redirect`() async throws {
        let there = Monitor("")
        let origin = try ScriptedOrigin { request in
            request.target.hasPrefix("/a")
                ? .answer(307, to: request, fields: [("Location", "/b")], "")
                : request.target.hasPrefix("/b")
                    ? .answer(307, to: request, fields: [("Location", there.read { $0 })], "")
                    : .answer(to: request, "home")
        }
        let other = try ScriptedOrigin { request in
            request.target == "/back"
                ? .answer(302, to: request, fields: [("Location", origin.url + "/c")], "")
                : .answer(to: request, fields: [("Set-Cookie", "theirs=1")], "there")
        }
        let more =
            "auth: { bearer: mine }, headers: { set: { X-Api-Key: secret, X-App: app } }, query: { token: hidden }"
        let text = Self.text(origin.url, "{ follow: 5, allow: [cdn.test, 127.0.0.1] }", more)
        try await HandlerHarness.run(text, lookup: Self.lookup) { harness throws in
            there.update { $0 = "http://cdn.test:\(other.port)/x" }
            let brought = [
                ("Cookie", "a=b"), ("Private-Token", "t"), ("Cookie2", "$Version=1"), ("DPoP", "proof"), ("X-Otp", "1"),
                ("Referer", "http://a.test/?code=1"), ("Accept", "text/plain"),
            ]
            let answer = try harness.exchange("GET", "/api/a", fields: brought)
            #expect(answer.text == "there" && answer.field("Set-Cookie") == nil)
            #expect(origin.log.map { $0.field("Authorization") } == ["Bearer mine", "Bearer mine"])
            #expect(origin.log.map { $0.field("Cookie") } == ["a=b", "a=b"])
            #expect(origin.log.map(\.target) == ["/a?token=hidden", "/b?token=hidden"])
            let asked = try #require(other.log.first)
            let left = ["Authorization", "Cookie", "Private-Token", "X-Api-Key", "Cookie2", "DPoP", "X-Otp", "Referer"]
            for name in left {
                #expect(asked.field(name) == nil, "\(name)")
            }
            #expect(asked.target == "/x" && asked.field("Host") == "cdn.test:\(other.port)")
            #expect(asked.field("Accept") == "text/plain" && asked.field("X-App") == "app")
            origin.forgetRequests()
            there.update { $0 = "http://cdn.test:\(other.port)/back" }
            #expect(try harness.exchange("GET", "/api/a2", fields: brought).text == "home")
            let home = try #require(origin.log.last)
            #expect(home.target == "/c" && home.field("Authorization") == nil && home.field("Cookie") == nil)
        }
    }

    @Test func `a secret item that the origin repeats in its redirect is sent once`() async throws {
        let origin = try ScriptedOrigin { request in
            request.target.hasPrefix("/a")
                ? .answer(
                    307,
                    to: request,
                    fields: [("Location", "/b?" + request.target.drop { $0 != "?" }.dropFirst())],
                    ""
                )
                : .answer(to: request, "there")
        }
        let text = """
            services:
              - { name: front, match: { prefix: /front }, base_url: "service:api", query: { token: hidden } }
              - { name: api, match: { prefix: /api }, base_url: "\(origin.url)", redirects: follow, query: { key: own } }
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/front/a?x=1").text == "there")
            #expect(origin.log.map(\.target) == ["/a?x=1&token=hidden&key=own", "/b?x=1&token=hidden&key=own"])
        }
    }

    @Test func `a secret item that the origin repeats does not go to another origin`() async throws {
        let other = try ScriptedOrigin { .answer(to: $0, "other") }
        let origin = try ScriptedOrigin { request in
            .answer(301, to: request, fields: [("Location", "http://localhost:\(other.port)\(request.target)")], "")
        }
        let text = """
            services:
              - { name: front, match: { prefix: /front }, base_url: "service:api", query: { token: hidden } }
              - name: api
                match: { prefix: /api }
                base_url: "\(origin.url)"
                redirects: { follow: 3, allow: [localhost] }
                query: { key: { value: "o%wn", secret: true } }
            """
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/front/a?x=1").text == "other")
            #expect(origin.log.map(\.target) == ["/a?x=1&token=hidden&key=o%25wn"])
            #expect(other.log.map(\.target) == ["/a?x=1"])
        }
    }

    @Test func `a redirect does not lead to the daemon itself through a proxy`() async throws {
        let admin = try ScriptedOrigin { .answer(to: $0, "reached") }
        let proxy = try ScriptedOrigin { request in
            let target =
                request.target.hasSuffix("/a") ? "localhost" : request.target.hasSuffix("/b") ? "127.1" : "LOCALHOST."
            return .answer(302, to: request, fields: [("Location", "http://\(target):\(admin.port)/v1/status")], "")
        }
        let text = Self.text("http://origin.test", "follow", "upstream_proxy: \"http://127.0.0.1:\(proxy.port)\"")
        try await HandlerHarness.run(text, adminPort: admin.port) { harness throws in
            for path in ["/a", "/b", "/c"] {
                let answer = try harness.exchange("GET", "/api\(path)")
                #expect(answer.status == 502 && answer.text.contains("leads to this daemon itself"), "\(answer.text)")
            }
        }
        #expect(admin.connections == 0 && proxy.requests() == 3)
    }

    @Test func `an internal address needs a rule with its name, or a service`() async throws {
        let target = try ScriptedOrigin { .answer(to: $0, "inside") }
        let origin = try Self.origin([
            "/name": (302, "http://inside.test:\(target.port)/"),
            "/number": (302, "http://127.0.0.1:\(target.port)/"),
        ])
        try await HandlerHarness.run(Self.text(origin.url, "follow"), lookup: Self.lookup) { harness throws in
            for path in ["/api/name", "/api/number"] {
                let answer = try harness.exchange("GET", path)
                #expect(answer.status == 502)
                #expect(answer.field("Proxy-Status")?.contains("destination_ip_prohibited") == true)
                #expect(answer.text.contains("redirects.allow"))
            }
        }
        #expect(target.connections == 0)
        let named = Self.text(origin.url, "{ allow: [inside.test] }")
        try await HandlerHarness.run(named, lookup: Self.lookup) { harness throws in
            #expect(try harness.exchange("GET", "/api/name").text == "inside")
            let refused = try harness.exchange("GET", "/api/number")
            #expect(refused.status == 502 && refused.text.contains("which 'redirects.allow' does not name"))
        }
        let service =
            Self.text(origin.url, "{ allow: [] }")
            + "\n  - { name: inside, match: { prefix: /inside }, base_url: \"http://127.0.0.1:\(target.port)\" }"
        try await HandlerHarness.run(service) { harness throws in
            #expect(try harness.exchange("GET", "/api/number").text == "inside")
        }
    }

    @Test func `a redirect does not lead where the rules of a service deny requests`() async throws {
        let there = Monitor("")
        let origin = try ScriptedOrigin { request in
            request.target == "/v1/a"
                ? .answer(302, to: request, fields: [("Location", there.read { $0 })], "")
                : .answer(to: request, request.target)
        }
        let text =
            Self.text(origin.url + "/v1", "follow", "deny: [{ path: /admin/* }, { method: POST, path: /b }]")
            + "\n  - { name: v2, match: { prefix: /v2 }, base_url: \"\(origin.url)/v2\", allow: [{ path: /open/* }] }"
        try await HandlerHarness.run(text) { harness throws in
            for (path, rule) in [
                ("/v1/admin/x", "deny[0] of service 'api'"), ("admin//%78", "deny[0] of service 'api'"),
                ("/v1/%61dmin?x=1", "deny[0] of service 'api'"), ("/v1/b%2f..%2fadmin", "a dot segment of"),
                ("/v%31/admin", "another spelling of base_url of service 'api'"),
                ("/v2/closed", "allow of service 'v2'"),
            ] {
                there.update { $0 = path }
                origin.forgetRequests()
                let answer = try harness.exchange("GET", "/api/a")
                #expect(answer.status == 502 && answer.text.contains(rule), "\(path): \(answer.text)")
                #expect(origin.requests() == 1)
            }
            for path in ["/v1/b", "/v1/administrator", "/v2/open/x", "/v3/admin"] {
                there.update { $0 = path }
                #expect(try harness.exchange("GET", "/api/a").text == path)
            }
        }
    }

    @Test func `a redirect is not followed once the daemon is offline`() async throws {
        let core = Monitor<DownloadCore?>(nil)
        let origin = try ScriptedOrigin { request in
            core.read { $0?.isOffline = true }
            return .answer(302, to: request, fields: [("Location", "/v1/b")], "")
        }
        try await HandlerHarness.run(Self.text(origin.url + "/v1", "follow")) { harness throws in
            core.update { $0 = harness.core }
            let answer = try harness.exchange("GET", "/api/a")
            #expect(answer.status == 504 && answer.text.contains("drydock offline off"), "\(answer.text)")
            #expect(origin.requests() == 1)
        }
    }

    @Test func `a redirect does not lead to the daemon itself`() async throws {
        let admin = try ScriptedOrigin { .answer(to: $0, "reached") }
        let origin = try Self.origin(["/a": (302, "http://127.0.0.1:\(admin.port)/v1/status")])
        let text = Self.text(origin.url, "{ allow: [127.0.0.1] }")
        try await HandlerHarness.run(text, adminPort: admin.port) { harness throws in
            let answer = try harness.exchange("GET", "/api/a")
            #expect(answer.status == 502 && answer.text.contains("leads to this daemon itself"))
        }
        #expect(admin.connections == 0)
    }

    @Test func `the answer is stored under what was asked for, if each redirect allows it`() async throws {
        let fresh = [("Cache-Control", "max-age=60")]
        let origin = try Self.origin(["/moved": (301, "/z"), "/found": (302, "/z")], fields: fresh)
        try await HandlerHarness.run(Self.text(origin.url, "follow")) { harness throws in
            for path in ["/api/moved", "/api/moved", "/api/found", "/api/found"] {
                #expect(try harness.exchange("GET", path).status == 200)
                try harness.settle()
            }
            #expect(origin.log.map(\.target) == ["/moved", "/z", "/found", "/z", "/found", "/z"])
            #expect(try harness.listed().count == 1)
        }
    }

    @Test func `a check goes the same way, and what another resource's validators say does not count`() async throws {
        let target = Monitor("/one")
        let origin = try ScriptedOrigin { request in
            if request.target == "/a" {
                let fields = [("Location", target.read { $0 }), ("Cache-Control", "max-age=0")]
                return .answer(301, to: request, fields: fields, "")
            }
            let fields = [("Cache-Control", "max-age=60"), ("Last-Modified", httpDate(-9000))]
            return .resource(request, etag: "\"same\"", fields: fields, request.target)
        }
        let text = Self.text(origin.url, "follow", "cache: { revalidate: conditional }")
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.exchange("GET", "/api/a").text == "/one")
            try harness.settle()
            target.update { $0 = "/two" }
            #expect(try harness.exchange("GET", "/api/a").text == "/two")
            #expect(origin.log[2].field("If-None-Match") == "\"same\"")
            #expect(origin.log[3].field("If-None-Match") == nil && origin.log[3].field("If-Modified-Since") == nil)
        }
    }

    @Test func `a reference that is relative to where the redirects led is made absolute`() async throws {
        let origin = try ScriptedOrigin { request in
            request.target == "/a"
                ? .answer(307, to: request, fields: [("Location", "/deep/b")], "")
                : .answer(201, to: request, fields: [("Location", "c"), ("Content-Location", "d")], "made")
        }
        try await HandlerHarness.run(Self.text(origin.url, "follow")) { harness throws in
            let answer = try harness.exchange("POST", "/api/a", body: [1])
            #expect(answer.status == 201)
            #expect(answer.field("Location") == "/api/deep/c" && answer.field("Content-Location") == "/api/deep/d")
        }
    }

    @Test func `those who wait for one fetch wait for its redirects together`() async throws {
        let gate = Gate()
        let origin = try ScriptedOrigin { request in
            request.target == "/a"
                ? .answer(301, to: request, fields: [("Location", "/b")], "")
                : OriginReply([.wait(gate)]).then(.answer("slow", fields: [("Cache-Control", "max-age=60")]))
        }
        try await HandlerHarness.run(Self.text(origin.url, "follow", "max_concurrent: 1")) { harness throws in
            let clients = try (0..<5).map { _ in try harness.client() }
            for client in clients { try client.request("GET", "/api/a") }
            #expect(origin.waitForRequests(1, target: "/b"))
            gate.open()
            for client in clients { #expect(try client.readResponse(method: "GET").text == "slow") }
            #expect(origin.requests() == 2)
        }
    }

    @Test func `who leaves on the way leaves no request behind`() async throws {
        let origin = try ScriptedOrigin { request in
            request.target == "/a" ? .answer(302, to: request, fields: [("Location", "/b")], "") : .never
        }
        let text = Self.text(origin.url, "follow", "max_concurrent: 1, cache: { on_client_abort: abort }")
        try await HandlerHarness.run(text) { harness throws in
            for _ in 0..<3 {
                origin.forgetRequests()
                let client = try harness.client()
                try client.request("GET", "/api/a")
                #expect(origin.waitForRequests(1, target: "/b"))
                client.close()
            }
        }
    }

    @Test(arguments: [
        ("/api/a", "/v1/b", "/api/b 2 true"), ("/api/a", "b?x=1", "/api/b?x=1 2 true"),
        ("/api/a", "/w", "http://a.test/w 2 true"), ("/api/a", "https://c.test/x", "https://c.test/x 1 true"),
        ("http://a.test/v1/a", "/v1/b", "/api/b 2 true"), ("/secret/a", "/x", "/secret/x 2 true"),
        ("/api/a", "ftp://b.test/x", "nil 0 true"),
        ("/api/a", "http://b.test/x", "a redirect leads to the service 'secret', which adds credentials"),
        ("https://d.test/a", "http://d.test/a", "redirects from https to"),
    ])
    func `a redirect of a batch leads where a client is led, and never to another service's credentials`(
        url: String,
        location: String,
        next: String
    ) async throws {
        let text = """
            forward: { enabled: true }
            services:
              - { name: api, match: { prefix: /api }, base_url: "http://a.test/v1" }
              - { name: secret, match: { prefix: /secret }, base_url: "http://b.test", auth: { bearer: x } }
            """
        try await HandlerHarness.run(text) { harness throws in
            let said = try harness.ask { handler in
                var head = ResponseHead(status: 302, fields: Fields([("Location", location)]))
                let item = BatchItem(url: url, fields: [BatchItem.Field("Private-Token", "t"), .init("Accept", "a/b")])
                do throws(BatchRefusal) {
                    let found = try handler.unsent.redirected(item, by: head)
                    head.status = 200
                    let none = try handler.unsent.redirected(item, by: head)
                    return "\(found?.url ?? "nil") \(found?.fields.count ?? 0) \(none == nil)"
                } catch {
                    return "\(error)"
                }
            }
            #expect(said.contains(next), "\(said)")
        }
    }
}
