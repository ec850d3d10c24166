// Query parameters that a service adds where the client did not send them.

/// A parameter that the request names already, with whatever value, is left as it is; the client's bytes are never re-encoded.
package struct QueryDefaults: Sendable, Equatable {
    private let parameters: [(encodedName: String, encodedValues: [String])]

    package init(_ parameters: [(name: String, values: [String])]) {
        self.parameters = parameters.map { (Self.encode($0.name), $0.values.map(Self.encode)) }
    }

    package var isEmpty: Bool { parameters.isEmpty }

    /// Adds what is missing to a target (path and query).
    package func apply(to target: String) -> String {
        if parameters.isEmpty { return target }
        let query = target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target[target.index(after: $0)...] }
        let present = Set((query ?? "").split(separator: "&").map { $0.prefix { $0 != "=" } }.map(String.init))
        let added = parameters.filter { !present.contains($0.encodedName) }.flatMap { parameter in
            parameter.encodedValues.map { "\(parameter.encodedName)=\($0)" }
        }
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

    package static func == (left: QueryDefaults, right: QueryDefaults) -> Bool {
        left.parameters.elementsEqual(right.parameters, by: ==)
    }
}
