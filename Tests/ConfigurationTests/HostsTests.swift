// Names under which services answer: what is inherited, what is refused, and services of a host and a prefix.

import Testing

@testable import Configuration

@Suite struct HostsTests {
    @Test func aServiceHasTheDaemonsUnlessItNamesItsOwn() throws {
        let text =
            "hosts: [Drydock, \"*.LAN\", 192.0.2.7, \"2001:DB8::7\"]\nservices:\n" + service("a")
            + service("b", "hosts: [b.test]") + service("c", "hosts: []")
            + "  - { name: d, match: { host: d.test }, base_url: http://d }\n"
        let loaded = try load(text)
        let daemon = ["drydock", "*.lan", "192.0.2.7", "[2001:db8::7]"]
        #expect(loaded.hosts == daemon)
        #expect(loaded.services.map(\.hosts) == [daemon, ["b.test"], [], []])
        #expect(try load("services:\n" + service("a")).services.first?.hosts == [])
        let shown = loaded.text(hidingSecrets: false)
        #expect(try load(shown) == loaded, "\(shown)")
    }

    @Test func defaultsHaveNone() {
        // The daemon's own are what services inherit.
        expectError("defaults: { hosts: [a] }\n", "1:13", ["unknown key 'hosts'"])
    }

    @Test(arguments: ["drydock:8080", "http://drydock", "a/b", "*.*", "a.*", "-a", "", "a b", "256.1.1.1"])
    func whatIsNoHost(_ text: String) {
        expectError("hosts: [\"\(text)\"]\n", "1:9", ["'\(text)' is not a host", "without scheme, port or path"])
    }

    @Test func everyHostIsRefused() {
        expectError("hosts: [\"*\"]\n", "1:9", ["DNS rebinding", "name the hosts"])
    }

    @Test func aHostAndAPrefix() throws {
        func match(_ text: String) throws -> ServiceMatch? {
            try load("services:\n  - { name: a, base_url: http://a, match: \(text) }\n").services.first?.match
        }
        #expect(try match("{ prefix: /v1/, host: API.test }") == .host("api.test", prefix: "/v1"))
        #expect(try match("{ prefix: /, host: api.test }") == .host("api.test"))
        #expect(try match("{ prefix: /v1, host: api.test }")?.description == "api.test/v1")
        #expect(try match("{ prefix: /v1 }")?.description == "/v1")
        #expect(try match("{ host: api.test }")?.description == "api.test")
    }

    @Test func matchesOfAHost() {
        func two(_ first: String, _ second: String) -> [String] {
            errors(
                "services:\n  - { name: a, base_url: http://a, match: \(first) }\n"
                    + "  - { name: b, base_url: http://b, match: \(second) }\n"
            )
        }
        #expect(two("{ host: h, prefix: /a }", "{ host: h, prefix: /b }").isEmpty)
        #expect(two("{ host: h, prefix: /a }", "{ prefix: /a }").isEmpty)
        #expect(two("{ host: h }", "{ host: h, prefix: /a }").isEmpty)
        for (first, second) in [
            ("{ host: h, prefix: /a }", "{ host: H, prefix: /a/ }"), ("{ host: h }", "{ host: h, prefix: / }"),
        ] {
            let found = two(first, second)
            #expect(found.count == 1 && found[0].contains("the service 'a' matches the same requests"), "\(found)")
        }
        expectError(
            "services:\n  - { name: a, base_url: http://a, match: { host: h }, hosts: [i] }\n",
            "2:63",
            ["'hosts' is for a service with 'match.prefix' alone", "'match.host'"]
        )
    }

    @Test func theAuthoritiesOfForwardMode() {
        expectError("forward: { tls: { ca: ./none.pem } }\n", "1:23", ["'forward.tls.ca'", "none.pem does not exist"])
    }

    @Test(
        arguments: [
            // Nothing but rules, endpoints that ask, demo answers, and both.
            ("", .pass, false), ("cache: { ttl: 1m }", .pass, false),
            ("endpoints: [{ name: e, path: /e }]", .pass, false),
            ("endpoints: [{ name: e, path: /e, demo: { enabled: true, body: x } }]", .pass, true),
            ("unlisted: 404, endpoints: [{ name: e, path: /e }]", .notFound, false),
            ("unlisted: pass, endpoints: [{ name: e, path: /e, demo: { enabled: true, body: x } }]", .pass, true),
            (
                "demo: { enabled: true, body: x, unmatched: pass, rules: [{ name: a, when: { method: GET } }] }", .pass,
                false
            ),
            ("from: [live], unlisted: 404, endpoints: [{ name: e, path: /e }]", .notFound, false),
            ("tls: { verify: false }, redirects: follow", .pass, false),
        ] as [(String, UnlistedPolicy, Bool)]
    )
    func aHostNeedsNoOriginOfItsOwn(keys: String, unlisted: UnlistedPolicy, answersItself: Bool) throws {
        let comma = keys.isEmpty ? "" : ", "
        let loaded = try load("services: [{ name: a, match: { host: api.example.com }\(comma)\(keys) }]\n")
        let service = try #require(loaded.services.first)
        #expect(service.asksNamedOrigin && service.unlisted == unlisted && service.answersItself == answersItself)
        #expect(try load(loaded.text(hidingSecrets: false)) == loaded)
        // A prefix alone names nobody, and a base URL is an origin of its own.
        #expect(
            try load("services: [{ name: a, match: { host: h }, base_url: http://a }]").services[0].asksNamedOrigin
                == false
        )
    }

    @Test func proxiedRequestsForHostsAreNotedOnce() throws {
        func notes(_ hosts: [String], forward: String = "") throws -> [String] {
            let services = hosts.enumerated().map { "  - { name: s\($0), base_url: http://a, match: { \($1) } }\n" }
            return try load("\(forward)services:\n" + services.joined()).notes.map(\.description)
        }
        let one = try notes(["prefix: /p", "host: a.test", "host: a.test, prefix: /b"])
        #expect(one.count == 1)
        #expect(
            one.first?.contains(":3:52: requests that come through the proxy for a.test are answered by") == true,
            "\(one)"
        )
        let many = try notes(["host: a.test", "host: b.test", "host: c.test", "host: d.test", "host: e.test"])
        #expect(many.first?.contains("for a.test, b.test, c.test and 2 more are") == true, "\(many)")
        #expect(try notes(["prefix: /p"]).isEmpty)
        #expect(try notes(["host: a.test"], forward: "forward: { enabled: false }\n").isEmpty)
    }
}
