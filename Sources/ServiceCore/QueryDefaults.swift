// Query parameters that a service adds where the client did not send them.

/// A parameter that the request names already, with whatever value and however it is encoded, is left as it is; the
/// client's bytes are never re-encoded.
package struct QueryDefaults: Sendable, Equatable {
    private let parameters: [(name: [UInt8], encoded: [String])]

    package init(_ parameters: [(name: String, values: [String])]) {
        self.parameters = parameters.map { name, values in
            (Array(name.utf8), values.map { "\(Self.encode(name))=\(Self.encode($0))" })
        }
    }

    package var isEmpty: Bool { parameters.isEmpty }

    /// Adds what is missing to a target (path and query).
    package func apply(to target: String) -> String {
        if parameters.isEmpty { return target }
        let query = target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target.utf8[target.utf8.index(after: $0)...] }
        let names = query?.split(separator: UInt8(ascii: "&")).map { $0.prefix { $0 != UInt8(ascii: "=") } } ?? []
        let present = Set(names.map(Self.decode))
        let added = parameters.filter { !present.contains($0.name) }.flatMap(\.encoded)
        if added.isEmpty { return target }
        let joint = query == nil ? "?" : query?.isEmpty == true || target.hasSuffix("&") ? "" : "&"
        return target + joint + added.joined(separator: "&")
    }

    /// Percent-encodes all but RFC 3986's unreserved characters.
    static func encode(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }

    /// As forms are read: `+` is a space; a percent sign without two hexadecimal digits stands for itself.
    private static func decode(_ name: Substring.UTF8View) -> [UInt8] {
        var result: [UInt8] = []
        var rest = name
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let value = UInt8(String(Substring(digits)), radix: 16)
            {
                result.append(value)
                rest.removeFirst(2)
            } else {
                result.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return result
    }

    package static func == (left: QueryDefaults, right: QueryDefaults) -> Bool {
        left.parameters.elementsEqual(right.parameters, by: ==)
    }
}
