// Media types of contents that are read and written as trees.

package import HTTPWire

/// Values of Content-Type.
package enum MediaType {
    package static let json = "application/json"
    package static let form = "application/x-www-form-urlencoded"
    package static let plist = "application/x-plist"

    /// The type and subtype in lower case, without parameters and spaces.
    package static func essence(_ value: String) -> String {
        value.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    }

    /// The essence of the content's type; nil if the fields do not name one.
    package static func of(_ fields: Fields) -> String? {
        guard let value = fields.combined(.contentType) else { return nil }
        let type = essence(value)
        return type.isEmpty ? nil : type
    }

    /// Whether the essence of a type means JSON.
    package static func isJSON(_ type: String) -> Bool {
        type == json || type == "text/json" || type.hasSuffix("+json")
    }

    /// The value with UTF-8 as its charset in place of another one, for a text that was decoded.
    package static func inUTF8(_ value: String) -> String {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false)
        return parts.map { part -> String in
            let isCharset = part.lowercased().filter { $0 != " " }.hasPrefix("charset=")
            return isCharset && !part.lowercased().contains("utf-8") ? " charset=utf-8" : String(part)
        }.joined(separator: ";")
    }
}
