// The beginning of a body for a log: bounded, on one line, and without the values of secret names.

import Trees

/// Collects the first bytes of a body. A value; used on one loop.
package struct BodyExcerpt: Sendable {
    /// The most bytes that are shown.
    private let limit: Int
    private var beginning: [UInt8] = []
    /// Whether bytes are missing: the ones that come later do not follow those that are kept.
    private var isCut = false
    /// The length of the whole body so far, in bytes.
    package private(set) var length: Int64 = 0

    /// - Parameter limit: the most bytes that are shown.
    package init(limit: Int) { self.limit = limit }

    /// The number of the next bytes that are shown.
    package var room: Int { isCut ? 0 : limit - beginning.count }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        beginning.append(contentsOf: bytes.prefix(room))
        length += Int64(bytes.count)
    }

    /// Counts the next bytes, of which `bytes` has the first: as many as there is ``room`` for, or fewer if they are
    /// not available; then no more are shown.
    package mutating func append(_ bytes: [UInt8], of count: Int) {
        beginning.append(contentsOf: bytes.prefix(room))
        isCut = isCut || beginning.count < limit && bytes.count < count
        length += Int64(count)
    }

    /// The text for a log: JSON, forms and texts with secrets hidden; only the length of everything else, and of coded
    /// content.
    /// - Parameters:
    ///   - secrets: the rules for hiding secrets.
    ///   - contentType: the value of Content-Type; nil if there is none.
    ///   - coding: the value of Content-Encoding; nil if there is none.
    package func text(
        _ secrets: SecretContent = SecretContent(),
        contentType: String?,
        coding: String? = nil
    ) -> String {
        if length == 0 { return "" }
        let type = MediaType.essence(contentType ?? "")
        if let coding, coding.lowercased() != "identity" { return "\(length) bytes, \(coding)" }
        let isShown =
            type.hasSuffix("/json") || type.hasSuffix("+json") || type.hasSuffix("-ndjson") || type.hasSuffix("/xml")
            || type.hasSuffix("+xml") || type.hasPrefix("text/") || type == "application/x-www-form-urlencoded"
        guard isShown else { return "\(length) bytes\(type.isEmpty ? "" : " of \(type)")" }
        let hidden = secrets.forLog.hidden(beginning, type: contentType)
        let shown = UnicodeText(hidden)?.utf8 ?? []
        let text = Self.line(shown)
        return length > Int64(beginning.count) ? "\(text)… (\(beginning.count) of \(length) bytes)" : text
    }

    /// The bytes as one line, with control characters spelled out.
    private static func line(_ bytes: [UInt8]) -> String {
        var result = ""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where Self.isHidden(scalar):
                result += "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Whether the character is invisible in a log, or moves the rest of the line.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
