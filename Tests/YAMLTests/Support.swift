// What the tests of this module share: a tree as one line of text, and the error of a text.

import Testing
import YAML

/// What no test of a form comes near.
let wide = Limits(levels: 100, values: 200_000)

/// A tree as `LINE:COLUMN` and its content: `p'text'` for a plain scalar (`s`, `d`, `l`, `f` for the other styles),
/// `[…]`, `{key=value …}`, `*…` for an alias; `nothing` for a text without a document, and for one with an error, that.
func tree(_ text: String, limits: Limits = wide) -> String { tree(Array(text.utf8), limits: limits) }

func tree(_ bytes: [UInt8], limits: Limits = wide) -> String {
    do throws(YAMLError) {
        return try Node.read(bytes, limits: limits)?.line ?? "nothing"
    } catch {
        return "\(error.kind) \(error)"
    }
}

extension Node {
    var line: String {
        switch content {
        case .scalar(let text, let style): "\(mark)\(style.letter)'\(text)'"
        case .sequence(let nodes): "\(mark)[\(nodes.map(\.line).joined(separator: " "))]"
        case .mapping(let pairs): "\(mark){\(pairs.map { "\($0.key.line)=\($0.value.line)" }.joined(separator: " "))}"
        case .alias(of: let node): "\(mark)*\(node.line)"
        }
    }

    /// Values and levels, each alias followed: what the limits bound.
    var extent: (values: Int, levels: Int) {
        var (values, levels) = (1, 0)
        func add(_ node: Node) {
            let inner = node.extent
            values += inner.values
            levels = max(levels, inner.levels)
        }
        switch content {
        case .scalar: return (1, 0)
        case .alias(of: let node): return node.extent
        case .sequence(let nodes): nodes.forEach(add)
        case .mapping(let pairs):
            for (key, value) in pairs {
                add(key)
                add(value)
            }
        }
        return (values, levels + 1)
    }
}

extension Node.Style {
    var letter: String {
        switch self {
        case .plain: "p"
        case .singleQuoted: "s"
        case .doubleQuoted: "d"
        case .literal: "l"
        case .folded: "f"
        }
    }
}
