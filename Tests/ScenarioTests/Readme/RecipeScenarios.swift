// The recipes, and the pages that one begins with: a reader writes their files, types their lines, and sees what they quote.

import Foundation
import TestSupport
import Testing

/// One section of the recipes, or a whole page.
struct Recipe: Sendable, CustomTestStringConvertible {
    let title: String
    let text: String

    var testDescription: String { title }
    var page: ReadmeText { ReadmeText(text, takesSpans: false) }

    /// The sections of the recipes, and the four pages that a reader begins with.
    static let all: [Recipe] =
        page("guide/recipes.md").components(separatedBy: "\n## ").dropFirst().map { section in
            Recipe(title: String(section.prefix { $0 != "\n" }), text: section)
        }
        + ["app-cache.md", "team-cache.md", "service.md", "mock-api.md"].map { Recipe(title: $0, text: page($0)) }

    private static func page(_ name: String) -> String { readText(ExamplePage.root + "/Documentation/" + name) }
}

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Recipes {
        /// What the page calls the origin.
        static let base = "https://api.example.com"

        static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                guard request.target == "/users/7" else { return .answer(404, to: request, "none") }
                return .answer(to: request, fields: [("Content-Type", "application/json")], #"{"id":7,"name":"Ada"}"#)
            }
        }

        @Test(arguments: Recipe.all) func aRecipeDoesWhatThePageSays(_ recipe: Recipe) throws {
            #expect(recipe.page.unknown == [], "neither commands nor a file that the text before it names")
            let origin = try Self.origin()
            let reader = try RecipeReader(origin)
            for step in recipe.page.steps {
                switch step {
                case .file(let name, let text): try reader.write(name, text)
                case .line(let line): try reader.type(line)
                }
            }
            #expect(reader.hasServed, "every recipe is served")
        }
    }
}

/// Someone who has an empty folder, the page, and a shell.
final class RecipeReader {
    private let origin: ScriptedOrigin
    private let home: DaemonHome
    private let environment: [String: String]
    private var files: [String: String] = [:]
    private var daemon: Daemon?

    var hasServed: Bool { daemon != nil }

    init(_ origin: ScriptedOrigin) throws {
        self.origin = origin
        home = try DaemonHome()
        let binary = URL(filePath: try Daemon.binary()).deletingLastPathComponent().path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        environment = ["PATH": "\(binary):\(path)", "DRYDOCK_ADMIN": "unix:\(home.adminSocket)"]
    }

    /// A file of the page, with the origin's URL in place of the one that stands for it.
    func write(_ name: String, _ text: String) throws {
        files[name] = text.replacing(Scenarios.Recipes.base, with: origin.url)
        try home.folder.write(name, files[name] ?? "")
    }

    /// Types a line, and compares what it prints with what the page quotes.
    func type(_ line: ReadmeText.Line) throws {
        if let file = line.command.firstMatch(of: #/^drydock serve -c (\S+)$/#).map({ String($0.1) }) {
            return try serve(file)
        }
        // From here on nobody answers who is not on this machine.
        if line.command == "drydock offline on" { origin.stop() }
        let command = line.command.replacing("localhost:8080", with: "127.0.0.1:\(home.port)")
        let result = try Shell.run(
            "sh",
            ["-c", command],
            environment: environment,
            folder: home.folder.path
        )
        let output = result.output.replacing("127.0.0.1:\(home.port)", with: "localhost:8080")
        #expect(line.isQuoted(output), "\(line.command): the page quotes \(line.quoted), and it is \(result.report)")
    }

    /// Checks the file, and starts a daemon with it at an address of the test's own.
    private func serve(_ file: String) throws {
        let check = try Shell.run(try Daemon.binary(), ["check", "-c", file], folder: home.folder.path)
        #expect(check.succeeded, "\(file): \(check.report)")
        let own = "listen: 127.0.0.1:\(home.port)\nadmin: { listen: \"unix:\(home.adminSocket)\" }\n"
        let text = files[file].map(Self.withoutAddresses) ?? "include: [\"\(home.folder.file(file))\"]\n"
        daemon = try Daemon(text: own + text, at: home)
    }

    /// The file without the lines that say where the daemon listens.
    private static func withoutAddresses(_ text: String) -> String {
        text.split(separator: "\n").filter { !$0.hasPrefix("listen: ") && !$0.hasPrefix("admin: ") }
            .map { $0 + "\n" }.joined()
    }
}
