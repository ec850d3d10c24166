// The command lines and the files that the README shows, in the order in which a reader meets them.

import Foundation

/// What the README has a reader do.
struct ReadmeText {
    enum Step {
        /// A file that the text before it names.
        case file(name: String, text: String)
        case line(Line)
    }

    /// A command line of a block, or one inside a sentence.
    struct Line {
        /// Without the prompt and the comment.
        let command: String
        /// What stands behind its `#`.
        let comment: String?
        /// The lines under it, of which `...` stands for any number.
        var quoted: [String] = []
    }

    private(set) var steps: [Step] = []
    /// Blocks, by their first line, that are neither commands nor a file with a name.
    private(set) var unknown: [String] = []
    /// The languages of the fenced blocks.
    private(set) var languages: [String] = []

    var lines: [Line] {
        steps.compactMap { if case .line(let line) = $0 { line } else { nil } }
    }

    private static let programs = ["drydock", "curl", "make", "sudo", "export", "for"]

    /// - Parameter takesSpans: command lines inside sentences count, too.
    init(_ text: String, takesSpans: Bool = true) {
        self.takesSpans = takesSpans
        var prose = ""
        var block: [String] = []
        var isFenced = false
        for line in text.components(separatedBy: "\n") {
            if line.hasPrefix("```") {
                isFenced.toggle()
                if isFenced { languages.append(String(line.dropFirst(3))) }
            } else if isFenced {
                continue
            } else if line.hasPrefix("    ") {
                addSpans(of: prose)
                if let name = Self.fileName(in: prose) { lastFile = name }
                prose = ""
                block.append(String(line.dropFirst(4)))
            } else if line.isEmpty, !block.isEmpty {
                // A block goes on behind an empty line.
                block.append("")
            } else {
                add(block)
                block = []
                prose += line + "\n"
            }
        }
        add(block)
        addSpans(of: prose)
    }

    private let takesSpans: Bool
    /// The file that the text before a block names.
    private var lastFile: String?

    private static func spans(of prose: String) -> [String] {
        prose.matches(of: #/`([^`]+)`/#).map { String($0.1).replacing("\n", with: " ") }
    }

    private static func fileName(in prose: String) -> String? {
        spans(of: prose).last { $0.hasSuffix(".yaml") && !$0.contains(" ") }
    }

    private static func isCommand(_ line: String) -> Bool {
        programs.contains(String(line.prefix { $0 != " " }))
    }

    private mutating func addSpans(of prose: String) {
        for span in takesSpans ? Self.spans(of: prose) : [] where span.contains(" ") && Self.isCommand(span) {
            steps.append(.line(Line(command: span, comment: nil)))
        }
    }

    private mutating func add(_ block: [String]) {
        let lines = block.prefix(block.lastIndex { !$0.isEmpty }.map { $0 + 1 } ?? 0)
        guard let first = lines.first else { return }
        defer { lastFile = nil }
        if first.hasPrefix("$ ") {
            for line in lines where !line.isEmpty {
                if line.hasPrefix("$ ") {
                    addCommand(String(line.dropFirst(2)))
                } else if case .line(var last)? = steps.last {
                    last.quoted.append(line)
                    steps[steps.count - 1] = .line(last)
                }
            }
        } else if let lastFile, first.firstMatch(of: #/^[a-z_]+:/#) != nil {
            steps.append(.file(name: lastFile, text: lines.map { $0 + "\n" }.joined()))
        } else {
            for line in lines where !line.isEmpty {
                if Self.isCommand(line) { addCommand(line) } else { unknown.append(line) }
            }
        }
    }

    private mutating func addCommand(_ line: String) {
        let parts = line.firstMatch(of: #/^(.*?) +# (.*)$/#)
        steps.append(
            .line(Line(command: parts.map { String($0.1) } ?? line, comment: parts.map { String($0.2) }))
        )
    }
}
