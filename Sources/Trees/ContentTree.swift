// Structured content as a tree: the common form of JSON, forms and property lists, its numbers, and the differences of
// two trees.

import HTTPWire

/// A value of JSON (RFC 8259), lossless: members keep their order, and numbers their digits.
package enum ContentTree: Sendable, Hashable {
    /// A name and its value.
    package struct Member: Sendable, Hashable {
        package var name: String
        package var value: ContentTree

        package init(_ name: String, _ value: ContentTree) {
            self.name = name
            self.value = value
        }

        package static func == (left: Member, right: Member) -> Bool {
            left.name.isSameName(as: right.name) && left.value == right.value
        }
    }

    case null
    case bool(Bool)
    /// A number, spelled as in JSON.
    case number(String)
    case string(String)
    case array([ContentTree])
    /// An object, in which no name occurs twice.
    case object([Member])
    /// Bytes, which JSON and forms write in Base64.
    case data([UInt8])
    /// A time in whole seconds since 1970, which is a type of property lists.
    case date(Int64)
}

extension ContentTree {
    /// An object without members.
    package static let empty = ContentTree.object([])

    /// The members of an object; nil for other values.
    package var members: [Member]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// Whether two trees are equal; texts and names of members are compared by code points.
    package static func == (left: ContentTree, right: ContentTree) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.isSameName(as: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        case (.data(let left), .data(let right)): left == right
        case (.date(let left), .date(let right)): left == right
        default: false
        }
    }

    /// The member with that name.
    package subscript(name: String) -> ContentTree? {
        guard let members, let index = members.firstIndex(named: name) else { return nil }
        return members[index].value
    }

    /// The value at a path of member names, which never leads into arrays.
    package func value(at path: some Collection<some StringProtocol>) -> ContentTree? {
        guard let first = path.first else { return self }
        return self[String(first)]?.value(at: path.dropFirst())
    }

    /// The value as text in a URL or a form; nil for an array, an object and null.
    package var scalar: String? {
        switch self {
        case .bool(let value): String(value)
        case .number(let text), .string(let text): text
        case .data(let bytes): Base64.encode(bytes)
        case .date(let seconds): CalendarTime(seconds).iso8601
        case .null, .array, .object: nil
        }
    }

    /// The object with the missing members of the defaults added, at every depth; an existing value takes precedence,
    /// null too.
    package func filled(from defaults: ContentTree) -> ContentTree {
        guard case .object(var members) = self, case .object(let more) = defaults else { return self }
        for member in more {
            if let index = members.firstIndex(named: member.name) {
                members[index].value = members[index].value.filled(from: member.value)
            } else {
                members.append(member)
            }
        }
        return .object(members)
    }

    /// The tree without members that are null, and without objects that have no members left. Arrays stay as they are.
    package func strippingNulls() -> ContentTree {
        guard case .object(let members) = self else { return self }
        return .object(
            members.compactMap { member in
                switch member.value {
                case .null: return nil
                case .object(let inner):
                    let stripped = member.value.strippingNulls()
                    return inner.isEmpty || stripped != .empty ? Member(member.name, stripped) : nil
                default: return member
                }
            }
        )
    }

    /// The tree with the members of every object sorted by the bytes of their names.
    package func sorted() -> ContentTree {
        switch self {
        case .array(let values): .array(values.map { $0.sorted() })
        case .object(let members):
            .object(
                members.map { Member($0.name, $0.value.sorted()) }
                    .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
            )
        default: self
        }
    }

    /// The tree with the value at a path of member names changed, in every element of an array on the way.
    package func changing<Failure: Error>(
        _ path: ArraySlice<String>,
        _ change: (ContentTree) throws(Failure) -> ContentTree
    ) throws(Failure) -> ContentTree {
        guard let first = path.first else {
            guard case .array(let values) = self else { return try change(self) }
            var changed: [ContentTree] = []
            for value in values { changed.append(try change(value)) }
            return .array(changed)
        }
        switch self {
        case .array(let values):
            var changed: [ContentTree] = []
            for value in values { changed.append(try value.changing(path, change)) }
            return .array(changed)
        case .object(var members):
            if let index = members.firstIndex(named: first) {
                members[index].value = try members[index].value.changing(path.dropFirst(), change)
            }
            return .object(members)
        default: return self
        }
    }
}

// MARK: - Parts

// Short names for the parts of a tree.
extension ContentTree {
    /// The text of a string; nil for other values.
    package var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The elements of an array; nil for other values.
    package var elements: [ContentTree]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The whole number; nil for other values. `200.0` is whole, too.
    package var whole: Int? {
        guard case .number(let text) = self else { return nil }
        return Int(text) ?? Double(text).flatMap { Int(exactly: $0) }
    }

    /// Whether this is the value true.
    package var isTrue: Bool { self == .bool(true) }

    /// The number that a text spells in the form of JSON; nil for any other text.
    package static func number(spelled text: String) -> ContentTree? {
        JSONTokenizer.isNumber(Array(text.utf8)[...]) ? .number(text) : nil
    }

    /// A whole number.
    package static func whole(_ number: Int) -> ContentTree { .number(String(number)) }

    /// An array of strings.
    package static func texts(_ texts: [String]) -> ContentTree { .array(texts.map(ContentTree.string)) }

    /// An object of those members that have a value.
    package static func object(of members: KeyValuePairs<String, ContentTree?>) -> ContentTree {
        .object(members.compactMap { name, value in value.map { Member(name, $0) } })
    }

    /// The object with another member; nil adds none.
    package func adding(_ name: String, _ value: ContentTree?) -> ContentTree {
        guard case .object(let members) = self, let value else { return self }
        return .object(members + [Member(name, value)])
    }

    /// The number of values in the tree, this one included.
    package var size: Int {
        switch self {
        case .array(let values): values.reduce(1) { $0 + $1.size }
        case .object(let members): members.reduce(1) { $0 + 1 + $1.value.size }
        default: 1
        }
    }
}

// MARK: - Errors and limits

/// The error of bytes that are not a tree.
package struct TreeError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The limits of a tree that is read.
package struct TreeLimits: Sendable, Equatable {
    /// The most levels of nested objects and arrays.
    package var depth: Int
    /// The most values, including nested ones.
    package var values: Int

    package init(depth: Int = 64, values: Int = 100_000) {
        self.depth = depth
        self.values = values
    }
}

// MARK: - Numbers

/// An exact number in the form of JSON (RFC 8259 section 6); leading zeros and a plus sign are accepted.
package struct DecimalNumber: Sendable, Equatable {
    private let isNegative: Bool
    /// The digits without zeros at either end; empty for zero.
    private let digits: [UInt8]
    /// The number of digits before the point; negative is the number of zeros between it and the first digit.
    private let magnitude: Int

    /// The limit of exponents; a larger one is limited to it.
    private static let largestExponent = 1 << 40

    /// Reads a number.
    /// - Returns: nil if the text is not one.
    package init?(_ text: String) {
        var rest = Substring(text).utf8[...]
        func takeDigits() -> [UInt8] {
            let digits = rest.prefix { 48...57 ~= $0 }
            rest = rest.dropFirst(digits.count)
            return Array(digits)
        }
        func takeSign() -> Bool {
            guard let first = rest.first, first == UInt8(ascii: "-") || first == UInt8(ascii: "+") else { return false }
            rest = rest.dropFirst()
            return first == UInt8(ascii: "-")
        }
        let isNegative = takeSign()
        var digits = takeDigits()
        var magnitude = digits.count
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            let fraction = takeDigits()
            guard !fraction.isEmpty else { return nil }
            digits += fraction
        }
        guard !digits.isEmpty else { return nil }
        if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            let isSmall = takeSign()
            let exponent = takeDigits()
            guard !exponent.isEmpty else { return nil }
            let size = exponent.reduce(0) { min($0 * 10 + Int($1 - 48), Self.largestExponent) }
            magnitude += isSmall ? -size : size
        }
        guard rest.isEmpty else { return nil }
        let zeros = digits.prefix { $0 == 48 }.count
        digits.removeFirst(zeros)
        while digits.last == 48 { digits.removeLast() }
        self.digits = digits
        self.magnitude = digits.isEmpty ? 0 : magnitude - zeros
        self.isNegative = isNegative && !digits.isEmpty
    }
}

extension DecimalNumber: Comparable {
    package static func < (first: DecimalNumber, second: DecimalNumber) -> Bool {
        guard first.isNegative == second.isNegative else { return first.isNegative }
        return first.isNegative ? second.isSmaller(than: first) : first.isSmaller(than: second)
    }

    /// Whether the absolute value is smaller than that of the other number.
    private func isSmaller(than other: DecimalNumber) -> Bool {
        if digits.isEmpty || other.digits.isEmpty { return digits.isEmpty && !other.digits.isEmpty }
        return magnitude == other.magnitude
            ? digits.lexicographicallyPrecedes(other.digits) : magnitude < other.magnitude
    }
}

// MARK: - Differences

/// The first paths at which a tree differs from an older one. The order of members is ignored.
package struct TreeDifferences: Sendable, Equatable {
    /// The differences, such as `user.roles[2] is missing`, in the order of the older tree; no text has a value of a
    /// document.
    package private(set) var texts: [String] = []
    /// Whether there are more differences than those in ``texts``.
    package private(set) var isCut = false
    private let limit: Int

    /// - Parameter limit: the most texts. The recursion is as deep as the trees are.
    package init(from old: ContentTree, to new: ContentTree, atMost limit: Int = 10) {
        self.limit = limit
        compare(old, new, "")
    }

    private mutating func add(_ path: String, _ what: String) {
        guard texts.count < limit else { return isCut = true }
        texts.append("\(path.isEmpty ? "the document" : path) \(what)")
    }

    private mutating func compare(_ old: ContentTree, _ new: ContentTree, _ path: String) {
        if isCut || old == new { return }
        switch (old, new) {
        case (.array(let old), .array(let new)):
            for (number, pair) in zip(old, new).enumerated() { compare(pair.0, pair.1, "\(path)[\(number)]") }
            for number in old.indices.dropFirst(new.count) where !isCut { add("\(path)[\(number)]", "is missing") }
            for number in new.indices.dropFirst(old.count) where !isCut { add("\(path)[\(number)]", "is new") }
        case (.object(let old), .object(let new)):
            let values = Dictionary(new.map { (MemberName($0.name), $0.value) }) { $1 }
            for member in old {
                let inner = Self.path(of: member.name, in: path)
                if let value = values[MemberName(member.name)] {
                    compare(member.value, value, inner)
                } else {
                    add(inner, "is missing")
                }
            }
            let known = Set(old.map { MemberName($0.name) })
            for member in new where !known.contains(MemberName(member.name)) {
                add(Self.path(of: member.name, in: path), "is new")
            }
        default:
            let (kind, other) = (old.kind, new.kind)
            add(path, kind == other ? "has changed" : "was \(kind) and is \(other)")
        }
    }

    /// The path of a member, such as `user.name`; a name that is not a word is in quotation marks: `user["a b"]`.
    private static func path(of name: String, in path: String) -> String {
        let isWord =
            !name.isEmpty && name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" || $0 == "$" }
        if isWord, name.utf8.count <= 80 { return path.isEmpty ? name : "\(path).\(name)" }
        return "\(path)[\(String(decoding: JSONWriter.bytes(.string(String(name.prefix(80)))), as: UTF8.self))]"
    }
}

extension ContentTree {
    /// The kind of the value, with its article.
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
