// The target of an endpoint on its origin, with parameters in it: `/v2/people/:id?expand=:expand`.

/// A path, perhaps with a query, in which `:name` stands for a parameter. A name has letters, digits, `_` and `.`; a
/// dot makes it a path into the content of the request. A backslash removes the meaning of `:`, `.` and `\`, and ends a
/// name: `/people/:id\.json`. `*` at the end of the path is the rest of the client's path.
package struct TargetTemplate: Sendable, Hashable, CustomStringConvertible {
    package enum Piece: Sendable, Hashable {
        /// A text that is sent as it is.
        case literal(String)
        case parameter(String)
        case rest
    }

    /// The reason why a text is not a template.
    package struct Malformed: Error, Sendable, Equatable {
        package let message: String
    }

    /// The template as it is in the file.
    package let description: String
    /// The pieces of the path; the first one is a literal that begins with a slash.
    package let path: [Piece]
    /// The pieces of the query; nil without a question mark.
    package let query: [Piece]?

    package init(_ text: String) throws(Malformed) {
        guard text.hasPrefix("/") else { throw Malformed(message: "'\(text)' must begin with a slash; write /\(text)") }
        guard text.utf8.count <= 2048 else { throw Malformed(message: "is longer than 2048 bytes; shorten it") }
        description = text
        var (path, query): ([Piece], [Piece]?) = ([], nil)
        var literal = ""
        var rest = text[...]
        func flush() {
            if literal.isEmpty { return }
            if query == nil { path.append(.literal(literal)) } else { query?.append(.literal(literal)) }
            literal = ""
        }
        func add(_ piece: Piece) {
            flush()
            if query == nil { path.append(piece) } else { query?.append(piece) }
        }
        while let character = rest.popFirst() {
            switch character {
            case ":":
                let name = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == ".") }
                rest = rest.dropFirst(name.count)
                guard Self.isName(name) else {
                    throw Malformed(
                        message:
                            "'\(text)' has a ':' without a name; write a name such as :id or :user.id, or '\\:' for the character"
                    )
                }
                if case .parameter? = (query ?? path).last, literal.isEmpty {
                    throw Malformed(message: "'\(text)' has two parameters side by side; put a character between them")
                }
                add(.parameter(String(name)))
            case "\\":
                guard let escaped = rest.popFirst(), ":.\\@".contains(escaped) else {
                    throw Malformed(message: "'\(text)' has a '\\' before another character than ':', '.' and '\\'")
                }
                literal += escaped == "\\" ? "%5C" : String(escaped)
            case "*" where query == nil:
                guard literal.hasSuffix("/"), rest.isEmpty || rest.first == "?" else {
                    throw Malformed(message: "'\(text)' has a '*' elsewhere than as the last segment of the path")
                }
                // The rest of a path begins with its slash.
                literal.removeLast()
                add(.rest)
            case "?" where query == nil:
                flush()
                query = []
            default:
                guard let byte = character.asciiValue, byte > 32, byte < 127, byte != 35 else {
                    throw Malformed(
                        message: "'\(text)' is no target; leave out '#', and percent-encode what is not ASCII"
                    )
                }
                literal.append(character)
            }
        }
        flush()
        self.path = path
        self.query = query
        let shape = path.map { if case .literal(let text) = $0 { text } else { "x" } }.joined()
        let segments = shape.lowercased().replacing("%2e", with: ".").split(separator: "/")
        guard !segments.contains(where: { [".", ".."].contains($0.prefix { $0 != ";" }) }) else {
            throw Malformed(message: "'\(text)' has a dot segment; write the path that it leads to")
        }
    }

    /// The names of the parameters, in order; one that occurs twice is there twice.
    package var parameters: [String] {
        (path + (query ?? [])).compactMap { if case .parameter(let name) = $0 { name } else { nil } }
    }

    package var hasRest: Bool { path.contains(.rest) }

    private static func isName(_ name: Substring) -> Bool {
        !name.isEmpty && name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
    }
}
