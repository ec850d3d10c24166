// The path of a value in a document: the names and numbers that lead to it, and several such paths as one tree, for
// one walk.

import Trees

/// A key path such as `name.first`, `items[0].id` or `.`, which is the value itself.
package struct MappingPath: Sendable, Hashable {
    /// The error of a text that is not a path, with the reason in words.
    package struct Malformed: Error, Equatable {
        package let reason: String
    }

    /// The most names on one path.
    package static let longest = 32

    /// The names of members, unescaped. One of digits only is also the number of an element, counted from 0.
    package let names: [[UInt8]]

    /// The path to the value itself.
    package static let itself = MappingPath(names: [])

    package init(names: [[UInt8]]) { self.names = names }

    /// - Parameter text: names separated by dots; `\.` is a dot within a name, `[0]` the same as `.0`.
    package init(_ text: String) throws(Malformed) {
        if text == "." {
            self = .itself
            return
        }
        var names: [[UInt8]] = []
        var name: [UInt8] = []
        var isOpen = false
        var isClosed = false
        var bytes = Array(text.utf8)[...]
        func refuse(_ reason: String) -> Malformed { Malformed(reason: reason) }
        while let byte = bytes.popFirst() {
            switch byte {
            case UInt8(ascii: "\\"):
                guard let next = bytes.popFirst() else { throw refuse("ends with a backslash") }
                name.append(next)
            case UInt8(ascii: ".") where !isOpen:
                guard !name.isEmpty || isClosed else { throw refuse("has an empty name") }
                if !name.isEmpty { names.append(name) }
                (name, isClosed) = ([], false)
                if bytes.isEmpty { throw refuse("ends with a dot") }
            case UInt8(ascii: "[") where !isOpen:
                if !name.isEmpty { names.append(name) }
                (name, isOpen, isClosed) = ([], true, false)
            case UInt8(ascii: "]") where isOpen:
                guard !name.isEmpty, name.allSatisfy({ 48...57 ~= $0 }) else {
                    throw refuse("has brackets without a number")
                }
                names.append(name)
                (name, isOpen, isClosed) = ([], false, true)
            default:
                guard !isClosed else { throw refuse("needs a dot behind a bracket") }
                name.append(byte)
            }
        }
        guard !isOpen else { throw refuse("has a bracket that is not closed") }
        if !name.isEmpty { names.append(name) }
        guard !names.isEmpty else { throw refuse("is empty") }
        guard names.count <= Self.longest else { throw refuse("has more than \(Self.longest) names") }
        self.init(names: names)
    }

    /// The path as messages show it.
    package var text: String {
        if names.isEmpty { return "." }
        return names.map { name in
            String(decoding: name, as: UTF8.self).split(separator: ".", omittingEmptySubsequences: false)
                .joined(separator: "\\.")
        }.joined(separator: ".")
    }

    static func + (left: MappingPath, right: MappingPath) -> MappingPath {
        MappingPath(names: left.names + right.names)
    }

    /// The number of the element that a name means; nil if it is not a number.
    static func number(_ name: [UInt8]) -> Int? {
        guard !name.isEmpty, name.count <= 9, name.allSatisfy({ 48...57 ~= $0 }) else { return nil }
        return name.reduce(0) { $0 * 10 + Int($1 - 48) }
    }
}

// MARK: - Several paths as a tree

/// Several key paths as one tree, so that one walk over a value finds all of their values. Sendable: a value.
package struct PathTree: Sendable {
    struct Node: Sendable {
        /// The child nodes by the names of members.
        var children: [(name: [UInt8], node: Int)] = []
        /// The child nodes by the numbers of elements.
        var elements: [(number: Int, node: Int)] = []
        /// The paths that end at this node.
        var slots: [Int] = []
        /// The paths that end at this node or below.
        var below: [Int] = []
    }

    private(set) var nodes = [Node()]
    let count: Int

    /// - Parameter paths: the paths in the order of the slots.
    init(_ paths: [MappingPath]) {
        count = paths.count
        for (slot, path) in paths.enumerated() {
            var node = 0
            nodes[0].below.append(slot)
            for name in path.names {
                if let known = nodes[node].children.first(where: { $0.name == name }) {
                    node = known.node
                } else {
                    nodes.append(Node())
                    nodes[node].children.append((name, nodes.count - 1))
                    if let number = MappingPath.number(name) { nodes[node].elements.append((number, nodes.count - 1)) }
                    node = nodes.count - 1
                }
                nodes[node].below.append(slot)
            }
            nodes[node].slots.append(slot)
        }
    }

    func child(_ node: Int, element number: Int) -> Int? { nodes[node].elements.first { $0.number == number }?.node }

    /// The child node for a member.
    /// - Parameter name: the name as it is in JSON between its quotes.
    func child(_ node: Int, name: UnsafeRawBufferPointer) -> Int? {
        guard !name.contains(UInt8(ascii: "\\")) else {
            let plain = JSONTokenizer.unescaped(name)
            return nodes[node].children.first { $0.name == plain }?.node
        }
        for child in nodes[node].children
        where child.name.count == name.count && child.name.withUnsafeBytes({ $0.elementsEqual(name) }) {
            return child.node
        }
        return nil
    }
}
