// What a mapping that streams takes from a document, and in which form: worked out once, before the first byte.

/// Sendable: a value.
struct StreamOutline: Sendable {
    /// One value that is taken.
    struct Slot: Sendable {
        let rule: MappingRule
        /// In the mapped document.
        let name: String
        /// The name with its colon; empty at the root.
        let lead: [UInt8]
        /// The value is found in what is held at a place above it: the way from there.
        let inner: PathTree?
        /// Stands in an object that is written at the end.
        let isGathered: Bool
    }

    /// A member of the root, or of an object that is written at the end.
    indirect enum Piece: Sendable {
        case slot(Int)
        case group(lead: [UInt8], [Piece])
    }

    private(set) var slots: [Slot] = []
    private(set) var pieces: [Piece] = []
    /// The places where something is taken, and the slots at each.
    let tree: PathTree
    let takers: [[Int]]
    /// The node of the value that the root's members are taken from; nil where no path leads through it.
    let rootNode: Int?
    let isObject: Bool
    let root: MappingRule

    init(_ plan: MappingPlan) {
        root = plan.root
        var found: [(path: MappingPath, rule: MappingRule, name: String, lead: [UInt8], isGathered: Bool)] = []
        func collect(_ members: [MappingRule.Member], _ base: MappingPath, _ outer: String) -> [Piece] {
            members.map { member in
                let name = outer.isEmpty ? member.name : "\(outer).\(member.name)"
                if case .object(let inner) = member.rule.shape, member.rule.from.names.isEmpty {
                    return .group(lead: member.lead, collect(inner, base, name))
                }
                found.append((base + member.rule.from, member.rule, name, member.lead, !outer.isEmpty))
                return .slot(found.count - 1)
            }
        }
        if case .object(let members) = root.shape {
            isObject = true
            pieces = collect(members, root.from, "")
        } else {
            isObject = false
            found = [(root.from, root, "", [], false)]
            pieces = [.slot(0)]
        }
        // What is taken inside of something that is taken, too, is found in that.
        var holders: [MappingPath] = []
        var places: [Int] = []
        let paths = Set(found.map(\.path))
        for item in found {
            let names = item.path.names
            let length = (0...names.count).first { paths.contains(MappingPath(names: Array(names[..<$0]))) } ?? 0
            let holder = MappingPath(names: Array(names[..<length]))
            if !holders.contains(holder) { holders.append(holder) }
            places.append(holders.firstIndex(of: holder) ?? 0)
            let rest = MappingPath(names: Array(names[length...]))
            slots.append(
                Slot(
                    rule: item.rule,
                    name: item.name,
                    lead: item.lead,
                    inner: rest.names.isEmpty ? nil : PathTree([rest]),
                    isGathered: item.isGathered
                )
            )
        }
        let tree = PathTree(holders)
        self.tree = tree
        takers = holders.indices.map { holder in places.indices.filter { places[$0] == holder } }
        var node: Int? = 0
        for name in root.from.names {
            node = node.flatMap { node in tree.nodes[node].children.first { $0.name == name }?.node }
        }
        rootNode = node
    }

    /// The only slot at a place whose value needs not be held as a whole.
    func streamed(at holder: Int) -> Int? {
        guard takers[holder].count == 1, let slot = takers[holder].first, !slots[slot].isGathered,
            slots[slot].inner == nil
        else { return nil }
        return slot
    }
}
