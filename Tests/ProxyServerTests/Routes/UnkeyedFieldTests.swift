// Fields and query items that are in no key: what is stored cannot depend on them, since nothing that may be
// stored is asked with them.

import HTTPCaching
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

private let kept = ("Cache-Control", "max-age=600")

@Suite(.timeLimit(.minutes(5)))
struct UnkeyedFieldTests {
    @Test(arguments: [
        "X-Forwarded-Host", "x_forwarded_host", "X-Forwarded_Proto", "X_FORWARDED_FOR", "Forwarded-For", "X-Forwarded",
        "X-Real-IP", "X_Real_IP", "X-Scheme", "X-Original-URL", "X-Original-URI", "X_Original_Host", "X-Rewrite-URL",
        "True-Client-IP", "CF-Connecting-IP", "CF-Connecting-IPv6", "X-Client-IP", "X-Cluster-Client-IP",
        "Fastly-Client-IP", "CloudFront-Viewer-Country", "X-Host", "X-HTTP-Host-Override", "X-HTTP-Method",
        "X_HTTP_Method_Override", "X-Method-Override", "X-Forwarded-Prefix", "Front-End-Https", "X-URL-Scheme",
        "Script_Name", "PATH_INFO", "X-Middleware-Subrequest", "Surrogate-Capability", "Client_IP", "X-Remote-Addr",
        "Accept_Language", "user_agent", "Cookie2_", "Accept-Encoding_", "If_None_Match",
    ])
    func `proxies say it to applications, or applications take it for another`(name: String) {
        let fields = Fields([("Accept", "*/*"), (name, "evil"), ("X-Api-Version", "2")])
        let left = UnkeyedFields.removed(from: fields, KeyRules()).lines.map(\.name)
        // These two are no field that anybody knows.
        let passes = ["Cookie2_", "Accept-Encoding_"].contains(name)
        #expect(left == ["Accept"] + (passes ? [name] : []) + ["X-Api-Version"])
        let keyed = UnkeyedFields.removed(from: fields, KeyRules(fields: [name]))
        #expect(keyed.lines.count == 3, "in the key by configuration")
    }

    @Test(arguments: [
        "api_key", "X_Api_Token", "user_id", "X-Requested-With", "Accept-Language", "X-Client-Id",
        "CF-Access-Client-Id",
        "Fastly-Key", "HTTP-Referer", "X-Auth-Token", "X-Forwarded-", "x-forwarde", "X-Hosts", "_", "X_Tenant",
    ])
    func `other names pass, with an underscore or without`(name: String) {
        let fields = Fields([(name, "1")])
        #expect(UnkeyedFields.removed(from: fields, KeyRules()).lines.map(\.name) == [name])
    }

    @Test func `a field that reads like one of the key goes without it`() {
        let fields = Fields([("X_Tenant", "evil"), ("X-Tenant", "a"), ("X_Other", "1")])
        let left = UnkeyedFields.removed(from: fields, KeyRules(fields: ["X-Tenant"]))
        #expect(left.lines.map(\.name) == ["X-Tenant", "X_Other"])
    }

    // MARK: - On the wire

    /// Answers what it was asked with.
    private static func origin(_ fields: [(String, String)] = [kept]) throws -> ScriptedOrigin {
        try ScriptedOrigin { .answer(to: $0, fields: fields, $0.target) }
    }

    @Test func `Proxy goes no further, on no way`() async throws {
        let origin = try Self.origin()
        let text = """
            forward: { enabled: true, allow: ["127.0.0.1"] }
            services:
              - { name: s, match: { prefix: /s }, base_url: "\(origin.url)" }
              - { name: none, match: { prefix: /none }, base_url: "\(origin.url)", cache: { mode: none } }
              - { name: outer, match: { prefix: /outer }, base_url: service:s }
            """
        try await HandlerHarness.run(text) { harness throws in
            let fields = [("Proxy", "http://evil.test"), ("pROXY", "2"), ("X-Kept", "1")]
            let upgrade = [("Upgrade", "websocket"), ("Connection", "upgrade")]
            for (method, target, more) in [
                ("GET", "/s/a", []), ("POST", "/s/b", []), ("GET", "/none/c", []), ("GET", "/none/c", []),
                ("PUT", "/none/d", []), ("GET", "/outer/e", []), ("GET", "\(origin.url)/f", []),
                ("DELETE", "\(origin.url)/g", []), ("GET", "/s/h", upgrade),
            ] as [(String, String, [(String, String)])] {
                let before = origin.requests()
                _ = try harness.exchange(method, target, fields: fields + more)
                #expect(origin.requests() == before + 1)
                #expect(origin.log.last?.field("X-Kept") == "1", "\(method) \(target)")
                #expect(origin.log.last?.field("Proxy") == nil, "\(method) \(target)")
            }
        }
    }

    @Test func `headers.underscore: drop takes all of the client's, and none of the configuration's`() async throws {
        let origin = try Self.origin()
        let text = """
            services:
              - name: s
                match: { prefix: /s }
                base_url: "\(origin.url)"
                headers: { underscore: drop, set: { own_name: mine } }
                endpoints: [{ name: e, path: /e, headers: { underscore: pass } }]
              - { name: none, match: { prefix: /none }, base_url: "\(origin.url)", headers: { underscore: drop }, cache: { mode: none } }
              - { name: outer, match: { prefix: /outer }, base_url: service:s }
              - { name: pass, match: { prefix: /pass }, base_url: "\(origin.url)" }
            """
        try await HandlerHarness.run(text) { harness throws in
            let upgrade = [("Upgrade", "websocket"), ("Connection", "upgrade")]
            for (method, target, more, passes) in [
                ("GET", "/s/a", [], false), ("POST", "/s/a", [], false), ("GET", "/s/e", [], true),
                ("GET", "/none/a", [], false), ("GET", "/outer/b", [], false), ("GET", "/pass/a", [], true),
                ("POST", "/pass/a", [], true), ("GET", "/s/c", upgrade, false),
            ] as [(String, String, [(String, String)], Bool)] {
                _ = try harness.exchange(method, target, fields: [("api_key", "k"), ("X-Kept", "1")] + more)
                let asked = origin.log.last
                #expect(asked?.field("X-Kept") == "1")
                #expect((asked?.field("api_key") == "k") == passes, "\(method) \(target)")
                let isOwn = target.hasPrefix("/s") || target.hasPrefix("/outer")
                #expect((asked?.field("own_name") == "mine") == isOwn, "\(method) \(target)")
            }
        }
    }

    @Test(arguments: [true, false])
    func `ignored items go out only where nothing may be stored`(isStored: Bool) async throws {
        let origin = try Self.origin(isStored ? [kept] : [("Cache-Control", "no-store")])
        let key = "key: { ignore_query: [\"utm_*\"] }"
        let text = """
            forward: { enabled: true, allow: ["127.0.0.1"], cache: { \(key) } }
            services:
              - { name: s, match: { prefix: /s }, base_url: "\(origin.url)", cache: { \(key) } }
              - { name: none, match: { prefix: /none }, base_url: "\(origin.url)", cache: { mode: none, \(key) } }
              - name: posts
                match: { prefix: /posts }
                base_url: "\(origin.url)"
                cache: { mode: library, methods: [GET, POST], \(key) }
            """
        try await HandlerHarness.run(text) { harness throws in
            for (method, target, asked) in [
                ("GET", "/s/a?utm_a=1&q", "/a?q"), ("HEAD", "/s/b?utm_a=1", "/b"),
                ("GET", "/s/a?utm_b=1;admin=1&q", "/a?utm_b=1;admin=1&q"), ("POST", "/s/c?utm_a=1", "/c?utm_a=1"),
                ("GET", "/none/d?utm_a=1", "/d?utm_a=1"), ("GET", "/none/d?utm_a=1", "/d?utm_a=1"),
                ("GET", "\(origin.url)/e?utm_a=1&q", "/e?q"), ("POST", "\(origin.url)/f?utm_a=1", "/f?utm_a=1"),
                ("POST", "/posts/g?utm_a=1", "/g"),
            ] {
                _ = try harness.exchange(method, target, body: method == "POST" ? [1] : nil)
                #expect(origin.log.last?.target == asked, "\(method) \(target)")
            }
            // What could not be stored is passed on without a task the next time, and is asked for in the same way.
            _ = try harness.get("/s/a?utm_a=2&q")
            if !isStored { #expect(origin.log.last?.target == "/a?q") }
            let long = [UInt8](repeating: 1, count: 70_000)
            for target in ["/posts/h?utm_a=1", "\(origin.url)/i?utm_a=1"] {
                _ = try harness.exchange("POST", target, body: long)
                #expect(origin.log.last?.target.hasSuffix("?utm_a=1") == true)
            }
        }
    }

    @Test func `an underscore for the hyphen of what Vary names chooses nothing for others`() async throws {
        let origin = try ScriptedOrigin { request in
            let tenant = request.field("X-Tenant") ?? request.field("X_Tenant") ?? "nobody"
            return .answer(to: request, fields: [kept, ("Vary", "X-Tenant")], tenant)
        }
        let text = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(text) { harness throws in
            #expect(try harness.get("/s/x", fields: [("X_Tenant", "evil")]).text == "evil")
            #expect(try harness.get("/s/x").text == "nobody")
            #expect(try harness.get("/s/x", fields: [("X-Tenant", "a")]).text == "a")
            #expect(try harness.get("/s/x").field("Cache-Status")?.contains("hit") == true)
        }
    }
}
