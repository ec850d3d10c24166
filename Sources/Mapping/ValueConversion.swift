// Converts a value into one of another type, by `as` and `format` of a rule.

import HTTPWire
import Trees

enum ValueConversion {
    /// Appends the value as one of the type.
    /// - Parameters:
    ///   - value: a JSON text without spaces around it, not null.
    ///   - output: gets one JSON text.
    /// - Throws: the reason why the value has no such form.
    static func convert(
        _ value: UnsafeRawBufferPointer,
        to type: MappedType,
        _ format: ValueFormat,
        into output: inout [UInt8]
    ) throws(MappingFailure) {
        let first = value.first ?? 0
        if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
            throw MappingFailure("an \(first == UInt8(ascii: "{") ? "object" : "array") is no \(type.rawValue)")
        }
        let isString = first == UInt8(ascii: "\"")
        let inner = isString ? UnsafeRawBufferPointer(rebasing: value.dropFirst().dropLast()) : value
        if type == .string {
            // The text is copied, since it is escaped already.
            output += isString ? Array(value) : [UInt8(ascii: "\"")] + Array(value) + [UInt8(ascii: "\"")]
            return
        }
        let text = isString && inner.contains(UInt8(ascii: "\\")) ? JSONTokenizer.unescaped(inner) : Array(inner)
        let made: [UInt8]? =
            switch type {
            case .string: text
            case .number: number(text)
            case .bool: bool(text, isString: isString)
            case .date: date(text, format, isString: isString).map(JSONWriter.quoted)
            case .url: isString && isURL(text) ? Array(value) : nil
            case .data: isString ? data(text, format).map(JSONWriter.quoted) : nil
            }
        guard let made else {
            let form = format.text.isEmpty ? "" : " of the form \(format.text)"
            throw MappingFailure("\(shown(value)) is no \(type.rawValue)\(form)")
        }
        output += made
    }

    /// A value from a stranger as a part of a message.
    private static func shown(_ value: UnsafeRawBufferPointer) -> String {
        let text = String(decoding: value.prefix(40), as: UTF8.self)
        let plain = text.unicodeScalars.map { $0.value < 0x20 || 0x7F...0x9F ~= $0.value ? "?" : String($0) }.joined()
        return value.count > 40 ? plain + "…" : plain
    }

    private static func trimmed(_ text: [UInt8]) -> ArraySlice<UInt8> {
        var rest = text[...]
        while let byte = rest.first, JSONTokenizer.isSpace(byte) { rest.removeFirst() }
        while let byte = rest.last, JSONTokenizer.isSpace(byte) { rest.removeLast() }
        return rest
    }

    private static func number(_ text: [UInt8]) -> [UInt8]? {
        if text.elementsEqual("true".utf8) { return [49] }
        if text.elementsEqual("false".utf8) { return [48] }
        let text = trimmed(text)
        return JSONTokenizer.isNumber(text) ? Array(text) : nil
    }

    private static func bool(_ text: [UInt8], isString: Bool) -> [UInt8]? {
        let word = String(decoding: trimmed(text), as: UTF8.self).lowercased()
        let value: Bool
        switch word {
        case "true", "1", "yes", "on": value = true
        case "false", "0", "no", "off": value = false
        default: return nil
        }
        if !isString, word == "yes" || word == "on" { return nil }
        return Array(String(value).utf8)
    }

    private static func date(_ text: [UInt8], _ format: ValueFormat, isString: Bool) -> [UInt8]? {
        let moment: Moment? =
            switch format.kind {
            case .usual:
                isString ? DatePattern.moment(text, DatePattern.iso8601) : Moment(unix: text[...], milliseconds: false)
            case .unix: Moment(unix: trimmed(text), milliseconds: false)
            case .unixMilliseconds: Moment(unix: trimmed(text), milliseconds: true)
            case .iso8601: isString ? DatePattern.moment(text, DatePattern.iso8601) : nil
            case .http:
                // The century of a year of two digits depends on today, which is unknown here: such texts are not
                // dates.
                HTTPDate.parse(String(decoding: text, as: UTF8.self), now: 0).map { Moment(seconds: $0) }
            case .pattern(let parts): DatePattern.moment(text, parts)
            case .hex: nil
            }
        return moment?.text
    }

    /// Whether a text is a URL (RFC 3986): it has a scheme, and only characters of URLs; with http and https it has a
    /// host, too.
    private static func isURL(_ text: [UInt8]) -> Bool {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), let first = text.first,
            97...122 ~= first | 0x20, text.allSatisfy({ $0 > 0x20 && $0 != 0x7F && !#"<>"{}|\^`"#.utf8.contains($0) })
        else { return false }
        let isScheme = text[..<colon].allSatisfy { byte in
            97...122 ~= byte | 0x20 || 48...57 ~= byte || [43, 45, 46].contains(byte)
        }
        let scheme = String(decoding: text[..<colon], as: UTF8.self).lowercased()
        let rest = text[(colon + 1)...]
        guard isScheme, !rest.isEmpty else { return false }
        guard scheme == "http" || scheme == "https" else { return true }
        return rest.starts(with: "//".utf8) && rest.count > 2 && !"/?#:".utf8.contains(rest[rest.startIndex + 2])
    }

    /// The canonical Base64 of the bytes that the text encodes.
    private static func data(_ text: [UInt8], _ format: ValueFormat) -> [UInt8]? {
        let packed = text.filter { !JSONTokenizer.isSpace($0) }
        if case .hex = format.kind {
            guard packed.count % 2 == 0 else { return nil }
            var bytes: [UInt8] = []
            for index in stride(from: 0, to: packed.count, by: 2) {
                guard let high = JSONTokenizer.hex(packed[index]), let low = JSONTokenizer.hex(packed[index + 1]) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            }
            return Array(Base64.encode(bytes).utf8)
        }
        var digits = packed.map { $0 == 45 ? 43 : $0 == 95 ? 47 : $0 }
        let isPadded = digits.last == 61
        while digits.last == 61, packed.count - digits.count < 2 { digits.removeLast() }
        guard digits.count % 4 != 1, !isPadded || packed.count % 4 == 0,
            digits.allSatisfy({ 65...90 ~= $0 || 97...122 ~= $0 || 48...57 ~= $0 || $0 == 43 || $0 == 47 })
        else { return nil }
        return digits + [UInt8](repeating: 61, count: (4 - digits.count % 4) % 4)
    }
}

// MARK: - Formats

/// The format of a value that becomes a date or data: the `format` of a rule. Sendable: a value.
package struct ValueFormat: Sendable, Hashable {
    /// The error of a text that is not a format, with the reason in words.
    package struct Malformed: Error, Equatable {
        package let reason: String
    }

    enum Kind: Sendable, Hashable {
        /// The default format. For a date, a number is Unix seconds and a string ISO 8601; for data, the text is Base64
        /// with either alphabet.
        case usual
        case unix, unixMilliseconds, iso8601, http
        case pattern([DatePattern.Part])
        case hex
    }

    /// The text of the format; empty for the default one.
    package let text: String
    let kind: Kind

    package static let usual = ValueFormat(text: "", kind: .usual)

    private init(text: String, kind: Kind) {
        self.text = text
        self.kind = kind
    }

    /// - Parameter type: the type of the value; only dates and data have formats.
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
