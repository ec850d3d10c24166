// The key that the hot path builds from bytes is the key that the waiting path stores under, or none at all.

import CacheStore
import Configuration
import EventLoop
import HTTPWire
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite struct HotPathTests {
    private static let services = """
        forward: { enabled: true, allow: ["*"] }
        services:
          - { name: root, match: { prefix: / }, base_url: "http://Root.Test" }
          - { name: base, match: { prefix: /base }, base_url: "http://base.test:80/v1/" }
          - { name: deep, match: { prefix: /base/deep }, base_url: "https://deep.test:443/a/b" }
          - { name: port, match: { prefix: /port }, base_url: "http://[::1]:8080" }
          - { name: Inner, match: { prefix: /Inner }, base_url: service:base }
          - { name: named, match: { host: api.localhost }, base_url: "http://named.test/n" }
          - { name: kept, match: { prefix: /kept }, base_url: "http://kept.test/k", host: preserve }
          - { name: safe, match: { prefix: /safe }, base_url: "https://safe.test", host: preserve }
          - { name: through, match: { prefix: /through }, base_url: service:kept }
          - { name: query, match: { prefix: /query }, base_url: "http://query.test", query: { a: b } }
          - name: ends
            match: { prefix: /ends }
            base_url: http://ends.test
            endpoints:
              - { name: one, path: /one, query: { c: d } }
              - { name: two, path: "/two/:id" }
          - name: listed
            match: { prefix: /listed }
            base_url: http://listed.test
            unlisted: 404
            endpoints: [{ name: one, path: /one }]
        """

    private static let hosts = [
        "localhost", "LocalHost:8080", "localhost:80", "localhost:443", "127.0.0.1:8080", "[::1]", "[::1]:8080",
        "api.localhost", "API.localhost:8080",
    ]
    private static let prefixes = [
        "", "/base", "/base/deep", "/port", "/Inner", "/kept", "/safe", "/through", "/query", "/ends", "/listed",
        "/basement", "/KEPT",
    ]
    private static let rests = [
        "", "/", "?q=1", "/?q", "/x", "/x/", "//x", "/x//y", "/x/../y", "/.", "/a%2Fb", "/a%2fb", "/A", "/x?a=b&c=%20",
        "/x?a=/b", "/x?", "/one", "/one?c=e", "/two/1", "/two/", "/deep/x", "/:80/", "/http://evil.test/",
        "/x;p=1", "/x'\"<>|",
    ]

    /// What the hot path makes of a request, as bytes.
    private static func hotKey(
        _ hot: HotState,
        _ target: String,
        host: String?,
        hasOrigin: Bool = false
    ) -> [UInt8]? {
        let (target, host) = (Array(target.utf8), host.map { Array($0.utf8) })
        return withUnsafeTemporaryAllocation(byteCount: 10_240, alignment: 1) { buffer -> [UInt8]? in
            guard let start = buffer.baseAddress else { return nil }
            var key = KeyBuffer(start, buffer.count)
            let match = target.withUnsafeBytes { target in
                guard let host else {
                    return hot.match(target: target, host: nil, hasOrigin: hasOrigin, &key)
                }
                return host.withUnsafeBytes { host in
                    hot.match(target: target, host: host, hasOrigin: hasOrigin, &key)
                }
            }
            return match == nil ? nil : Array(key.bytes)
        }
    }

    /// As if a client had asked for an authority through the proxy, and the waiting path had answered.
    private static func allow(_ hot: HotState, _ scheme: String, _ authority: Authority) throws {
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 8080))
        let listener = ListenerInfo(role: .proxy, address: address, security: .plain)
        let client = ConnectedClient(listener.address, at: listener, isCounted: false)
        let request = RequestHead(method: .get, target: "\(scheme)://\(authority)/", fields: Fields())
        hot.note(ProxyTarget(scheme: scheme, authority: authority, path: "/"), request, of: client)
    }

    private static func noted(_ plan: RoutePlan) throws -> HotState {
        let hot = HotState(plan: plan, memory: MemoryTier(size: 0), clock: WallClock())
        for host in hosts {
            let authority = try #require(Authority.parse(host))
            hot.note(KnownHost(host, authority, plan, isOwn: true))
        }
        return hot
    }

    @Test func `both paths build the same key for a service`() throws {
        let plan = try compile(Self.services)
        let hot = try Self.noted(plan)
        var compared: [String: Int] = [:]
        for host in Self.hosts {
            for prefix in Self.prefixes {
                for rest in Self.rests {
                    let target = prefix + rest
                    guard target.hasPrefix("/"), let key = Self.hotKey(hot, target, host: host) else { continue }
                    // As the waiting path goes about it.
                    let authority = try #require(Authority.parse(host))
                    var text = target
                    let found = text.withUTF8 { bytes in
                        plan.routes(host: authority.name).first { $0.leads(UnsafeRawBufferPointer(bytes)) }
                    }
                    let route = try #require(found)
                    let below = String(decoding: target.utf8.dropFirst(route.prefix.count), as: UTF8.self)
                    let expected = route.key(rest: below, host: host)
                    #expect(key == expected.bytes, "\(host) \(target): \(expected)")
                    compared[route.plan.name, default: 0] += 1
                }
            }
        }
        // Each of these is served by the hot path at all.
        for name in ["root", "base", "deep", "port", "Inner", "named", "kept", "safe", "through", "ends", "listed"] {
            #expect(compared[name, default: 0] > 0, "\(name)")
        }
        #expect(compared["query"] == nil, "defaults of the query are not in the target")
    }

    @Test(arguments: [
        ("/base/x", "base\0http://base.test/v1/x"), ("/base/deep/x?q", "deep\0https://deep.test/a/b/x?q"),
        ("/port//x", "port\0http://[::1]:8080//x"), ("/Inner/x", "Inner\0service://base/x"),
        ("/kept/x", "kept\0http://localhost:8080/k/x"), ("/safe/x", "safe\0https://localhost:8080/x"),
        ("/through/x", "through\0service.kept://localhost:8080/x"), ("/basement", "root\0http://root.test/basement"),
        ("/ends/two/1", "ends\0http://ends.test/two/1"), ("/listed/one", "listed\0http://listed.test/one"),
    ])
    func `the key is what the design says`(target: String, expected: String) throws {
        let plan = try compile(Self.services)
        let key = try #require(Self.hotKey(try Self.noted(plan), target, host: "LocalHost:8080"))
        #expect(String(decoding: key, as: UTF8.self) == expected)
    }

    @Test(arguments: [
        "/base", "/base?q=1", "/ends/one", "/query/x", "/listed/other", "*", "", "http://example.test/x",
    ])
    func `these wait`(target: String) throws {
        let plan = try compile(Self.services)
        #expect(Self.hotKey(try Self.noted(plan), target, host: "localhost") == nil)
    }

    @Test func `a Host that has not been found good waits`() throws {
        let plan = try compile(Self.services)
        let hot = try Self.noted(plan)
        #expect(Self.hotKey(hot, "/base/x", host: "localhost") != nil)
        for host in ["evil.test", "localhost:8081", "localhost.evil.test", "localhos", "", nil] {
            #expect(Self.hotKey(hot, "/base/x", host: host) == nil, "\(host ?? "none")")
        }
        #expect(
            Self.hotKey(
                HotState(plan: plan, memory: MemoryTier(size: 0), clock: WallClock()),
                "/base/x",
                host: "localhost"
            ) == nil
        )
    }

    @Test(arguments: [
        ("", true), ("auth: { bearer: x }", false), ("cors: { origins: [\"http://a.test\"] }", false),
        ("headers: { set: { X-Api-Key: x } }", false), ("headers: { add: { Cookie: a=b } }", false),
        ("headers: { set: { User-Agent: x } }", true),
    ])
    func `a request with Origin waits where its origin decides`(keys: String, isHot: Bool) throws {
        let plan = try compile(
            """
            services:
              - { name: s, match: { prefix: /s }, base_url: "http://s.test"\(keys.isEmpty ? "" : ", " + keys) }
              - { name: outer, match: { prefix: /outer }, base_url: service:s }
            """
        )
        let hot = try Self.noted(plan)
        #expect((Self.hotKey(hot, "/s/x", host: "localhost", hasOrigin: true) != nil) == isHot)
        // Credentials are those of the service behind, too.
        let isOuterHot = isHot || keys.hasPrefix("cors")
        #expect((Self.hotKey(hot, "/outer/x", host: "localhost", hasOrigin: true) != nil) == isOuterHot)
        #expect(Self.hotKey(hot, "/s/x", host: "localhost") != nil)
    }

    @Test(arguments: [
        ("http://example.test/x?q", "example.test", true), ("http://example.test//", "example.test", true),
        ("http://example.test:8080/x", "example.test:8080", true),
        ("http://example.test:80/x", "example.test:80", false),
        ("http://EXAMPLE.test/x", "EXAMPLE.test", false), ("http://example.test", "example.test", false),
        ("http://example.test?q=/", "example.test", false), ("HTTP://example.test/x", "example.test", false),
        ("https://example.test/x", "example.test", false), ("http://[::1]:81/x", "[::1]:81", true),
        ("http://example.test./x", "example.test.", true),
    ])
    func `both paths build the same key for a forward request`(
        target: String,
        authority: String,
        isHot: Bool
    ) throws {
        let plan = try compile(Self.services)
        let hot = HotState(plan: plan, memory: MemoryTier(size: 0), clock: WallClock())
        guard case .absolute(let scheme, let found, let path) = try RequestTarget.parse(target, method: .get).form
        else {
            Issue.record("\(target) is not in absolute form")
            return
        }
        #expect(Self.hotKey(hot, target, host: authority) == nil, "not seen yet")
        try Self.allow(hot, "http", found)
        let key = Self.hotKey(hot, target, host: authority)
        #expect((key != nil) == isHot)
        let origin = OriginAddress(scheme: scheme, host: found.host, port: found.port, basePath: "")
        let request = RequestHead(method: .get, target: path, fields: Fields())
        let forward = try #require(plan.forward)
        if let key {
            #expect(
                key == forward.route.key(path: path, request.fields, forward.route.itself, on: origin).bytes
            )
        }
    }

    static let keyed = """
        forward: { cache: { key: { ignore_query: ["utm_*"] } } }
        services:
          - name: short
            match: { prefix: /short }
            base_url: "http://short.test"
            cache: { key: { ignore_query: ["utm_*", sid] } }
          - name: tenant
            match: { prefix: /tenant }
            base_url: "http://tenant.test"
            cache: { key: { fields: [X-Tenant, Accept-Language], ignore_query: [sid] } }
            endpoints: [{ name: plain, path: /plain, cache: { key: { fields: [], ignore_query: [] } } }]
        """

    @Test func `what a target does not say of the key waits`() throws {
        let plan = try compile(Self.keyed)
        let hot = try Self.noted(plan)
        #expect(Self.hotKey(hot, "/short/x", host: "localhost") == Array("short\0http://short.test/x".utf8))
        #expect(Self.hotKey(hot, "/short/x?q=1", host: "localhost") == nil)
        #expect(Self.hotKey(hot, "/tenant/x", host: "localhost") == nil)
        #expect(Self.hotKey(hot, "/tenant/plain", host: "localhost") != nil)
        try Self.allow(hot, "http", Authority(host: "a.test"))
        #expect(Self.hotKey(hot, "http://a.test/x", host: "a.test") != nil)
        #expect(Self.hotKey(hot, "http://a.test/x?q", host: "a.test") == nil)
    }

    @Test(
        arguments: [
            ("short", "/x?utm_a=1&q=2&sid=3", [], "short\0http://short.test/x?q=2"),
            ("short", "/x?utm_a=1", [("X-Tenant", "a")], "short\0http://short.test/x"),
            ("tenant", "/x?sid=1", [("X-Tenant", "a")], "tenant\0http://tenant.test/x\0x-tenant: a\naccept-language"),
            (
                "tenant", "/x", [("accept-language", "de"), ("accept-language", "en")],
                "tenant\0http://tenant.test/x\0x-tenant\naccept-language: de, en"
            ),
        ] as [(String, String, [(String, String)], String)]
    )
    func `the configured rules make the key`(
        service: String,
        path: String,
        fields: [(String, String)],
        expected: String
    ) throws {
        let route = try #require(try compile(Self.keyed).service(named: service))
        let request = RequestHead(method: .get, target: path, fields: Fields(fields))
        let key = route.key(path: path, request.fields, route.itself, on: nil)
        #expect(String(decoding: key.bytes, as: UTF8.self) == expected)
    }

    @Test func `the hot path forgets hosts, not the plan's rules`() throws {
        let plan = try compile(Self.services)
        let hot = HotState(plan: plan, memory: MemoryTier(size: 0), clock: WallClock())
        for number in 0..<100 {
            let host = "h\(number).localhost"
            hot.note(KnownHost(host, Authority(host: host), plan, isOwn: true))
        }
        #expect(Self.hotKey(hot, "/base/x", host: "h99.localhost") != nil)
        #expect(Self.hotKey(hot, "/base/x", host: "h0.localhost") == nil)
    }
}
