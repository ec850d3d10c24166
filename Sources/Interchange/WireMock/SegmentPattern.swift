// A regular expression that stands for one whole segment of a path, as a part of one for the path.

enum SegmentPattern {
    /// The part: without the anchors at its ends, which would be in the middle of the path, and with dots that do not
    /// leave the segment; nil where there are anchors within, of which nothing says what they would mean.
    /// - Parameter pattern: a regular expression that the whole segment has to match.
    static func part(_ pattern: String) -> String? {
        var rest = pattern[...]
        if rest.hasPrefix("^") { rest = rest.dropFirst() } else if rest.hasPrefix(#"\A"#) { rest = rest.dropFirst(2) }
        var result = ""
        var isClass = false
        while let character = rest.first {
            rest = rest.dropFirst()
            switch character {
            case "\\":
                guard let next = rest.first else { return nil }
                rest = rest.dropFirst()
                if !isClass, "AzZG".contains(next) {
                    // At the end it is the end of the segment.
                    guard next != "A", next != "G", rest.isEmpty else { return nil }
                } else {
                    result += "\\" + String(next)
                }
            case "[" where !isClass:
                isClass = true
                result.append(character)
                // A bracket that stands first is one of the class.
                if rest.first == "^" {
                    result += "^"
                    rest = rest.dropFirst()
                }
                if rest.first == "]" {
                    result += "]"
                    rest = rest.dropFirst()
                }
            case "]" where isClass:
                isClass = false
                result.append(character)
            case "." where !isClass: result += "[^/]"
            case "$" where !isClass: guard rest.isEmpty else { return nil }
            case "^" where !isClass: return nil
            default: result.append(character)
            }
        }
        return "(?:" + result + ")"
    }
}
