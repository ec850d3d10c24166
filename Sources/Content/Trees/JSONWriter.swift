// A tree as a JSON text without spaces.

package enum JSONWriter {
    package static func bytes(_ tree: ContentTree) -> [UInt8] {
        var result: [UInt8] = []
        append(tree, to: &result)
        return result
    }

    private static func append(_ tree: ContentTree, to result: inout [UInt8]) {
        switch tree {
        case .null: result += Array("null".utf8)
        case .bool(let value): result += Array(String(value).utf8)
        case .number(let text): result += Array(text.utf8)
        case .string(let text): append(text: text, to: &result)
        case .data, .date: append(text: tree.scalar ?? "", to: &result)
        case .array(let values):
            result.append(UInt8(ascii: "["))
            for (place, value) in values.enumerated() {
                if place > 0 { result.append(UInt8(ascii: ",")) }
                append(value, to: &result)
            }
            result.append(UInt8(ascii: "]"))
        case .object(let members):
            result.append(UInt8(ascii: "{"))
            for (place, member) in members.enumerated() {
                if place > 0 { result.append(UInt8(ascii: ",")) }
                append(text: member.name, to: &result)
                result.append(UInt8(ascii: ":"))
                append(member.value, to: &result)
            }
            result.append(UInt8(ascii: "}"))
        }
    }

    private static func append(text: String, to result: inout [UInt8]) {
        result.append(UInt8(ascii: "\""))
        append(escaped: text, to: &result)
        result.append(UInt8(ascii: "\""))
    }

    /// What stands between the quotes of a text.
    package static func append(escaped text: String, to result: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
            case 0x0A: result += Array("\\n".utf8)
            case 0x0D: result += Array("\\r".utf8)
            case 0x09: result += Array("\\t".utf8)
            case ..<0x20:
                let digits = String(byte, radix: 16)
                result += Array("\\u00\(digits.utf8.count == 1 ? "0" : "")\(digits)".utf8)
            default: result.append(byte)
            }
        }
    }
}
