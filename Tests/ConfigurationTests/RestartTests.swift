// Which keys need a restart: those of which the table of keys says so, and no others.

import KeySupport
import Testing

@testable import Configuration

@Suite(SharedKeyFolder()) struct RestartTests {
    private static let cases = KeyCase.all().filter { $0.key.kind.section == nil }

    /// What the table says of the key, or of a section around it.
    private static func needsRestart(_ one: KeyCase) -> Bool {
        if one.key.doc.contains("a reload can change this key") { return false }
        var (section, docs) = (KeyTable.root, [one.key.doc])
        for step in one.way {
            guard let key = section.key(step.name), let below = key.kind.section else { break }
            docs.append(key.doc)
            section = below
        }
        return docs.contains { $0.contains("a change needs a restart") }
    }

    @Test(arguments: cases) func isNeededWhereTheTableSaysSo(_ one: KeyCase) throws {
        let folder = try #require(SharedKeyFolder.current)
        let (before, after) = try folder.loadBoth(KeyDocuments.document(around: one), KeyDocuments.changed(one))
        let differences = RestartDifference.all(in: after, since: before)
        #expect(differences.isEmpty != Self.needsRestart(one), "\(differences)")
    }

    @Test func someKeysNeedOne() {
        #expect(Self.cases.filter(Self.needsRestart).count == 14)
    }
}
