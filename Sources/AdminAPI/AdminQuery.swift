// The query of an admin request: how it is written, and how it is read.

/// Queries of the form `name=value&name`, percent-encoded.
package enum AdminQuery {
    /// As it was read; a member without a value has an empty one.
    package typealias Members = [(name: String, value: String)]
    /// As it is to be written; nil writes the name alone.
    package typealias Item = (name: String, value: String?)

    /// The query with its question mark; empty where there are no items. Names are written as they are.
    static func text(_ items: [Item]) -> String {
        let members = items.map { name, value in value.map { "\(name)=\(encode($0))" } ?? name }
        return members.isEmpty ? "" : "?" + members.joined(separator: "&")
    }

    /// All but ASCII letters and digits becomes `%` and two digits.
    static func encode(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let scalar = Unicode.Scalar(byte)
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": result.unicodeScalars.append(scalar)
            default: result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// The path of a request target, and the query's members, percent-decoded.
    package static func split(_ target: String) -> (path: String, members: Members) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let members = (parts.count > 1 ? parts[1].split(separator: "&") : []).map { member in
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: decode(pair[0]), value: pair.count > 1 ? decode(pair[1]) : "")
        }
        return (String(parts[0]), members)
    }

    /// Text with a malformed escape, or with escapes that are no UTF-8, stays as it is.
    package static func decode(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "%") {
                bytes.append(byte)
            } else if let high = digit(rest.popFirst()), let low = digit(rest.popFirst()) {
                bytes.append(high << 4 | low)
            } else {
                return String(text)
            }
        }
        return String(validating: bytes, as: UTF8.self) ?? String(text)
    }

    /// The value of a hexadecimal digit.
    private static func digit(_ byte: UInt8?) -> UInt8? {
        byte.flatMap { Character(Unicode.Scalar($0)).hexDigitValue }.map { UInt8($0) }
    }
}
