// A tree as text: writes a configuration as YAML that means exactly its tree.

package import Trees

/// Writes YAML in block style, and in flow style what fits into a line.
package enum ConfigurationText {
    private static let width = 110

    /// The number of outer levels at which objects and lists have a line for each member: the file, its services, each
    /// of them.
    private static let openLevels = 3

    package static func text(_ tree: ContentTree) -> String {
        var result = ""
        block(tree, indent: 0, level: 0, into: &result)
        return result
    }

    private static func block(_ tree: ContentTree, indent: Int, level: Int, into result: inout String) {
        let space = String(repeating: " ", count: indent)
        switch tree {
        case .object(let members):
            for member in members {
                // The first member of an element is on the line of its dash.
                if result.isEmpty || result.utf8.last == UInt8(ascii: "\n") { result += space }
                let name = scalar(member.name)
                result += isLong(name) ? "? \(name)\n\(space):" : name + ":"
                value(member.value, indent: indent, used: member.name.count, level: level + 1, into: &result)
            }
        case .array(let values):
            for element in values {
                result += space + "-"
                value(element, indent: indent, used: 0, level: level + 1, into: &result)
            }
        default: result += flow(tree) + "\n"
        }
    }

    /// The text after a colon or a dash, with the end of its line.
    private static func value(
        _ tree: ContentTree,
        indent: Int,
        used: Int,
        level: Int,
        into result: inout String
    ) {
        let isLong =
            switch tree {
            case .object(let members): !members.isEmpty
            case .array(let values): !values.isEmpty
            default: false
            }
        if isLong {
            if level >= openLevels {
                let line = flow(tree)
                if indent + used + line.count <= width {
                    result += " " + line + "\n"
                    return
                }
            }
            if result.utf8.last == UInt8(ascii: "-"), tree.members != nil {
                result += " "
            } else {
                result += "\n"
            }
            block(tree, indent: indent + 2, level: level, into: &result)
        } else {
            result += " " + flow(tree) + "\n"
        }
    }

    private static func flow(_ tree: ContentTree) -> String {
        switch tree {
        case .null: "null"
        case .bool(let value): String(value)
        case .number(let text): text
        case .string(let text): scalar(text.replacing("${", with: "$${"))
        case .data, .date: scalar(tree.scalar ?? "")
        case .array(let values): "[" + values.map(flow).joined(separator: ", ") + "]"
        case .object(let members):
            members.isEmpty
                ? "{}"
                : "{ " + members.map { key(scalar($0.name)) + flow($0.value) }.joined(separator: ", ") + " }"
        }
    }

    /// The text of a key with its colon.
    private static func key(_ name: String) -> String { isLong(name) ? "? \(name) : " : name + ": " }

    /// Whether a key needs a question mark: YAML reads at most 1,024 characters before a colon as a key without one.
    private static func isLong(_ name: String) -> Bool { name.utf8.count > 1000 }

    /// The text of a string, in quotes unless it means itself without them.
    private static func scalar(_ text: String) -> String {
        if isPlain(text) { return text }
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\" + String(scalar)
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            // These are control characters, line ends, the byte order mark and noncharacters.
            case "\0"..."\u{1F}", "\u{7F}"..."\u{A0}", "\u{2028}", "\u{2029}", "\u{FEFF}", "\u{FFFE}", "\u{FFFF}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    private static let words: Set<String> = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]

    /// Whether the text is a word, a path, or a number with its unit, and so needs no quotes.
    private static func isPlain(_ text: String) -> Bool {
        guard let first = text.utf8.first, text.utf8.count < 80, !words.contains(text.lowercased()) else {
            return false
        }
        func isLetter(_ byte: UInt8) -> Bool { byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z") }
        func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
        if isLetter(first) || first == UInt8(ascii: "/") {
            return text.utf8.allSatisfy { isLetter($0) || isDigit($0) || "/._-".utf8.contains($0) }
        }
        // `250ms` and `20ms..80ms` are plain: with any other unit the text might be a number in another base.
        let parts = text.replacing("..", with: " ").split(separator: " ", omittingEmptySubsequences: false)
        return parts.count < 3
            && parts.allSatisfy { $0.hasSuffix("ms") && $0.utf8.count > 2 && $0.utf8.dropLast(2).allSatisfy(isDigit) }
    }
}
