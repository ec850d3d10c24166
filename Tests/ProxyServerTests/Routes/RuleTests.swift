// The pure parts: host and origin rules, loop detection, problem documents, JSON, metrics.

import EventLoop
import Foundation
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite struct RuleTests {
    @Test(arguments: [
        ("localhost", true), ("localhost:8080", true), ("api.localhost", true), ("127.0.0.1:1", true),
        ("127.8.9.10", true), ("[::1]:8080", true), ("api.test", true), ("API.TEST", true), ("192.0.2.7:8080", true),
        ("evil.example", false), ("localhost.evil.example", false), ("127.0.0.1.evil.example", false),
        ("192.0.2.8", true), ("10.0.2.2:80", true), ("10.0.2.2.", true), ("[::2]", true), ("[2001:db8::7]:8080", true),
        ("::2", false), ("10.0.2.2.evil.example", false), ("10.0.2", true), ("10.0.2.2.3", false),
        ("10.0.2.256", false),
        ("notlocalhost", false), ("128.0.0.1", true), ("localhost.", true), ("api.test.:80", true), ("127.1", true),
        ("evil.example.", false), ("beef", false),
    ])
    func `reverse mode answers for configured names, loopback and addresses`(
        host: String,
        isAllowed: Bool
    ) throws {
        let rules = HostRules(names: ["Api.Test"])
        #expect(Authority.parse(host).map(rules.allows) ?? false == isAllowed)
        #expect(
            Problem(.host(Authority(host: host), service: nil), RoutePlan(name: "d", services: [], forward: nil)).status
                == 421
        )
    }

    @Test(
        arguments: [
            ("192.0.2.7", "192.0.2.7:8080", true), ("192.0.2.7", "192.0.2.8", false), ("192.0.2.7", "10.0.2.2", false),
            ("192.0.2.7", "127.0.0.1:80", true), ("192.0.2.7", "localhost", true), ("192.0.2.7", "api.test", false),
            ("2001:db8::7", "[2001:db8::7]", true), ("2001:db8::7", "[2001:db8::8]", false),
            ("0.0.0.0", "192.0.2.8", true), ("::", "[2001:db8::1]", true), ("0.0.0.0", "evil.example", false),
        ] as [(String, String, Bool)]
    )
    func `the admin API answers for loopback and the addresses of its listener`(
        listener: String,
        host: String,
        isAllowed: Bool
    ) throws {
        let address = try #require(SocketAddress(numericHost: listener, port: 9090))
        #expect(HostRules(admin: address).allows(try #require(Authority.parse(host))) == isAllowed)
        let info = ListenerInfo(role: .admin, address: address, security: .plain)
        let fields = Fields([("Host", host)])
        if isAllowed {
            try AdminHandler.check(fields, listener: info)
        } else {
            #expect(throws: Problem.self) { try AdminHandler.check(fields, listener: info) }
        }
    }

    @Test(arguments: [
        ("http://localhost:3000", "localhost:3000", true), ("http://LOCALHOST:3000", "localhost:3000", true),
        ("http://localhost", "localhost:80", true), ("https://api.test", "api.test:443", true),
        ("http://localhost:3000", "localhost:3001", false), ("http://evil.example", "localhost", false),
        ("null", "localhost", false), ("", "localhost", false), ("file://localhost", "localhost", false),
        ("http://localhost:3000/x", "localhost:3000", false),
    ])
    func `an origin is the same site only with scheme, host and port`(
        origin: String,
        host: String,
        isSame: Bool
    ) throws {
        #expect(OriginRules.isSameSite(origin: origin, host: try #require(Authority.parse(host))) == isSame)
    }

    @Test(
        arguments: [
            (["1.1 drydock"], true), (["1.0 fred, 1.1 Drydock"], true), (["1.0 fred", "HTTP/1.1 drydock (v1)"], true),
            (["1.1 other"], false), (["1.1 fred (1.1 drydock)"], false), (["1.1 drydock2"], false), ([], false),
            (["1.1 fred (a \\) , 1.1 drydock )"], false), (["1.1 fred (nested (deep)), 1.1 drydock"], true),
        ] as [([String], Bool)]
    )
    func `a loop is a Via entry with the own pseudonym`(via: [String], isLoop: Bool) {
        let fields = Fields(via.map { ("Via", $0) })
        #expect(LoopDetection.hasPassed(fields, pseudonym: "drydock") == isLoop)
    }

    @Test(
        arguments: [
            ("127.0.0.1", 8080, true), ("127.0.0.1", 8081, false), ("0.0.0.0", 8080, true), ("192.0.2.1", 8080, false),
            ("127.0.0.2", 9090, true), ("::1", 9090, true), ("192.0.2.1", 9090, false),
            ("198.51.100.7", 9090, true), ("198.51.100.7", 8080, false),
        ] as [(String, UInt16, Bool)]
    )
    func `a target that is an own listener is a loop`(host: String, port: UInt16, isOwn: Bool) throws {
        let listeners = try [("127.0.0.1", 8080), ("0.0.0.0", 9090)].map { host, port in
            try #require(SocketAddress(numericHost: host, port: port))
        }
        let target = try #require(SocketAddress(numericHost: host, port: port))
        // An interface of the machine has this address.
        let found = LoopDetection.isOwn(target, listeners: listeners) { $0.host == "198.51.100.7" }
        #expect(found == isOwn)
    }

    @Test func `a problem is a document with a matching Proxy-Status`() async throws {
        try await ServerHarness.run { harness in
            let response = try harness.exchange("/problem")
            #expect(response.status == 502)
            #expect(response.head.reason == "Bad Gateway")
            #expect(response.field("Content-Type") == "application/problem+json")
            #expect(response.field("Cache-Control") == "no-store")
            #expect(
                response.field("Proxy-Status") == #"drydock; error=connection_refused; details="start?it""#
            )
            let document = try #require(
                JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
            )
            #expect(document["title"] as? String == "No \"origin\"")
            #expect(document["detail"] as? String == "start\nit")
            #expect(document["status"] as? Int == 502)
        }
    }

    @Test func `JSON nests, separates and escapes`() {
        var json = JSONText()
        json.beginObject()
        json.member("a", 1)
        json.name("list")
        json.beginArray()
        json.value(true)
        json.value("x\u{7F}\t\"é")
        json.beginObject()
        json.endObject()
        json.endArray()
        json.name("ms")
        json.value(milliseconds: 1_002_003)
        json.endObject()
        #expect(
            String(decoding: json.bytes, as: UTF8.self)
                == #"{"a":1,"list":[true,"x\u007f\u0009\"é",{}],"ms":1.002}"#
        )
    }

    @Test func `metrics describe every family once and count what was answered`() async throws {
        try await ServerHarness.run { harness in
            let client = try harness.client()
            for target in ["/hot/10", "/hot/10", "/a", "/none", "/problem"] { _ = try client.exchange(target) }
            let counters = harness.counters
            let gauge = Gauge("drydock_memory_bytes", "Bytes.") { 7 }
            let text = MetricsText.render(counters.families + Gauge.families([gauge]), .text)
            let lines = text.split(separator: "\n").map(String.init)
            for line in [
                #"drydock_answers_total{class="2xx"} 3"#, #"drydock_answers_total{class="4xx"} 1"#,
                #"drydock_answers_total{class="5xx"} 1"#, #"drydock_cache_total{outcome="hit"} 2"#,
                #"drydock_cache_total{outcome="miss"} 1"#, "drydock_connections 1", "drydock_connections_total 1",
                "drydock_memory_bytes 7", "# TYPE drydock_memory_bytes gauge",
            ] {
                #expect(lines.contains(line), "\(line)")
            }
            #expect(counters[.bytesIn] > 100)
            #expect(counters[.bytesOut] > 500)
            let names = lines.filter { $0.hasPrefix("# TYPE") }
            #expect(Set(names).count == names.count)
            #expect(lines.allSatisfy { $0.hasPrefix("#") || $0.split(separator: " ").count == 2 })
        }
    }
}
