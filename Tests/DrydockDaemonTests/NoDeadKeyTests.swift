// No key is dead: each key of the table changes what the daemon does, and KeyEffects.swift says where that is seen.

import Configuration
import DemoMode
import EventLoop
import Foundation
import KeySupport
import Logging
import Plans
import Testing

@testable import DrydockDaemon
@testable import ProxyServer
@testable import ServiceCore

/// Gives the tests of a suite one folder: where the disk is slow, a folder for each of a thousand cases takes most of
/// their time.
struct SharedKeyFolder: SuiteTrait, TestScoping {
    @TaskLocal static var current: KeyFolder?

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        try await Self.$current.withValue(try KeyFolder()) { try await function() }
    }
}

@Suite(SharedKeyFolder(), .timeLimit(.minutes(5))) struct NoDeadKeyTests {
    /// Sections are seen by their keys.
    private static let cases = KeyCase.all().filter { $0.key.kind.section == nil }

    @Test func everyKeyHasItsEffectAndEveryEffectItsKey() {
        let keys = Set(Self.cases.map(\.description))
        #expect(keys.count > 200)
        #expect(
            keys.subtracting(KeyEffect.all.keys).sorted() == [],
            "say in KeyEffects.swift where their effect is seen"
        )
        #expect(Set(KeyEffect.all.keys).subtracting(keys).sorted() == [], "the table of keys does not have them")
    }

    @Test(arguments: cases) func anotherValueHasAnotherEffect(_ one: KeyCase) async throws {
        let effect = try #require(KeyEffect.all[one.description], "say in KeyEffects.swift where its effect is seen")
        var (before, after) = (KeyDocuments.document(around: one), KeyDocuments.changed(one))
        if case .demo = effect, one.key.name != "enabled" {
            let enabled = one.way.map(\.name).prefix { $0 != "demo" } + ["demo", "enabled"]
            before = before.setting(enabled[...], to: "true")
            after = after.setting(enabled[...], to: "true")
        }
        switch effect {
        case .scenario(let name): try Self.expectScenario(name)
        case .daemon(let value, let seen):
            let folder = try KeyFolder()
            if let value {
                let way = one.way.map(\.name) + [one.key.name]
                after = after.setting(way[...], to: value.replacing("FOLDER", with: folder.path))
            }
            let old = try await Self.started(before, around: one, in: folder, seen)
            let new = try await Self.started(after, around: one, in: folder, seen)
            #expect(Self.sorted(old) != Self.sorted(new))
        default:
            let folder = try #require(SharedKeyFolder.current)
            let pool = try IOPool(threads: 1)
            defer { pool.stop() }
            let loaded = try folder.loadBoth(before, after)
            let old = try Self.seen(effect, one, loaded.0, pool)
            let new = try Self.seen(effect, one, loaded.1, pool)
            #expect(Self.sorted(old) != Self.sorted(new), "\(after.flow)")
        }
    }

    /// What the plan and the settings of a configuration say.
    private static func seen(
        _ effect: KeyEffect,
        _ one: KeyCase,
        _ configuration: Configuration,
        _ pool: IOPool
    ) throws -> String {
        let plan = try RoutePlan.compile(
            configuration,
            registry: PlanRegistry(),
            seeds: SeedOpener(pool: pool) { _ in },
            machineNames: { [] }
        )
        let route = try #require(plan.services.first)
        switch effect {
        case .request(let seen):
            let names = one.way.map(\.name)
            if names.first == "forward" { return seen(try #require(plan.forward).route.itself.request) }
            guard names.contains("endpoints") else { return seen(route.plan.request) }
            return seen(try #require(route.plan.endpoints.first).request)
        case .route(let seen): return seen(route)
        case .demo: return ([route.itself] + route.endpoints).map { text($0.demo) }.joined(separator: "; ")
        case .plan(let seen): return seen(plan)
        case .settings(let seen): return seen(ServerSettings(configuration))
        case .daemon, .scenario: return ""
        }
    }

    /// The text with the members of sets in order: two equal sets may name theirs in different orders.
    private static func sorted(_ text: String) -> String {
        text.split(separator: ",", omittingEmptySubsequences: false).map { String($0).filter { !"[]() ".contains($0) } }
            .sorted().joined(separator: ",")
    }

    private static func text(_ plan: DemoPlan?) -> String {
        guard let plan else { return "none" }
        let rules = plan.rules.map { rule in
            let failure = rule.failure.map { "\($0.chance) \(text($0.answer))" } ?? "none"
            let condition = rule.condition.map { "\($0)" } ?? "any"
            let gate = "\(rule.counting) \(rule.gate.map { "\($0)" } ?? "open")"
            return
                "\(rule.name) \(condition) \(gate) \(text(rule.choice)) \(rule.seed) \(rule.latency) \(text(rule.answer)) \(failure) \(rule.misbehaviours)"
        }
        return "\(plan.seed) \(plan.unmatched) \(plan.bodyLimit) \(plan.overrides ?? 0) \(rules)"
    }

    private static func text(_ choice: DemoChoice) -> String {
        switch choice {
        case .one: "one"
        case .weighted(let answers): "\(answers.map { "\($0.share) \(text($0.answer))" })"
        case .sequence(let answers, let after): "\(answers.map { text($0) }) \(after)"
        }
    }

    private static func text(_ answer: DemoAnswer) -> String {
        "\(answer.status) \(text(answer.content)) \(answer.fields)"
    }

    private static func text(_ content: DemoContent) -> String {
        switch content {
        case .none: "none"
        case .file(let file): "\(file.path) \(file.entityTag)"
        case .template(_, contentType: let type): "template \(type)"
        case .events(let events): "events \(events)"
        case .collection(let items): "collection \(items.entityTag) \(items.idName) \(items.newIDs)"
        }
    }

    /// What a daemon shows that has started with the document, on a port and with sockets of its own.
    private static func started(
        _ document: Tree,
        around one: KeyCase,
        in folder: KeyFolder,
        _ seen: @Sendable (Daemon) -> String
    ) async throws -> String {
        var document = document
        func set(_ key: String, _ value: String) {
            document = document.setting(key.split(separator: ".").map(String.init)[...], to: value)
        }
        if document.value("listen") == nil { set("listen", "\"127.0.0.1:0\"") }
        if one.way.first?.name == "admin", one.key.name != "listen" || document.value("admin.listen") == nil {
            set("admin.listen", "\"unix:\(folder.path)/admin.sock\"")
        }
        if document.value("log.access") == nil { set("log.access", "\"\(folder.path)/any.log\"") }
        _ = try folder.load(document)
        let daemon = try await Daemon.start(.file(path: folder.file), environment: [:]) { _ in
            Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        }
        let result = seen(daemon)
        await daemon.stop()
        return result
    }

    /// The test is in the sources: a suite of that name, and a test of that name behind it.
    private static func expectScenario(_ name: String) throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../ScenarioTests")
        let parts = name.split(separator: "/")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        let isThere = try paths.contains { path in
            let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            guard let suite = text.firstRange(of: "struct \(parts[0]) {") else { return false }
            return text[suite.upperBound...].contains("func \(parts[1])(")
        }
        #expect(parts.count == 2 && isThere, "\(name)")
    }
}
