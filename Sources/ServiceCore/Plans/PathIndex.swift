// An index of endpoints by path: a tree of segments, in which the first match is found without a test of each endpoint.

import Glibc
package import HTTPWire

/// Finds the first endpoint that ``PathPattern/matches(_:)`` would find in the order of the list.
///
/// Sendable: it never changes. It consists of flat arrays, so that a lookup neither copies nor counts references.
package final class PathIndex: Sendable {
    /// A node of the tree: the continuations of all patterns with the same beginning.
    private struct Node {
        /// The range in `literals` of the literal segments that follow, ordered by length and bytes.
        var literals = 0..<0
        var parameter: Int?
        /// The range in `endpoints` of the patterns that end here, ascending.
        var ending = 0..<0
        /// The range in `endpoints` of the patterns that match any continuation, ascending.
        var rest = 0..<0
    }

    private struct Literal {
        /// The range of the segment's bytes in `text`.
        let segment: Range<Int>
        let node: Int
    }

    private let methods: [Method]
    private let nodes: [Node]
    private let literals: [Literal]
    private let text: [UInt8]
    /// The numbers of endpoints, in ranges that the nodes name.
    private let endpoints: [Int]

    /// - Parameter endpoints: an answer is an index in this list.
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

    /// The position of the first endpoint that answers; nil if none does. It does not allocate.
    /// - Parameter path: the target without the service's prefix.
    package func first(for method: Method, path: UnsafeRawBufferPointer) -> Int? {
        // The query is not part of a path.
        var path = path
        if let base = path.baseAddress, let query = memchr(base, Int32(UInt8(ascii: "?")), path.count) {
            path = path.part(0..<UnsafeRawPointer(query) - base)
        }
        var best = Int.max
        search(0, in: path, from: 0, for: method, best: &best)
        // The pattern without segments matches the root, with and without its slash.
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
        for index in range {
            let number = endpoints[index]
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
    /// Whether an endpoint with this method answers a request with another one: a GET endpoint answers HEAD, too.
    package func answers(_ wanted: Method) -> Bool { wanted == self || wanted == .head && self == .get }
}

/// The tree while it is being built.
private struct PathTree {
    struct Branch {
        var literals: [[UInt8]: Int] = [:]
        var parameter: Int?
        /// The numbers of the endpoints whose patterns end here, ascending.
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
    /// A negative number, zero or a positive number if this text comes before, equals or comes after the other; shorter
    /// texts come first.
    fileprivate func order(_ other: UnsafeRawBufferPointer) -> Int {
        guard count == other.count else { return count - other.count }
        // The lengths are equal here; an empty buffer has no base address, and nothing to compare.
        guard let mine = baseAddress, let theirs = other.baseAddress else { return 0 }
        return Int(memcmp(mine, theirs, count))
    }
}
