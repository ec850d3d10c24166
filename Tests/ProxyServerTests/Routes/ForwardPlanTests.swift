// Which targets forward mode and CONNECT take, by the rules of the configuration.

import HTTPWire
import Testing
import Upstream

@testable import ProxyServer
@testable import ServiceCore

@Suite struct ForwardPlanTests {
    private static func plan(allow: [String], connect: [String] = ["*:443"]) throws -> ForwardPlan {
        func list(_ rules: [String]) -> String { rules.map { "\"\($0)\"" }.joined(separator: ", ") }
        let text = "forward: { enabled: true, allow: [\(list(allow))], connect: { allow: [\(list(connect))] } }"
        return try #require(try compile(text).forward)
    }

    @Test func `an error about a certificate names the key of the authorities`() throws {
        let plan = try compile(
            "forward: { enabled: true }\n"
                + "services: [{ name: api, match: { prefix: /api }, base_url: https://api.test }]"
        )
        #expect(plan.forward?.route.plan.tls.caKey == "'forward.tls.ca'")
        #expect(plan.service(named: "api")?.plan.tls.caKey == "'tls.ca' of the service 'api'")
    }

    @Test(
        arguments: [
            ("*", "example.com", .anyPublic), ("*", "127.0.0.1", .anyPublic), ("*", "localhost", .anyPublic),
            ("example.com", "example.com", .named), ("Example.COM", "example.com", .named),
            ("example.com", "example.com.", .named), ("example.com", "www.example.com", .refused),
            ("example.com", "example.com.evil", .refused), ("example.com", "badexample.com", .refused),
            ("*.example.com", "www.example.com", .anyPublic), ("*.example.com", "a.b.example.com", .anyPublic),
            ("*.example.com", "www.example.com.", .anyPublic), ("*.example.com", "example.com", .refused),
            ("*.example.com", ".example.com", .refused), ("*.example.com", "badexample.com", .refused),
            ("127.0.0.1", "127.0.0.1", .named), ("127.0.0.1", "127.1", .named), ("127.0.0.1", "2130706433", .named),
            ("127.0.0.1", "127.0.0.2", .refused), ("127.0.0.1", "localhost", .refused),
            ("localhost", "localhost.", .named), ("localhost", "127.0.0.1", .refused),
            ("::1", "[::1]", .named), ("[::1]", "[0:0:0:0:0:0:0:1]", .named), ("::1", "[::2]", .refused),
            ("[FD00::A]", "[fd00:0::a]", .named),
        ] as [(String, String, ForwardPlan.Verdict)]
    )
    func `a host is taken by its rule`(rule: String, host: String, expected: ForwardPlan.Verdict) throws {
        #expect(try Self.plan(allow: [rule]).verdict(host: host, port: 80) == expected)
    }

    @Test(
        arguments: [
            ("example.com:8443", "example.com", 8443, .named), ("example.com:8443", "example.com", 80, .refused),
            ("*.example.org:8443", "www.example.org", 8443, .anyPublic),
            ("*.example.org:8443", "www.example.org", 80, .refused), ("*:8080", "example.com", 8080, .anyPublic),
            ("*:8080", "example.com", 80, .refused), ("example.com:*", "example.com", 81, .named),
            ("localhost:8080", "localhost", 8080, .named), ("localhost:8080", "localhost", 8081, .refused),
            ("127.0.0.1:80", "127.1", 80, .named), ("[::1]:8080", "[::1]", 8080, .named),
            ("[::1]:8080", "[::1]", 80, .refused), ("::1", "[::1]", 80, .named), ("[::1]", "[::1]", 8080, .named),
        ] as [(String, String, UInt16, ForwardPlan.Verdict)]
    )
    func `a rule may be for one port`(
        rule: String,
        host: String,
        port: UInt16,
        expected: ForwardPlan.Verdict
    ) throws {
        #expect(try Self.plan(allow: [rule]).verdict(host: host, port: port) == expected)
    }

    @Test func `a rule for one port opens no other to internal addresses`() throws {
        let plan = try Self.plan(allow: ["*", "localhost:8080"])
        #expect(plan.verdict(host: "localhost", port: 8080) == .named)
        #expect(plan.verdict(host: "localhost", port: 22) == .anyPublic)
    }

    @Test func `of several rules the one that names the host counts`() throws {
        let plan = try Self.plan(allow: ["*", "localhost"])
        #expect(plan.verdict(host: "localhost", port: 80) == .named)
        #expect(plan.verdict(host: "example.com", port: 80) == .anyPublic)
        #expect(try Self.plan(allow: []).verdict(host: "example.com", port: 80) == .refused)
    }

    @Test(
        arguments: [
            (["*"], ["*:443"], "example.com:443", .anyPublic), (["*"], ["*:443"], "example.com:80", .refused),
            (["*"], ["*:*"], "example.com:25", .anyPublic), (["*"], [], "example.com:443", .refused),
            ([], ["*:443"], "example.com:443", .refused), ([], ["example.com:443"], "example.com:443", .named),
            (["*"], ["localhost:8443"], "localhost:8443", .named),
            (["*"], ["localhost:8443"], "localhost:443", .refused),
            (["*", "localhost"], ["*:443"], "localhost:443", .named), (["a.test"], ["*:443"], "b.test:443", .refused),
            (["*"], ["::1:443"], "[::1]:443", .named),
            (["localhost:443"], ["*:*"], "localhost:443", .named),
            (["localhost:443"], ["*:*"], "localhost:22", .refused),
            (["*:443"], ["*:*"], "example.com:443", .anyPublic), (["*:443"], ["*:*"], "example.com:25", .refused),
        ] as [([String], [String], String, ForwardPlan.Verdict)]
    )
    func `CONNECT needs a rule for the port and one for the host`(
        allow: [String],
        connect: [String],
        target: String,
        expected: ForwardPlan.Verdict
    ) throws {
        let authority = try #require(Authority.parse(target))
        #expect(try Self.plan(allow: allow, connect: connect).verdict(connect: authority) == expected)
    }

    @Test func `CONNECT without a port is refused`() throws {
        #expect(try Self.plan(allow: ["*"]).verdict(connect: Authority(host: "example.com")) == .refused)
    }
}
