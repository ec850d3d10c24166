// `/v1/demo`: which orders are understood, and what they change.

import HTTPWire
import ProxyServer
import TestSupport
import Testing

@testable import Configuration
@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct DemoRouteTests {
    @Test func orders() throws {
        func order(_ members: [(String, String)]) throws -> DemoOrder {
            try DemoOrder(members: members.map { (name: $0.0, value: $0.1) })
        }
        var (first, second) = (DemoOrder(), DemoOrder(service: "shop", endpoint: "a"))
        first.settings = [try DemoSetting(.enabled, "on")]
        #expect(try order([("enabled", "on")]) == first)
        second.settings = [
            try DemoSetting(.latency, "1s..2s"), try DemoSetting(.status, "404"), try DemoSetting(.chance, "5%"),
        ]
        second.seconds = 600
        let all = [
            ("service", "shop"), ("endpoint", "a"), ("latency", "1s..2s"), ("status", "404"), ("chance", "5%"),
            ("for", "10m"),
        ]
        #expect(try order(all) == second)
        #expect(try order([("service", "shop"), ("clear", "")]) == DemoOrder(service: "shop"))
    }

    private static let text = """
        services:
          - name: shop
            match: { prefix: /shop }
            demo: { enabled: true, body: "{}" }
        journal: 256KiB
        """

    @Test func `a change holds until it is cleared`() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            let changed = try harness.ask("POST", "/v1/demo?service=shop&status=404&for=10m")
            #expect(changed.status == 200 && changed.text.contains("\"status\""), "\(changed.text)")
            #expect(try harness.ask("GET", "/v1/demo").text == changed.text || changed.text.contains("left"))
            let cleared = try harness.ask("POST", "/v1/demo?service=shop&clear")
            #expect(cleared.status == 200 && cleared.text.contains("\"overrides\":[]"), "\(cleared.text)")
            #expect(try harness.ask("POST", "/v1/demo?service=other&status=404").status == 404)
            #expect(try harness.ask("POST", "/v1/demo/reset").text == "{\"requests\":0}\n")
            let both = try harness.ask("POST", "/v1/demo/reset?service=shop&journal")
            #expect(both.text == "{\"entries\":0,\"requests\":0}\n", "\(both.text)")
            #expect(try harness.ask("POST", "/v1/demo/reset?latencies").text.contains("\"latencies\":0"))
            #expect(try harness.ask("POST", "/v1/demo/reset?service=other").status == 404)
        }
    }

    @Test func refused() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            let queries = [
                "", "service=a", "clear&status=404", "clear&for=1s", "endpoint=a&clear", "status=199", "status=x",
                "latency=5", "chance=101%25", "enabled=yes", "status=404&status=404", "faults=", "status=404&for=0s",
                "status=404&for=5", "other=1",
            ]
            for query in queries {
                #expect(try harness.ask("POST", "/v1/demo?\(query)").status == 400, "\(query)")
            }
            #expect(try harness.ask("GET", "/v1/demo").text.contains("\"overrides\":[]"))
            #expect(try harness.ask("GET", "/v1/demo?x=1").status == 400)
            #expect(try harness.ask("POST", "/v1/demo/reset?journal=1").status == 400)
            #expect(try harness.ask("GET", "/v1/demo/draw").status == 400)
        }
    }
}
