// What clients ask for through the proxy, in absolute form and inside of tunnels: the hot path takes it to the route and the
// key that the waiting path finds, or leaves it to that.

import CacheStore
import EventLoop
import HTTPWire
import Testing
import Upstream

@testable import ProxyServer
@testable import ServiceCore

@Suite struct HotAuthorityTests {
    private static let services = """
        forward: { enabled: true, allow: ["*"], connect: { allow: ["*:443", "*:8443"] } }
        services:
          - { name: named, match: { host: api.test }, base_url: "http://named.test/n" }
          - { name: part, match: { host: api.test, prefix: /part }, base_url: "https://part.test:8443" }
          - { name: same, match: { host: same.test }, base_url: "https://same.test" }
          - { name: kept, match: { host: kept.test }, base_url: "http://origin.test/k", host: preserve }
          - { name: through, match: { host: through.test }, base_url: service:kept }
          - { name: open, match: { host: open.test } }
          - { name: piece, match: { host: open.test, prefix: /piece } }
          - { name: query, match: { host: query.test }, base_url: "http://query.test", query: { a: b } }
          - { name: made, match: { host: made.test }, demo: { enabled: true, body: made } }
          - { name: prefix, match: { prefix: /part }, base_url: "http://prefix.test" }
        """
    private static let rests = [
        "/", "/x", "/x?q=1", "//x", "/x/../y", "/part", "/part/x", "/partly", "/piece/x?q", "/X%2fy",
    ]
    private static let names = [
        "api.test", "same.test", "kept.test", "through.test", "open.test", "query.test", "made.test", "free.test",
    ]

    private static func listener() throws -> ListenerInfo {
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 8080))
        return ListenerInfo(role: .proxy, address: address, security: .plain)
    }

    private static func router(_ plan: RoutePlan) throws -> Router {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let listeners = OwnListeners(clients: [try listener().address], admin: [], resolver: Resolver(pool: pool))
        return Router(plan, listeners)
    }

    private static func hot(_ plan: RoutePlan, isTraced: Bool = false) -> HotState {
        HotState(plan: plan, memory: MemoryTier(size: 0), clock: WallClock(), isTraced: isTraced)
    }

    private static func client(to authority: Authority? = nil) throws -> ConnectedClient {
        let listener = try listener()
        return ConnectedClient(listener.address, at: listener, to: authority, isCounted: false)
    }

    /// What the hot path makes of a GET: the route, the format and the key, in one line.
    private static func found(_ hot: HotState, _ target: String, _ host: String, _ client: ConnectedClient) -> String? {
        let (target, host) = (Array(target.utf8), Array(host.utf8))
        return withUnsafeTemporaryAllocation(byteCount: 10_240, alignment: 1) { buffer -> String? in
            guard let start = buffer.baseAddress else { return nil }
            var key = KeyBuffer(start, buffer.count)
            let match = target.withUnsafeBytes { target in
                host.withUnsafeBytes { host in
                    hot.match(target: target, host: host, in: client.borrowedAuthority, hasOrigin: false, &key)
                }
            }
            guard let match else { return nil }
            if match.demo != nil { return "\(match.route.name) demo \(match.reach)" }
            return "\(match.route.name) \(match.headFormatID) \(String(decoding: key.bytes, as: UTF8.self))"
        }
    }

    /// What the waiting path makes of it, which tells the hot path of it.
    private static func routed(
        _ router: Router,
        _ hot: HotState,
        _ target: String,
        _ host: String?,
        _ client: ConnectedClient
    ) throws -> String {
        let request = RequestHead(method: .get, target: target, fields: Fields(host.map { [("Host", $0)] } ?? []))
        let destination = try router.destination(
            request,
            try RequestTarget.parse(target, method: .get),
            over: client.connection,
            known: { _ in nil },
            allowed: { hot.note($0, request, of: client) }
        )
        guard case .service(let match) = destination else { return "\(destination)" }
        let (route, endpoint) = (match.route, match.endpoint)
        if endpoint.readyDemo != nil { return "\(route.label) demo \(match.reach)" }
        let path = route.path(match.rest, endpoint)
        let key = route.key(path: path, match.request.fields, endpoint, on: match.origin)
        return "\(route.label) \(endpoint.headFormatIDs[match.reach]) \(String(decoding: key.bytes, as: UTF8.self))"
    }

    /// For each name and target: what the two paths make of it.
    /// - Returns: how often each service was found by the hot path.
    private static func compare(isInTunnel: Bool, ports: [UInt16?]) throws -> [String: Int] {
        let plan = try compile(services)
        let router = try router(plan)
        var found: [String: Int] = [:]
        for name in names {
            for port in ports {
                let authority = Authority(host: name, port: port)
                let hot = hot(plan)
                let client = try client(to: isInTunnel ? authority : nil)
                let hosts = isInTunnel ? ["\(authority)", "\(authority)".uppercased()] : ["other.test"]
                for host in hosts {
                    for (number, rest) in rests.enumerated() {
                        let target = isInTunnel ? rest : "http://\(authority)\(rest)"
                        let before = Self.found(hot, target, host, client)
                        // A path must begin with a slash behind the prefix, and a default of the query is not in it.
                        let waits = number == 0 || name == "query.test" || name == "api.test" && rest == "/part"
                        #expect((before == nil) == waits, "\(target) \(host)")
                        let expected = try routed(router, hot, target, host, client)
                        guard let seen = Self.found(hot, target, host, client) else { continue }
                        #expect(seen == expected, "\(target) \(host)")
                        #expect(before == nil || before == seen)
                        found[String(seen.prefix { $0 != " " }), default: 0] += 1
                    }
                }
            }
        }
        return found
    }

    @Test func `both paths find the same for a target in absolute form`() throws {
        let found = try Self.compare(isInTunnel: false, ports: [nil, 8443])
        #expect(Set(found.keys) == ["named", "part", "same", "kept", "through", "open", "piece", "made", "forward"])
    }

    @Test func `both paths find the same inside of a tunnel`() throws {
        let found = try Self.compare(isInTunnel: true, ports: [nil, 8443])
        #expect(Set(found.keys) == ["named", "part", "same", "kept", "through", "open", "piece", "made", "forward"])
    }

    @Test func `the keys are those of the origins`() throws {
        let plan = try compile(Self.services)
        let (router, hot) = (try Self.router(plan), Self.hot(plan))
        func key(_ target: String, _ host: String, to authority: String? = nil) throws -> String {
            let client = try Self.client(to: authority.flatMap { Authority.parse($0) })
            _ = try Self.routed(router, hot, target, host, client)
            let found = try #require(Self.found(hot, target, host, client))
            return found.split(separator: " ").last.map(String.init) ?? ""
        }
        #expect(try key("http://free.test/x?q", "a.test") == "\0http://free.test/x?q")
        #expect(try key("/x", "free.test", to: "free.test") == "\0http://free.test/x")
        #expect(try key("http://api.test:8443/part/x", "a.test") == "part\0https://part.test:8443/x")
        #expect(try key("http://open.test:8443/piece/x", "a.test") == "piece\0http://open.test:8443/piece/x")
        #expect(try key("/x", "kept.test:80", to: "kept.test:80") == "kept\0http://kept.test/k/x")
    }

    @Test func `what has not been routed waits`() throws {
        let plan = try compile(Self.services)
        let router = try Self.router(plan)
        let authority = Authority(host: "api.test")
        let (hot, client) = (Self.hot(plan), try Self.client(to: authority))
        #expect(client.borrowedAuthority == nil)
        _ = try Self.routed(router, hot, "/x", "api.test", client)
        #expect(client.borrowedAuthority != nil && Self.found(hot, "/x", "api.test", client) != nil)
        // Another Host, and none; a target that may be another authority's; a later plan, and the trace of each request.
        for (target, host) in [
            ("/x", "other.test"), ("/x", "api.test:80"), ("/x", ""), ("http://api.test/x", "api.test"),
        ] {
            #expect(Self.found(hot, target, host, client) == nil, "\(target) \(host)")
        }
        #expect(Self.found(Self.hot(try compile(Self.services)), "/x", "api.test", client) == nil)
        #expect(Self.found(Self.hot(plan, isTraced: true), "/x", "api.test", client) == nil)
        // Another client of the same tunnel's end has shown nothing yet.
        let other = try Self.client(to: authority)
        #expect(other.borrowedAuthority == nil)
        // A refused Host teaches nothing, and takes nothing away.
        #expect(throws: RouteRefusal.self) { try Self.routed(router, hot, "/x", "other.test", client) }
        #expect(Self.found(hot, "/x", "api.test", client) != nil)
        // Neither does a request without Host.
        let silent = try Self.client(to: authority)
        _ = try Self.routed(router, hot, "/x", nil, silent)
        #expect(silent.borrowedAuthority == nil)
        client.forgetRequests()
        #expect(client.borrowedAuthority == nil)
    }

    @Test func `a URL of the daemon itself teaches nothing of a service by host`() throws {
        let plan = try compile(
            """
            forward: { enabled: true, allow: ["*"] }
            services:
              - { name: host, match: { host: api.localhost }, base_url: "http://host.test" }
              - { name: prefix, match: { prefix: /p }, base_url: "http://prefix.test" }
            """
        )
        let (router, hot, client) = (try Self.router(plan), Self.hot(plan), try Self.client())
        let target = "http://localhost:8080/p/x"
        #expect(try Self.routed(router, hot, target, "localhost:8080", client).hasPrefix("prefix "))
        #expect(Self.found(hot, target, "localhost:8080", client) == nil)
    }
}
