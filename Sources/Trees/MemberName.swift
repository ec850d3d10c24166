// Names of members: compared by their code points (RFC 8259 section 8.3), and converted to snake_case or camelCase.

package import Policies

/// A name as the key of a table, compared by code points.
package struct MemberName: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: MemberName, right: MemberName) -> Bool { left.text.isSameName(as: right.text) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension String {
    /// Whether both have the same code points.
    package func isSameName(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension [ContentTree.Member] {
    /// The index of the member with that name.
    package func firstIndex(named name: String) -> Int? { firstIndex { $0.name.isSameName(as: name) } }
}

// MARK: - Styles

// Names of members in snake_case or camelCase.
extension NameStyle {
    /// The name in this style: `userID`, `URLString` and `HTTPServer2` become `user_id`, `url_string` and
    /// `http_server2`; `user_id` becomes `userId`. Underscores at the beginning and at the end stay.
    package func name(_ name: String) -> String {
        switch self {
        case .snake: Self.snake(name)
        case .camel: Self.camel(name)
        }
    }

    /// The tree with all names of members in this style, also in lists.
    /// - Throws: an error if two members of an object would have the same name.
    package func renamed(_ tree: ContentTree) throws(TreeError) -> ContentTree {
        switch tree {
        case .array(let values):
            var renamed: [ContentTree] = []
            for value in values { renamed.append(try self.renamed(value)) }
            return .array(renamed)
        case .object(let members):
            var renamed: [ContentTree.Member] = []
            var names: [MemberName: String] = [:]
            for member in members {
                let name = name(member.name)
                if let other = names.updateValue(member.name, forKey: MemberName(name)) {
                    throw TreeError("'\(other)' and '\(member.name)' would both be '\(name)'")
                }
                renamed.append(ContentTree.Member(name, try self.renamed(member.value)))
            }
            return .object(renamed)
        default: return tree
        }
    }

    /// The name in snake_case. A word begins with a capital after another character, and with the last one of several
    /// capitals if a small letter follows it.
    private static func snake(_ name: String) -> String {
        let characters = Array(name)
        var result = ""
        for (index, character) in characters.enumerated() {
            if character.isUppercase, index > 0, characters[index - 1] != "_" {
                let before = characters[index - 1]
                let isLast = index + 1 < characters.count && characters[index + 1].isLowercase
                if !before.isUppercase || isLast { result.append("_") }
            }
            result += character.lowercased()
        }
        return result
    }

    private static func camel(_ name: String) -> String {
        let lead = name.prefix { $0 == "_" }
        let tail = name.reversed().prefix { $0 == "_" }
        guard lead.count < name.count else { return name }
        let words = name.dropFirst(lead.count).dropLast(tail.count).split(separator: "_")
        let first = words.first.map(String.init) ?? ""
        return lead + first + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
            + String(tail)
    }
}
