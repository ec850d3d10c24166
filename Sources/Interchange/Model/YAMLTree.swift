// A document in YAML or JSON as a tree.

import Content
import YAML

/// Reads documents that people write in either form.
enum DocumentReader {
    private static let levels = 64
    private static let values = 500_000

    /// - Throws: what is wrong, and where in the text.
    static func read(_ bytes: [UInt8]) throws(TreeError) -> ContentTree {
        let isJSON = bytes.first { !" \n\r\t".utf8.contains($0) && $0 < 0x80 } == UInt8(ascii: "{")
        if isJSON {
            return try JSONReader.read(bytes, limits: TreeLimits(depth: levels, values: values), repeats: true)
        }
        let root: Node?
        do throws(YAMLError) {
            root = try Node.read(bytes, limits: Limits(levels: levels, values: values))
        } catch {
            throw TreeError("\(error.problem), at \(error.mark)")
        }
        guard let root else { throw TreeError("there is nothing in it") }
        return try tree(root)
    }

    private static func tree(_ node: Node) throws(TreeError) -> ContentTree {
        switch node.content {
        case .scalar(let text, let style): return style == .plain ? plain(text) : .string(text)
        case .sequence(let nodes):
            var values: [ContentTree] = []
            for node in nodes { values.append(try tree(node)) }
            return .array(values)
        case .mapping(let pairs):
            var members: [ContentTree.Member] = []
            var names: Set<MemberName> = []
            for (key, value) in pairs {
                guard case .scalar(let name, _) = key.content else {
                    throw TreeError("a key is no text, at \(key.mark)")
                }
                guard names.insert(MemberName(name)).inserted else {
                    throw TreeError("'\(name)' occurs twice, at \(key.mark)")
                }
                members.append(.init(name, try tree(value)))
            }
            return .object(members)
        case .alias(of: let node): return try tree(node)
        }
    }

    /// A scalar without quotes, as the core schema of YAML reads it.
    private static func plain(_ text: String) -> ContentTree {
        switch text {
        case "", "~", "null", "Null", "NULL": return .null
        case "true", "True", "TRUE": return .bool(true)
        case "false", "False", "FALSE": return .bool(false)
        default:
            if case .number(let number)? = try? JSONReader.read(Array(text.utf8)), number == text {
                return .number(number)
            }
            return .string(text)
        }
    }
}
