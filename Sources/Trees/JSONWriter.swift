// JSON texts (RFC 8259) written without spaces: of trees, and single strings.

/// Writes a tree as a JSON text without spaces.
package enum JSONWriter {
    /// The escapes of those control characters that have one of a single letter.
    package enum Escapes: Sendable {
        /// `\n`, `\r` and `\t`.
        case letters
        /// `\n` alone, as mapped documents have it.
        case lineFeed
        /// None: all control characters are written as `\u00XX`.
        case numbers
    }

    /// The text `null`.
    package static let null: [UInt8] = Array("null".utf8)

    package static func bytes(_ tree: ContentTree) -> [UInt8] {
        var result: [UInt8] = []
        append(tree, to: &result)
        return result
    }

    private static func append(_ tree: ContentTree, to result: inout [UInt8]) {
        switch tree {
        case .null: result += null
        case .bool(let value): result += Array(String(value).utf8)
        case .number(let text): result += Array(text.utf8)
        case .string(let text): append(text: text, to: &result)
        case .data, .date: append(text: tree.scalar ?? "", to: &result)
        case .array(let values):
            result.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { result.append(UInt8(ascii: ",")) }
                append(value, to: &result)
            }
            result.append(UInt8(ascii: "]"))
        case .object(let members):
            result.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { result.append(UInt8(ascii: ",")) }
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

    /// Appends the text in the form between the quotes of a string.
    package static func append(escaped text: String, _ escapes: Escapes = .letters, to result: inout [UInt8]) {
        var text = text
        text.withUTF8 { append(escaped: $0, escapes, to: &result) }
    }

    private static func append(
        escaped text: UnsafeBufferPointer<UInt8>,
        _ escapes: Escapes,
        to result: inout [UInt8]
    ) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
            case 0x0A where escapes != .numbers: result += Array("\\n".utf8)
            case 0x0D where escapes == .letters: result += Array("\\r".utf8)
            case 0x09 where escapes == .letters: result += Array("\\t".utf8)
            case ..<0x20:
                let digits = String(byte, radix: 16)
                result += Array("\\u00\(digits.utf8.count == 1 ? "0" : "")\(digits)".utf8)
            default: result.append(byte)
            }
        }
    }

    /// A text as the string of a mapped document, with its quotes.
    /// - Parameter text: bytes of UTF-8.
    package static func quoted(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [UInt8(ascii: "\"")]
        result.reserveCapacity(text.count + 2)
        text.withUnsafeBufferPointer { append(escaped: $0, .lineFeed, to: &result) }
        result.append(UInt8(ascii: "\""))
        return result
    }

    /// A text as the string of a mapped document, with its quotes.
    package static func quoted(_ text: String) -> [UInt8] { quoted(Array(text.utf8)) }

    /// The text in the form between the quotes of a string, with a number for every control character.
    package static func escaped(_ text: String) -> String {
        var result: [UInt8] = []
        append(escaped: text, .numbers, to: &result)
        return String(decoding: result, as: UTF8.self)
    }
}
