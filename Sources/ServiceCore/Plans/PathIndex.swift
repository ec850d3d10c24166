// Endpoints by path: a tree of segments, so that the first of a thousand that matches is found
// without asking each of them.

import Glibc
package import HTTPWire

/// Finds what ``PathPattern/matches(_:)`` would find, endpoint by endpoint in their order.
///
/// Sendable: it never changes. An object with flat arrays, so that a lookup copies nothing and counts no reference.
package final class PathIndex: Sendable {
    /// One segment of the tree: how the patterns go on that begin alike.
    private struct Node {
        /// In `literals`, ordered by length and bytes.
        var literals = 0..<0
        var parameter: Int?
        /// In `endpoints`, ascending.
        var ending = 0..<0
        /// In `endpoints`, ascending: the endpoints that match whatever follows.
        var rest = 0..<0
    }

    private struct Literal {
        /// In `text`.
        let segment: Range<Int>
        let node: Int
    }

    private let methods: [Method]
    private let nodes: [Node]
    private let literals: [Literal]
    private let text: [UInt8]
    /// Numbers of endpoints.
    private let endpoints: [Int]

    /// - Parameter endpoints: what the index answers with is a place in this list.
    package init(_ endpoints: [(method: Method, pattern: PathPattern)]) {
        var tree = PathTree()
        for (number, endpoint) in endpoints.enumerated() { tree.add(endpoint.pattern, number) }
        var (nodes, literals, text, numbers): ([Node], [Literal], [UInt8], [Int]) = ([], [], [], [])
        func range<Element>(of new: [Element], in list: inout [Element]) -> Range<Int> {
            defer { list += new }
            return list.count..<list.count + new.count
        }
        for branch in tree.branches {
            let sorted = branch.literals.sorted { $0.key.isBefore($1.key) }
            let children = sorted.map { Literal(segment: range(of: $0.key, in: &text), node: $0.value) }
            nodes.append(
                Node(
                    literals: range(of: children, in: &literals),
                    parameter: branch.parameter,
                    ending: range(of: branch.ending, in: &numbers),
                    rest: range(of: branch.rest, in: &numbers)
                )
            )
        }
        methods = endpoints.map(\.method)
        (self.nodes, self.literals, self.text, self.endpoints) = (nodes, literals, text, numbers)
    }

    /// The first endpoint that answers; `path` is the rest of the target behind the service's prefix. No allocation.
    package func first(for method: Method, path: UnsafeRawBufferPointer) -> Int? {
        // The query does not count.
        var path = path
        if let base = path.baseAddress, let query = memchr(base, Int32(UInt8(ascii: "?")), path.count) {
            path = path.part(0..<UnsafeRawPointer(query) - base)
        }
        var best = Int.max
        search(0, in: path, from: 0, for: method, best: &best)
        // The pattern without segments is that of the root, with its slash and without.
        if path.count == 1, path[0] == UInt8(ascii: "/") { take(nodes[0].ending, &best, method) }
        return best == .max ? nil : best
    }

    private func search(
        _ node: Int,
        in path: UnsafeRawBufferPointer,
        from position: Int,
        for method: Method,
        best: inout Int
    ) {
        let node = nodes[node]
        if position == path.count { take(node.ending, &best, method) }
        guard position == path.count || path[position] == UInt8(ascii: "/") else { return }
        take(node.rest, &best, method)
        guard position < path.count else { return }
        var stop = position + 1
        while stop < path.count, path[stop] != UInt8(ascii: "/") { stop += 1 }
        let segment = path.part(position + 1..<stop)
        if let child = child(of: node, segment) { search(child, in: path, from: stop, for: method, best: &best) }
        if let parameter = node.parameter, !segment.isEmpty {
            search(parameter, in: path, from: stop, for: method, best: &best)
        }
    }

    private func take(_ range: Range<Int>, _ best: inout Int, _ method: Method) {
        for place in range {
            let number = endpoints[place]
            if number >= best { return }
            if methods[number].answers(method) { return best = number }
        }
    }

    private func child(of node: Node, _ segment: UnsafeRawBufferPointer) -> Int? {
        text.withUnsafeBytes { text in
            var (low, high) = (node.literals.lowerBound, node.literals.upperBound)
            while low < high {
                let middle = (low + high) / 2
                let order = text.part(literals[middle].segment).order(segment)
                if order == 0 { return literals[middle].node }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return nil
        }
    }
}

extension Method {
    /// Whether an endpoint of this method answers a request of another; GET endpoints answer HEAD, too.
    package func answers(_ wanted: Method) -> Bool { wanted == self || wanted == .head && self == .get }
}

/// The tree while it grows.
private struct PathTree {
    struct Branch {
        var literals: [[UInt8]: Int] = [:]
        var parameter: Int?
        /// Numbers of endpoints, ascending.
        var ending: [Int] = []
        var rest: [Int] = []
    }

    private(set) var branches = [Branch()]

    mutating func add(_ pattern: PathPattern, _ number: Int) {
        var branch = 0
        for segment in pattern.segments {
            switch segment {
            case .rest: return branches[branch].rest.append(number)
            case .parameter:
                let child = branches[branch].parameter ?? append()
                branches[branch].parameter = child
                branch = child
            case .literal(let bytes):
                let child = branches[branch].literals[bytes] ?? append()
                branches[branch].literals[bytes] = child
                branch = child
            }
        }
        branches[branch].ending.append(number)
    }

    private mutating func append() -> Int {
        branches.append(Branch())
        return branches.count - 1
    }
}

extension [UInt8] {
    fileprivate func isBefore(_ other: [UInt8]) -> Bool {
        withUnsafeBytes { mine in other.withUnsafeBytes { mine.order($0) < 0 } }
    }
}

extension UnsafeRawBufferPointer {
    /// Below, at, or above zero; shorter segments come first.
    fileprivate func order(_ other: UnsafeRawBufferPointer) -> Int {
        guard count == other.count else { return count - other.count }
        // Both have been compared for length; without a base there is nothing to compare.
        guard let mine = baseAddress, let theirs = other.baseAddress else { return 0 }
        return Int(memcmp(mine, theirs, count))
    }
}
