// What differs from run to run in the output of commands, and the words that stand for it in transcripts.

import Foundation
import TestSupport

/// The table of texts that no transcript can have: each is replaced by a word, wherever it occurs.
struct OutputPatterns {
    /// Texts of one session, such as its folder and its ports; the first that fits is replaced.
    private let texts: [(String, String)]

    /// - Parameter texts: what stands in the output, and what stands for it in transcripts.
    init(texts: [(String, String)]) { self.texts = texts }

    /// What has a form of its own: moments, durations, random numbers, and what the kernel chose.
    private static let forms: [(pattern: String, word: String)] = [
        (#"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?"#, "TIME"),
        (#"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"#, "DATE"),
        (#"\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d"#, "DAY to DAY"),
        (#"local CA \d{4}-\d\d-\d\d \S+"#, "local CA DAY HOST"),
        (#"\b1[5-9]\d{8}\b"#, "SECOND"),
        (#"\bup \d+(\.\d+)?s\b"#, "up SOME"),
        (#"\bparked \d+s\b"#, "parked SOME"),
        (#"\b\d+ replays?:"#, "SOME replays:"),
        (#"\b\d+m left\b"#, "SOME left"),
        (#"(?<= )\d+\.\d+ms\b"#, "TOOK"),
        (#"\bfor another \d+ s\b"#, "for another SOME s"),
        (#", [\d.]+ a second since the start"#, ""),
        (#"connections    \d+,"#, "connections    N,"),
        (#"  \d+ connections?  by "#, "  N connections  by "),
        (#"(127\.0\.0\.1|localhost):[1-9]\d{4}\b"#, "$1:PORT"),
        (#"([0-9A-F]{2}:){31}[0-9A-F]{2}"#, "DIGEST"),
        (#"^(! )?[A-Za-z0-9+/=]{20,64}$"#, "$1BASE64"),
        (#""(answers_per_second|connections|duration_ms|left|replays|upstream_ms|uptime|waited)":[\d.]+"#, "\"$1\":N"),
        (#""(first_byte|whole)":\[[\d,]+\]"#, "\"$1\":[N]"),
        (#""id":"[0-9a-f]{16}""#, "\"id\":\"ID\""),
    ]

    /// Lines of which only the last counts, where several follow one another: how far something has come, and what is
    /// as long as chance will have it.
    private static let repeated = [#"^! (size|prefetch|group) \d+: "#, "^BASE64$"]

    /// The lines of an output as a transcript has them.
    func normalized(_ lines: [String]) -> [String] {
        var result: [String] = []
        var last: Int?
        for line in lines.map(normalized) {
            let kind = Self.repeated.firstIndex { line.range(of: $0, options: .regularExpression) != nil }
            if kind != nil, kind == last { result.removeLast() }
            result.append(line)
            last = kind
        }
        return result
    }

    private func normalized(_ output: String) -> String {
        var output = output
        for (text, word) in texts { output.replace(text, with: word) }
        for (pattern, word) in Self.forms {
            output = output.replacingOccurrences(of: pattern, with: word, options: .regularExpression)
        }
        return output
    }

    /// A word of a transcript as commands need it.
    func concrete(_ word: String) -> String {
        texts.reduce(word) { word, pair in word.replacing(pair.1, with: pair.0) }
    }
}
