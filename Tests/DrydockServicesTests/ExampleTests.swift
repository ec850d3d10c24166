// The examples of the documentation: they do what it says, and the first one stands there as it was compiled.

import Foundation
import LibrarySupport
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

    @Test(arguments: ["README.md", "Sources/Drydock/Drydock.docc/Downloading.md"]) func standsInTheDocumentation(
        name: String
    ) throws {
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

    // MARK: - Processes that share a home, or have none

    /// While one process has the folder, another one answers as well from memory alone, under load, and says so; the next
    /// one finds what the first has kept.
    @Test func aSecondProcessGoesOnWithMemoryAlone() async throws {
        let (folder, gate) = (try TemporaryFolder("drydock-example"), Gate())
        let origin = try ScriptedOrigin { request in
            let answer = OriginReply.answer(
                to: request,
                fields: [("Cache-Control", "max-age=600")],
                "[{\"name\": \"Ada\", \"city\": \"\(request.target)\"}]"
            )
            return request.target == "/held" ? OriginReply([.wait(gate)]).then(answer) : answer
        }
        let paths = (0..<150).map { "/\($0)" }
        func lines(_ outcomes: [String: String]) -> [Substring] {
            paths.map { Substring("Ada lives in \($0) (\(outcomes[$0] ?? "downloaded"))") }
        }
        let urls = paths.map { origin.url + $0 }
        async let first = run("DrydockResources", urls + [origin.url + "/held"] + urls, in: folder, errors: "first")
        // It has its folder, and all but the last of the first half.
        #expect(await eventually { origin.requests(target: "/held") == 1 })
        let (second, end) = try await run("DrydockResources", urls + urls, in: folder, errors: "second")
        let valid = Dictionary(uniqueKeysWithValues: paths.map { ($0, "stillValid") })
        #expect(end == .exited(0) && second == lines([:]) + lines(valid))
        #expect(folder.text("second").contains("nothing is kept on disk"), "\(folder.text("second"))")
        #expect(origin.requests() == 2 * paths.count + 1)
        gate.open()
        let (held, firstEnd) = try await first
        #expect(firstEnd == .exited(0))
        #expect(held == lines([:]) + ["Ada lives in /held (downloaded)"] + lines(valid))
        #expect(!folder.text("first").contains("nothing is kept on disk"))
        let (third, thirdEnd) = try await run("DrydockResources", urls, in: folder, errors: "third")
        #expect(thirdEnd == .exited(0) && third == lines(valid), "the first one has kept it")
        #expect(origin.requests() == 2 * paths.count + 1)
    }

    /// Two at once, and nobody waits for anybody: whichever gets the folder.
    @Test func twoProcessesAtOnceAreBothRight() async throws {
        let folder = try TemporaryFolder("drydock-example")
        let origin = try ScriptedOrigin { request in
            .answer(
                to: request,
                fields: [("Cache-Control", "max-age=600")],
                "[{\"name\": \"Ada\", \"city\": \"\(request.target)\"}]"
            )
        }
        let paths = (0..<200).map { "/\($0 % 50)" }
        let urls = paths.map { origin.url + $0 }
        async let one = run("DrydockResources", urls, in: folder, errors: "one")
        async let other = run("DrydockResources", urls, in: folder, errors: "other")
        for (lines, end) in try await [one, other] {
            #expect(end == .exited(0) && lines.count == paths.count)
            for (line, path) in zip(lines, paths) { #expect(line.hasPrefix("Ada lives in \(path) (")) }
        }
        #expect((50...100).contains(origin.requests()))
    }

    @Test(arguments: [nil, "/sys/drydock", "FILE"]) func withoutAFolderMemoryHasToDo(cache: String?) async throws {
        let folder = try TemporaryFolder("drydock-example")
        try Data().write(to: URL(fileURLWithPath: folder.file("FILE")))
        let origin = try ScriptedOrigin { request in
            .answer(to: request, fields: [("Cache-Control", "max-age=600")], "[{\"name\": \"Ada\", \"city\": \"x\"}]")
        }
        let store = cache == "FILE" ? folder.file("FILE") : cache
        let (lines, end) = try await run(
            "DrydockResources",
            [origin.url + "/a", origin.url + "/a"],
            in: folder,
            cache: .some(store),
            errors: "errors"
        )
        #expect(end == .exited(0))
        #expect(lines == ["Ada lives in x (downloaded)", "Ada lives in x (stillValid)"])
        let said = folder.text("errors")
        #expect(
            said.contains("nothing is kept on disk") && said.contains("DownloadConfiguration.disk.folder"),
            "\(said)"
        )
        #expect(origin.requests() == 1)
    }

    /// Runs an example in a folder, with a cache there.
    /// - Returns: the lines that it printed, and how it ended.
    private func run(
        _ name: String,
        _ arguments: [String],
        in folder: TemporaryFolder,
        cache: String?? = nil,
        errors: String = "errors"
    ) async throws -> ([Substring], ProcessEnd) {
        try await output(Self.program(name), arguments, in: folder, cache: cache, errors: errors)
    }

    /// Beside the tests, built with them.
    private static func program(_ name: String) -> String {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent(name).path
    }

    /// - Parameter cache: what names the folder of caches; nil in it: nothing does, nor is there a home.
    private func output(
        _ program: String,
        _ arguments: [String],
        in folder: TemporaryFolder,
        cache: String?? = nil,
        errors: String = "errors"
    ) async throws -> ([Substring], ProcessEnd) {
        let output = folder.file("output \(UUID().uuidString)")
        var environment = Shell.cleanEnvironment(adding: ["XDG_CACHE_HOME": folder.file("cache")])
        if let cache { environment["XDG_CACHE_HOME"] = cache }
        if case .some(nil) = cache { environment["HOME"] = nil }
        let process = try ChildProcess(
            program,
            arguments,
            environment: environment,
            folder: folder.path,
            output: output,
            errors: folder.file(errors)
        )
        #expect(await eventually { !process.isRunning })
        return (readText(output).split { $0 == "\n" || $0 == "\r\n" }, try #require(process.waitForEnd()))
    }
}
