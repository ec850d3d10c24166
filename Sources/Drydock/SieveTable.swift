// The storage of a memory cache: a hash table over a linked slab, which says what has to go by SIEVE.

/// Nodes are in order of insertion. A hit marks its node; the hand walks from the oldest towards the newest, unmarks what
/// it meets, and takes the first one that nobody has used since it came by.
struct SieveTable<Key: Hashable, Value> {
    private struct Node {
        var key: Key
        /// Nil in a node that is free.
        var value: Value?
        var cost: Int
        var isUsed = false
        /// Towards the newest; of a free node the next free one.
        var newer: Int?
        var older: Int?
    }

    private var nodes: [Node] = []
    private var index: [Key: Int] = [:]
    private var newest: Int?
    private var oldest: Int?
    private var hand: Int?
    private var firstFree: Int?
    private(set) var cost = 0

    var count: Int { index.count }

    /// A use: what is found stays longer.
    mutating func use(_ key: Key) -> Value? {
        guard let position = index[key] else { return nil }
        nodes[position].isUsed = true
        return nodes[position].value
    }

    /// The key must not be there.
    mutating func insert(_ key: Key, _ value: Value, cost added: Int) {
        var node = Node(key: key, value: value, cost: added)
        node.older = newest
        let position: Int
        if let free = firstFree {
            position = free
            firstFree = nodes[free].newer
            nodes[free] = node
        } else {
            position = nodes.count
            nodes.append(node)
        }
        if let newest { nodes[newest].newer = position }
        newest = position
        if oldest == nil { oldest = position }
        index[key] = position
        cost += added
    }

    /// - Returns: what was there with the key that the table had, so that the caller lets go of both.
    mutating func remove(_ key: Key) -> (key: Key, value: Value?)? { index[key].map { take($0) } }

    /// Takes out what has been used the least; nil where nothing is left.
    mutating func evict() -> (key: Key, value: Value)? {
        // Each step unmarks a node, so that the second round ends at the latest where the first began.
        while var position = hand ?? oldest {
            while nodes[position].isUsed {
                nodes[position].isUsed = false
                guard let next = nodes[position].newer ?? oldest else { return nil }
                position = next
            }
            hand = position
            let (key, value) = take(position)
            if let value { return (key, value) }
        }
        return nil
    }

    private mutating func take(_ position: Int) -> (key: Key, value: Value?) {
        let node = nodes[position]
        if let newer = node.newer { nodes[newer].older = node.older } else { newest = node.older }
        if let older = node.older { nodes[older].newer = node.newer } else { oldest = node.newer }
        if hand == position { hand = node.newer }
        index[node.key] = nil
        cost -= node.cost
        nodes[position].value = nil
        nodes[position].isUsed = false
        nodes[position].older = nil
        nodes[position].newer = firstFree
        firstFree = position
        return (node.key, node.value)
    }
}
