// Short words for the parts of a tree that imports ask for.

import Content

extension ContentTree {
    /// The text that a string is.
    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var elements: [ContentTree]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The whole number that it is, also where it is written as `200.0`.
    var whole: Int? {
        guard case .number(let text) = self else { return nil }
        return Int(text) ?? Double(text).flatMap { Int(exactly: $0) }
    }

    var isTrue: Bool { self == .bool(true) }

    static func whole(_ number: Int) -> ContentTree { .number(String(number)) }

    static func texts(_ texts: [String]) -> ContentTree { .array(texts.map(ContentTree.string)) }

    /// An object with the members that have a value.
    static func object(of members: KeyValuePairs<String, ContentTree?>) -> ContentTree {
        .object(members.compactMap { name, value in value.map { Member(name, $0) } })
    }

    /// An object with one member more; nil adds none.
    func adding(_ name: String, _ value: ContentTree?) -> ContentTree {
        guard case .object(let members) = self, let value else { return self }
        return .object(members + [Member(name, value)])
    }

    /// How many values there are, this one among them.
    var size: Int {
        switch self {
        case .array(let values): values.reduce(1) { $0 + $1.size }
        case .object(let members): members.reduce(1) { $0 + 1 + $1.value.size }
        default: 1
        }
    }
}
