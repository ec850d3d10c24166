// What looks at names finds those that say of a thing only that it is somewhere, and leaves English as it is.

import Foundation
import TestSupport
import Testing

@Suite struct VagueNameTests {
    private static let script = URL(filePath: #filePath).appending(path: "../../../.ci/check-shape").standardizedFileURL

    /// What the check says of a package with this file, and with another one in its tests.
    private func findings(_ text: String, tests: String = "") throws -> [String] {
        let folder = try TemporaryFolder()
        try folder.write("Sources/A/One.swift", text)
        try folder.write("Tests/ATests/Test.swift", tests)
        let result = try Shell.run(Self.script.path, [folder.path])
        let lines = result.errors.split(separator: "\n").map(String.init)
        #expect(result.end == .exited(lines.isEmpty ? 0 : 1), "\(result.report)")
        return lines
    }

    @Test(arguments: [
        ("let place = 1", "place"), ("var places: [Int]", "places"), ("struct Place {}", "Place"),
        ("struct ReaderPlace {}", "ReaderPlace"), ("func take(placeOfNull: Int)", "placeOfNull"),
        ("let freePlaces = 1", "freePlaces"), ("x.requestPlaceOfAll()", "requestPlaceOfAll"), ("f(place: 1)", "place"),
        ("let place_2 = 1", "place_2"),
    ])
    func `a name with the word is found, in sources and in tests`(_ text: String, _ name: String) throws {
        let found = try findings("let a = 1\n\(text)\n")
        #expect(found.count == 1 && found[0].hasPrefix("Sources/A/One.swift:2: `\(name)` does not say"), "\(found)")
        let second = try findings("", tests: "\n\n\(text)\n")
        #expect(second.count == 1 && second[0].hasPrefix("Tests/ATests/Test.swift:3: `\(name)` does not"), "\(second)")
    }

    @Test func `each name is told once for each file`() throws {
        #expect(try findings("let place = 1\nlet b = place + place\nlet places = 2\n").count == 2)
    }

    @Test(arguments: [
        "let placeholder = 1", "let isPlaced = 1", "struct TierPlacement {}", "x.replaces(y)", "let replacement = 1",
        "case notInPlace", "let inPlace = 1", "func takesThePlaceOfTheOldOne()", "let marketplace = 1",
        "// The place of a comment.\n/* place */", "let a = \"a place\"", "func `has its place`()",
    ])
    func `other words, English, comments and texts are not`(_ text: String) throws {
        #expect(try findings(text + "\n") == [])
    }
}
