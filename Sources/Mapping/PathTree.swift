// Several key paths as one tree, so that one walk over a value finds what all of them name.

/// Sendable: a value.
package struct PathTree: Sendable {
    struct Node: Sendable {
        /// The names that lead on, with their nodes.
        var children: [(name: [UInt8], node: Int)] = []
        /// The elements that lead on, with their nodes.
        var elements: [(number: Int, node: Int)] = []
        /// The paths that end here.
        var slots: [Int] = []
        /// The paths that end here or below.
        var below: [Int] = []
    }

    private(set) var nodes = [Node()]
    let count: Int

    /// - Parameter paths: the slots, in order.
    init(_ paths: [MappingPath]) {
        count = paths.count
        for (slot, path) in paths.enumerated() {
            var place = 0
            nodes[0].below.append(slot)
            for name in path.names {
                if let known = nodes[place].children.first(where: { $0.name == name }) {
                    place = known.node
                } else {
                    nodes.append(Node())
                    nodes[place].children.append((name, nodes.count - 1))
                    if let number = MappingPath.number(name) { nodes[place].elements.append((number, nodes.count - 1)) }
                    place = nodes.count - 1
                }
                nodes[place].below.append(slot)
            }
            nodes[place].slots.append(slot)
        }
    }

    func child(_ node: Int, element number: Int) -> Int? { nodes[node].elements.first { $0.number == number }?.node }

    /// - Parameter name: as JSON has it between its quotes.
    func child(_ node: Int, name: UnsafeRawBufferPointer) -> Int? {
        guard !name.contains(UInt8(ascii: "\\")) else {
            let plain = JSONText.unescaped(name)
            return nodes[node].children.first { $0.name == plain }?.node
        }
        for child in nodes[node].children
        where child.name.count == name.count && child.name.withUnsafeBytes({ $0.elementsEqual(name) }) {
            return child.node
        }
        return nil
    }
}
