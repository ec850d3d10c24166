// Dates of HTTP (RFC 9110 section 5.6.7): three forms are read, one is written, without a calendar library.

public enum HTTPDate {
    /// The length of the form that `write` and `format` produce.
    public static let length = 29

    /// The seconds since 1970 of an HTTP date; nil if it is not one. `now`, in the same seconds, places two-digit
    /// years.
    public static func parse(_ text: String, now: Int64) -> Int64? {
        var text = text
        return text.withUTF8 { parse(UnsafeRawBufferPointer($0), now: now) }
    }

    /// The seconds since 1970 of an HTTP date; nil if it is not one. `now`, in the same seconds, places two-digit
    /// years.
    ///
    /// Names match in any case, as RFC 9111 section 4.2 requires of caches; the only zones are GMT and UTC. The name of
    /// a day must be valid, but is not compared with the date.
    public static func parse(_ bytes: UnsafeRawBufferPointer, now: Int64) -> Int64? {
        var reader = DateReader(bytes)
        guard let weekday = reader.letters() else { return nil }
        let parsed: Int64?
        if weekday.count == 3, reader.skip(", ") {
            parsed = fixdate(&reader)
        } else if weekday.count == 3, reader.skip(" ") {
            parsed = asctime(&reader)
        } else if weekday.count > 3, reader.skip(", ") {
            parsed = rfc850(&reader, now)
        } else {
            return nil
        }
        guard isWeekday(weekday), reader.isAtEnd else { return nil }
        return parsed
    }

    /// The date in IMF-fixdate, 29 bytes, such as `Sun, 06 Nov 1994 08:49:37 GMT`; years outside 0 to 9999 are clamped.
    public static func format(_ unix: Int64) -> String {
        String(unsafeUninitializedCapacity: length) { target in
            write(unix, into: UnsafeMutableRawBufferPointer(target))
            return length
        }
    }

    /// Writes the 29 bytes of `format`; writes nothing into a shorter buffer.
    public static func write(_ unix: Int64, into bytes: UnsafeMutableRawBufferPointer) {
        guard bytes.count >= length else { return }
        let time = min(max(unix, -62_167_219_200), 253_402_300_799)
        let days = floorDivide(time, 86400)
        let seconds = Int(time - days * 86400)
        let (year, month, day) = civil(days)
        let weekday = Int(((days + 4) % 7 + 7) % 7)
        copy(weekdays, weekday * 3, into: bytes, at: 0)
        bytes[3] = 0x2C
        bytes[4] = 0x20
        digits(day, 2, bytes, 5)
        bytes[7] = 0x20
        copy(months, (month - 1) * 3, into: bytes, at: 8)
        bytes[11] = 0x20
        digits(year, 4, bytes, 12)
        bytes[16] = 0x20
        digits(seconds / 3600, 2, bytes, 17)
        bytes[19] = 0x3A
        digits(seconds / 60 % 60, 2, bytes, 20)
        bytes[22] = 0x3A
        digits(seconds % 60, 2, bytes, 23)
        for (position, byte) in zip(25..., [0x20, 0x47, 0x4D, 0x54] as [UInt8]) { bytes[position] = byte }
    }

    // MARK: The three forms, after the day's name

    private static func fixdate(_ reader: inout DateReader) -> Int64? {
        guard let day = reader.number(digits: 2), reader.skip(" "), let month = month(reader.letters()),
            reader.skip(" "), let year = reader.number(digits: 4), reader.skip(" "), let time = time(&reader),
            reader.skip(" "), isZone(reader.letters())
        else { return nil }
        return seconds(year, month, day, time)
    }

    private static func rfc850(_ reader: inout DateReader, _ now: Int64) -> Int64? {
        guard let day = reader.number(digits: 2), reader.skip("-"), let month = month(reader.letters()),
            reader.skip("-"), let short = reader.number(digits: 2), reader.skip(" "), let time = time(&reader),
            reader.skip(" "), isZone(reader.letters())
        else { return nil }
        // A date that would be more than 50 years ahead, to the second, is in the most recent past year with the same
        // digits.
        let clamped = min(max(now, 0), 253_402_300_799)
        let today = civil(floorDivide(clamped, 86400))
        let limit = today.year + 50
        var year = limit - limit % 100 + short
        if (year, month, day, time) > (limit, today.month, today.day, Int(clamped % 86400)) { year -= 100 }
        return seconds(year, month, day, time)
    }

    private static func asctime(_ reader: inout DateReader) -> Int64? {
        guard let month = month(reader.letters()), reader.skip(" ") else { return nil }
        guard let day = reader.skip(" ") ? reader.number(digits: 1) : reader.number(digits: 2), reader.skip(" "),
            let time = time(&reader), reader.skip(" "), let year = reader.number(digits: 4)
        else { return nil }
        return seconds(year, month, day, time)
    }

    /// The seconds since midnight; a leap second counts as the first second of the next minute.
    private static func time(_ reader: inout DateReader) -> Int? {
        guard let hour = reader.number(digits: 2), hour < 24, reader.skip(":"), let minute = reader.number(digits: 2),
            minute < 60, reader.skip(":"), let second = reader.number(digits: 2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    // MARK: Names

    private static let weekdays: StaticString = "SunMonTueWedThuFriSat"
    private static let months: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"

    private static func isZone(_ letters: UnsafeRawBufferPointer?) -> Bool {
        guard let letters else { return false }
        return letters.equalsIgnoringCase("GMT") || letters.equalsIgnoringCase("UTC")
    }

    private static func month(_ letters: UnsafeRawBufferPointer?) -> Int? {
        guard let letters, letters.count == 3 else { return nil }
        return position(of: letters, in: months).map { $0 + 1 }
    }

    private static func isWeekday(_ letters: UnsafeRawBufferPointer) -> Bool {
        if letters.count == 3 { return position(of: letters, in: weekdays) != nil }
        let names: [StaticString] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
        return names.contains { letters.equalsIgnoringCase($0) }
    }

    private static func position(of letters: UnsafeRawBufferPointer, in names: StaticString) -> Int? {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        let all = UnsafeRawBufferPointer(start: names.utf8Start, count: names.utf8CodeUnitCount)
        for start in stride(from: 0, to: all.count, by: 3) where all.part(start..<start + 3).equalsIgnoringCase(letters)
        {
            return start / 3
        }
        return nil
    }

    private static func copy(
        _ names: StaticString,
        _ start: Int,
        into bytes: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) {
        for position in 0..<3 { bytes[offset + position] = names.utf8Start[start + position] }
    }

    private static func digits(_ value: Int, _ count: Int, _ bytes: UnsafeMutableRawBufferPointer, _ offset: Int) {
        var rest = value
        for position in stride(from: offset + count - 1, through: offset, by: -1) {
            bytes[position] = 0x30 + UInt8(rest % 10)
            rest /= 10
        }
    }

    // MARK: The calendar (proleptic Gregorian, years counted from March so that the leap day comes last)

    private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: Int) -> Int64? {
        guard day >= 1, day <= daysIn(month, year) else { return nil }
        let marchYear = month > 2 ? year : year - 1
        let era = Int(floorDivide(Int64(marchYear), 400))
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return Int64(era * 146_097 + dayOfEra - 719_468) * 86400 + Int64(time)
    }

    private static func civil(_ days: Int64) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = Int(shifted - era * 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + Int(era) * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }

    private static func daysIn(_ month: Int, _ year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }
}

/// Reads a date from left to right.
private struct DateReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    /// Reads one or more letters.
    mutating func letters() -> UnsafeRawBufferPointer? {
        let start = position
        while position < bytes.count, ByteClass.lower(bytes[position]) &- 0x61 < 26 { position += 1 }
        return position > start ? bytes.part(start..<position) : nil
    }

    /// Reads exactly this many digits.
    mutating func number(digits: Int) -> Int? {
        guard bytes.count - position >= digits,
            let value = Decimal.parse(bytes.part(position..<position + digits))
        else { return nil }
        position += digits
        return Int(value)
    }

    /// Skips the text if it comes next.
    mutating func skip(_ text: String) -> Bool {
        var offset = position
        for byte in text.utf8 {
            guard offset < bytes.count, bytes[offset] == byte else { return false }
            offset += 1
        }
        position = offset
        return true
    }
}
