// Texts that a file of the tests holds: compared byte for byte, and written anew on demand.

import Foundation

/// A file in the folder `Texts` beside the test that reads it.
package struct GoldenFile: Sendable {
    /// Absolute.
    package let path: String

    /// - Parameter source: a file of the folder that `Texts` is in; by default the caller's.
    package init(_ name: String, besideFile source: String = #filePath) {
        path = URL(filePath: source).deletingLastPathComponent().appending(path: "Texts/\(name)").path
    }

    /// What the file holds; empty where it does not exist.
    package var text: String { readText(path) }

    /// What a test says of a text that is not the file's: the first line that differs, and how to write the file anew.
    /// Nil where they are the same. With `DRYDOCK_WRITE_TEXTS=1` the file is written, and then they are.
    ///
    /// - Parameter filter: of the test, for `swift test --filter`.
    /// - Throws: where the file cannot be written.
    package func difference(from text: String, filter: String) throws -> String? {
        if ProcessInfo.processInfo.environment["DRYDOCK_WRITE_TEXTS"] == "1" {
            try Data(text.utf8).write(to: URL(filePath: path))
            return nil
        }
        return Self.difference(self.text, text).map {
            "\(path), \($0)\nif the new text is right: DRYDOCK_WRITE_TEXTS=1 swift test --filter \(filter)"
        }
    }

    /// The first line that two texts do not share; nil where their bytes are the same.
    package static func difference(_ old: String, _ new: String) -> String? {
        guard !old.utf8.elementsEqual(new.utf8) else { return nil }
        let olds = old.utf8.split(separator: 10, omittingEmptySubsequences: false)
        let news = new.utf8.split(separator: 10, omittingEmptySubsequences: false)
        let same = zip(olds, news).prefix { $0.elementsEqual($1) }.count
        func line(_ lines: [Substring.UTF8View.SubSequence]) -> String {
            same < lines.count ? "'\(Substring(lines[same]))'" : "the end"
        }
        return "line \(same + 1): the file has \(line(olds)), and now it is \(line(news))"
    }
}
