// Why a text is no template, and the nearest of the words that were expected.

/// A mistake in a template and its place; lines and columns count from 1, columns in Unicode scalars.
package struct TemplateError: Error, Sendable, Equatable, CustomStringConvertible {
    package let line: Int
    package let column: Int
    /// What is wrong, and what to do.
    package let message: String

    /// `LINE:COLUMN: MESSAGE`.
    package var description: String { "\(line):\(column): \(message)" }
}

/// Why a template gave no text for one request.
package enum RenderError: Error, Sendable, Equatable {
    /// It would have more than so many bytes, or take more than so many steps.
    case tooLong(limit: Int)
}

enum Nearest {
    /// The word that differs from `text` in at most a third of its letters; nil where all differ more.
    static func word(to text: String, among words: [String]) -> String? {
        let letters = Array(text.utf8)
        let found = words.map { (word: $0, distance: distance(letters, Array($0.utf8))) }.min {
            $0.distance < $1.distance
        }
        guard let found, found.distance <= max(1, letters.count / 3) else { return nil }
        return found.word
    }

    /// How many letters have to be changed, added or removed (Levenshtein).
    private static func distance(_ first: [UInt8], _ second: [UInt8]) -> Int {
        var row = Array(0...second.count)
        for (line, letter) in first.enumerated() {
            var diagonal = row[0]
            row[0] = line + 1
            for (column, other) in second.enumerated() {
                let changed = diagonal + (letter == other ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(changed, row[column] + 1, diagonal + 1)
            }
        }
        return row[second.count]
    }
}
