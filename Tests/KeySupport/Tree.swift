// A YAML document under construction, in flow style.

/// A YAML document under construction.
package indirect enum Tree {
    case leaf(String)
    case map([(String, Tree)])
    case list([Tree])

    /// Sets what a way of keys leads to; of a list, its first item.
    package func setting(_ way: ArraySlice<String>, to value: String) -> Tree {
        guard let first = way.first else { return .leaf(value) }
        switch self {
        case .leaf: return Tree.map([]).setting(way, to: value)
        case .list(let items):
            return .list([(items.first ?? .map([])).setting(way, to: value)] + items.dropFirst())
        case .map(var pairs):
            guard let index = pairs.firstIndex(where: { $0.0 == first }) else {
                let fresh = Tree.map([]).setting(way.dropFirst(), to: value)
                // Parts of a content and rules are lists; `demo.files` is a leaf.
                let isList = ["files", "rules", "sequence", "answers"].contains(first) && way.count > 1
                return .map(pairs + [(first, isList ? .list([fresh]) : fresh)])
            }
            pairs[index].1 = pairs[index].1.setting(way.dropFirst(), to: value)
            return .map(pairs)
        }
    }

    /// What stands under dotted keys, if anything does.
    package func value(_ keys: String) -> Tree? {
        keys.split(separator: ".").reduce(self) { tree, key in
            guard case .map(let pairs)? = tree else { return nil }
            return pairs.first { $0.0 == key }?.1
        }
    }

    package var flow: String {
        switch self {
        case .leaf(let text): text
        case .map(let pairs): "{ " + pairs.map { "\($0.0): \($0.1.flow)" }.joined(separator: ", ") + " }"
        case .list(let items): "[" + items.map(\.flow).joined(separator: ", ") + "]"
        }
    }
}
