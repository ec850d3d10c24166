// The suite that runs every scenario of the .scenario files in every way.

import Foundation
import TestSupport
import Testing

/// The four rigs, each used by one thread at a time; they and their daemons end with the suite.
final class Fleet: Sendable {
    @TaskLocal static var current: Fleet?

    /// A rig's monitor is held while a scenario runs on it.
    private let rigs: [Monitor<WayRig>]
    let hasFailed = Monitor(false)
    private let ways = ScriptFiles.ways

    init() throws {
        if let wrong = ScriptFiles.wrongChoice { throw TestSupportError.failed(wrong) }
        let clock = try StillClock()
        rigs = try ways.map { Monitor(try WayRig($0, clock)) }
    }

    /// Runs a scenario in every way that it allows, at once.
    func run(_ scenario: Scenario) throws -> [ScenarioFailure] {
        let rigs = zip(ways, rigs).filter { scenario.runs(in: $0.0) }.map(\.1)
        return try Threads.run(rigs.count) { index in rigs[index].update { $0.run(scenario) } }.flatMap { $0 }
    }
}

/// Gives the tests of a suite one fleet.
struct SharedFleet: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        // Said once, not by every scenario.
        _ = try Daemon.binary()
        try await Fleet.$current.withValue(try Fleet()) { try await function() }
    }
}

extension Scenarios {
    @Suite(SharedFleet(), .timeLimit(.minutes(10))) struct Scripted {
        @Test(arguments: ScriptFiles.rules.chosen) func holds(_ scenario: Scenario) throws {
            let fleet = try #require(Fleet.current)
            if ScriptFiles.endsAtFirstFailure, fleet.hasFailed.read({ $0 }) { return }
            let failures = try fleet.run(scenario)
            if !failures.isEmpty { fleet.hasFailed.update { $0 = true } }
            for failure in failures {
                Issue.record("\(failure) — \(scenario.title)", sourceLocation: Self.location(failure.position))
            }
        }

        private static func location(_ position: ScriptPosition) -> SourceLocation {
            SourceLocation(
                fileID: "ScenarioTests/\(position.file)",
                filePath: "\(ScriptFiles.folder.path)/\(position.file)",
                line: position.line,
                column: 1
            )
        }
    }
}
