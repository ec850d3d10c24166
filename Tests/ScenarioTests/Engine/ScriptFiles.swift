// The scripts of the suite: every .scenario file of Rules, and which of their scenarios this run is about.

import Foundation

/// The files as they were read, once.
struct ScriptFiles: Sendable {
    /// By the file's name.
    private(set) var files: [String: [Scenario]] = [:]
    private(set) var errors: [ScriptError] = []

    /// `Rules`, beside the folder of this file.
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Rules")

    static let rules = ScriptFiles(folder: folder)

    init(folder: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names.sorted() where name.hasSuffix(".scenario") {
            guard let data = FileManager.default.contents(atPath: folder.appendingPathComponent(name).path) else {
                errors.append(ScriptError(position: ScriptPosition(file: name, line: 1), message: "cannot be read"))
                continue
            }
            let parser = ScriptParser(file: name, text: String(decoding: data, as: UTF8.self))
            files[name] = parser.scenarios
            errors += parser.errors
        }
    }

    /// In the order of their files and lines.
    var scenarios: [Scenario] { files.keys.sorted().flatMap { files[$0] ?? [] } }

    /// `DRYDOCK_SCENARIO`: a part of the title or of the file's name, or several with `|` between them; nil for all.
    static var filter: String? {
        ProcessInfo.processInfo.environment["DRYDOCK_SCENARIO"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `DRYDOCK_SCENARIO_FIRST=1`: nothing more runs after the first scenario that fails.
    static var endsAtFirstFailure: Bool { ProcessInfo.processInfo.environment["DRYDOCK_SCENARIO_FIRST"] == "1" }

    /// For how many seconds a script waits for what is to come: less where it is expected to fail, and a failure is
    /// all that is looked for.
    static var patience: Double { endsAtFirstFailure ? 10 : 120 }

    /// `DRYDOCK_SCENARIO_WAYS`: the ways in which they run, such as `reverse head|forward conditional`; else all.
    static var ways: [Way] {
        guard let chosen = chosenWays else { return Way.all }
        return Way.all.filter { way in chosen.contains(way.description) }
    }

    private static var chosenWays: [String]? {
        ProcessInfo.processInfo.environment["DRYDOCK_SCENARIO_WAYS"].map { wayNames($0) }
    }

    /// The names in a list with `|` between them; none in an empty one.
    static func wayNames(_ list: String) -> [String] {
        list.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// What is wrong with the environment's choice of ways and scenarios, by which a run would pass that runs nothing.
    static var wrongChoice: String? {
        wrongWays(chosenWays)
            ?? (rules.chosen.isEmpty ? "DRYDOCK_SCENARIO and DRYDOCK_SCENARIO_WAYS choose no scenario" : nil)
    }

    /// Says which of these names is no way, or that there is none.
    static func wrongWays(_ names: [String]?) -> String? {
        guard let names else { return nil }
        let known = Way.all.map(\.description)
        let wrong = names.isEmpty ? "" : names.first { !known.contains($0) }
        return wrong.map { "DRYDOCK_SCENARIO_WAYS: “\($0)” is no way; there are \(known.joined(separator: ", "))" }
    }

    /// Those that this run is about.
    var chosen: [Scenario] {
        let ways = ScriptFiles.ways
        let possible = scenarios.filter { scenario in ways.contains { scenario.runs(in: $0) } }
        guard let filter = ScriptFiles.filter else { return possible }
        let parts = filter.split(separator: "|")
        return possible.filter { scenario in parts.contains { scenario.testDescription.contains($0) } }
    }
}
