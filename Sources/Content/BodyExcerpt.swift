// The beginning of a body as a log may show it: bounded, on one line, and without what its names call secret.

/// Collects the first bytes of a body. A value; used on one loop.
package struct BodyExcerpt: Sendable {
    /// The most that is shown, in bytes.
    private let limit: Int
    private var beginning: [UInt8] = []
    /// Bytes are missing: what comes later does not follow what is here.
    private var isCut = false
    /// Bytes of the whole body so far.
    package private(set) var length: Int64 = 0

    /// - Parameter limit: bytes that are shown at most.
    package init(limit: Int) { self.limit = limit }

    /// How many of the next bytes are shown.
    package var room: Int { isCut ? 0 : limit - beginning.count }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        beginning.append(contentsOf: bytes.prefix(room))
        length += Int64(bytes.count)
    }

    /// Counts bytes that come next, of which the first are in `bytes`: as many as there is ``room`` for, or fewer where
    /// they cannot be had, and then no more are shown.
    package mutating func append(_ bytes: [UInt8], of count: Int) {
        beginning.append(contentsOf: bytes.prefix(room))
        isCut = isCut || beginning.count < limit && bytes.count < count
        length += Int64(count)
    }

    /// What a log shows: JSON, forms and texts with secrets hidden; of everything else, and of what is coded, the length.
    /// - Parameters:
    ///   - secrets: what is hidden.
    ///   - contentType: the value of Content-Type; nil where there is none.
    ///   - coding: the value of Content-Encoding; nil where there is none.
    package func text(
        _ secrets: SecretContent = SecretContent(),
        contentType: String?,
        coding: String? = nil
    ) -> String {
        if length == 0 { return "" }
        let type = (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
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

    /// Whether a reader of the log would not see it, or would see the rest of the line elsewhere.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
