// The table of mutants (Tests/Mutants) against the sources: each line that it breaks still stands where it says.

import Foundation
import Testing

/// One entry of the table.
private struct Mutant: CustomTestStringConvertible {
    var name: String
    var values: [String: String] = [:]

    var testDescription: String { name }

    static let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static let all: [Mutant] = {
        var mutants: [Mutant] = []
        for line in lines("Tests/Mutants/mutants.txt") where !line.isEmpty && !line.hasPrefix("#") {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            if words[0] == "mutant" {
                mutants.append(Mutant(name: words.last ?? ""))
            } else if let last = mutants.indices.last {
                mutants[last].values[words[0]] = words.count == 2 ? words[1] : ""
            }
        }
        return mutants
    }()

    /// Without their indentation; none where the file cannot be read.
    static func lines(_ path: String) -> [String] {
        let text = FileManager.default.contents(atPath: top.appendingPathComponent(path).path) ?? Data()
        return String(decoding: text, as: UTF8.self).components(separatedBy: "\n")
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }
}

@Suite struct MutantTableTests {
    @Test func theTableIsThere() {
        #expect(Mutant.all.count > 100)
        #expect(Set(Mutant.all.map(\.name)).count == Mutant.all.count)
    }

    @Test(arguments: Mutant.all) fileprivate func changesALineThatStandsThere(_ mutant: Mutant) throws {
        let file = try #require(mutant.values["file"])
        let line = try #require(mutant.values["line"])
        var lines = Mutant.lines(file)[...]
        if let below = mutant.values["below"] {
            #expect(lines.count { $0 == below } == 1, "“\(below)” must stand once in \(file)")
            lines = lines.drop { $0 != below }.dropFirst()
            #expect(lines.contains(line), "“\(line)” must stand below it in \(file)")
        } else {
            #expect(lines.count { $0 == line } == 1, "“\(line)” must stand once in \(file)")
        }
        #expect(try #require(mutant.values["with"]) != line)
        #expect(try #require(mutant.values["rule"]).isEmpty == false)
    }
}
