// Converts a value into one of another type, by `as` and `format` of a rule; dates are read in any of the known forms.

import HTTPWire

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
        let text = isString && inner.contains(UInt8(ascii: "\\")) ? JSONText.unescaped(inner) : Array(inner)
        let made: [UInt8]? =
            switch type {
            case .string: text
            case .number: number(text)
            case .bool: bool(text, isString: isString)
            case .date: date(text, format, isString: isString).map(JSONText.quoted)
            case .url: isString && isURL(text) ? Array(value) : nil
            case .data: isString ? data(text, format).map(JSONText.quoted) : nil
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
        while let byte = rest.first, JSONSkipper.isSpace(byte) { rest.removeFirst() }
        while let byte = rest.last, JSONSkipper.isSpace(byte) { rest.removeLast() }
        return rest
    }

    private static func number(_ text: [UInt8]) -> [UInt8]? {
        if text.elementsEqual("true".utf8) { return [49] }
        if text.elementsEqual("false".utf8) { return [48] }
        let text = trimmed(text)
        return JSONText.isNumber(text) ? Array(text) : nil
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
                isString ? DatePattern.moment(text, DatePattern.iso8601) : Moment(unix: text, milliseconds: false)
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
        let packed = text.filter { !JSONSkipper.isSpace($0) }
        if case .hex = format.kind {
            guard packed.count % 2 == 0 else { return nil }
            var bytes: [UInt8] = []
            for place in stride(from: 0, to: packed.count, by: 2) {
                guard let high = JSONText.hex(packed[place]), let low = JSONText.hex(packed[place + 1]) else {
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

// MARK: - Dates

/// A moment: Unix seconds, and the digits of their fraction as they are in the text.
struct Moment: Equatable {
    var seconds: Int64
    var fraction: [UInt8] = []

    /// The moment in RFC 3339, in UTC; nil before the year 0 and after the year 9999.
    var text: [UInt8]? {
        let days = seconds >= 0 ? seconds / 86400 : -((86399 - seconds) / 86400)
        let rest = seconds - days * 86400
        let (year, month, day) = Self.date(ofDay: days)
        guard (0...9999).contains(year) else { return nil }
        func digits(_ value: Int64, _ width: Int) -> [UInt8] {
            let text = Array(String(value).utf8)
            return [UInt8](repeating: 48, count: max(0, width - text.count)) + text
        }
        var result = digits(year, 4) + [45] + digits(month, 2) + [45] + digits(day, 2) + [84]
        result += digits(rest / 3600, 2) + [58] + digits(rest / 60 % 60, 2) + [58] + digits(rest % 60, 2)
        if fraction.contains(where: { $0 != 48 }) { result += [46] + fraction }
        return result + [90]
    }

    /// The days since 1970-01-01 in the Gregorian calendar; nil for an invalid date.
    static func day(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
        guard (0...9999).contains(year), (1...12).contains(month), day >= 1 else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day <= lengths[Int(month) - 1] else { return nil }
        let shifted = year - (month <= 2 ? 1 : 0)
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private static func date(ofDay days: Int64) -> (Int64, Int64, Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let part = (5 * ofYear + 2) / 153
        let month = part < 10 ? part + 3 : part - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * part + 2) / 5 + 1)
    }

    /// Reads a number of seconds, or of milliseconds, in the form of JSON; nil with an exponent, and for a number that
    /// is not a moment.
    init?(unix text: some Collection<UInt8>, milliseconds: Bool) {
        guard JSONText.isNumber(text) else { return nil }
        let parts = Array(text).split(separator: UInt8(ascii: "."), maxSplits: 1)
        guard let whole = Int64(String(decoding: parts[0], as: UTF8.self)), whole.magnitude < 1 << 50 else {
            return nil
        }
        var fraction = parts.count > 1 ? Array(parts[1]) : []
        guard fraction.allSatisfy({ 48...57 ~= $0 }) else { return nil }
        // Before 1970 a fraction counts towards the past.
        if text.first == UInt8(ascii: "-"), fraction.contains(where: { $0 != 48 }) { return nil }
        var seconds = whole
        if milliseconds {
            seconds = whole >= 0 ? whole / 1000 : -((999 - whole) / 1000)
            let rest = Array(String(whole - seconds * 1000).utf8)
            fraction = [UInt8](repeating: 48, count: 3 - rest.count) + rest
        }
        self.init(seconds: seconds, fraction: fraction)
    }

    init(seconds: Int64, fraction: [UInt8] = []) {
        self.seconds = seconds
        self.fraction = Array(fraction.prefix(9))
    }
}

/// A pattern of a date: letters stand for its parts, all other characters for themselves.
enum DatePattern {
    enum Part: Sendable, Hashable {
        case year, month, monthName, day, hour, minute, second, fraction, zone
        case literal(UInt8)
        /// The following parts may be missing.
        case optional
    }

    private static let words: [(text: String, part: Part)] = [
        ("yyyy", .year), ("MMM", .monthName), ("MM", .month), ("dd", .day), ("HH", .hour), ("mm", .minute),
        ("ss", .second), ("SSS", .fraction), ("Z", .zone),
    ]
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// The long form of ISO 8601, in which only the date is required.
    static let iso8601: [Part] = [
        .year, .literal(45), .month, .literal(45), .day, .optional, .literal(84), .hour, .literal(58), .minute,
        .optional, .literal(58), .second, .optional, .literal(46), .fraction, .optional, .zone,
    ]

    /// The parts of a pattern; nil if it has other letters, or no year, month and day. Letters in single quotes stand
    /// for themselves.
    static func parts(_ pattern: String) -> [Part]? {
        var result: [Part] = []
        var rest = pattern[...]
        while let first = rest.first {
            if first == "'" {
                rest.removeFirst()
                guard let end = rest.firstIndex(of: "'") else { return nil }
                result += rest[..<end].utf8.map { .literal($0) }
                rest = rest[rest.index(after: end)...]
            } else if let word = words.first(where: { rest.hasPrefix($0.text) }) {
                result.append(word.part)
                rest.removeFirst(word.text.count)
            } else {
                guard first.isASCII, !first.isLetter else { return nil }
                result += first.utf8.map { .literal($0) }
                rest.removeFirst()
            }
        }
        let hasMonth = result.contains(.month) || result.contains(.monthName)
        return result.contains(.year) && hasMonth && result.contains(.day) ? result : nil
    }

    /// The moment that a text names, in UTC if it has no zone; nil if it does not match the pattern.
    static func moment(_ text: [UInt8], _ parts: [Part]) -> Moment? {
        var (year, month, day, hour, minute, second): (Int64, Int64, Int64, Int64, Int64, Int64) = (0, 1, 1, 0, 0, 0)
        var offset: Int64 = 0
        var fraction: [UInt8] = []
        var rest = text[...]
        func number(_ width: Int) -> Int64? {
            let digits = rest.prefix(width)
            guard digits.count == width, digits.allSatisfy({ 48...57 ~= $0 }) else { return nil }
            rest.removeFirst(width)
            return digits.reduce(0) { $0 * 10 + Int64($1 - 48) }
        }
        var isOptional = false
        /// True while missing parts are skipped.
        var isSkipping = false
        for (place, part) in parts.enumerated() {
            if part == .optional {
                isOptional = true
                isSkipping = false
                continue
            }
            if isSkipping { continue }
            switch part {
            case .year: if let value = number(4) { year = value } else { return nil }
            case .month: if let value = number(2) { month = value } else { return nil }
            case .day: if let value = number(2) { day = value } else { return nil }
            case .hour: if let value = number(2), value < 24 { hour = value } else { return nil }
            case .minute: if let value = number(2), value < 60 { minute = value } else { return nil }
            case .second: if let value = number(2), value <= 60 { second = value } else { return nil }
            case .monthName:
                let name = String(decoding: rest.prefix(3), as: UTF8.self).lowercased()
                guard let index = months.firstIndex(of: name) else { return nil }
                month = Int64(index) + 1
                rest.removeFirst(3)
            case .fraction:
                let digits = rest.prefix { 48...57 ~= $0 }
                guard !digits.isEmpty else { return nil }
                fraction = Array(digits)
                rest.removeFirst(digits.count)
            case .zone:
                if isOptional, rest.isEmpty { break }
                guard let sign = rest.popFirst() else { return nil }
                if sign == 90 || sign == 122 { break }
                guard sign == 43 || sign == 45, let hours = number(2) else { return nil }
                if rest.first == 58 { rest.removeFirst() }
                guard let minutes = number(2), hours < 24, minutes < 60 else { return nil }
                offset = (hours * 3600 + minutes * 60) * (sign == 43 ? 1 : -1)
            case .literal(let byte):
                let isStart = isOptional && place > 0 && parts[place - 1] == .optional
                // RFC 3339 allows a space, or a small letter, in the place of the T.
                let isSame = rest.first == byte || isStart && byte == 84 && (rest.first == 32 || rest.first == 116)
                if isSame {
                    rest.removeFirst()
                } else if isStart {
                    isSkipping = true
                } else {
                    return nil
                }
            case .optional: break
            }
        }
        guard rest.isEmpty, let days = Moment.day(year, month, day) else { return nil }
        let seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
        return Moment(seconds: seconds, fraction: fraction)
    }
}
