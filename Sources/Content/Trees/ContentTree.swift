// Structured content as a tree: what JSON, a form and a property list have in common.

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
    /// In the form of JSON.
    case number(String)
    case string(String)
    case array([ContentTree])
    /// No name occurs twice.
    case object([Member])
    /// Bytes, which JSON and forms write in base64.
    case data([UInt8])
    /// Whole seconds since 1970, which a property list has a type for.
    case date(Int64)
}

extension ContentTree {
    /// An object without members.
    package static let empty = ContentTree.object([])

    /// Nil for what is no object.
    package var members: [Member]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// By code points, texts as well as names of members.
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

    /// The member of that name.
    package subscript(name: String) -> ContentTree? {
        guard let members, let place = members.place(of: name) else { return nil }
        return members[place].value
    }

    /// The value at a path of member names; elements of arrays have none.
    package func value(at path: some Collection<some StringProtocol>) -> ContentTree? {
        guard let first = path.first else { return self }
        return self[String(first)]?.value(at: path.dropFirst())
    }

    /// What a URL or a form says for the value; nil for an array, an object and null.
    package var scalar: String? {
        switch self {
        case .bool(let value): String(value)
        case .number(let text), .string(let text): text
        case .data(let bytes): Base64.encode(bytes)
        case .date(let seconds): CalendarTime(seconds).iso8601
        case .null, .array, .object: nil
        }
    }

    /// This object with the members that it lacks, at every depth; a value that is there wins, null too.
    package func filled(from defaults: ContentTree) -> ContentTree {
        guard case .object(var members) = self, case .object(let more) = defaults else { return self }
        for member in more {
            if let place = members.place(of: member.name) {
                members[place].value = members[place].value.filled(from: member.value)
            } else {
                members.append(member)
            }
        }
        return .object(members)
    }

    /// Without the members that are null, and without the objects that have no members left. Arrays stay as they are.
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

    /// With the members of every object in the order of their names' bytes.
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

    /// With the value at a path of member names changed; every element of an array on the way is gone through.
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
            if let place = members.place(of: first) {
                members[place].value = try members[place].value.changing(path.dropFirst(), change)
            }
            return .object(members)
        default: return self
        }
    }
}

/// Why bytes are no tree.
package struct TreeError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The size of a tree that is read.
package struct TreeLimits: Sendable, Equatable {
    /// Objects and arrays within one another.
    package var depth: Int
    /// Values, those within others among them.
    package var values: Int

    package init(depth: Int = 64, values: Int = 100_000) {
        self.depth = depth
        self.values = values
    }
}
