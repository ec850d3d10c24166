// The page of three complete files, and a reader who types its command lines.

import Foundation
import TestSupport
import Testing

/// The page, taken apart.
enum ExamplePage {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized.path

    private static let page = readText(root + "/Documentation/guide/examples.md")
    static let text = ReadmeText(page)

    /// The sections of the page: the path of the file that each is about, its text, and the lines that a reader types.
    static let examples: [(path: String, text: String, lines: [ReadmeText.Line])] =
        page.components(separatedBy: "\n## ").dropFirst()
        .compactMap { section in
            guard let path = section.firstMatch(of: #/config/examples/[a-z-]+\.yaml/#) else { return nil }
            return (String(path.0), readText(root + "/" + path.0), ReadmeText(section).lines)
        }
}

/// A reader of one example: line by line, with a daemon that runs the page's file.
final class ExampleReader {
    let daemon: Daemon
    private let base: String
    private var lines: [ReadmeText.Line]
    private let environment: [String: String]

    /// Starts the daemon with the file of the page, on a port of the test's own.
    /// - Parameters:
    ///   - base: the URL in the file that the environment replaces by the origin's.
    ///   - environment: for the daemon.
    init(_ name: String, base: String, _ environment: [String: String]) throws {
        let example = try #require(ExamplePage.examples.first { $0.path == "config/examples/\(name)" }, "\(name)")
        let home = try DaemonHome()
        let own =
            "listen: 127.0.0.1:\(home.port)\nadmin: { listen: \"unix:\(home.adminSocket)\" }\nclock: { movable: true }\n"
        // However slowly failures come, they are counted together.
        let text = example.text.replacing("listen: localhost:8080\n", with: own)
            .replacing("breaker: { failures: 6,", with: "breaker: { failures: 6, window: 10m,")
        try home.folder.write("no-picture.svg", readText(ExamplePage.root + "/config/examples/no-picture.svg"))
        daemon = try Daemon(text: text, at: home, environment: environment)
        self.base = base
        // The test has started it.
        lines = example.lines.filter { !$0.command.hasPrefix("drydock serve") && !$0.command.hasPrefix("export ") }
        let binary = URL(filePath: try Daemon.binary()).deletingLastPathComponent().path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        self.environment = ["PATH": "\(binary):\(path)", "DRYDOCK_ADMIN": "unix:\(home.adminSocket)"]
    }

    var isAtEnd: Bool { lines.isEmpty }

    /// Types the next line, which has to begin so, and compares what it prints with what the page quotes.
    /// - Parameters:
    ///   - origin: what stands for the origin's URL in the output.
    ///   - renew: where what the page quotes holds for a short time only, brings it about once more.
    func type(_ beginning: String, origin: String = "", renew: (() throws -> Void)? = nil) throws {
        let line = lines.removeFirst()
        #expect(line.command.hasPrefix(beginning), "the page goes on with \(line.command)")
        func typed() throws -> ShellResult {
            try Shell.run("sh", ["-c", own(line.command)], environment: environment)
        }
        var result = try typed()
        if let renew {
            _ = try eventually {
                if line.isQuoted(named(result.output, origin)) { return true }
                try renew()
                result = try typed()
                return false
            }
        }
        #expect(result.succeeded, "\(line.command): \(result.report)")
        compare(line, result.output, origin)
    }

    /// Types the next line in a terminal of its own; what comes back waits for its end and compares.
    func begin(_ beginning: String) throws -> () -> Void {
        let line = lines.removeFirst()
        #expect(line.command.hasPrefix(beginning), "the page goes on with \(line.command)")
        let folder = daemon.home.folder
        let child = try ChildProcess(
            "sh",
            ["-c", own(line.command)],
            environment: Shell.cleanEnvironment(adding: environment),
            output: folder.file("terminal.out"),
            errors: folder.file("terminal.err")
        )
        return { [self] in
            #expect(child.waitForEnd() == .exited(0), "\(line.command): \(folder.text("terminal.err"))")
            compare(line, folder.text("terminal.out"), "")
        }
    }

    private func own(_ command: String) -> String {
        command.replacing("localhost:8080", with: "127.0.0.1:\(daemon.port)")
    }

    private func named(_ output: String, _ origin: String) -> String {
        origin.isEmpty ? output : output.replacing(origin, with: base)
    }

    private func compare(_ line: ReadmeText.Line, _ output: String, _ origin: String) {
        let output = named(output, origin)
        #expect(
            line.isQuoted(output) && !line.quoted.isEmpty,
            "\(line.command): the page quotes \(line.quoted), and it prints \(output)"
        )
    }
}

extension ReadmeText.Line {
    /// The page quotes what was printed; a line that it quotes in part ends in `…`.
    func isQuoted(_ output: String) -> Bool {
        let printed = output.split(whereSeparator: \.isNewline).map { Self.general(String($0)) }
        return printed.count == quoted.count
            && zip(quoted, printed).allSatisfy { quoted, printed in
                quoted.hasSuffix("…") ? printed.hasPrefix(quoted.dropLast()) : Self.general(quoted) == printed
            }
    }

    /// Without the numbers that count with the time, and the name that follows from the machine.
    private static func general(_ line: String) -> String {
        line.replacing(/ttl=-?[0-9]+/, with: "ttl=N").replacing(/drydock-[0-9a-f]{8}/, with: "drydock-N")
    }
}
