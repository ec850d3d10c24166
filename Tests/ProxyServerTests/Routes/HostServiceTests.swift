// Services by host behind the proxy: their rules hold for the real names of origins, with and without a base URL, and
// no other service, no other origin and no stored response of another scheme answers for them.

import CacheStore
import EventLoop
import HTTPWire
import TestSupport
import Testing
import Upstream

@testable import DownloadCore
@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct HostServiceTests {
    /// Says what it was asked, and how.
    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let said = ["Host", "X-Rule", "Authorization"].map { request.field($0) ?? "-" }.joined(separator: " ")
            if request.target.hasPrefix("/moved") {
                let fields = [
                    ("Location", "http://api.example.com/new?token=secret&a=1"),
                    ("Cache-Control", "public, max-age=60"),
                    ("Set-Cookie", "a=b; Domain=example.com; Path=/new"),
                    ("Strict-Transport-Security", "max-age=9"),
                ]
                return .answer(301, to: request, fields: fields, said)
            }
            return .answer(to: request, "\(request.method) \(request.target) \(said)")
        }
    }

    /// Name servers that know every name below example.com at the origin, whatever the port.
    private static func lookup(_ origin: ScriptedOrigin) -> Resolver.Lookup {
        let port = UInt16(origin.port)
        return { host, _ in
            guard host.hasSuffix("example.com"), let address = SocketAddress(numericHost: "127.0.0.1", port: port)
            else {
                return .notFound
            }
            return .addresses([address])
        }
    }

    @Test func `rules of a host hold for proxied requests, and each origin has keys of its own`() async throws {
        let origin = try Self.origin()
        let text = """
            forward: { allow: [api.example.com] }
            services:
              - name: api
                match: { host: api.example.com }
                headers: { set: { X-Rule: host } }
                cache: { ttl: 1h }
            """
        try await HandlerHarness.run(text, lookup: Self.lookup(origin)) { harness throws in
            let first = try harness.get("http://api.example.com/a")
            #expect(first.text == "GET /a api.example.com host -")
            for target in ["http://api.example.com/a", "http://API.example.com.:80/a"] {
                #expect(try harness.get(target).field("Cache-Status")?.contains("hit") == true, "\(target)")
            }
            // To the daemon itself: what is stored, or else no answer, and nobody is asked.
            let stored = try harness.get("/a", host: "api.example.com")
            #expect(stored.field("Cache-Status")?.contains("hit") == true)
            for method in ["GET", "POST"] {
                let refused = try harness.exchange(method, "/b", host: "api.example.com")
                #expect(refused.status == 421)
                #expect(refused.text.contains("service api has no base_url"), "\(refused.text)")
                #expect(refused.text.contains("GET http://api.example.com/..."), "\(refused.text)")
            }
            #expect(origin.requests() == 1)
            // Another port is another origin, and https another one again.
            #expect(try harness.get("http://api.example.com:8080/a").text == "GET /a api.example.com:8080 host -")
            #expect(try harness.exchange("GET", "/a", host: "api.example.com:8080").status == 200)
            let cached = [("Cache-Control", "only-if-cached")]
            #expect(try harness.exchange("GET", "https://api.example.com/a", fields: cached).status == 504)
            #expect(origin.requests() == 2)
            let keys = ["http://api.example.com/a", "http://api.example.com:8080/a"]
            #expect(try harness.listed().map { $0.split(separator: " ")[0] }.sorted() == keys.map { $0[...] })
            // Forward mode has none of it, and the other way round.
            let other = try harness.get("http://www.example.com/a")
            #expect(other.status == 403 && origin.requests() == 2)
            try harness.purge(PurgeRule(.url("http://api.example.com/a")))
            #expect(try harness.get("http://api.example.com/a").field("Cache-Status")?.contains("hit") == false)
            #expect(origin.requests() == 3)
        }
    }

    @Test func `a host that a service names is reached by the rules of forward mode alone`() async throws {
        let origin = try Self.origin()
        let text = """
            services:
              - { name: api, match: { host: api.example.com } }
              - { name: address, match: { host: 10.0.0.1 } }
            """
        // By default each host is allowed that has no internal address, and this one has.
        try await HandlerHarness.run(text, lookup: Self.lookup(origin)) { harness throws in
            for target in ["http://api.example.com/a", "http://10.0.0.1/a"] {
                let refused = try harness.get(target)
                #expect(refused.status == 502 && refused.text.contains("internal address"), "\(refused.text)")
            }
            try harness.reload("forward: { allow: [\"api.example.com:80\"] }\n" + text)
            #expect(try harness.get("http://api.example.com/a").status == 200)
            for target in ["http://api.example.com:8080/a", "http://10.0.0.1/a", "https://api.example.com/a"] {
                let other = try harness.get(target)
                #expect(other.status == 403 && other.text.contains("no rule of forward mode allows"), "\(other.text)")
                #expect(other.text.contains("add it under forward.allow"), "\(other.text)")
            }
            try harness.reload("forward: { enabled: false }\n" + text)
            let off = try harness.get("http://api.example.com/c")
            #expect(off.status == 421 && off.text.contains("forward.enabled"), "\(off.text)")
            #expect(origin.requests() == 1)
        }
    }

    @Test func `a base URL is asked instead of the host, without a rule of forward mode`() async throws {
        let origin = try Self.origin()
        let text = """
            forward: { allow: [], connect: { allow: [] } }
            services:
              - name: api
                match: { host: api.example.com, prefix: /v1 }
                base_url: "\(origin.url)/base"
                auth: { bearer: of-the-service }
              - { name: past, match: { prefix: / }, demo: { enabled: true, body: "of the daemon" } }
            """
        for forward in ["", "forward: { enabled: false }\n"] {
            let text =
                forward.isEmpty ? text : forward + text.split(separator: "\n").dropFirst().joined(separator: "\n")
            try await HandlerHarness.run(text, lookup: { _, _ in .notFound }) { harness throws in
                for target in ["http://api.example.com/v1/x", "https://api.example.com/v1/x"] {
                    // Host is not what counts (RFC 9112 section 3.2.2).
                    for host in ["api.example.com", "localhost", "evil.example"] {
                        let answer = try harness.get(target, host: host)
                        #expect(answer.text == "GET /base/x \(origin.authority) - Bearer of-the-service", "\(target)")
                    }
                }
                // What the service has not is forward mode's, and no service with a prefix alone has it.
                for target in ["http://api.example.com/v2", "http://www.example.com/v1/x"] {
                    let answer = try harness.get(target, host: "api.example.com")
                    #expect(answer.status == 403 && !answer.text.contains("of the daemon"), "\(target) \(answer.text)")
                }
                // A page of another origin must not use the credentials; one of the same host may.
                for (page, status) in [("http://evil.example", 403), ("http://api.example.com", 200)] {
                    let fields = [("Origin", page)]
                    let answer = try harness.exchange("GET", "http://api.example.com/v1/y", fields: fields)
                    #expect(answer.status == status, "\(page)")
                }
            }
        }
    }

    @Test func `answers keep the real names of the host, and no secret`() async throws {
        let origin = try Self.origin()
        let secret = "query: { token: { value: secret, secret: true } }"
        func text(_ more: String) -> String {
            "forward: { allow: [api.example.com] }\n"
                + "services: [{ name: api, match: { host: api.example.com }, cache: { ttl: 1h }, \(secret)\(more) }]"
        }
        // A proxy makes one name lead to the origin, so that base_url can be the host itself.
        let same = ", base_url: \"http://api.example.com\""
        let other = ", base_url: \"\(origin.url)\""
        for more in ["", same, other] {
            try await HandlerHarness.run(text(more), lookup: Self.lookup(origin)) { harness throws in
                for _ in 0..<2 {
                    let moved = try harness.get("http://api.example.com/moved")
                    #expect(moved.status == 301)
                    #expect(moved.field("Location") == "http://api.example.com/new?a=1", "\(more)")
                    #expect(moved.field("Set-Cookie") == "a=b; Domain=example.com; Path=/new")
                    #expect(moved.field("Strict-Transport-Security") == "max-age=9")
                }
                #expect(origin.log.last?.target == "/moved?token=secret")
            }
        }
        // To the daemon itself, the same service leads its clients back to itself.
        try await HandlerHarness.run(text(same), lookup: Self.lookup(origin)) { harness throws in
            for target in ["/moved", "http://api.example.com/moved", "/moved"] {
                let moved = try harness.get(target, host: "api.example.com")
                let expected = (target.hasPrefix("/") ? "" : "http://api.example.com") + "/new?a=1"
                #expect(moved.field("Location") == expected, "\(target)")
            }
        }
    }

    @Test func `demo answers and faults play on real names, and the rest goes to the origin`() async throws {
        let origin = try Self.origin()
        let text = """
            forward: { allow: ["api.example.com:80"] }
            services:
              - name: api
                match: { host: api.example.com }
                endpoints:
                  - { name: mock, path: /mock/:id, demo: { enabled: true, body: "made" } }
              - name: faulty
                match: { host: faulty.example.com }
                faults: [{ status: 503, chance: 100% }]
              - name: strict
                match: { host: strict.example.com }
                unlisted: 404
                endpoints: [{ name: mock, path: /mock, demo: { enabled: true, body: "made" } }]
            """
        try await HandlerHarness.run(text, lookup: Self.lookup(origin)) { harness throws in
            for target in ["http://api.example.com/mock/1", "http://api.example.com:9/mock/1", "/mock/1"] {
                #expect(try harness.get(target, host: "api.example.com").text == "made", "\(target)")
            }
            #expect(try harness.get("http://api.example.com/real").text == "GET /real api.example.com - -")
            // To the daemon itself, what no endpoint names is not found, as before.
            let missing = try harness.get("/real", host: "api.example.com")
            #expect(missing.status == 404 && missing.text.contains("No such endpoint"), "\(missing.text)")
            // A refusal says which rule is missing, although every endpoint has an answer of its own.
            let refused = try harness.get("http://api.example.com:9/real")
            #expect(refused.status == 403 && refused.text.contains("forward.allow"), "\(refused.text)")
            #expect(try harness.get("http://faulty.example.com/x").status == 503)
            #expect(try harness.get("http://strict.example.com/other").status == 404)
            #expect(origin.requests() == 1)
        }
    }

    @Test func `no short way goes past a service of the host`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "of the origin") }
        let forward = "forward: { allow: [\"*.example.com\", www.example.com] }\n"
        let text =
            forward
            + "services: [{ name: w, match: { host: www.example.com, prefix: /api }, demo: { enabled: true, body: made } }]"
        try await HandlerHarness.run(forward, lookup: Self.lookup(origin)) { harness throws in
            let client = try harness.client()
            func said(_ path: String) throws -> String {
                try client.exchange("GET", "http://www.example.com\(path)", host: "www.example.com").text
            }
            // Forward mode has stored it, and answers it on the hot path.
            for _ in 0..<3 { #expect(try said("/api/x") == "of the origin") }
            try harness.reload(text)
            for _ in 0..<3 {
                #expect(try said("/other") == "of the origin")
                #expect(try said("/api/x") == "made")
            }
            #expect(origin.requests() == 2)
        }
    }

    @Test func `a change of what is stored is one for every service that may have stored it`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], $0.target) }
        let text = """
            forward: { allow: [api.example.com] }
            services:
              - { name: named, match: { host: api.example.com, prefix: /v1 } }
              - { name: front, match: { prefix: /front }, base_url: "http://api.example.com/v1" }
            """
        try await HandlerHarness.run(text, lookup: Self.lookup(origin)) { harness throws in
            func isHit(_ target: String) throws -> Bool {
                try harness.get(target).field("Cache-Status")?.contains("hit") == true
            }
            for changed in ["http://api.example.com/v1/x", "/front/x"] {
                for target in ["http://api.example.com/v1/x", "/front/x"] {
                    #expect(try !isHit(target))
                    #expect(try isHit(target))
                }
                #expect(try harness.exchange("POST", changed, body: [1]).status == 200)
            }
            #expect(Set(origin.log.map(\.target)) == ["/v1/x"])
            // A batch's URL of the host is asked through the service, as clients ask.
            #expect(try harness.batchKey(BatchItem(url: "http://api.example.com/v1/z")).contains("/v1/z"))
        }
    }

    @Test func `the daemon's own addresses are no origin, whatever service has their host`() async throws {
        let admin = try ScriptedOrigin { _ in .answer("admin") }
        let text = """
            forward: { allow: ["127.0.0.1"] }
            services:
              - { name: own, match: { host: 127.0.0.1 } }
              - { name: demo, match: { host: localhost }, demo: { enabled: true, body: made } }
            """
        try await HandlerHarness.run(text, adminPort: admin.port) { harness throws in
            for host in ["127.0.0.1", "localhost"] {
                #expect(try harness.get("http://\(host):\(admin.port)/x").status == 508)
            }
            #expect(try harness.get("http://127.0.0.1:\(harness.port)/x").status == 421)
            #expect(try harness.get("http://localhost:\(harness.port)/x").text == "made")
            let via = [("Via", "1.1 drydock")]
            #expect(try harness.exchange("GET", "http://127.0.0.1:\(admin.port + 1)/x", fields: via).status == 508)
            #expect(admin.connections == 0)
        }
    }

    @Test func `an explanation says which rule takes a proxied request`() async throws {
        let origin = try Self.origin()
        let text = """
            forward: { allow: ["www.example.com", "api.example.com:80"] }
            services:
              - { name: api, match: { host: api.example.com, prefix: /v1 } }
              - { name: front, match: { prefix: /v1 }, base_url: "\(origin.url)" }
            """
        try await HandlerHarness.run(text, lookup: Self.lookup(origin)) { harness throws in
            let named = try harness.explanation("http://api.example.com/v1/x", isProxied: true)
            #expect(named.contains("service by host: takes it, service api at api.example.com/v1"), "\(named)")
            #expect(named.contains("http://api.example.com/v1/x of service api"), "\(named)")
            let forward = try harness.explanation("http://www.example.com/v1/x", isProxied: true)
            #expect(forward.contains("own address: no, www.example.com is none of this daemon's"), "\(forward)")
            #expect(forward.contains("service by host: no, no service has match.host: www.example.com"))
            #expect(forward.contains("forward mode: takes it, a rule names the host"))
            let own = try harness.explanation("http://localhost:\(harness.port)/v1/x", isProxied: true)
            #expect(own.contains("own address: takes it") && own.contains("service front at /v1"), "\(own)")
            let refused = try harness.explanation("http://api.example.com:81/v2", isProxied: true)
            #expect(refused.contains("403 Target refused"), "\(refused)")
            #expect(refused.contains("service by host: there are only api.example.com/v1 (api)"), "\(refused)")
            // Without the proxy nobody is asked, and the answer says so.
            let direct = try harness.explanation("/v1/x", fields: [("Host", "api.example.com")])
            #expect(direct.contains("status: Optional(421)"), "\(direct)")
            #expect(try harness.explanation("/v1/x", isProxied: true).contains("whole URL"))
            #expect(origin.requests() == 0)
        }
    }
}
