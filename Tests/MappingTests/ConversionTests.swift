// What `as` makes of values, key paths, and property lists.

import Testing

@testable import Mapping

struct ConversionTests {
    @Test(
        "values as other types; nil: refused",
        arguments: [
            (.string, "", "12.50", #""12.50""#), (.string, "", "true", #""true""#),
            (.string, "", #""a\u0041""#, #""a\u0041""#),
            (.string, "", "[]", nil), (.number, "", #"" 12e3 ""#, "12e3"), (.number, "", "false", "0"),
            (.number, "", #""0x1""#, nil),
            (.number, "", #""""#, nil), (.bool, "", #""Yes""#, "true"), (.bool, "", "0", "false"),
            (.bool, "", "2", nil),
            (.bool, "", #""OFF""#, "false"), (.date, "", "0", #""1970-01-01T00:00:00Z""#),
            (.date, "", "1700000000.250", #""2023-11-14T22:13:20.250Z""#),
            (.date, "", #""2024-02-29""#, #""2024-02-29T00:00:00Z""#), (.date, "", #""2023-02-29""#, nil),
            (.date, "", #""2024-01-01 10:20:30.5-02:30""#, #""2024-01-01T12:50:30.5Z""#),
            (.date, "", #""2024-01-01T10:20Z""#, #""2024-01-01T10:20:00Z""#),
            (.date, "", #""2024-01-01T25:00:00Z""#, nil), (.date, "", #""soon""#, nil),
            (.date, "unix", #""1""#, #""1970-01-01T00:00:01Z""#),
            (.date, "unix-ms", "-1", #""1969-12-31T23:59:59.999Z""#),
            (.date, "unix-ms", "1500", #""1970-01-01T00:00:01.500Z""#),
            (.date, "iso8601", "0", nil),
            (.date, "http", #""Sun, 06 Nov 1994 08:49:37 GMT""#, #""1994-11-06T08:49:37Z""#),
            (.date, "dd.MM.yyyy HH:mm", #""24.12.2024 18:30""#, #""2024-12-24T18:30:00Z""#),
            (.date, "dd MMM yyyy HH:mm:ss Z", #""02 Jan 2006 15:04:05 -0700""#, #""2006-01-02T22:04:05Z""#),
            (.date, "yyyy-MM-dd", #""2024-12-24 ""#, nil),
            (.url, "", #""https:\/\/a.example\/x""#, #""https:\/\/a.example\/x""#),
            (.url, "", #""/x""#, nil), (.url, "", #""http:///x""#, nil), (.url, "", #""mailto:a@b""#, #""mailto:a@b""#),
            (.url, "", "1", nil),
            (.url, "", #""https://a b""#, nil), (.data, "", #""-_8""#, #""+/8=""#),
            (.data, "", #""aGk=\n""#, #""aGk=""#), (.data, "", #""a""#, nil),
            (.data, "", #""a=b=""#, nil), (.data, "hex", #""DEADbeef""#, #""3q2+7w==""#),
            (.data, "hex", #""abc""#, nil), (.data, "", "1", nil),
        ] as [(MappedType, String, String, String?)]
    )
    func values(_ type: MappedType, _ format: String, _ value: String, _ expected: String?) throws {
        let form = try format.isEmpty ? ValueFormat.usual : ValueFormat(format, of: type)
        let plan = MappingRule(.converted(type, form))
        if let expected {
            #expect(try mapped(value, plan) == expected)
        } else {
            #expect(failure { try mapped(value, plan) }?.reason.contains("is no \(type.rawValue)") == true)
        }
    }

    @Test("a failure says which value is at fault, without what could end a line")
    func reason() {
        let plan = MappingRule(.converted(.date, .usual))
        #expect(failure { try mapped(#""so\non""#, plan) } == MappingFailure(#""so\non" is no date"#))
        let long = "\"" + String(repeating: "é", count: 100) + "\""
        #expect((failure { try mapped(long, plan) }?.reason.utf8.count ?? 200) < 100)
    }

    @Test(
        "formats that are none",
        arguments: [("date", "MM-dd"), ("date", "yyyy q"), ("data", "rot13"), ("string", "unix"), ("date", "'yyyy")]
    )
    func formats(_ type: String, _ format: String) throws {
        let type = try #require(MappedType(rawValue: type))
        #expect(throws: ValueFormat.Malformed.self) { try ValueFormat(format, of: type) }
    }

    @Test(
        "key paths",
        arguments: [
            ("a", ["a"]), ("a.b.c", ["a", "b", "c"]), ("a[0].b", ["a", "0", "b"]), ("[1]", ["1"]), (".", []),
            ("a\\.b", ["a.b"]),
            ("a\\[0]", nil), ("", nil), ("a.", nil), (".a", nil), ("a..b", nil), ("a[x]", nil), ("a[0", nil),
            ("a[0]b", nil), ("a\\", nil),
        ] as [(String, [String]?)]
    )
    func paths(_ text: String, _ expected: [String]?) {
        let path = try? MappingPath(text)
        if text == "a\\[0]" {
            #expect(path?.names.map { String(decoding: $0, as: UTF8.self) } == ["a[0]"])
        } else {
            #expect(path?.names.map { String(decoding: $0, as: UTF8.self) } == expected)
        }
    }

    @Test("a property list in XML")
    func xml() throws {
        let document = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict><!-- note --><key>a&amp;b</key><string>x "&#228;" <![CDATA[<y>]]></string>
            <key>list</key><array><integer>-7</integer><real>1.5</real><true/><false/></array>
            <key>when</key><date>2024-01-02T03:04:05Z</date><key>bytes</key><data> aGk=
            </data><key>none</key><dict/></dict></plist>
            """
        #expect(
            try mapped(document, MappingRule())
                == #"{"a&b":"x \"ä\" <y>","list":[-7,1.5,true,false],"when":"2024-01-02T03:04:05Z","bytes":"aGk=","none":{}}"#
        )
        #expect(try mapped(document, rule("list[1]")) == "1.5")
        let cut = String(document.dropLast(10))
        #expect(failure { try mapped(cut, MappingRule()) } != nil)
        let deep =
            "<plist>" + String(repeating: "<array>", count: 200) + String(repeating: "</array>", count: 200)
            + "</plist>"
        #expect(failure { try mapped(deep, MappingRule()) }?.reason.contains("levels") == true)
        #expect(failure { try mapped("<plist><real>nan</real></plist>", MappingRule()) } != nil)
        #expect(
            failure {
                try mapped("<!DOCTYPE plist [<!ENTITY a 'x'>]><plist><string>&a;</string></plist>", MappingRule())
            } != nil
        )
        #expect(failure { try mapped("<html></html>", MappingRule()) } != nil)
    }

    /// `{"n": [1, -2, 0.5, true], "s": "ä", "d": 2001-01-01, "b": "hi"}` as plutil writes it.
    private var binary: [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        func add(_ object: [UInt8]) {
            offsets.append(bytes.count)
            bytes += object
        }
        add([0xD4, 1, 2, 3, 4, 5, 6, 7, 8])
        for key in ["n", "s", "d", "b"] { add([0x51] + Array(key.utf8)) }
        add([0xA4, 9, 10, 11, 12])
        add([0x61, 0x00, 0xE4])
        add([0x33, 0, 0, 0, 0, 0, 0, 0, 0])
        add([0x42] + Array("hi".utf8))
        add([0x10, 1])
        add([0x13, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE])
        add([0x22, 0x3F, 0x00, 0x00, 0x00])
        add([0x09])
        let table = bytes.count
        bytes += offsets.map { UInt8($0) }
        func wide(_ value: Int) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, UInt8(value)] }
        return bytes + [0, 0, 0, 0, 0, 0, 1, 1] + wide(offsets.count) + wide(0) + wide(table)
    }

    @Test(
        "arrays that name one another cost no more than what may come out",
        arguments: [(100, 2), (30, 14), (127, 1), (1, 14)]
    )
    func bomb(levels: Int, times: Int) throws {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        func big(_ value: Int, _ size: Int) -> [UInt8] { (0..<size).reversed().map { UInt8(value >> ($0 * 8) & 255) } }
        for level in 0..<levels {
            offsets.append(bytes.count)
            // The last one names itself where it names only one.
            let next = times == 1 && level == levels - 1 ? level : level + 1
            bytes += [0xA0 | UInt8(times)] + (0..<times).flatMap { _ in big(next, 1) }
        }
        offsets.append(bytes.count)
        bytes += [0x51, 0x61]
        let table = bytes.count
        bytes += offsets.flatMap { big($0, 2) } + [0, 0, 0, 0, 0, 0, 2, 1]
        bytes += big(offsets.count, 8) + big(0, 8) + big(table, 8)
        let plan = MappingPlan(MappingRule())
        let reason = bytes.withUnsafeBytes { bytes in
            failure { String(decoding: try plan.map(bytes, limit: 10_000), as: UTF8.self) }?.reason
        }
        switch (levels, times) {
        case (1, _): #expect(reason == nil)
        case (_, 1): #expect(reason?.contains("levels") == true)
        default: #expect(reason?.contains("80000 bytes") == true)
        }
    }

    @Test("a binary property list; damaged anywhere, it is refused or gives other JSON, and never more")
    func binaryList() throws {
        let expected = #"{"n":[1,-2,0.5,true],"s":"ä","d":"2001-01-01T00:00:00Z","b":"aGk="}"#
        func map(_ bytes: [UInt8]) throws -> String {
            try bytes.withUnsafeBytes {
                String(decoding: try MappingPlan(MappingRule()).map($0, limit: 4096), as: UTF8.self)
            }
        }
        #expect(try map(binary) == expected)
        for index in binary.indices {
            for bit in [1, 0x80] as [UInt8] {
                var damaged = binary
                damaged[index] ^= bit
                #expect((try? map(damaged).utf8.count) ?? 0 <= 8 * 4096)
            }
            #expect(throws: MappingFailure.self) { try map(Array(binary[..<index])) }
        }
        // An array that holds itself.
        let loop =
            Array("bplist00".utf8) + [0xA2, 0, 0, 8] + [
                0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11,
            ]
        #expect(throws: MappingFailure.self) { try map(loop) }
    }
}
