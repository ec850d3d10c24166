// The examples of the documentation: they do what it says, and the first one stands there as it was compiled.

import Foundation
import TestSupport
import Testing

@Suite struct ExampleTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The lines that are shown: all but the comment at the top.
    private func shown() throws -> String {
        let file = Self.root.appendingPathComponent("Tests/Examples/Download/main.swift")
        let text = try String(contentsOf: file, encoding: .utf8)
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
            "\(name) has another example than Tests/Examples/Download/main.swift"
        )
    }

    @Test func runsByItself() async throws {
        let folder = try TemporaryFolder("drydock-example")
        let origin = try ScriptedOrigin { .answer(to: $0, "hello") }
        for outcome in ["downloaded", "stillValid"] {
            let (lines, _) = try await run("DrydockExample", [origin.url + "/a", "ftp://origin.test/a"], in: folder)
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

    @Test func downloaderFetchesManyIntoFiles() async throws {
        let folder = try TemporaryFolder("drydock-example")
        let origin = try ScriptedOrigin { request in
            request.target == "/none" ? .answer(404, to: request, "none") : .answer(to: request, "of \(request.target)")
        }
        let urls = ["/a", "/b", "/c/a", "/none"].map { origin.url + $0 }
        let (lines, end) = try await run("DrydockDownloader", urls, in: folder)
        #expect(lines.count == 4)
        #expect(
            Set(lines.filter { $0.hasPrefix("downloaded  ") }) == ["downloaded  a", "downloaded  b", "downloaded  a.2"]
        )
        #expect(lines.contains { $0.hasPrefix("failed  none  ") && $0.contains("404") }, "\(lines)")
        #expect(end == .exited(1))
        for (name, text) in [("a", "of /a"), ("b", "of /b"), ("a.2", "of /c/a")] {
            #expect(folder.text(name) == text)
        }
        #expect(!FileManager.default.fileExists(atPath: folder.file("none")))
        let (again, success) = try await run("DrydockDownloader", Array(urls.prefix(3)), in: folder)
        #expect(Set(again) == ["stillValid  a", "stillValid  b", "stillValid  a.2"] && success == .exited(0))
        #expect(origin.requests() == 4)
        #expect(try await run("DrydockDownloader", [], in: folder).1 == .exited(2))
    }

    @Test func downloaderDrawsBarsOnATerminal() async throws {
        let folder = try TemporaryFolder("drydock-example")
        let origin = try ScriptedOrigin { _ in .pattern(3_000_000) }
        // script(1) gives the program a terminal.
        let program = Self.program("DrydockDownloader")
        let lines = try await output(
            "/usr/bin/script",
            ["-qec", "\(program) \(origin.url)/a", "/dev/null"],
            in: folder
        )
        #expect(lines.0.contains { $0.contains("\u{1B}[2Kdownloaded  a") }, "\(lines.0)")
        #expect(try FileManager.default.attributesOfItem(atPath: folder.file("a"))[.size] as? Int == 3_000_000)
    }

    @Test func resourcesBecomeValues() async throws {
        let folder = try TemporaryFolder("drydock-example")
        let origin = try ScriptedOrigin { request in
            .answer(
                to: request,
                fields: [("Cache-Control", "max-age=600")],
                request.target == "/users" ? "[{\"name\": \"Ada\", \"city\": \"London\"}]" : "oops"
            )
        }
        let arguments = [origin.url + "/users", origin.url + "/users", origin.url + "/other", "ftp://origin.test/"]
        let (lines, end) = try await run("DrydockResources", arguments, in: folder)
        #expect(end == .exited(0) && lines.count == 4, "\(lines)")
        #expect(
            lines.prefix(3) == [
                "Ada lives in London (downloaded)", "Ada lives in London (stillValid)",
                "\(origin.url)/other is no list of users: 4 bytes",
            ]
        )
        #expect(lines.last?.hasPrefix("ftp://origin.test/ brought nothing: ") == true)
        #expect(origin.requests() == 2)
    }

    /// Runs an example in a folder, with a cache there.
    /// - Returns: the lines that it printed, and how it ended.
    private func run(_ name: String, _ arguments: [String], in folder: TemporaryFolder) async throws -> (
        [Substring], ProcessEnd
    ) {
        try await output(Self.program(name), arguments, in: folder)
    }

    /// Beside the tests, built with them.
    private static func program(_ name: String) -> String {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent(name).path
    }

    private func output(_ program: String, _ arguments: [String], in folder: TemporaryFolder) async throws -> (
        [Substring], ProcessEnd
    ) {
        let output = folder.file("output \(UUID().uuidString)")
        let process = try ChildProcess(
            program,
            arguments,
            environment: Shell.cleanEnvironment(adding: ["XDG_CACHE_HOME": folder.file("cache")]),
            folder: folder.path,
            output: output,
            errors: folder.file("errors")
        )
        #expect(await eventually { !process.isRunning })
        return (readText(output).split { $0 == "\n" || $0 == "\r\n" }, try #require(process.waitForEnd()))
    }
}
