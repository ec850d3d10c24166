// Query items that a service adds to requests that lack them.

/// The query items of a service. An item whose name the request has, with any value and encoding, is not added; the
/// client's bytes are never re-encoded.
///
/// Secret items are kept apart: they are added only to the request for the origin, and so are in no cache key, log line
/// or message.
package struct QueryDefaults: Sendable, Equatable {
    /// A query item of the configuration with its values.
    private struct Parameter: Sendable, Equatable {
        let name: [UInt8]
        /// The items `name=value`, percent-encoded, one for each value.
        let items: [String]

        init(_ name: String, _ values: [String]) {
            self.name = Array(name.utf8)
            items = values.map { "\(QueryDefaults.encode(name))=\(QueryDefaults.encode($0))" }
        }
    }

    private let parameters: [Parameter]
    private let secrets: [Parameter]

    /// Makes the rules for a service.
    /// - Parameters:
    ///   - parameters: the names and values, not percent-encoded.
    ///   - secrets: the names and values that carry credentials, not percent-encoded.
    package init(_ parameters: [(name: String, values: [String])], secrets: [(name: String, values: [String])] = []) {
        self.parameters = parameters.map { Parameter($0.name, $0.values) }
        self.secrets = secrets.map { Parameter($0.name, $0.values) }
    }

    /// Whether there are no items except secret ones, so that a target is not changed before it becomes a key.
    package var isEmpty: Bool { parameters.isEmpty }

    package var hasSecrets: Bool { !secrets.isEmpty }

    /// Adds the missing items to a target (path and query), except for secret ones.
    /// - Parameter hidden: the secret items that are added later, in the form of ``hidden(missingIn:behind:)``; their
    ///   names count as present.
    package func apply(to target: String, behind hidden: [String] = []) -> String {
        Self.adding(Self.missing(parameters, in: target, hidden), to: target)
    }

    /// The secret items that a target lacks, percent-encoded.
    /// - Parameter hidden: the secret items that were added to the target before.
    package func hidden(missingIn target: String, behind hidden: [String] = []) -> [String] {
        Self.missing(secrets, in: target, hidden)
    }

    /// The target with items appended to its query.
    package static func adding(_ items: [String], to target: String) -> String {
        if items.isEmpty { return target }
        let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        let isOpen = mark.map { target.utf8.index(after: $0) == target.utf8.endIndex } ?? false || target.hasSuffix("&")
        let joint = mark == nil ? "?" : isOpen ? "" : "&"
        return target + joint + items.joined(separator: "&")
    }

    /// The targets that ``apply(to:behind:)`` turns into this one: the target itself, and those without the items that
    /// may have been added.
    package func targets(of target: String) -> [String] {
        var (targets, rest) = ([target], target)
        let items = parameters.flatMap(\.items)
        // Each item is added once at most.
        for _ in items {
            guard let item = items.first(where: { rest.hasSuffix("?" + $0) || rest.hasSuffix("&" + $0) }) else { break }
            let open = String(rest.dropLast(item.count))
            rest = String(open.dropLast())
            targets += [open, rest]
        }
        return targets
    }

    private static func missing(_ parameters: [Parameter], in target: String, _ hidden: [String]) -> [String] {
        if parameters.isEmpty { return [] }
        let query = target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target.utf8[target.utf8.index(after: $0)...] }
        let items = (query?.split(separator: UInt8(ascii: "&")) ?? []) + hidden.map { $0[...].utf8 }
        let present = Set(items.map { item in decode(item.prefix { $0 != UInt8(ascii: "=") }) })
        return parameters.filter { !present.contains($0.name) }.flatMap(\.items)
    }

    /// Percent-encodes all bytes but the unreserved ones of RFC 3986.
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

    /// Decodes a name in the form of HTML forms: `+` is a space, and a percent sign without two hexadecimal digits is
    /// itself.
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
}
