// How a value is written into a template, so that it stays a value there.

import Content

/// What `{{name}}` does to the value's text; `{{{name}}}` writes it as it is.
package enum TemplateEscaping: Sendable, Equatable {
    /// Nothing: plain text.
    case none
    /// What stands between the quotes of a string of JSON or JavaScript.
    case json
    /// Text and attributes of HTML and XML.
    case markup

    /// By the media type of the answer.
    package init(contentType: String) {
        let type = contentType.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        self =
            switch type {
            case "application/json", "application/jsonl", "application/x-ndjson", "text/json", "text/javascript",
                "application/javascript", "application/x-javascript":
                .json
            case _ where type.hasSuffix("+json"): .json
            case "text/html", "text/xml", "application/xml": .markup
            case _ where type.hasSuffix("+xml"): .markup
            default: .none
            }
    }

    func write(_ text: String, to output: inout [UInt8]) {
        switch self {
        case .none: output += text.utf8
        case .json: JSONWriter.append(escaped: text, to: &output)
        case .markup: for byte in text.utf8 { Self.writeMarkup(byte, to: &output) }
        }
    }

    private static func writeMarkup(_ byte: UInt8, to output: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "&"): output += "&amp;".utf8
        case UInt8(ascii: "<"): output += "&lt;".utf8
        case UInt8(ascii: ">"): output += "&gt;".utf8
        case UInt8(ascii: "\""): output += "&quot;".utf8
        case UInt8(ascii: "'"): output += "&#39;".utf8
        default: output.append(byte)
        }
    }
}
