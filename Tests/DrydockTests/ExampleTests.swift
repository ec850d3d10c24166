// The example of the documentation: it stands there as it was compiled, and does what it says.

import Foundation
import TestSupport
import Testing

@Suite struct ExampleTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The lines that are shown: all but the comment at the top.
    private func shown() throws -> String {
        let text = try String(contentsOf: Self.root.appendingPathComponent("Tests/Example/main.swift"), encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.drop { $0.hasPrefix("//") || $0.isEmpty }.joined(separator: "\n")
    }

    @Test func hasTenLines() throws {
        #expect(try shown().split(separator: "\n").count == 10)
    }

    @Test(arguments: ["README.md", "Documentation/library.md"]) func standsInTheDocumentation(name: String) throws {
        let page = try String(contentsOf: Self.root.appendingPathComponent(name), encoding: .utf8)
        #expect(
            page.contains("```swift\n\(try shown())```\n"),
            "\(name) has another example than Tests/Example/main.swift"
        )
    }

    @Test func runsByItself() async throws {
        let folder = try TemporaryFolder("drydock-example")
        let origin = try ScriptedOrigin { .answer(to: $0, "hello") }
        // Beside the tests, built with them.
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent("DrydockExample").path
        let environment = Shell.cleanEnvironment(adding: ["XDG_CACHE_HOME": folder.file("cache")])
        for (number, outcome) in ["downloaded", "stillValid"].enumerated() {
            let output = folder.file("output \(number)")
            let process = try ChildProcess(
                program,
                [origin.url + "/a", "ftp://origin.test/a"],
                environment: environment,
                output: output,
                errors: folder.file("errors")
            )
            #expect(await eventually { !process.isRunning })
            #expect(process.waitForEnd() == .exited(0), "\(folder.text("errors"))")
            let lines = readText(output).split(separator: "\n")
            #expect(
                lines == [
                    "5 bytes so far", "\(outcome): 5 bytes of \(origin.url)/a",
                    "cannot ask for 'ftp://origin.test/a': begin it with http:// or https://",
                ]
            )
        }
        #expect(origin.requests() == 1)
        #expect(FileManager.default.fileExists(atPath: folder.file("cache/DrydockExample/download")))
    }
}
