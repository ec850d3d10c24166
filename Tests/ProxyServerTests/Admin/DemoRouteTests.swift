// `/v1/demo`: which orders are understood.

import AdminAPI
import Configuration
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct DemoRouteTests {
    private final class Actions: DemoActions {
        let orders = Monitor([DemoOrder]())
        let resets = Monitor([String]())

        func demo() async -> AdminDemo { AdminDemo(answers: [], overrides: []) }
        func change(_ order: DemoOrder) async throws(Problem) -> AdminDemo {
            orders.update { $0.append(order) }
            return await demo()
        }
        func reset(service: String?, journal: Bool, latencies: Bool) async throws(Problem) -> AdminDemoReset {
            resets.update { $0.append("\(service ?? "all") \(journal) \(latencies)") }
            return AdminDemoReset(requests: 0, entries: nil)
        }
        func draw(again said: String, service: String?) async throws(Problem) -> AdminDraw {
            resets.update { $0.append("\(service ?? "all") \(said)") }
            return AdminDraw(members: [], isSame: true)
        }
    }

    private func perform(_ actions: Actions, _ path: AdminPath, _ members: [(String, String)]) async throws -> Int {
        let method: Method = path == .draw ? .get : .post
        let route = try #require(actions.demoRoutes.first { $0.method == method && $0.path == path })
        return try await route.perform(AdminRequest(queryItems: members.map { (name: $0.0, value: $0.1) })).status
    }

    @Test func orders() async throws {
        let actions = Actions()
        #expect(try await perform(actions, .demo, [("enabled", "on")]) == 200)
        let all = [
            ("service", "shop"), ("endpoint", "a"), ("latency", "1s..2s"), ("status", "404"), ("chance", "5%"),
            ("for", "10m"),
        ]
        #expect(try await perform(actions, .demo, all) == 200)
        #expect(try await perform(actions, .demo, [("service", "shop"), ("clear", "")]) == 200)
        var (first, second) = (DemoOrder(), DemoOrder(service: "shop", endpoint: "a"))
        first.settings = [try DemoSetting(.enabled, "on")]
        second.settings = [
            try DemoSetting(.latency, "1s..2s"), try DemoSetting(.status, "404"), try DemoSetting(.chance, "5%"),
        ]
        second.seconds = 600
        #expect(actions.orders.read { $0 } == [first, second, DemoOrder(service: "shop")])
        #expect(try await perform(actions, .resetDemo, []) == 200)
        #expect(try await perform(actions, .resetDemo, [("service", "shop"), ("journal", "")]) == 200)
        #expect(try await perform(actions, .resetDemo, [("latencies", "")]) == 200)
        #expect(actions.resets.read { $0 } == ["all false false", "shop true false", "all false true"])
        #expect(try await perform(actions, .draw, [("said", "endpoint=a"), ("service", "shop")]) == 200)
        #expect(actions.resets.read { $0.last } == "shop endpoint=a")
    }

    @Test(
        arguments: [
            [], [("service", "a")], [("clear", ""), ("status", "404")], [("clear", ""), ("for", "1s")],
            [("endpoint", "a"), ("clear", "")], [("status", "199")], [("status", "x")], [("latency", "5")],
            [("chance", "101%")], [("enabled", "yes")], [("status", "404"), ("status", "404")],
            [("faults", "")], [("status", "404"), ("for", "0s")], [("status", "404"), ("for", "5")], [("other", "1")],
        ]
    )
    func refused(_ members: [(String, String)]) async throws {
        let actions = Actions()
        await #expect(throws: Problem.self) { try await perform(actions, .demo, members) }
        #expect(actions.orders.read { $0.isEmpty })
        await #expect(throws: Problem.self) { try await perform(actions, .resetDemo, [("journal", "1")]) }
        await #expect(throws: Problem.self) { try await perform(actions, .draw, []) }
    }
}
