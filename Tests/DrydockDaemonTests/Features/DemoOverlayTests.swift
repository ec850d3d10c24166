// What an operator changes about demo answers: which changes hold, for whom, and how long.

import Configuration
import DemoMode
import Policies
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite struct DemoOverlayTests {
    /// Two services: one with demo answers of its endpoints `a` and `b`, and one with an answer of its own.
    private static func configuration() throws -> (Configuration, TemporaryFolder) {
        let folder = try TemporaryFolder()
        try folder.write("a.json", "{}")
        let text = """
            services:
              - name: shop
                match: { prefix: /shop }
                base_url: http://127.0.0.1:9
                demo: { files: \(folder.path), latency: 5ms }
                endpoints:
                  - { name: a, path: /a }
                  - { name: b, path: /b, demo: { file: a.json, enabled: true, failure: { chance: 5%, status: 500 } } }
                  - { name: c, path: /c }
              - { name: other, match: { prefix: /other }, demo: { file: \(folder.path)/a.json, enabled: true } }
            """
        return (try Configuration.load(text: text, file: "/nowhere/drydock.yaml", environment: [:]), folder)
    }

    private static func shown(_ overlay: DemoOverlay) throws -> [String] {
        let (configuration, folder) = try configuration()
        defer { withExtendedLifetime(folder) {} }
        return overlay.applied(to: configuration).services.flatMap { service in
            ([(service.name, service.demo)] + service.endpoints.map { ("\(service.name)/\($0.name)", $0.demo) }).map {
                let (name, demo) = $0
                let failure = demo.answer.failure.map { " \($0.chance) \($0.answer.status)" } ?? ""
                let latency = demo.answer.latency.quantile(0.5) / 1_000_000
                return "\(name) \(demo.enabled) \(latency) \(demo.answer.answer.status)\(failure)"
            }
        }
    }

    private static let plain = [
        "shop false 5 200", "shop/a false 5 200", "shop/b true 5 200 0.05 500", "shop/c false 5 200",
        "other true 0 200",
    ]

    private func set(_ overlay: inout DemoOverlay, _ setting: DemoSetting, for scope: DemoScope, until end: UInt64?) {
        let isSet = overlay.set(setting, for: scope, until: end)
        #expect(isSet)
    }

    @Test func changesReachWhatTheyName() throws {
        var overlay = DemoOverlay()
        #expect(try Self.shown(overlay) == Self.plain)
        let shop = DemoScope(service: "shop")
        try set(&overlay, DemoSetting(.enabled, "on"), for: DemoScope(), until: nil)
        try set(&overlay, DemoSetting(.latency, "7ms"), for: shop, until: nil)
        try set(&overlay, DemoSetting(.status, "404"), for: DemoScope(service: "shop", endpoint: "a"), until: nil)
        try set(&overlay, DemoSetting(.chance, "50%"), for: DemoScope(service: "shop", endpoint: "b"), until: nil)
        // What has no answer stays off.
        #expect(
            try Self.shown(overlay) == [
                "shop false 7 200", "shop/a true 7 404", "shop/b true 7 200 0.5 500", "shop/c false 7 200",
                "other true 0 200",
            ]
        )
        // A later change counts more, and one of the same scope replaces the earlier.
        try set(&overlay, DemoSetting(.latency, "9ms"), for: DemoScope(service: "shop", endpoint: "a"), until: nil)
        try set(&overlay, DemoSetting(.latency, "8ms"), for: shop, until: nil)
        #expect(overlay.changes.count == 5)
        #expect(try Self.shown(overlay)[1] == "shop/a true 8 404")
        overlay.clear(DemoScope(service: "shop", endpoint: "a"))
        #expect(overlay.changes.count == 3)
        overlay.clear(shop)
        #expect(overlay.changes.map(\.scope) == [DemoScope()])
        overlay.clear(DemoScope())
        #expect(overlay.isEmpty)
        #expect(try Self.shown(overlay) == Self.plain)
    }

    @Test func failuresBeginWithTheDefaultsOfTheTable() throws {
        var overlay = DemoOverlay()
        try set(&overlay, DemoSetting(.chance, "20%"), for: DemoScope(service: "other"), until: nil)
        #expect(try Self.shown(overlay).last == "other true 0 200 0.2 503")
    }

    @Test func aStatusTakesThePlaceOfSeveralAnswers() throws {
        let text = """
            services:
              - name: shop
                match: { prefix: /shop }
                demo: { enabled: true, sequence: [{ status: 202 }, { status: 200 }] }
            """
        let configuration = try Configuration.load(text: text, file: "/nowhere/drydock.yaml", environment: [:])
        var overlay = DemoOverlay()
        try set(&overlay, DemoSetting(.status, "410"), for: DemoScope(), until: nil)
        let answer = try #require(overlay.applied(to: configuration).services.first?.demo.answer)
        #expect(answer.answer.status == 410 && answer.choice == .one)
    }

    @Test func faultsOfAProfileReachServicesWithoutDemoAnswers() throws {
        let text = """
            fault_profiles: { broken: [{ status: 500 }] }
            services:
              - name: shop
                match: { prefix: /shop }
                base_url: http://127.0.0.1:9
                faults: [{ profile: 3g }]
                endpoints: [{ name: a, path: /a }]
            """
        let configuration = try Configuration.load(text: text, file: "/nowhere/drydock.yaml", environment: [:])
        func faults(_ overlay: DemoOverlay) -> [[String]] {
            overlay.applied(to: configuration).services.flatMap { service in
                [service.faults.map(\.name)] + service.endpoints.map { $0.faults.map(\.name) }
            }
        }
        let before = faults(DemoOverlay())
        #expect(before.count == 2 && before.allSatisfy { !$0.isEmpty })
        var overlay = DemoOverlay()
        let broken = try DemoSetting(.faults, "broken")
        #expect(broken.problem(with: configuration) == nil && !broken.needsDemoAnswers)
        set(&overlay, broken, for: DemoScope(service: "shop", endpoint: "a"), until: nil)
        #expect(faults(overlay) == [before[0], configuration.faultProfiles["broken"]?.map(\.name) ?? []])
        try set(&overlay, DemoSetting(.faults, "off"), for: DemoScope(), until: nil)
        #expect(faults(overlay) == [[], []])
        let near = try DemoSetting(.faults, "brokn").problem(with: configuration)
        #expect(near == "there is no fault profile 'brokn'; did you mean 'broken'?")
        let far = try DemoSetting(.faults, "x").problem(with: configuration)
        #expect(far?.hasSuffix(", and off") == true)
        #expect(throws: Lifetimes.Malformed.self) { try DemoSetting(.faults, "") }
    }

    /// A latency may be all that the configuration knows, and is learned only of what there is.
    @Test func latenciesAreDistributions() throws {
        let (configuration, folder) = try Self.configuration()
        defer { withExtendedLifetime(folder) {} }
        var overlay = DemoOverlay()
        for text in ["lognormal(80ms, p99=900ms)", "learned", "learned(shop/a, x1.5)"] {
            let setting = try DemoSetting(.latency, text)
            #expect(setting.problem(with: configuration) == nil)
            set(&overlay, setting, for: DemoScope(service: "shop"), until: nil)
        }
        let changed = overlay.applied(to: configuration).services[0].demo.answer.latency
        #expect(changed == LatencyPolicy(.learned(LearnedLatencyPolicy(of: "shop/a", times: 1.5))))
        let problem = try DemoSetting(.latency, "learned(shop/d)").problem(with: configuration)
        #expect(
            problem == "latency learns of 'shop/d', but there is no such endpoint; did you mean 'shop/a'?"
        )
        #expect(throws: Lifetimes.Malformed.self) { try DemoSetting(.latency, "learned(a/b/c)") }
    }

    @Test func changesEnd() throws {
        var overlay = DemoOverlay()
        let scope = DemoScope(service: "shop")
        #expect(overlay.nextEnd == nil)
        try set(&overlay, DemoSetting(.latency, "1ms"), for: scope, until: 2_000_000_000)
        try set(&overlay, DemoSetting(.status, "201"), for: scope, until: 1_000_000_000)
        try set(&overlay, DemoSetting(.enabled, "on"), for: scope, until: nil)
        #expect(overlay.nextEnd == 1_000_000_000)
        #expect(overlay.document(now: 500_000_001).map(\.left) == [2, 1, nil])
        let first = overlay.removeEnded(at: 1_000_000_000)
        #expect(first.map(\.setting.key) == [.status])
        #expect(overlay.nextEnd == 2_000_000_000 && overlay.changes.count == 2)
        // A change without an end takes the place of one that would have ended.
        try set(&overlay, DemoSetting(.latency, "1ms"), for: scope, until: nil)
        #expect(overlay.nextEnd == nil)
        let ended = overlay.removeEnded(at: .max)
        #expect(ended.isEmpty)
    }

    @Test func thereAreNotManyOfThem() throws {
        var overlay = DemoOverlay()
        let setting = try DemoSetting(.status, "404")
        for number in 0..<DemoOverlay.most {
            set(&overlay, setting, for: DemoScope(service: "\(number)"), until: nil)
        }
        let isSet = overlay.set(setting, for: DemoScope(service: "more"), until: nil)
        #expect(!isSet)
        set(&overlay, setting, for: DemoScope(service: "0"), until: nil)
    }
}
