// The date in Expires of a cookie: in whatever order its parts come (RFC 6265 section 5.1.1).

import HTTPWire

enum CookieDate {
    private static let months = [
        "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11,
        "dec": 12,
    ]

    /// Seconds since 1970; nil for what is no date.
    static func parse(_ text: String) -> Int64? {
        var time: (Int, Int, Int)?
        var (day, month, year): (Int?, Int?, Int?)
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let found = Self.time(token) {
                time = found
            } else if day == nil, let found = number(token, 1...2) {
                day = found
            } else if month == nil, let found = months[String(decoding: token.prefix(3), as: UTF8.self).lowercased()] {
                month = found
            } else if year == nil, let found = number(token, 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if year < 70 { year += 2000 } else if year < 100 { year += 1900 }
        guard (1...31).contains(day), year >= 1601, time.0 < 24, time.1 < 60, time.2 < 60 else { return nil }
        return seconds(year, month, day, time)
    }

    private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: (Int, Int, Int)) -> Int64? {
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let clock = [time.0, time.1, time.2].map(padded).joined(separator: ":")
        // The day's name is not compared with the date.
        return HTTPDate.parse("Thu, \(padded(day)) \(names[month - 1]) \(year) \(clock) GMT", now: 0)
    }

    private static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// The digits at the beginning of a token, where there are so many and no more.
    private static func number(_ token: Substring.UTF8View, _ count: ClosedRange<Int>) -> Int? {
        let digits = token.prefix { (0x30...0x39).contains($0) }
        guard count.contains(digits.count) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }

    private static func time(_ token: Substring.UTF8View) -> (Int, Int, Int)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts.prefix(2).allSatisfy({ $0.allSatisfy { (0x30...0x39).contains($0) } }),
            let hour = number(parts[0], 1...2), let minute = number(parts[1], 1...2),
            let second = number(parts[2], 1...2)
        else { return nil }
        return (hour, minute, second)
    }
}
