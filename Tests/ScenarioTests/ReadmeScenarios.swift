// The README's command lines run as they stand, from the first to the last, for four kinds of readers.

import Foundation
import TestSupport
import Testing

/// The README of this package, and what the tests know of it.
enum ReadmeLines {
    static let readme = ReadmeText(
        readText(
            URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../README.md").standardized.path
        )
    )

    /// What no test runs from here, by the beginnings of the lines.
    static let leftOut = [
        ("make build", "builds; the tests run what it builds"),
        ("make deb", "'make check-deb' builds, installs and uses the package"),
        ("make dist", "builds an archive"),
        ("make test", "runs this test"),
        ("sudo make install", "'make check-deb' installs; sudo asks for a password"),
        ("sudo systemctl", "needs systemd as process 1; 'make check-unit' looks at the unit"),
    ]

    static func isLeftOut(_ line: ReadmeText.Line) -> Bool { leftOut.contains { line.command.hasPrefix($0.0) } }

    /// What a line prints besides what the README quotes, by the beginning of the line.
    static let printed: [(line: String, texts: [String])] = [
        ("drydock list", ["https://api.github.com/users/octocat"]),
        ("drydock purge --prefix", ["1 stored response purged"]),
        ("drydock prefetch", ["done, 2 "]),
        ("curl -i http://localhost:8080/users/octocat", ["HTTP/1.1 200 OK", "\"login\": \"octocat\""]),
        ("curl -i http://localhost:8080/users/nobody", ["HTTP/1.1 504 "]),
        ("curl -i http://localhost:8080/users/7", ["Drydock-Demo: endpoint=user; "]),
        ("drydock config default", ["\nlisten: "]),
        ("drydock check", ["ok (1 service, 0 endpoints)"]),
        (
            "curl -i http://localhost:8080/github/users/octocat",
            ["HTTP/1.1 200 OK", "\"asked with\": \"Bearer ghp_test\""]
        ),
        (
            "curl -i http://deb.debian.org",
            ["HTTP/1.1 200 OK", "Cache-Status: drydock-", "; fwd=uri-miss; fwd-status=200; stored", "Suite: stable"]
        ),
        ("drydock explain /shop/catalogue", ["service shop at /shop", "/shop/catalogue"]),
        ("drydock status", ["process "]),
        // What the text around 'drydock serve https://api.example.com' promises.
        ("curl -s --include http://localhost:8080/", ["HTTP/1.1 200 OK", "\"from\": \"api.example.com\""]),
        ("ls ~/.cache/drydock/serve", ["index.sqlite"]),
    ]

    /// Lines that the README does not have, behind one that it has.
    private static func further(_ line: ReadmeText.Line) -> [String] {
        guard isServing(line) else { return [] }
        var lines = ["drydock status"]
        if line.command.contains("https://api.example.com") {
            lines += ["curl -s --include http://localhost:8080/", "ls ~/.cache/drydock/serve"]
        }
        return lines
    }

    private static func isServing(_ line: ReadmeText.Line) -> Bool {
        line.command.hasPrefix("drydock serve ") || line.command == "make run"
    }

    /// A step of the script, and what it has to print.
    struct Step {
        let name: String
        /// As the README has it.
        let line: ReadmeText.Line
    }

    /// What the reader's shell runs, and its steps.
    static func script() -> (text: String, steps: [Step]) {
        var text = ""
        var steps: [Step] = []
        func run(_ command: String, _ line: ReadmeText.Line) {
            let name = "\(steps.count)"
            steps.append(Step(name: name, line: line))
            text += "step \(name)\n\(command)\ncode\n"
        }
        for step in readme.steps {
            switch step {
            case .file(let name, let content):
                text += "cd \"$HOME/try\"\ncat > \(name) <<'README'\n\(content)README\n"
            case .line(let line) where isLeftOut(line): continue
            case .line(let line) where isServing(line):
                text += "end_daemon 'end \(steps.count)'\n"
                var command = line.command
                if command == "make run" {
                    // SwiftPM would wait for the lock of the tests' own build.
                    command = ".ci/run-demo \"$(command -v drydock)\""
                    text += "cd \"$source\"\n"
                }
                // A shell without a terminal would keep Ctrl-C from what runs in its background.
                run(
                    "env --default-signal=INT,QUIT \(command) > \"$HOME/daemon.log\" 2>&1 &\ndaemon=$!\nlistening",
                    line
                )
            case .line(let line):
                // The reader's own token.
                let command = line.command.replacing("ghp_…", with: "ghp_test")
                run("\(command)\(line.comment.map { " # \($0)" } ?? "")", line)
            }
            if case .line(let line) = step {
                for command in further(line) { run(command, ReadmeText.Line(command: command, comment: nil)) }
            }
        }
        return (text, steps)
    }

    // MARK: - What is expected

    /// The lines that the README quotes of a line's output; nil where it quotes none.
    static func quoted(_ line: ReadmeText.Line) -> [String]? {
        if let comment = line.comment, comment.hasPrefix("drydock-") { return ["Cache-Status: \(comment)"] }
        return line.quoted.isEmpty ? nil : line.quoted
    }

    /// Without the numbers that count with the time, and the name that follows from the machine.
    private static func general(_ line: String) -> String {
        line.replacing(/(ttl=|Age: )[0-9]+/) { "\($0.1)N" }.replacing(/drydock-[0-9a-f]{8}/, with: "drydock-N")
    }

    /// Whether the output has just these lines, where `...` stands for any number of lines.
    static func agree(_ quoted: [String], _ output: String) -> Bool {
        var parts = [quoted.map(general)[...]]
        while let index = parts[parts.count - 1].firstIndex(of: "...") {
            let last = parts.removeLast()
            parts += [last[..<index], last[(index + 1)...]]
        }
        var lines = output.split(separator: "\n").map { general(String($0)) }[...]
        guard lines.starts(with: parts[0]) else { return false }
        lines = lines.dropFirst(parts[0].count)
        guard parts.count > 1 else { return lines.isEmpty }
        for part in parts[1..<(parts.count - 1)] {
            guard let range = lines.firstRange(of: part) else { return false }
            lines = lines[range.upperBound...]
        }
        let last = parts[parts.count - 1]
        return lines.count >= last.count && lines.suffix(last.count) == last
    }
}

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Readme {
        @Test func everyBlockIsKnown() throws {
            let readme = ReadmeLines.readme
            #expect(readme.unknown == [], "neither commands nor a file that the text before it names")
            // ExampleTests compares the program with the one that it builds.
            #expect(readme.languages == ["swift"])
            #expect(readme.lines.filter { !ReadmeLines.isLeftOut($0) }.count >= 20)
            for (beginning, reason) in ReadmeLines.leftOut {
                let isThere = readme.lines.contains { $0.command.hasPrefix(beginning) }
                #expect(isThere, "the README has no '\(beginning)' (left out: \(reason)) any more")
            }
            let steps = ReadmeLines.script().steps
            for (beginning, _) in ReadmeLines.printed {
                #expect(
                    steps.contains { $0.line.command.hasPrefix(beginning) },
                    "the README has no '\(beginning)' any more"
                )
            }
            #expect(steps.count { ReadmeLines.quoted($0.line) != nil } >= 4)
        }

        @Test(
            .enabled(
                if: ReadmeWorld.isPossible,
                "needs root, and a container that lets it make network, mount and process namespaces"
            )
        )
        func everyLineDoesWhatItSays() throws {
            let script = ReadmeLines.script()
            // Each has a network of its own: they do not meet.
            let worlds = try Reader.all.map { ($0, try ReadmeWorld($0, script: script.text)) }
            for (reader, world) in worlds {
                let (results, report) = world.results()
                for step in script.steps { check(step, results[step.name], reader, report) }
                let ends = results.filter { $0.key.hasPrefix("end") }
                #expect(ends.count >= 5, "\(reader): \(report)")
                for (name, end) in ends { #expect(end.code == 0, "\(reader), \(name), Ctrl-C: \(end.output)") }
            }
        }

        private func check(_ step: ReadmeLines.Step, _ result: StepResult?, _ reader: Reader, _ report: String) {
            let line = step.line.command
            guard let result, let code = result.code else {
                Issue.record("\(reader): '\(line)' did not come to its end: \(result?.output ?? "") \(report)")
                return
            }
            #expect(code == 0, "\(reader): '\(line)': \(result.output)")
            if let quoted = ReadmeLines.quoted(step.line) {
                #expect(ReadmeLines.agree(quoted, result.output), "\(reader): '\(line)': \(result.output)")
            }
            for (beginning, texts) in ReadmeLines.printed where line.hasPrefix(beginning) {
                for text in texts { #expect(result.output.contains(text), "\(reader): '\(line)': \(result.output)") }
            }
        }

        @Test(
            arguments: [
                (["a", "...", "d"], "a\nb\nc\nd\n", true), (["a", "...", "d"], "a\nb\nc\n", false),
                (["a", "...", "d"], "a\nd\n", true), (["a", "d"], "a\nb\nd\n", false), (["a"], "a\na\n", false),
                (["x; ttl=58"], "x; ttl=60\n", true), (["x; ttl=58"], "y; ttl=58\n", false),
                (["Age: 0"], "Age: 1\n", true),
            ]
        )
        func quotedLinesAgree(quoted: [String], output: String, agree: Bool) {
            #expect(ReadmeLines.agree(quoted, output) == agree)
        }
    }
}
