// Dates of seeds: the forms that are read, the one that is written, and what damage does to the
// lists of the old library.

import Foundation
import HTTPCaching
import HTTPWire
import Policies
import StoreSupport
import Testing

@testable import CacheStore

@Suite struct SeedDatesTests {
    static let times: [(String, Int64?)] = [
        ("2026-01-02T03:04:05Z", 1_767_323_045), ("2026-01-02T03:04:05+00:00", 1_767_323_045),
        ("2026-01-02T04:34:05+01:30", 1_767_323_045), ("2026-01-01T19:04:05-0800", 1_767_323_045),
        ("2024-02-29T00:00:00Z", 1_709_164_800), ("9999-12-31T23:59:59Z", 253_402_300_799),
        ("10000-01-01T00:00:00Z", nil),
        ("1970-01-01T00:00:00Z", nil), ("1969-12-31T23:59:59Z", nil), ("2026-01-02", nil), ("2026-01-02T03:04:05", nil),
        ("2026-13-01T00:00:00Z", nil), ("2026-01-32T00:00:00Z", nil), ("20260102T030405Z", nil), ("yesterday", nil),
        ("", nil),
    ]

    @Test(arguments: times.indices) func `a time is read in ISO 8601, with its zone`(index: Int) throws {
        let (text, expected) = Self.times[index]
        let head = try SeedHead.decode(Array("{\"stored_at\": \"\(text)\"}".utf8))
        #expect(head.time(default: -7) == expected ?? -7, "\(text)")
    }

    @Test func `a time is written in UTC and read again`() {
        var head = storedHead()
        for (time, text) in [
            (1, "1970-01-01T00:00:01Z"), (1_767_323_045, "2026-01-02T03:04:05Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] as [(Int64, String)] {
            head.validatedAt = time
            let written = SeedHead(head, url: "http://a.example/")
            #expect(written.storedAt == text)
            #expect(written.time(default: -7) == time)
        }
    }

    private var entries: [String: Any] {
        [
            "file": Date(timeIntervalSince1970: 1_400_000_000), "text": "x", "number": 5, "real": 1.5, "flag": true,
            "list": [1, "y"], "inner": ["z": Date(timeIntervalSince1970: 5)], "data": Data([1, 2]),
            "old": Date(timeIntervalSince1970: -5),
        ]
    }

    private func list(_ format: PropertyListSerialization.PropertyListFormat) throws -> Data {
        try PropertyListSerialization.data(fromPropertyList: entries, format: format, options: 0)
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func `what is no date in a list says nothing about the others`(
        format: PropertyListSerialization.PropertyListFormat
    ) throws {
        let rig = try SeedRig()
        try rig.write("ResourceInfos.plist", try list(format))
        let dates = try rig.open(.hashed).dates
        #expect(dates.lastModified("file") == 1_400_000_000)
        for name in entries.keys where name != "file" { #expect(dates.lastModified(name) == nil, "\(name)") }
    }

    private static func xml(_ value: String) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict><key>a</key>\(value)"
            + "<key>file</key><date>2014-05-13T16:53:20Z</date></dict></plist>\n"
    }

    private static func nested(_ depth: Int) -> String {
        String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
    }

    /// What would end the process in the decoder is refused before.
    @Test(
        arguments: [
            ("<date>-9223372036854775807-01-01T00:00:00Z</date>", false),
            ("<date>9223372036854775807-01-01T00:00:00Z</date>", false), ("<date></date>", false),
            ("<date>", false), (nested(100_000), false), (nested(70), false), ("<a>\u{0}</a>", false),
            (nested(60), true), ("<string>$null</string>", true), ("<array/>", true), ("<dict/>", true),
            (String(repeating: "<array/>", count: 1).appending("<!-- x -->"), true),
        ]
    )
    func `a list that is deep, or of odd years, is refused, and an odd value is left out`(
        value: String,
        isRead: Bool
    ) throws {
        let rig = try SeedRig()
        for mark in ["", "\u{FEFF}"] {
            try rig.write("ResourceInfos.plist", Data((mark + Self.xml(value)).utf8))
            let dates = try? SeedDates(SeedFiles(rig.folder.path))
            #expect(dates?.lastModified("file") == (isRead ? 1_400_000_000 : nil), "\(value.prefix(80))")
        }
        for text in ["{ a = b; }", String(repeating: "(", count: 100_000), "", "x"] {
            try rig.write("ResourceInfos.plist", Data(text.utf8))
            #expect(throws: SeedError.self, "\(text.prefix(20))") { try SeedDates(SeedFiles(rig.folder.path)) }
        }
    }

    /// PropertyListSerialization ends the process for some of these.
    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func `a damaged list is read or refused`(format: PropertyListSerialization.PropertyListFormat) throws {
        let rig = try SeedRig()
        let whole = try list(format)
        var refused = 0
        for index in whole.indices {
            for bit in [0x01, 0x10, 0x80] as [UInt8] {
                var damaged = whole
                damaged[index] ^= bit
                try rig.write("ResourceInfos.plist", damaged)
                do throws(SeedError) {
                    _ = try SeedDates(SeedFiles(rig.folder.path))
                } catch .dates {
                    refused += 1
                }
            }
        }
        #expect(refused > 0 && refused < whole.count * 3)
    }
}
