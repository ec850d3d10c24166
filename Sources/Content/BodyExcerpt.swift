// The beginning of a body as a log may show it: bounded, on one line, and without what its names call secret.

/// Collects the first bytes of a body. A value; used on one loop.
package struct BodyExcerpt: Sendable {
    /// In bytes.
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
    ///   - contentType: the value of Content-Type; nil where there is none.
    ///   - coding: the value of Content-Encoding; nil where there is none.
    package func text(contentType: String?, coding: String? = nil) -> String {
        if length == 0 { return "" }
        let type = (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        if let coding, coding.lowercased() != "identity" { return "\(length) bytes, \(coding)" }
        let shown: [UInt8]
        if type.hasSuffix("/json") || type.hasSuffix("+json") || type.hasSuffix("-ndjson") {
            shown = RedactedJSON.redact(beginning)
        } else if type == "application/x-www-form-urlencoded" {
            shown = Self.redactedForm(beginning)
        } else if type.hasPrefix("text/") || type.hasSuffix("/xml") || type.hasSuffix("+xml") {
            shown = beginning
        } else {
            return "\(length) bytes\(type.isEmpty ? "" : " of \(type)")"
        }
        let text = Self.line(shown)
        return length > Int64(beginning.count) ? "\(text)… (\(beginning.count) of \(length) bytes)" : text
    }

    /// `name=value` pairs, in which the values of secret names are hidden.
    private static func redactedForm(_ bytes: [UInt8]) -> [UInt8] {
        let pairs = bytes.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        return Array(
            pairs.map { pair -> [UInt8] in
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                // A name may be written with percent-encodings; then it is not read, but hidden.
                let text = String(decoding: name, as: UTF8.self)
                let isSecret =
                    name.contains(UInt8(ascii: "%")) || SecretNames.contains(text)
                    || SecretNames.containsPlural(text) && !pair.dropFirst(name.count + 1).allSatisfy { 48...57 ~= $0 }
                return isSecret && name.count < pair.count ? Array(name) + Array("=***".utf8) : Array(pair)
            }.joined(separator: [UInt8(ascii: "&")])
        )
    }

    /// One line: control characters are spelled out.
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

/// JSON, or the beginning of one, in which the values of members with secret names are hidden. The text need not be
/// valid: what cannot be read as a member stays as it is.
enum RedactedJSON {
    static func redact(_ text: [UInt8]) -> [UInt8] {
        var scanner = Scanner(text: text)
        var result: [UInt8] = []
        while let byte = scanner.peek {
            guard byte == UInt8(ascii: "\"") else {
                result.append(byte)
                scanner.position += 1
                continue
            }
            let string = scanner.string()
            result += string
            let space = scanner.space()
            result += space
            guard scanner.peek == UInt8(ascii: ":") else { continue }
            scanner.position += 1
            result.append(UInt8(ascii: ":"))
            result += scanner.space()
            guard let first = scanner.peek else { break }
            guard isSecret(string, valueBegins: first) else { continue }
            scanner.skipValue()
            result += Array("\"***\"".utf8)
        }
        return result
    }

    /// - Parameter name: with its quotes. One with an escape is not read, but counts as secret.
    private static func isSecret(_ name: ArraySlice<UInt8>, valueBegins first: UInt8) -> Bool {
        if name.contains(UInt8(ascii: "\\")) { return true }
        let name = String(decoding: name.dropFirst().dropLast(), as: UTF8.self)
        return SecretNames.contains(name) || "\"[{".utf8.contains(first) && SecretNames.containsPlural(name)
    }

    private struct Scanner {
        let text: [UInt8]
        var position = 0

        var peek: UInt8? { position < text.count ? text[position] : nil }

        /// A string with its quotes; without the second one where the text ends in it.
        mutating func string() -> ArraySlice<UInt8> {
            let start = position
            position += 1
            while position < text.count, text[position] != UInt8(ascii: "\"") {
                position += text[position] == UInt8(ascii: "\\") ? 2 : 1
            }
            position = min(position + 1, text.count)
            return text[start..<position]
        }

        mutating func space() -> ArraySlice<UInt8> {
            let start = position
            while let byte = peek, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
            return text[start..<position]
        }

        /// A string, a number or a word, or an object or an array up to its end.
        mutating func skipValue() {
            var depth = 0
            while let byte = peek {
                switch byte {
                case UInt8(ascii: "\""):
                    _ = string()
                    if depth == 0 { return }
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    // The end of what the member is in.
                    if depth == 0 { return }
                    depth -= 1
                    if depth == 0 {
                        position += 1
                        return
                    }
                case UInt8(ascii: ",") where depth == 0: return
                default: break
                }
                position += 1
            }
        }
    }
}
