// Where one tree differs from another: by places, never by values.

/// The first places at which a tree has something else than an older one. The order of members makes no difference.
package struct TreeDifferences: Sendable, Equatable {
    /// Such as `user.roles[2] is missing`, in the order of the older tree; no text has a value of a document in it.
    package private(set) var texts: [String] = []
    /// There are more differences than those in ``texts``.
    package private(set) var isCut = false
    private let limit: Int

    /// - Parameter limit: of texts. The recursion is as deep as the trees are.
    package init(from old: ContentTree, to new: ContentTree, atMost limit: Int = 10) {
        self.limit = limit
        compare(old, new, "")
    }

    private mutating func add(_ place: String, _ what: String) {
        guard texts.count < limit else { return isCut = true }
        texts.append("\(place.isEmpty ? "the document" : place) \(what)")
    }

    private mutating func compare(_ old: ContentTree, _ new: ContentTree, _ place: String) {
        if isCut || old == new { return }
        switch (old, new) {
        case (.array(let old), .array(let new)):
            for (number, pair) in zip(old, new).enumerated() { compare(pair.0, pair.1, "\(place)[\(number)]") }
            for number in old.indices.dropFirst(new.count) where !isCut { add("\(place)[\(number)]", "is missing") }
            for number in new.indices.dropFirst(old.count) where !isCut { add("\(place)[\(number)]", "is new") }
        case (.object(let old), .object(let new)):
            let values = Dictionary(new.map { (MemberName($0.name), $0.value) }) { $1 }
            for member in old {
                let inner = Self.place(of: member.name, in: place)
                if let value = values[MemberName(member.name)] {
                    compare(member.value, value, inner)
                } else {
                    add(inner, "is missing")
                }
            }
            let known = Set(old.map { MemberName($0.name) })
            for member in new where !known.contains(MemberName(member.name)) {
                add(Self.place(of: member.name, in: place), "is new")
            }
        default:
            let (kind, other) = (old.kind, new.kind)
            add(place, kind == other ? "has changed" : "was \(kind) and is \(other)")
        }
    }

    /// `user.name`; a name that is no word is in quotation marks: `user["a b"]`.
    private static func place(of name: String, in place: String) -> String {
        let isWord =
            !name.isEmpty && name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" || $0 == "$" }
        if isWord, name.utf8.count <= 80 { return place.isEmpty ? name : "\(place).\(name)" }
        return "\(place)[\(String(decoding: JSONWriter.bytes(.string(String(name.prefix(80)))), as: UTF8.self))]"
    }
}

extension ContentTree {
    /// What it is, with its article.
    fileprivate var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        case .data: "data"
        case .date: "a date"
        }
    }
}
