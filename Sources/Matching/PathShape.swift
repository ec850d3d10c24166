// Paths that look like patterns of other tools, where a path is compared as it stands.

package enum PathShape {
    /// Whether a segment is `:id`, or a `*` or a part in braces stands anywhere.
    package static func looksLikePattern(_ path: String) -> Bool { path.split(separator: "/").contains(where: isOpen) }

    /// A regular expression of the paths that such a path looks like.
    package static func expression(_ path: String) -> String {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            if isParameter(segment) { return "[^/]+" }
            var result = ""
            var rest = segment
            while let character = rest.popFirst() {
                if character == "*" {
                    let isDeep = rest.first == "*"
                    if isDeep { rest.removeFirst() }
                    result += isDeep ? ".*" : "[^/]*"
                } else if character == "{", let end = rest.firstIndex(of: "}") {
                    rest = rest[rest.index(after: end)...]
                    result += "[^/]+"
                } else {
                    result += #"\.+?()[]{}^$|"#.contains(character) ? "\\\(character)" : String(character)
                }
            }
            return result
        }
        return "^" + segments.joined(separator: "/") + "$"
    }

    private static func isOpen(_ segment: Substring) -> Bool {
        if isParameter(segment) || segment.contains("*") { return true }
        guard let begin = segment.firstIndex(of: "{") else { return false }
        return segment[begin...].contains("}")
    }

    /// `:id`
    private static func isParameter(_ segment: Substring) -> Bool {
        guard segment.first == ":", let second = segment.dropFirst().first else { return false }
        return second.isLetter || second == "_"
    }
}
