// Dates in the forms that documents have: ISO 8601, Unix seconds, and patterns of letters.

/// A moment: Unix seconds, and the digits of their fraction as they are in the text.
package struct Moment: Equatable {
    private var seconds: Int64
    private var fraction: [UInt8] = []

    /// The moment in RFC 3339, in UTC; nil before the year 0 and after the year 9999.
    package var text: [UInt8]? {
        let days = CalendarTime.floor(seconds, 86400)
        let rest = seconds - days * 86400
        let (year, month, day) = CalendarTime.date(days)
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
        guard (0...9999).contains(year), (1...12).contains(month), day >= 1,
            day <= CalendarTime.days(in: month, of: year)
        else { return nil }
        return CalendarTime.day(year, month, day)
    }

    /// Reads a number of seconds, or of milliseconds, in the form of JSON; nil with an exponent, and for a number that
    /// is not a moment.
    package init?(unix text: ArraySlice<UInt8>, milliseconds: Bool) {
        guard JSONTokenizer.isNumber(text) else { return nil }
        let parts = text.split(separator: UInt8(ascii: "."), maxSplits: 1)
        guard let whole = Int64(String(decoding: parts[0], as: UTF8.self)), whole.magnitude < 1 << 50 else {
            return nil
        }
        var fraction = parts.count > 1 ? Array(parts[1]) : []
        guard fraction.allSatisfy({ 48...57 ~= $0 }) else { return nil }
        // Before 1970 a fraction counts towards the past.
        if text.first == UInt8(ascii: "-"), fraction.contains(where: { $0 != 48 }) { return nil }
        var seconds = whole
        if milliseconds {
            seconds = CalendarTime.floor(whole, 1000)
            let rest = Array(String(whole - seconds * 1000).utf8)
            fraction = [UInt8](repeating: 48, count: 3 - rest.count) + rest
        }
        self.init(seconds: seconds, fraction: fraction)
    }

    package init(seconds: Int64, fraction: [UInt8] = []) {
        self.seconds = seconds
        self.fraction = Array(fraction.prefix(9))
    }
}

/// A pattern of a date: letters stand for its parts, all other characters for themselves.
package enum DatePattern {
    package enum Part: Sendable, Hashable {
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
    package static let iso8601: [Part] = [
        .year, .literal(45), .month, .literal(45), .day, .optional, .literal(84), .hour, .literal(58), .minute,
        .optional, .literal(58), .second, .optional, .literal(46), .fraction, .optional, .zone,
    ]

    /// The parts of a pattern; nil if it has other letters, or no year, month and day. Letters in single quotes stand
    /// for themselves.
    package static func parts(_ pattern: String) -> [Part]? {
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
    package static func moment(_ text: [UInt8], _ parts: [Part]) -> Moment? {
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
        for (partIndex, part) in parts.enumerated() {
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
                let isStart = isOptional && partIndex > 0 && parts[partIndex - 1] == .optional
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
