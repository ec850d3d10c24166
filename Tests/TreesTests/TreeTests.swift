// Trees of structured content: read strictly, written, and changed.

import HTTPWire
import Policies
import Testing

@testable import Trees

private func json(_ text: String) throws -> ContentTree { try JSONReader.read(Array(text.utf8)) }

private func text(_ tree: ContentTree) -> String { String(decoding: JSONWriter.bytes(tree), as: UTF8.self) }

@Suite struct JSONTreeTests {
    @Test(
        "what is read is written without a loss",
        arguments: [
            ("null", "null"), (" [ 1 , -0.50e+3 , true , false ] ", "[1,-0.50e+3,true,false]"),
            (#"{"b":{"a":[]},"a":12345678901234567890123}"#, #"{"b":{"a":[]},"a":12345678901234567890123}"#),
            (#""\u00e9\ud83d\ude00\n\/\"\\\u0001""#, "\"é😀\\n/\\\"\\\\\\u0001\""), ("\u{FEFF}{}", "{}"),
        ]
    )
    func round(_ source: String, _ written: String) throws {
        #expect(text(try json(source)) == written)
    }

    @Test(
        "what is no JSON text, or has two meanings, is refused",
        arguments: [
            "", "{", "[1,]", "[1 2]", "{\"a\" 1}", "{a:1}", "01", "1.", "1e", "-", "tru", "nul", "\"", "\"\\x\"",
            "\"\n\"",
            "\"\\ud800\"", "\"\\ud800\\u0041\"", "1 2", "{\"a\":1,\"a\":2}", "{\"a\":1,}", "\"\\u12\"", "\"\\u12g4\"",
        ]
    )
    func refused(_ source: String) {
        #expect(throws: TreeError.self) { try json(source) }
    }

    @Test func bytesThatAreNotUTF8AreRefused() {
        #expect(throws: TreeError.self) { try JSONReader.read([0x22, 0xFF, 0x22]) }
    }

    @Test func depthAndNumberOfValuesAreBounded() throws {
        let limits = TreeLimits(depth: 3, values: 5)
        #expect(
            try JSONReader.read(Array("[[[1]]]".utf8), limits: limits) == .array([.array([.array([.number("1")])])])
        )
        #expect(throws: TreeError.self) { try JSONReader.read(Array("[[[[1]]]]".utf8), limits: limits) }
        #expect(throws: TreeError.self) { try JSONReader.read(Array("[1,2,3,4,5]".utf8), limits: limits) }
        let deep = String(repeating: "[", count: 100_000)
        #expect(throws: TreeError.self) { try json(deep) }
    }

    @Test func defaultsFillWhatIsMissingAtEveryDepth() throws {
        let tree = try json(#"{"a":1,"b":{"c":null}}"#)
        #expect(
            text(tree.filled(from: try json(#"{"a":2,"b":{"c":3,"d":4},"e":[5]}"#)))
                == #"{"a":1,"b":{"c":null,"d":4},"e":[5]}"#
        )
    }

    @Test(
        "nulls go, and the objects that become empty by that; arrays stay as they are",
        arguments: [
            (#"{"a":null,"b":1}"#, #"{"b":1}"#), (#"{"a":{"b":{"c":null}},"d":1}"#, #"{"d":1}"#),
            (#"{"a":{},"b":[],"c":[null,{"d":null}]}"#, #"{"a":{},"b":[],"c":[null,{"d":null}]}"#),
            (#"[{"a":null}]"#, #"[{"a":null}]"#), (#"{"a":null}"#, "{}"),
        ]
    )
    func strippingNulls(_ source: String, _ stripped: String) throws {
        #expect(text(try json(source).strippingNulls()) == stripped)
    }

    @Test func membersAreSortedByTheirBytesAtEveryDepth() throws {
        #expect(text(try json(#"{"b":[{"z":1,"y":2}],"B":1,"a":3}"#).sorted()) == #"{"B":1,"a":3,"b":[{"y":2,"z":1}]}"#)
    }

    @Test(
        "names in another style",
        arguments: [
            ("userID", "user_id"), ("URLString", "url_string"), ("HTTPServer2", "http_server2"), ("Title", "title"),
            ("schoolName", "school_name"), ("already_snake", "already_snake"), ("_private", "_private"), ("a", "a"),
            ("ID", "id"), ("aB", "a_b"), ("", ""),
        ]
    )
    func snake(_ name: String, _ styled: String) {
        #expect(NameStyle.snake.name(name) == styled)
    }

    @Test(arguments: [
        ("user_id", "userId"), ("a", "a"), ("_a_b_", "_aB_"), ("__", "__"), ("userID", "userID"), ("", ""),
    ])
    func camel(_ name: String, _ styled: String) {
        #expect(NameStyle.camel.name(name) == styled)
    }

    @Test func namesAreChangedInListsTooAndNeverMadeEqual() throws {
        let tree = try json(#"{"userID":[{"firstName":"x"}]}"#)
        #expect(text(try NameStyle.snake.renamed(tree)) == #"{"user_id":[{"first_name":"x"}]}"#)
        #expect(throws: TreeError("'userID' and 'user_id' would both be 'user_id'")) {
            try NameStyle.snake.renamed(try json(#"{"userID":1,"user_id":2}"#))
        }
    }
}

@Suite struct FormTreeTests {
    @Test(
        "a tree as a form",
        arguments: [
            (#"{"a":1,"b":"x y&=+/é"}"#, FormStyle(), "a=1&b=x%20y%26%3D%2B%2F%C3%A9"),
            (#"{"a":{"b":{"c":1}},"d":[1,2]}"#, FormStyle(), "a%5Bb%5D%5Bc%5D=1&d%5B%5D=1&d%5B%5D=2"),
            (#"{"d":[1,{"e":2}],"a":null}"#, FormStyle(arrays: .repeated), "d=1&d%5Be%5D=2&a"),
            (#"{"t":true,"f":false}"#, FormStyle(booleans: .digits), "t=1&f=0"),
            (#"{"t":true,"a":""}"#, FormStyle(order: .sorted), "a=&t=true"), ("{}", FormStyle(), ""),
        ]
    )
    func written(_ source: String, _ style: FormStyle, _ form: String) throws {
        #expect(FormItems.text(try json(source), style) == form)
    }

    @Test(
        "a form as a tree",
        arguments: [
            ("a=1&b=x+y%26", #"{"a":"1","b":"x y&"}"#), ("a[b][c]=1&a[b][d]=2", #"{"a":{"b":{"c":"1","d":"2"}}}"#),
            ("a[]=1&a[]=2&b=1&b=2&b=3", #"{"a":["1","2"],"b":["1","2","3"]}"#), ("a", #"{"a":null}"#), ("", "{}"),
            ("a%5Bb%5D=%C3%A9", #"{"a":{"b":"é"}}"#), ("[a]=1&b]=2", #"{"[a]":"1","b]":"2"}"#),
            ("a=%zz", #"{"a":"%zz"}"#),
        ]
    )
    func read(_ form: String, _ tree: String) throws {
        #expect(text(try FormItems.read(Array(form.utf8))) == tree)
    }

    @Test(arguments: ["a=1&a[b]=2", "a[b]=1&a[]=2", "a=%FF", "a[b]=1&a=2"])
    func contradictions(_ form: String) {
        #expect(throws: TreeError.self) { try FormItems.read(Array(form.utf8)) }
    }

    @Test(
        "the items of a query as they are",
        arguments: [
            ("a=1&b&=c&a+b=%26=", [["a", "1"], ["b", ""], ["", "c"], ["a b", "&="]]), ("", []),
            ("&&a=%C3%A9&", [["a", "é"]]),
        ]
    )
    func list(_ query: String, _ items: [[String]]) {
        #expect(FormItems.list(query[...]).map { [$0.name, $0.value] } == items)
    }

    @Test func whatIsWrittenReadsBack() throws {
        let tree = try json(#"{"a":{"b":["1","2"],"c":{"d":"&=+ %"}},"e":null,"ü":"x"}"#)
        for style in [FormStyle(), FormStyle(arrays: .repeated)] {
            #expect(try FormItems.read(Array(FormItems.text(tree, style).utf8)) == tree)
        }
    }
}

@Suite struct ScalarTextTests {
    @Test(arguments: [
        ("0", true), ("-1.50e+3", true), ("12345678901234567890", true), ("", false), ("01", false), (" 1", false),
        ("1 ", false), ("1.", false), ("+1", false), ("true", false),
    ])
    func spelledNumbers(_ text: String, _ isNumber: Bool) {
        #expect(ContentTree.number(spelled: text) == (isNumber ? .number(text) : nil))
    }

    @Test(
        "times of ISO 8601",
        arguments: [
            ("1970-01-01", 0), ("2024-02-29T12:00:00Z", 1_709_208_000), ("2024-05-06T07:08:09+02:00", 1_714_972_089),
            ("2024-05-06 07:08:09.123456", 1_714_979_289), ("1969-12-31T23:59:59Z", -1),
            ("0001-01-01T00:00:00Z", -62_135_596_800), ("9999-12-31T23:59:59Z", 253_402_300_799),
            ("2024-05-06T07:08-0130", 1_714_984_680),
        ]
    )
    func times(_ text: String, _ seconds: Int64) throws {
        let time = try #require(CalendarTime(iso8601: text))
        #expect(time.seconds == seconds)
        #expect(CalendarTime(iso8601: time.iso8601) == time)
    }

    @Test(
        arguments: [
            "", "2024", "2024-13-01", "2023-02-29", "2024-02-30", "2024-05-06T25:00", "2024-05-06T07:08:09+2",
            "2024-05-06T07", "2024-05-06x", "2024-05-06T07:08:09Zx", "0000-01-01", "2024-05-06T07:08:09.Z",
            "0001-01-01T00:00:00+01:00",
        ]
    )
    func noTimes(_ text: String) {
        #expect(CalendarTime(iso8601: text) == nil)
    }

    @Test func timesByAPattern() {
        #expect(CalendarTime(1_714_972_089).formatted("%d.%m.%Y %H:%M:%S %%") == "06.05.2024 05:08:09 %")
        #expect(CalendarTime(-1).iso8601 == "1969-12-31T23:59:59Z")
    }

    @Test func base64() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
            let text = Base64.encode(bytes)
            #expect(Base64.decode(text) == bytes)
        }
        #expect(Base64.encode(Array("foob".utf8)) == "Zm9vYg==")
        for text in ["Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zg=A", "Zm 9", "Zm9v\n", "Zg==Zg=="] {
            #expect(Base64.decode(text) == nil, "\(text)")
        }
    }

    @Test func aPropertyList() throws {
        let tree = ContentTree.object([
            .init("a<", .string("x&y\r")), .init("n", .number("-1")), .init("r", .number("1.5")),
            .init("b", .array([.bool(true), .bool(false)])), .init("d", .data([0xFF])), .init("t", .date(0)),
        ])
        let body = String(decoding: try PropertyListWriter.bytes(tree), as: UTF8.self).split(separator: "\n").dropFirst(
            3
        )
        #expect(
            body.joined()
                == "<dict><key>a&lt;</key><string>x&amp;y&#13;</string><key>n</key><integer>-1</integer>"
                + "<key>r</key><real>1.5</real><key>b</key><array><true/><false/></array><key>d</key><data>/w==</data>"
                + "<key>t</key><date>1970-01-01T00:00:00Z</date></dict></plist>"
        )
        #expect(throws: TreeError.self) { try PropertyListWriter.bytes(.array([.null])) }
        #expect(throws: TreeError.self) { try PropertyListWriter.bytes(.string("\u{1}")) }
    }
}
