// The media types that the answers of a route may have (RFC 9110 section 8.3.1), and whether a head has one of them.

package import HTTPWire

/// What a configuration writes as `[application/json, text/*]`. Parameters such as `charset` do not count.
package struct ExpectedTypes: Sendable, Equatable, CustomStringConvertible {
    /// In lower case; at least one.
    private let patterns: [String]

    /// - Parameter patterns: each as ``isPattern(_:)`` takes it, in any case.
    /// - Returns: nil where there are none: any type will do.
    package init?(_ patterns: [String]) {
        guard !patterns.isEmpty else { return nil }
        self.patterns = patterns.map { $0.lowercased() }
    }

    /// Such as `application/json or text/*`.
    package var description: String { patterns.joined(separator: " or ") }

    /// Whether a text is `TYPE/SUBTYPE`, `TYPE/*` or `*/*`, without parameters.
    package static func isPattern(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ isToken($0) }) else { return false }
        return !parts[0].contains("*") ? !parts[1].contains("*") || parts[1] == "*" : text == "*/*"
    }

    /// The media type that is none of these, such as `the type text/html`, or `no Content-Type`; nil where it is one.
    package func mismatch(_ fields: Fields) -> String? {
        let values = fields.all(.contentType)
        guard let value = values.first else { return "no Content-Type" }
        // Clients differ in which of several they believe.
        if values.count > 1 { return "\(values.count) Content-Type fields" }
        let type = value.prefix { $0 != ";" && $0 != "," }.filter { $0 != " " && $0 != "\t" }.lowercased()
        let top = type.prefix { $0 != "/" } + "/*"
        let isExpected = type.contains("/") && patterns.contains { $0 == type || $0 == top || $0 == "*/*" }
        return isExpected ? nil : "the type \(value.prefix(80))"
    }

    private static func isToken(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 48...57, 65...90, 97...122: true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}
