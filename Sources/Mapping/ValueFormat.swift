// How a value is written that becomes a date or data: the `format` of a rule.

/// Sendable: a value.
package struct ValueFormat: Sendable, Hashable {
    /// Not one, with the reason in words.
    package struct Malformed: Error, Equatable {
        package let reason: String
    }

    enum Kind: Sendable, Hashable {
        /// Of a date: a number is Unix seconds, a string ISO 8601. Of data: Base64, with either alphabet.
        case usual
        case unix, unixMilliseconds, iso8601, http
        case pattern([DatePattern.Part])
        case hex
    }

    /// As it was written; empty for the usual one.
    package let text: String
    let kind: Kind

    package static let usual = ValueFormat(text: "", kind: .usual)

    private init(text: String, kind: Kind) {
        self.text = text
        self.kind = kind
    }

    /// - Parameter type: of the value; only dates and data have formats.
    package init(_ text: String, of type: MappedType) throws(Malformed) {
        switch (type, text) {
        case (.date, "unix"): self.init(text: text, kind: .unix)
        case (.date, "unix-ms"): self.init(text: text, kind: .unixMilliseconds)
        case (.date, "iso8601"): self.init(text: text, kind: .iso8601)
        case (.date, "http"): self.init(text: text, kind: .http)
        case (.date, _):
            guard let parts = DatePattern.parts(text) else {
                throw Malformed(reason: "takes unix, unix-ms, iso8601, http, or a pattern such as yyyy-MM-dd HH:mm:ss")
            }
            self.init(text: text, kind: .pattern(parts))
        case (.data, "base64"), (.data, "base64url"): self.init(text: text, kind: .usual)
        case (.data, "hex"): self.init(text: text, kind: .hex)
        case (.data, _): throw Malformed(reason: "takes base64, base64url or hex")
        default: throw Malformed(reason: "is for date and data")
        }
    }
}
