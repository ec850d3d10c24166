// The items of demo collections in memory, and the changes that requests make to them.

import Trees

/// A list of items with an index by their ids.
struct CollectionTable: Sendable {
    private(set) var rows: [ContentTree] = []
    private var indices: [String: Int] = [:]
    let idName: String

    /// - Throws: an error that names the item without an id, or with a duplicate id.
    init(_ rows: [ContentTree], idName: String) throws(CollectionFileError) {
        self.idName = idName
        for (index, row) in rows.enumerated() {
            guard let value = row[idName] else {
                throw CollectionFileError("item \(index + 1) has no '\(idName)'; give every item one")
            }
            guard let id = Self.id(value) else {
                throw CollectionFileError("the \(idName) of item \(index + 1) is neither a text nor a whole number")
            }
            guard indices.updateValue(index, forKey: id) == nil else {
                throw CollectionFileError("two items have the \(idName) '\(id)'; give every item one of its own")
            }
        }
        self.rows = rows
    }

    /// The id in a path for a value; nil if it is neither a whole number nor a text with at least one character.
    static func id(_ value: ContentTree) -> String? {
        switch value {
        case .string(let text): text.isEmpty ? nil : text
        case .number(let text): text.utf8.allSatisfy { 48...57 ~= $0 || $0 == UInt8(ascii: "-") } ? text : nil
        default: nil
        }
    }

    func row(_ id: String) -> ContentTree? { indices[id].map { rows[$0] } }

    /// One more than the highest number among the ids; the lowest free one if there is no higher number.
    var nextNumber: Int {
        let highest = indices.keys.reduce(0) { max($0, Int($1) ?? 0) }
        guard highest == .max else { return highest + 1 }
        // At least one of these numbers is free.
        return (1...indices.count + 1).first { indices[String($0)] == nil } ?? 1
    }

    mutating func append(_ row: ContentTree, id: String) {
        indices[id] = rows.count
        rows.append(row)
    }

    mutating func replace(_ id: String, with row: ContentTree) {
        if let index = indices[id] { rows[index] = row }
    }

    mutating func remove(_ id: String) {
        guard let index = indices.removeValue(forKey: id) else { return }
        rows.remove(at: index)
        for (other, number) in indices where number > index { indices[other] = number - 1 }
    }
}

/// The resource that a name of a collection file stands for.
enum CollectionResource: Sendable {
    case table(CollectionTable)
    /// One object, which has no id, or a value that is not a list of items.
    case single(ContentTree)

    /// The resource as one value.
    var tree: ContentTree {
        switch self {
        case .table(let table): .array(table.rows)
        case .single(let value): value
        }
    }
}

/// The reason why a file cannot be the start of a collection.
package struct CollectionFileError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// All collections of a file; a value type.
struct CollectionState: Sendable {
    /// The resources in the order of the file; a file that is one list has it under the empty name.
    private(set) var resources: [(name: String, resource: CollectionResource)] = []
    /// The approximate size as JSON, in bytes.
    var size: Int

    init(_ bytes: [UInt8], idName: String) throws(CollectionFileError) {
        let tree: ContentTree
        do throws(TreeError) {
            tree = try JSONReader.read(bytes, limits: TreeLimits(values: 4_000_000))
        } catch {
            throw CollectionFileError("it is not JSON: \(error)")
        }
        size = bytes.count
        switch tree {
        case .array(let rows): resources = [("", .table(try CollectionTable(rows, idName: idName)))]
        case .object(let members):
            for member in members { resources.append((member.name, try Self.resource(member, idName))) }
        default: throw CollectionFileError("it is neither a list of items nor an object of lists")
        }
    }

    private static func resource(
        _ member: ContentTree.Member,
        _ idName: String
    ) throws(CollectionFileError) -> CollectionResource {
        // A list that has elements, but no object, has no items.
        guard case .array(let rows) = member.value, rows.isEmpty || rows.contains(where: { $0.members != nil }) else {
            return .single(member.value)
        }
        do throws(CollectionFileError) { return .table(try CollectionTable(rows, idName: idName)) } catch {
            throw CollectionFileError("'\(member.name)': \(error)")
        }
    }

    /// True if the file is one list, which has no name.
    var isOneList: Bool { resources.count == 1 && resources[0].name.isEmpty }

    subscript(name: String) -> CollectionResource? {
        get { resources.first { $0.name == name }?.resource }
        set {
            guard let newValue, let index = resources.firstIndex(where: { $0.name == name }) else { return }
            resources[index].resource = newValue
        }
    }

    /// Every resource under its name.
    var tree: ContentTree { .object(resources.map { ContentTree.Member($0.name, $0.resource.tree) }) }
}

extension ContentTree {
    /// The tree with the changes of a merge patch (RFC 7396): null removes a member.
    func merging(_ patch: ContentTree) -> ContentTree {
        guard case .object(let changes) = patch else { return patch }
        var members = self.members ?? []
        // Both may have tens of thousands of members, so members are found by a table rather than a search.
        let indices = Dictionary(members.indices.map { (MemberName(members[$0].name), $0) }) { first, _ in first }
        var removed: Set<Int> = []
        for change in changes {
            let index = indices[MemberName(change.name)]
            if change.value == .null {
                if let index { removed.insert(index) }
            } else if let index {
                members[index].value = members[index].value.merging(change.value)
            } else {
                members.append(Member(change.name, ContentTree.null.merging(change.value)))
            }
        }
        return .object(removed.isEmpty ? members : members.indices.filter { !removed.contains($0) }.map { members[$0] })
    }

    /// The object with one member set; a new member is the first.
    func setting(_ name: String, to value: ContentTree) -> ContentTree {
        var members = self.members ?? []
        if let index = members.firstIndex(named: name) {
            members[index].value = value
        } else {
            members.insert(Member(name, value), at: 0)
        }
        return .object(members)
    }
}
