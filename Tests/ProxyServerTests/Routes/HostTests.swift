// Which services answer for which Host: names under hosts, services of a host and a prefix, and
// the names of the machine.

import Configuration
import HTTPWire
import Plans
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct HostTests {
    private static let services = """
        hosts: [drydock, "*.lan", 192.0.2.7, "[2001:db8::7]"]
        services:
          - { name: root, match: { prefix: / }, base_url: "http://o.test" }
          - { name: own, match: { prefix: /own }, hosts: [Only.Test], base_url: "http://o.test" }
          - { name: none, match: { prefix: /none }, hosts: [], base_url: "http://o.test" }
          - { name: app, match: { host: app.test }, base_url: "http://o.test" }
          - { name: api, match: { host: app.test, prefix: /api }, base_url: "http://o.test" }
          - { name: part, match: { host: part.lan, prefix: /part }, base_url: "http://o.test" }
          - { name: deep, match: { host: part.lan, prefix: /part/deep }, base_url: "http://o.test" }
        """

    /// The name of the service; `421` with that of the one that refuses, or `421` alone; `404`.
    private static func answer(_ host: String, _ target: String, _ plan: RoutePlan, isOwn: Bool = false) throws
        -> String
    {
        let authority = try #require(Authority.parse(host))
        let known = KnownHost(host, authority, plan, isOwn: isOwn)
        return Array(target.utf8).withUnsafeBytes { target in
            if !(isOwn || known.isServed || plan.hasHost(authority.name)) { return "421" }
            if let route = known.service(target: target) { return route.plan.name }
            return known.refusing(target: target).map { "421 \($0.plan.name)" } ?? "404"
        }
    }

    @Test(arguments: [
        ("drydock", "/x", "root"), ("DRYDOCK:8080", "/x", "root"), ("drydock.", "/x", "root"),
        ("nas.lan", "/x", "root"),
        ("a.b.lan:1", "/x", "root"), ("lan", "/x", "421"), ("evillan", "/x", "421"), ("drydock.evil", "/x", "421"),
        ("192.0.2.7:80", "/x", "root"), ("192.0.2.8", "/x", "421"), ("[2001:db8::7]:80", "/x", "root"),
        ("[2001:db8:0::7]", "/x", "root"), ("[2001:db8::8]", "/x", "421"),
        // A service's own hosts take the place of the daemon's.
        ("drydock", "/own/x", "421 own"), ("only.test", "/own/x", "own"), ("only.test", "/x", "421 root"),
        ("drydock", "/none", "421 none"), ("drydock", "/nonesuch", "root"),
        // The services of a host come first, and one without a prefix leaves nothing to others.
        ("app.test", "/x", "app"), ("app.test", "/api/x", "api"), ("app.test", "/apix", "app"),
        ("app.test", "/own/x", "app"), ("part.lan", "/part/deep/x", "deep"), ("part.lan", "/part/x", "part"),
        ("part.lan.", "/part", "part"), ("part.lan", "/partner", "root"), ("part.lan", "/own", "421 own"),
        ("drydock", "/part/x", "root"),
    ])
    func `a service answers for its own hosts, else for the daemon's`(
        host: String,
        target: String,
        expected: String
    ) throws {
        #expect(try Self.answer(host, target, compile(Self.services)) == expected)
    }

    @Test func `what leads here anyway leads to every service`() throws {
        let plan = try compile(Self.services)
        for (target, name) in [("/x", "root"), ("/own/x", "own"), ("/none", "none")] {
            #expect(try Self.answer("localhost", target, plan, isOwn: true) == name)
        }
        #expect(try Self.answer("part.lan", "/own", plan, isOwn: true) == "own")
    }

    @Test func `a host that is known but has nothing there is told what there is`() async throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "for \($0.target)") }
        let text = """
            hosts: [drydock]
            services:
              - { name: api, match: { host: api.test, prefix: /v1 }, base_url: "\(origin.url)/base" }
              - { name: open, match: { prefix: /open }, hosts: [open.test], base_url: "\(origin.url)" }
            """
        try await HandlerHarness.run(text) { harness throws in
            // Twice: the second one finds the host known.
            for _ in 0..<2 {
                #expect(try harness.get("/v1/x", host: "api.test").text == "for /base/x")
                #expect(try harness.get("/open/x", host: "open.test:81").text == "for /x")
                #expect(try harness.get("/open/x", host: "localhost").text == "for /x")
                let missing = try harness.get("/v2", host: "api.test")
                #expect(missing.status == 404)
                #expect(missing.text.contains("services are at api.test/v1 (api), /open (open)"), "\(missing.text)")
                #expect(try harness.get("/x", host: "drydock").status == 404)
                let other = try harness.get("/open/x", host: "drydock")
                #expect(other.status == 421)
                #expect(other.text.contains("service open does not answer for the host drydock"), "\(other.text)")
            }
        }
    }

    @Test func `a refusal says what to write, and where`() async throws {
        let text = "services: [{ name: s, match: { prefix: /s }, base_url: \"http://o.test\" }]"
        try await HandlerHarness.run(text) { harness throws in
            let forwarded = [("X-Forwarded-Host", "localhost"), ("Forwarded", "host=localhost")]
            let refused = try harness.exchange("GET", "/s/x", host: "nas.lan:8080", fields: forwarded)
            #expect(refused.status == 421)
            #expect(
                refused.text.contains(#"write hosts: [\"nas.lan\"] in its configuration file, at the top of it"#),
                "\(refused.text)"
            )
            try harness.reload("hosts: [nas.lan]\n" + text)
            #expect(try harness.get("/s/x", host: "nas.lan:8080").status == 502)
            try harness.reload(text)
            #expect(try harness.get("/s/x", host: "nas.lan:8080").status == 421)
        }
    }

    @Test(arguments: [
        ("[loopback]", false), ("[\"127.0.0.0/8\", \"::1\"]", false), ("[any]", true), ("[192.0.2.0/24]", true),
        ("[loopback, 10.0.0.1]", true), ("[\"0.0.0.0/0\"]", true), ("[\"::/0\"]", true),
    ])
    func `the machine's names count where others than loopback may connect`(clients: String, isKnown: Bool) throws {
        let configuration = try Configuration.load(
            text: "clients: \(clients)",
            file: "/nowhere/drydock.yaml",
            environment: [:]
        )
        let plan = try RoutePlan.compile(configuration, registry: PlanRegistry()) { ["web1", "web1.example.test"] }
        #expect(plan.machineNames == (isKnown ? ["web1", "web1.example.test"] : []))
        #expect(plan.ownNames == plan.machineNames)
        #expect(HostRules(names: plan.machineNames).allows(Authority(host: "web1")) == isKnown)
    }

    @Test(
        arguments: [
            (
                "web1", "127.0.0.1 localhost\n127.0.1.1\tWeb1.example.test web1 # web1.not.test",
                ["web1", "web1.local", "web1.example.test"]
            ),
            ("web1.example.test", "", ["web1.example.test", "web1", "web1.local"]),
            ("web1.local", "", ["web1", "web1.local"]),
            ("web1", "10.0.0.1 web1.elsewhere.test", ["web1", "web1.local"]),
            ("WEB1", "10.0.0.1 web10.test web1", ["web1", "web1.local"]), ("", "10.0.0.1 a", []),
        ] as [(String, String, Set<String>)]
    )
    func `the machine's names are its host name's, also below local, and those of the hosts file`(
        name: String,
        hosts: String,
        expected: Set<String>
    ) {
        #expect(Machine.names(name, hosts: hosts) == expected)
    }

    @Test(
        arguments: [
            ("{ prefix: /a }", "[]", false), ("{ prefix: /a }", "[{ prefix: /b }]", true),
            ("{ host: h.test }", "[{ prefix: /b }]", false),
            ("{ host: h.test }", "[{ host: h.test, prefix: /b }]", true),
            ("{ host: h.test, prefix: /a }", "[{ prefix: /b }]", true),
            ("{ host: h.test, prefix: /a }", "[{ prefix: /b }, { host: h.test }]", true),
            ("{ host: h.test, prefix: /a }", "[{ host: i.test, prefix: /a }]", false),
            ("{ prefix: /a }", "[{ host: h.test }]", false), ("{ prefix: /a }", "[{ host: h.test, prefix: /b }]", true),
        ] as [(String, String, Bool)]
    )
    func `Clear-Site-Data goes where others are of the same web origin`(
        match: String,
        others: String,
        isShared: Bool
    ) throws {
        let list = others.dropFirst().dropLast().split(separator: "}", omittingEmptySubsequences: true).map { $0 + "}" }
        let matches = [match] + list.map { String($0.drop { ", ".contains($0) }) }
        let lines = matches.enumerated().map { "{ name: s\($0), match: \($1), base_url: \"http://o.test\" }" }
        let plan = try compile("services: [\(lines.joined(separator: ", "))]")
        var fields = Fields([("Clear-Site-Data", "*")])
        try #require(plan.service(named: "s0")).rewriting.apply(to: &fields)
        #expect(fields.isEmpty == isShared, "\(matches)")
    }
}
