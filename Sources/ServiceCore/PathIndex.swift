// Endpoints by path: a tree of segments, so that the first of a thousand that matches is found without asking each of them.

internal import Glibc
internal import HTTPWire

/// Finds what ``PathPattern/matches(_:)`` would find, endpoint by endpoint in their order.
struct PathIndex: Sendable {
    /// What the patterns that begin alike go on with.
    private struct Node: Sendable {
        /// Ordered by length and bytes.
        var literals: [(segment: [UInt8], node: Int)] = []
        var parameter: Int?
        /// Numbers of endpoints, ascending.
        var ending: [Int] = []
        /// Those that match whatever follows.
        var rest: [Int] = []
    }

    private var nodes = [Node()]

    init(_ patterns: [PathPattern]) {
        for (number, pattern) in patterns.enumerated() { add(pattern, number) }
    }

    /// The first endpoint whose pattern matches and for which `isWanted` is true. No allocation.
    func first(matching path: UnsafeRawBufferPointer, where isWanted: (Int) -> Bool) -> Int? {
        // The query does not count.
        let path = path.part(0..<(path.firstIndex(of: UInt8(ascii: "?")) ?? path.count))
        var best = Int.max
        search(0, path, from: 0, &best, isWanted)
        // The pattern without segments is that of the root, with its slash and without.
        if path.count == 1, path[0] == UInt8(ascii: "/") { take(nodes[0].ending, &best, isWanted) }
        return best == .max ? nil : best
    }

    private func search(
        _ node: Int,
        _ path: UnsafeRawBufferPointer,
        from position: Int,
        _ best: inout Int,
        _ isWanted: (Int) -> Bool
    ) {
        if position == path.count { take(nodes[node].ending, &best, isWanted) }
        guard position == path.count || path[position] == UInt8(ascii: "/") else { return }
        take(nodes[node].rest, &best, isWanted)
        guard position < path.count else { return }
        var stop = position + 1
        while stop < path.count, path[stop] != UInt8(ascii: "/") { stop += 1 }
        let segment = path.part(position + 1..<stop)
        let place = place(of: segment, in: node)
        if place < nodes[node].literals.count, Self.order(nodes[node].literals[place].segment, segment) == 0 {
            search(nodes[node].literals[place].node, path, from: stop, &best, isWanted)
        }
        if let parameter = nodes[node].parameter, !segment.isEmpty {
            search(parameter, path, from: stop, &best, isWanted)
        }
    }

    private func take(_ numbers: [Int], _ best: inout Int, _ isWanted: (Int) -> Bool) {
        for number in numbers {
            if number >= best { return }
            if isWanted(number) { return best = number }
        }
    }

    // MARK: - Building

    private mutating func add(_ pattern: PathPattern, _ number: Int) {
        var node = 0
        for segment in pattern.segments {
            switch segment {
            case .rest: return nodes[node].rest.append(number)
            case .parameter:
                let child = nodes[node].parameter ?? append()
                nodes[node].parameter = child
                node = child
            case .literal(let bytes): node = child(of: node, bytes)
            }
        }
        nodes[node].ending.append(number)
    }

    private mutating func child(of node: Int, _ segment: [UInt8]) -> Int {
        let place = segment.withUnsafeBytes { self.place(of: $0, in: node) }
        if place < nodes[node].literals.count, nodes[node].literals[place].segment == segment {
            return nodes[node].literals[place].node
        }
        let child = append()
        nodes[node].literals.insert((segment, child), at: place)
        return child
    }

    private mutating func append() -> Int {
        nodes.append(Node())
        return nodes.count - 1
    }

    /// Where a literal stands, or would stand.
    private func place(of segment: UnsafeRawBufferPointer, in node: Int) -> Int {
        var (low, high) = (0, nodes[node].literals.count)
        while low < high {
            let middle = (low + high) / 2
            if Self.order(nodes[node].literals[middle].segment, segment) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Below, at, or above zero; shorter segments come first.
    private static func order(_ left: [UInt8], _ right: UnsafeRawBufferPointer) -> Int {
        guard left.count == right.count else { return left.count - right.count }
        return left.withUnsafeBytes { left in
            // Both have been compared for length; without a base there is nothing to compare.
            guard let mine = left.baseAddress, let other = right.baseAddress else { return 0 }
            return Int(memcmp(mine, other, left.count))
        }
    }
}
