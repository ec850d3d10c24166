// One value of a JSON text, found by keys and positions, and a text as it stands in a JSON string.

/// Why a JSON text has no such value.
package struct JSONLookupError: Error, Sendable, Equatable {
    /// In words, without anything of the text.
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}

/// Looks into JSON texts. It reads the whole text: not for long ones on a loop.
package enum JSONLookup {
    /// Of a text that is looked into. Objects and arrays deeper than that are nobody's who takes values out of them.
    private static let limits = TreeLimits(depth: 128, values: 1 << 20)

    /// The text, number or truth value at the end of a path of keys of objects and positions in arrays, as a text.
    /// Numbers keep their digits. Of members with one name the last one counts.
    /// - Throws: that the bytes are no JSON text, or that there is no such value.
    package static func text(at path: [String], in bytes: [UInt8]) throws(JSONLookupError) -> String {
        let tree: ContentTree
        do throws(TreeError) { tree = try JSONReader.read(bytes, limits: limits, repeats: true) } catch {
            throw JSONLookupError("it is not JSON")
        }
        let found = try value(at: path, in: tree)
        guard let text = found.scalar else {
            throw JSONLookupError("it is null, an object or an array, and no text, number or truth value")
        }
        return text
    }

    private static func value(at path: [String], in tree: ContentTree) throws(JSONLookupError) -> ContentTree {
        var place = tree
        for key in path {
            switch place {
            case .object:
                guard let member = place[key] else { throw JSONLookupError("there is no '\(key)'") }
                place = member
            case .array(let values):
                guard let position = Int(key), values.indices.contains(position) else {
                    throw JSONLookupError("an array has no position '\(key)'")
                }
                place = values[position]
            default: throw JSONLookupError("there is nothing within a text or a number, and so no '\(key)'")
            }
        }
        return place
    }

    /// A text as it stands between the quotes of a JSON string.
    package static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 32:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
