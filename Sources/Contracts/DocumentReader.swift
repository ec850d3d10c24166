// Reads documents that people write in YAML or JSON, and names locations in them.

package import Trees
import YAML

/// The location of a value within a file.
package struct DocumentLocation: Sendable, Equatable, CustomStringConvertible {
    package let file: String
    /// A JSON pointer (RFC 6901); empty for the whole document.
    package let pointer: String

    package init(file: String, pointer: String = "") {
        self.file = file
        self.pointer = pointer
    }

    /// The location of a member or an element of the value at this location.
    package func within(_ names: String...) -> DocumentLocation {
        let escaped = names.map { name in
            name.replacing("~", with: "~0").replacing("/", with: "~1")
        }
        return DocumentLocation(file: file, pointer: pointer + escaped.map { "/\($0)" }.joined())
    }

    /// The location of an element of the list at this location.
    package func within(_ position: Int) -> DocumentLocation { within(String(position)) }

    /// The location as text, such as `shop.har#/log/entries/3`.
    package var description: String { pointer.isEmpty ? file : "\(file)#\(pointer)" }
}

/// The error of a document that cannot be read at all.
package struct DocumentError: Error, Sendable, Equatable, CustomStringConvertible {
    package let location: DocumentLocation
    package let reason: String

    package init(_ location: DocumentLocation, _ reason: String) {
        self.location = location
        self.reason = reason
    }

    package var description: String { "\(location): \(reason)" }
}

/// Reads documents that people write in YAML or JSON.
package enum DocumentReader {
    /// The most bytes of one document.
    package static let largestFile = 64 << 20
    private static let levels = 64
    private static let values = 500_000

    /// Reads a document.
    /// - Throws: the mistake and its location in the text.
    package static func read(_ bytes: [UInt8]) throws(TreeError) -> ContentTree {
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

    /// The value of a scalar without quotes, by the core schema of YAML.
    private static func plain(_ text: String) -> ContentTree {
        switch text {
        case "", "~", "null", "Null", "NULL": return .null
        case "true", "True", "TRUE": return .bool(true)
        case "false", "False", "FALSE": return .bool(false)
        default:
            return ContentTree.number(spelled: text) ?? .string(text)
        }
    }
}
