// What a request is for, decided from a plan alone: every destination, and every refusal as a value.

import DemoMode
import DownloadCore
import EventLoop
import HTTPWire
import Testing
import Upstream

@testable import ServiceCore

@Suite struct RouterTests {
    private static let origin = OriginAddress(scheme: "http", host: "api.test", port: nil, basePath: "/v1")

    private static func route(
        _ name: String,
        prefix: String,
        host: String? = nil,
        endpoints: [EndpointPlan] = [],
        listedOnly: Bool = false
    ) -> ServiceRoute {
        let plan = ServicePlan(name: name, origin: origin, endpoints: endpoints)
        return ServiceRoute(
            plan: plan,
            runtime: ServiceRuntime(name: name, limits: AdmissionLimits()),
            prefix: prefix,
            host: host,
            listedOnly: listedOnly,
            via: "1.1 dock"
        )
    }

    private static func plan(isForwarding: Bool = true) -> RoutePlan {
        let users = EndpointPlan(
            name: "users",
            method: .get,
            pattern: PathPattern(segments: [.literal(Array("users".utf8)), .parameter("id")]),
            request: RequestPlan()
        )
        let target = ServicePlan(name: "", origin: nil)
        let forward = ForwardPlan(
            allow: ["open.test", "*.wide.test"],
            connect: ["open.test:443"],
            route: ServiceRoute(
                plan: target,
                runtime: ServiceRuntime(name: "", limits: AdmissionLimits()),
                asksTarget: true,
                via: "1.1 dock"
            )
        )
        return RoutePlan(
            name: "dock",
            services: [
                route("api", prefix: "/api", endpoints: [users]),
                route("listed", prefix: "/listed", endpoints: [users], listedOnly: true),
                route("named", prefix: "/", host: "named.test"),
            ],
            forward: isForwarding ? forward : nil
        )
    }

    /// What a request is for, in one line; or its refusal.
    private static func destination(
        _ target: String,
        method: HTTPWire.Method = .get,
        fields: [(String, String)] = [("Host", "localhost")],
        from listener: String? = nil,
        over security: ConnectionContext.Security = .plain,
        to authority: Authority? = nil,
        isForwarding: Bool = true
    ) throws -> String {
        let clients = [try #require(SocketAddress(numericHost: "127.0.0.1", port: 8080))]
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let listeners = OwnListeners(clients: clients, admin: [], resolver: Resolver(pool: pool))
        let router = Router(plan(isForwarding: isForwarding), listeners)
        let request = RequestHead(method: method, target: target, fields: Fields(fields))
        let parsed = try RequestTarget.parse(target, method: method)
        do throws(RouteRefusal) {
            let destination = try router.destination(
                request,
                parsed,
                over: ConnectionContext(
                    security: security,
                    authority: authority,
                    listener: listener.flatMap { SocketAddress(numericHost: $0, port: 8080) }
                ),
                known: { _ in nil }
            )
            switch destination {
            case .daemon: return "daemon"
            case .tunnel(let authority): return "tunnel \(authority) \(try router.tunnel(to: authority))"
            case .service(let match):
                let endpoint = match.endpoint.name.isEmpty ? "itself" : match.endpoint.name
                let origin = match.origin?.root ?? "none"
                return "\(match.route.label) \(endpoint) \(match.rest) \(origin) \(match.target)"
            }
        } catch {
            return "\(error)"
        }
    }

    @Test(arguments: [
        ("/api", "api itself  http://api.test any"),
        ("/api/users/7?x=1", "api users /users/7?x=1 http://api.test any"),
        ("/api/users", "api itself /users http://api.test any"),
        ("/api?x", "api itself ?x http://api.test any"),
        ("/listed/other", "listed itself /other http://api.test any"),
        // The daemon's own URL in absolute form is a request in origin form.
        ("http://localhost:8080/api/users/7", "api users /users/7 http://api.test any"),
        ("http://127.0.0.1:8080/api/x", "api itself /x http://api.test any"),
        // Forward mode is a service whose origin is the target's.
        ("http://open.test/a?b", "forward itself /a?b http://open.test any"),
        ("http://open.test:81/", "forward itself / http://open.test:81 any"),
        ("http://sub.wide.test/", "forward itself / http://sub.wide.test noPrivate"),
        ("https://open.test/", "forward itself / https://open.test any"),
        // Refusals.
        ("/apis", "noService(target: \"/apis\")"), ("/", "noService(target: \"/\")"),
        ("http://closed.test/", "target(\"closed.test\")"), ("https://open.test:9/", "target(\"open.test:9\")"),
        ("ftp://open.test/", "scheme(\"ftp\")"),
    ])
    func `a target is for one destination`(target: String, destination: String) throws {
        #expect(try Self.destination(target) == destination)
    }

    @Test func `the host chooses among services, and is refused where none answers for it`() throws {
        #expect(try Self.destination("/x", fields: [("Host", "named.test")]) == "named itself /x http://api.test any")
        #expect(try Self.destination("/api/x", fields: [("Host", "evil.test")]).hasPrefix("host("))
        #expect(try Self.destination("/api/x", fields: []) == "api itself /x http://api.test any")
    }

    @Test func `the daemon answers OPTIONS for itself, and what may go no further`() throws {
        #expect(try Self.destination("*", method: .options) == "daemon")
        #expect(try Self.destination("http://localhost:8080", method: .options) == "daemon")
        let hops = [("Host", "localhost"), ("Max-Forwards", "0")]
        #expect(try Self.destination("/api/x", method: .options, fields: hops) == "daemon")
        #expect(try Self.destination("http://open.test", method: .options).hasPrefix("forward itself  "))
    }

    @Test func `a tunnel needs a rule for host and port`() throws {
        #expect(try Self.destination("open.test:443", method: .connect) == "tunnel open.test:443 any")
        #expect(try Self.destination("open.test:22", method: .connect) == "target(\"open.test:22\")")
        #expect(try Self.destination("127.0.0.1:8080", method: .connect) == "loop")
        #expect(try Self.destination("open.test:443", method: .connect, isForwarding: false) == "forwardOff")
    }

    @Test func `what nobody may ask is refused before anything else`() throws {
        let via = [("Host", "localhost"), ("Via", "1.1 other, 1.1 DOCK")]
        #expect(try Self.destination("/api/x", fields: via) == "loop")
        #expect(try Self.destination("/api/x", method: .trace).hasPrefix("loopBack"))
        let expecting = [("Host", "localhost"), ("Expect", "200-maybe")]
        #expect(try Self.destination("/nowhere", fields: expecting) == "expectation")
        #expect(try Self.destination("http://open.test/", isForwarding: false) == "forwardOff")
        #expect(try Self.destination("https://open.test/", from: "192.0.2.1") == "secureFromAfar")
    }

    @Test func `a connection names scheme, protocol and targets of its requests`() {
        let plain = ConnectionContext()
        #expect(plain.scheme == "http" && plain.defaultPort == 80 && plain.protocolName(.http10) == "HTTP/1.0")
        #expect(plain.shown("/a?b") == "/a?b")
        let authority = Authority(host: "open.test", port: 8443)
        let inside = ConnectionContext(security: .secure, carriage: .http2, authority: authority)
        #expect(inside.scheme == "https" && inside.defaultPort == 443 && inside.protocolName(.http11) == "HTTP/2.0")
        #expect(inside.shown("/a?b") == "https://open.test:8443/a?b")
        #expect(inside.shown("*") == "*" && inside.shown("http://c.test/") == "http://c.test/")
    }

    @Test func `what a request came over has a say in what it is for`() throws {
        // The scheme of the daemon's own URL is that of the connection.
        let own = "localhost:8080/api/users/7"
        #expect(try Self.destination("https://\(own)", over: .secure) == "api users /users/7 http://api.test any")
        #expect(try Self.destination("http://\(own)", over: .secure) == "loop")
        #expect(try Self.destination("https://\(own)") == "loop")
        // Nobody has read along.
        let far = "192.0.2.1"
        let secret = "forward itself / https://open.test any"
        #expect(try Self.destination("https://open.test/", from: far, over: .secure) == secret)
        // Inside of a tunnel every target in origin form is one of its authority, whatever services there are.
        let open = Authority(host: "open.test", port: 443)
        let inside = "forward itself /api/users/7 https://open.test any"
        #expect(try Self.destination("/api/users/7", over: .secure, to: open) == inside)
        let closed = Authority(host: "closed.test", port: 443)
        #expect(try Self.destination("/api/users/7", over: .secure, to: closed) == "target(\"closed.test:443\")")
        #expect(try Self.destination("https://\(own)", over: .secure, to: open) == "loop")
    }
}
