// What looks for repeated code finds a run of lines that two files share, however it is set, and no shorter one.

import Foundation
import TestSupport
import Testing

@Suite struct RepeatedCodeTests {
    private static let script = URL(filePath: #filePath).appending(path: "../../../.ci/check-shape").standardizedFileURL

    /// What the check says of a package with these two files.
    private func findings(_ text: String, beside other: String) throws -> [String] {
        let folder = try TemporaryFolder()
        try folder.write("Sources/A/One.swift", text)
        try folder.write("Sources/B/Other.swift", other)
        try folder.write("Tests/ATests/Test.swift", "")
        let result = try Shell.run(Self.script.path, [folder.path])
        let lines = result.errors.split(separator: "\n").map(String.init)
        #expect(result.end == .exited(lines.isEmpty ? 0 : 1), "\(result.report)")
        return lines
    }

    /// Lines of code, each another one.
    private func code(_ count: Int) -> String { (0..<count).map { "let a\($0) = b\n" }.joined() }

    @Test func `thirteen lines are too many, and both places are named`() throws {
        let found = try findings("import C\n\nlet x = y\n" + code(13), beside: code(13) + "let z = y\n")
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix("Sources/A/One.swift:4: 13 lines are those of Sources/B/Other.swift:1-13") == true
        )
    }

    @Test func `comments and spaces do not tell places apart`() throws {
        let spaced = code(20).replacing("let", with: "  let ").replacing(
            "b\n",
            with: "b  // A comment.\n\n    // One.\n"
        )
        let found = try findings(code(20), beside: spaced)
        #expect(found.count == 1)
        #expect(found.first?.contains(": 20 lines are") == true)
    }

    @Test func `a file repeats itself`() throws {
        #expect(try findings(code(14) + "let x = y\n" + code(14), beside: "").count == 1)
    }

    @Test(arguments: ["", "import A\n"]) func `twelve lines may be the same`(_ first: String) throws {
        #expect(try findings(first + code(12), beside: first + code(12)) == [])
    }

    @Test func `rows of literals may be the same`() throws {
        let rows = (0..<30).map { "    \"a\($0)\": [0x1F, \($0).5], (\"b\", 1_000),\n" }.joined()
        #expect(try findings(rows + "let x = y\n", beside: rows + "let z = y\n") == [])
    }
}
