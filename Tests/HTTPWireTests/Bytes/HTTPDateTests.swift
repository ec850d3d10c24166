// Dates: the three forms of RFC 9110 section 5.6.7 and what is none of them.

import HTTPWire
import Testing

@Suite("HTTP dates")
struct HTTPDateTests {
    static let now: Int64 = 1_784_000_000  // July 2026

    @Test(
        "RFC 9110 5.6.7: three forms",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed Dec 31 23:59:59 1969", -1),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            ("Tuesday, 01-Jan-30 00:00:00 GMT", 1_893_456_000),
            ("sun, 06 NOV 1994 08:49:37 gmt", 784_111_777),
            ("Mon, 06 Nov 1994 08:49:37 UTC", 784_111_777),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        ] as [(String, Int64)]
    )
    func forms(text: String, unix: Int64) { #expect(HTTPDate.parse(text, now: Self.now) == unix) }

    @Test(
        "What is none of them",
        arguments: [
            "", "0", "-1", "Sun", "Sun,", "06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 PST",
            "Sun, 06 Nov 1994 08:49:37 GMT ", " Sun, 06 Nov 1994 08:49:37 GMT", "Sun,  06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2023 00:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 94",
            "1994-11-06T08:49:37Z",
        ]
    )
    func refused(text: String) { #expect(HTTPDate.parse(text, now: Self.now) == nil) }

    @Test(
        "A two-digit year more than 50 years ahead is past (RFC 9110 5.6.7)",
        arguments: [(75, 2075), (76, 2076), (77, 1977), (99, 1999), (0, 2000)]
    )
    func twoDigits(short: Int, year: Int) {
        let digits = short < 10 ? "0\(short)" : "\(short)"
        let parsed = HTTPDate.parse("Friday, 01-Jan-\(digits) 00:00:00 GMT", now: Self.now)
        #expect(parsed.map { HTTPDate.format($0).contains(" \(year) ") } == true)
    }

    @Test(
        "More than 50 years ahead is meant to the second (RFC 9110 5.6.7)",
        arguments: [
            ("Sat, 21 Nov 2026 06:00:00 GMT", "Saturday, 21-Nov-76 06:00:00 GMT", 2076),
            ("Sat, 21 Nov 2026 06:00:00 GMT", "Sunday, 21-Nov-76 06:00:01 GMT", 1976),
            ("Sat, 21 Nov 2026 06:00:00 GMT", "Thursday, 31-Dec-76 00:00:00 GMT", 1976),
            ("Sat, 21 Nov 2026 06:00:00 GMT", "Tuesday, 01-Dec-76 00:00:00 GMT", 1976),
            ("Sat, 21 Nov 2026 06:00:00 GMT", "Wednesday, 01-Jan-76 23:59:59 GMT", 2076),
            ("Sat, 21 Nov 2026 06:00:00 GMT", "Monday, 21-Nov-77 05:00:00 GMT", 1977),
            ("Thu, 29 Feb 2024 00:00:00 GMT", "Wednesday, 28-Feb-74 23:59:59 GMT", 2074),
            ("Thu, 29 Feb 2024 00:00:00 GMT", "Friday, 01-Mar-74 00:00:00 GMT", 1974),
            ("Thu, 31 Dec 2099 00:00:00 GMT", "Friday, 31-Dec-49 00:00:00 GMT", 2149),
            ("Thu, 31 Dec 2099 00:00:00 GMT", "Friday, 31-Dec-49 00:00:01 GMT", 2049),
        ]
    )
    func fiftyYears(now: String, text: String, year: Int) throws {
        let now = try #require(HTTPDate.parse(now, now: 0))
        #expect(HTTPDate.parse(text, now: now).map { HTTPDate.format($0).contains(" \(year) ") } == true)
    }

    @Test("Every written date reads back, leap years and centuries included")
    func roundTrip() {
        for unix in stride(from: Int64(-62_167_219_200), through: 253_402_300_799, by: 86_400 * 97 + 12_345) {
            #expect(HTTPDate.parse(HTTPDate.format(unix), now: 0) == unix)
        }
        #expect(HTTPDate.format(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.format(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate.format(.min) == "Sat, 01 Jan 0000 00:00:00 GMT")
    }
}
