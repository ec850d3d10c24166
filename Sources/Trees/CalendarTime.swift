// Times in UTC, in ISO 8601 and by a pattern.

/// A second of the Gregorian calendar, in UTC.
package struct CalendarTime: Sendable, Equatable {
    package let seconds: Int64

    /// - Parameter seconds: seconds since 1970.
    package init(_ seconds: Int64) { self.seconds = seconds }

    /// The times in the years of four digits, so that no sum overflows.
    package static let range = Int64(-62_135_596_800)...Int64(253_402_300_799)

    /// Reads a text in ISO 8601, a date alone or with a time and a zone (`2024-05-06T07:08:09+02:00`); a fraction of a
    /// second is dropped, and a time without a zone is UTC. Nil for any other text.
    package init?(iso8601 text: String) {
        var rest = Array(text.utf8)[...]
        func number(_ digits: Int) -> Int64? {
            guard rest.count >= digits, rest.prefix(digits).allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
            defer { rest = rest.dropFirst(digits) }
            return rest.prefix(digits).reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        }
        func take(_ bytes: String) -> UInt8? {
            guard let first = rest.first, bytes.utf8.contains(first) else { return nil }
            return rest.popFirst()
        }
        guard let year = number(4), take("-") != nil, let month = number(2), take("-") != nil, let day = number(2),
            year > 0, (1...12).contains(month), day > 0, day <= Self.days(in: month, of: year)
        else { return nil }
        var seconds = Self.day(year, month, day) * 86400
        if rest.isEmpty {
            self.seconds = seconds
            return
        }
        guard take("Tt ") != nil, let hour = number(2), take(":") != nil, let minute = number(2), hour < 24, minute < 60
        else { return nil }
        seconds += hour * 3600 + minute * 60
        if take(":") != nil {
            guard let second = number(2), second < 61 else { return nil }
            seconds += min(second, 59)
            if take(".,") != nil {
                guard let first = rest.first, first &- 0x30 < 10 else { return nil }
                rest = rest.drop { $0 &- 0x30 < 10 }
            }
        }
        if take("Zz") == nil, let sign = take("+-") {
            guard let hours = number(2), hours < 24 else { return nil }
            _ = take(":")
            let minutes = rest.isEmpty ? 0 : number(2)
            guard let minutes, minutes < 60 else { return nil }
            let offset = hours * 3600 + minutes * 60
            seconds -= sign == UInt8(ascii: "-") ? -offset : offset
        }
        guard rest.isEmpty, Self.range.contains(seconds) else { return nil }
        self.seconds = seconds
    }

    /// The time in ISO 8601, such as `2024-05-06T07:08:09Z`.
    package var iso8601: String { formatted("%Y-%m-%dT%H:%M:%SZ") }

    /// The time by a pattern of strftime: `%Y %m %d %H %M %S` and `%%`; other characters are copied.
    package func formatted(_ pattern: String) -> String {
        let (day, time) = (Self.floor(seconds, 86400), seconds - Self.floor(seconds, 86400) * 86400)
        let date = Self.date(day)
        var result = ""
        var isDirective = false
        for character in pattern {
            guard isDirective else {
                if character == "%" { isDirective = true } else { result.append(character) }
                continue
            }
            isDirective = false
            switch character {
            case "Y": result += Self.padded(date.year, 4)
            case "m": result += Self.padded(date.month, 2)
            case "d": result += Self.padded(date.day, 2)
            case "H": result += Self.padded(time / 3600, 2)
            case "M": result += Self.padded(time / 60 % 60, 2)
            case "S": result += Self.padded(time % 60, 2)
            default: result.append(character)
            }
        }
        return result
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    /// The quotient, rounded down.
    static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
        number >= 0 ? number / divisor : (number - divisor + 1) / divisor
    }

    /// The length of a month.
    static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// The days since 1970; the year begins in March, so that the leap day comes last.
    static func day(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = floor(year, 400)
        let ofYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let yearOfEra = year - era * 400
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + ofYear - 719_468
    }

    /// The date of a day since 1970.
    static func date(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = floor(shifted, 146_097)
        let ofEra = shifted - era * 146_097
        let year = (ofEra - ofEra / 1460 + ofEra / 36524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        let month = (5 * ofYear + 2) / 153
        let number = month < 10 ? month + 3 : month - 9
        return (year + era * 400 + (number <= 2 ? 1 : 0), number, ofYear - (153 * month + 2) / 5 + 1)
    }
}
