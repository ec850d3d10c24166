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
        listedOnly: Bool = false,
        asksTarget: Bool = false
    ) -> ServiceRoute {
        let plan = ServicePlan(name: name, origin: asksTarget ? nil : origin, endpoints: endpoints)
        return ServiceRoute(
            plan: plan,
            runtime: ServiceRuntime(name: name, limits: AdmissionLimits()),
            prefix: prefix,
            host: host,
            asksTarget: asksTarget,
            answersItself: asksTarget && !endpoints.isEmpty,
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
            allow: ["open.test", "*.wide.test", "real.test:80", "real.wide.test:8080", "piece.test"],
            connect: ["open.test:443", "real.test:443", "shut.test:443"],
            interception: InterceptionRules(
                hosts: ["real.test", "shut.test", "piece.test"],
                except: ["shut.test:443"]
            ),
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
                route("part", prefix: "/part", host: "part.test"),
                route("deep", prefix: "/part/deep", host: "part.test"),
                route("real", prefix: "/", host: "real.test", asksTarget: true),
                route("piece", prefix: "/api", host: "piece.test", endpoints: [users], asksTarget: true),
                route("mine", prefix: "/", host: "mine.localhost", asksTarget: true),
                route("inward", prefix: "/", host: "10.0.0.1", asksTarget: true),
                route("wide", prefix: "/", host: "real.wide.test", asksTarget: true),
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
                let isByHost = match.isProxied && !match.route.isForward
                let way = (isByHost ? " proxied" : "") + (match.obstacle.map { " \($0)" } ?? "")
                return "\(match.route.label) \(endpoint) \(match.rest) \(origin) \(match.target)\(way)"
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

    @Test(
        arguments: [
            // A service of the host takes proxied requests, whatever forward mode's rules are, and at every port.
            ("http://named.test/x", "named itself /x http://api.test any proxied"),
            ("http://NAMED.test.:8443/x", "named itself /x http://api.test any proxied"),
            ("https://named.test/x", "named itself /x http://api.test any proxied"),
            ("http://part.test/part/x", "part itself /x http://api.test any proxied"),
            ("http://part.test/part/deep/x", "deep itself /x http://api.test any proxied"),
            // What its prefix does not lead to is forward mode's, and no service with a prefix alone has it.
            ("http://part.test/api/users/7", "target(\"part.test\")"),
            ("http://open.test/api/users/7", "forward itself /api/users/7 http://open.test any"),
            ("http://named.test.open.test/x", "target(\"named.test.open.test\")"),
            // Without a base URL the target names the origin, and the prefix stays in the path.
            ("http://real.test/x", "real itself /x http://real.test any proxied"),
            ("https://real.test/x?y", "real itself /x?y https://real.test any proxied"),
            ("http://REAL.test.:80/x", "real itself /x http://real.test any proxied"),
            ("http://piece.test/api/users/7", "piece users /users/7 http://piece.test any proxied"),
            ("http://piece.test/other", "forward itself /other http://piece.test any"),
            // Forward mode's rules decide which origin is asked, at which port, and whether at internal addresses.
            ("http://real.wide.test/x", "wide itself /x http://real.wide.test noPrivate proxied"),
            (
                "http://10.0.0.1/x",
                "inward itself /x http://10.0.0.1 noPrivate proxied refused(\"10.0.0.1:80\")"
            ),
            ("http://real.test:81/x", "real itself /x http://real.test:81 noPrivate proxied refused(\"real.test:81\")"),
            (
                "https://real.test:8443/x",
                "real itself /x https://real.test:8443 noPrivate proxied refused(\"real.test:8443\")"
            ),
            (
                "http://mine.localhost/x",
                "mine itself /x http://mine.localhost noPrivate proxied refused(\"mine.localhost:80\")"
            ),
            // The daemon's own URL names no other origin.
            ("http://mine.localhost:8080/x", "mine itself /x http://mine.localhost:8080 any unnamed"),
            ("http://127.0.0.1:8080/x", "noService(target: \"/x\")"),
            ("ftp://named.test/x", "scheme(\"ftp\")"),
        ] as [(String, String)]
    )
    func `a proxied request is a service's of its host, or else forward mode's`(target: String, destination: String)
        throws
    {
        #expect(try Self.destination(target) == destination)
        // The target wins over Host.
        #expect(try Self.destination(target, fields: [("Host", "real.test")]) == destination)
        #expect(try Self.destination(target, fields: [("Host", "localhost")]) == destination)
    }

    @Test(
        arguments: [
            // What the client's Host and connection name is not asked, but has a key.
            ("real.test", "/x", "real itself /x http://real.test any unnamed"),
            ("Real.test:8080", "/x", "real itself /x http://real.test:8080 any unnamed"),
            ("piece.test", "/api/users/7", "piece users /users/7 http://piece.test any unnamed"),
            ("part.test", "/part/x", "part itself /x http://api.test any"),
            // The services with a prefix alone answer here.
            ("part.test", "/api/x", "host("), ("localhost", "/api/x", "api itself /x http://api.test any"),
        ] as [(String, String, String)]
    )
    func `a request to the daemon itself names no origin`(host: String, target: String, destination: String) throws {
        #expect(try Self.destination(target, fields: [("Host", host)]).hasPrefix(destination))
    }

    @Test func `services by host need no forward mode, but the client's choice of an origin does`() throws {
        #expect(
            try Self.destination("http://named.test/x", isForwarding: false)
                == "named itself /x http://api.test any proxied"
        )
        #expect(
            try Self.destination("http://real.test/x", isForwarding: false)
                == "real itself /x http://real.test noPrivate proxied forwardOff"
        )
        #expect(try Self.destination("http://part.test/other", isForwarding: false) == "forwardOff")
        let far = "192.0.2.1"
        #expect(try Self.destination("https://named.test/x", from: far) == "secureFromAfar")
        #expect(try Self.destination("https://real.test/x", from: far) == "secureFromAfar")
        #expect(try Self.destination("http://named.test", method: .options) == "target(\"named.test\")")
    }

    @Test func `inside of a tunnel the services of its host answer, and those of a prefix do not`() throws {
        let named = Authority(host: "named.test", port: 443)
        let real = Authority(host: "real.test", port: 443)
        // Host has to agree with the tunnel, or may be missing.
        for (authority, found) in [
            (named, "named itself /api/users/7 http://api.test"), (real, "real itself /api/users/7 https://real.test"),
        ] {
            for fields in [[], [("Host", authority.host)], [("Host", authority.description)]] {
                #expect(
                    try Self.destination("/api/users/7", fields: fields, over: .secure, to: authority)
                        == found + " any proxied"
                )
            }
            let other = try Self.destination(
                "/api/users/7",
                fields: [("Host", "localhost")],
                over: .secure,
                to: authority
            )
            #expect(other.hasPrefix("misdirected("), "\(other)")
        }
        // Plain HTTP inside of a tunnel is another origin than https.
        #expect(
            try Self.destination("/x", fields: [], to: Authority(host: "real.test", port: 80))
                == "real itself /x http://real.test any proxied"
        )
        let part = Authority(host: "part.test", port: 443)
        #expect(
            try Self.destination("/api/users/7", fields: [], over: .secure, to: part) == "target(\"part.test:443\")"
        )
        #expect(
            try Self.destination("/part/x", fields: [], over: .secure, to: part)
                == "part itself /x http://api.test any proxied"
        )
    }

    @Test func `what takes a proxied request is said as it is taken`() throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let clients = [try #require(SocketAddress(numericHost: "127.0.0.1", port: 8080))]
        let listeners = OwnListeners(clients: clients, admin: [], resolver: Resolver(pool: pool))
        func said(_ url: String, isForwarding: Bool = true) throws -> [String] {
            try Router(Self.plan(isForwarding: isForwarding), listeners)
                .rulings(of: RequestTarget.parse(url, method: .get))
                .map { "\($0.rule.rawValue) \($0.takes) \($0.reason)" }
        }
        #expect(try said("http://localhost:8080/api/x") == ["own address true localhost:8080 is one of this daemon's"])
        let other = "own address false part.test is none of this daemon's"
        #expect(
            try said("http://part.test/part/deep") == [
                other, "service by host true service deep at part.test/part/deep",
            ]
        )
        let none = "service by host false there are only part.test/part (part), part.test/part/deep (deep)"
        #expect(try said("http://part.test/x") == [other, none, "forward mode false no rule allows part.test"])
        #expect(
            try said("http://part.test/x", isForwarding: false)
                == [other, none, "forward mode false forward.enabled is false"]
        )
        #expect(
            try said("https://sub.wide.test/x").suffix(2) == [
                "service by host false no service has match.host: sub.wide.test",
                "forward mode false no rule allows sub.wide.test",
            ]
        )
        #expect(try said("http://open.test/x").last == "forward mode true a rule names the host")
        let pattern = "forward mode true a pattern allows the host, at addresses that are not internal"
        #expect(try said("http://sub.wide.test/x").last == pattern)
        // Most clients open a tunnel for https, in which nobody takes a request, unless it is read.
        #expect(try said("https://open.test/x").last?.hasSuffix("and not a closed tunnel (CONNECT)") == true)
        #expect(try said("https://part.test/part").last?.hasSuffix("and not a closed tunnel (CONNECT)") == true)
        let read = ", inside of a tunnel (CONNECT), too, which forward.intercept.hosts has read: "
        #expect(
            try said("https://real.test/x").last == "service by host true service real at real.test" + read
                + "real.test"
        )
        #expect(
            try said("https://shut.test/x").last?.hasSuffix("forward.intercept.except has it: shut.test:443") == true
        )
        #expect(
            try said("https://piece.test/api").last?.hasSuffix("forward.connect.allow and forward.allow allows") == true
        )
        #expect(try said("/x") == [])
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
        func asked(_ target: String, _ authority: Authority) throws -> String {
            let host = [("Host", authority.host)]
            return try Self.destination(target, fields: host, over: .secure, to: authority)
        }
        #expect(try asked("/api/users/7", open) == inside)
        let closed = Authority(host: "closed.test", port: 443)
        #expect(try asked("/api/users/7", closed) == "target(\"closed.test:443\")")
        #expect(try asked("https://\(own)", open).hasPrefix("misdirected(\"the request is for https://localhost:8080"))
        #expect(try Self.destination("/", over: .secure, to: open).hasPrefix("misdirected(\"Host is localhost"))
    }
}
