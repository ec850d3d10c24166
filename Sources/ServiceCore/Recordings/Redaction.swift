// What of an answer no recording has: the values of secrets.

import Content
import HTTPWire
import Policies

enum Redaction {
    /// Stands in the place of a secret.
    static let mark = "***"

    /// The fields without secrets: cookies keep their names and attributes, and what is secret by its name, or named by
    /// the rules, loses its value.
    static func apply(to fields: Fields, _ rules: RecordingRules) -> Fields {
        var result = Fields()
        for line in fields.lines {
            let name = line.name.lowercased()
            if name == "set-cookie" {
                result.append(line.name, cookie(line.value))
            } else if rules.redactedFields.contains(name) || SecretNames.contains(name) {
                result.append(line.name, mark)
            } else {
                result.append(line.name, line.value)
            }
        }
        return result
    }

    /// `id=7f3a; Path=/` as `id=***; Path=/`.
    private static func cookie(_ value: String) -> String {
        let end = value.firstIndex(of: ";") ?? value.endIndex
        let name = value[..<end].prefix { $0 != "=" }
        return "\(name)=\(mark)\(value[end...])"
    }

    /// A document without the members that the rules name; any other content as it is.
    /// - Returns: nil for what says that it is JSON and cannot be read, so that a secret in it could not be found.
    static func apply(to content: [UInt8], _ fields: Fields, _ rules: RecordingRules) -> [UInt8]? {
        guard !rules.redactedMembers.isEmpty, !content.isEmpty,
            (fields.first(.contentType) ?? "").prefix(while: { $0 != ";" }).lowercased().contains("json")
        else { return content }
        guard var tree = try? JSONReader.read(content, limits: TreeLimits(depth: 128, values: 1 << 20)) else {
            return nil
        }
        for path in rules.redactedMembers { tree = tree.changing(path[...]) { _ in .string(mark) } }
        return JSONWriter.bytes(tree)
    }
}
