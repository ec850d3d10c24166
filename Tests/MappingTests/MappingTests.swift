// What rules make of documents.

import Testing

@testable import Mapping

/// The example of the documentation: a list of users.
func users() throws -> MappingRule {
    let user = try object([
        "firstName": rule("name.first"), "born": rule("dob.date", .converted(.date, .usual)),
    ])
    return try MappingRule(object(["users": rule("results", .each(MappingRule(user)))]))
}

private let people = """
    {"info": {"seed": "x"}, "results": [
      {"name": {"title": "Ms", "first": "Ada"}, "dob": {"date": "1815-12-10T00:00:00+01:00", "age": 36}},
      {"name": {"first": "Gr\\u00e4ce \\"G\\""}, "dob": {"date": null}},
      {}
    ]}
    """

private let mappedPeople =
    #"{"users":[{"firstName":"Ada","born":"1815-12-09T23:00:00Z"},"#
    + #"{"firstName":"Gr\u00e4ce \"G\"","born":null},{"firstName":null,"born":null}]}"#

struct MappingTests {
    @Test("members, arrays of objects and dates, from a document that is there and from one that comes in pieces")
    func document() throws {
        #expect(try mapped(people, users()) == mappedPeople)
        #expect(try streamed(people, users()) == mappedPeople)
    }

    @Test("every split of the document gives the same")
    func splits() throws {
        let count = people.utf8.count
        for cut in 0...count { #expect(try streamed(people, users(), at: [cut]) == mappedPeople, "at \(cut)") }
        #expect(try streamed(people, users(), at: Array(1..<count)) == mappedPeople)
    }

    @Test(
        "one value",
        arguments: [
            ("a.b", #"{"a":{"b":1.50e3}}"#, "1.50e3"), (".", " [1, 2] ", "[1, 2]"),
            ("a[1]", #"{"a":[1,{"x":2}]}"#, #"{"x":2}"#),
            ("a.1", #"{"a":{"1":"member"}}"#, #""member""#), ("a\\.b", #"{"a.b":true}"#, "true"),
            ("a", #"{"a":1,"b":2,"a":3}"#, "3"), ("ä", #"{"\u00e4":7}"#, "7"), ("a", "[]", "null"),
            ("a", "null", "null"),
            ("a.b", #"{"a":"text"}"#, "null"), ("[0][1]", "[[5,6]]", "6"), ("a.b", #"{"a":{"b":1},"a":{}}"#, "null"),
            (".", "\u{FEFF}{}", "{}"), ("a", #"{"a":[]}"#, "[]"),
        ]
    )
    func value(_ path: String, _ document: String, _ expected: String) throws {
        #expect(try mapped(document, rule(path)) == expected)
        let isTwice = document.contains(#""a":1,"b""#) || document.contains(#"},"a""#)
        guard !isTwice else { return }
        for cut in 0...document.utf8.count {
            #expect(try streamed(document, rule(path), at: [cut]) == expected, "at \(cut)")
        }
    }

    @Test("a member that occurs twice: the last one counts, and where the first one is sent already it is refused")
    func twice() throws {
        let list = try MappingRule(object(["x": rule("a", .each(MappingRule()))]))
        #expect(try mapped(#"{"a":[1],"a":[2]}"#, list) == #"{"x":[2]}"#)
        #expect(failure { try streamed(#"{"a":[1],"a":[2]}"#, list) }?.keyPath == "x")
    }

    @Test(
        "so is an object on the way that occurs twice, once something of the first one is sent",
        arguments: [
            (#"{"a":{"b":1},"a":{}}"#, #"{"x":null,"y":null}"#), (#"{"a":{"b":1},"a":null}"#, "null"),
            (#"{"a":{"b":1},"a":{"c":2}}"#, #"{"x":null,"y":2}"#), (#"{"a":{"c":[1]},"a":7}"#, #"{"x":null,"y":null}"#),
        ]
    )
    func twiceOnTheWay(_ document: String, _ expected: String) throws {
        let members = try object(["x": rule("b"), "y": rule("c")])
        let root = try rule("a", members)
        #expect(try mapped(document, root) == expected)
        #expect(failure { try streamed(document, root) }?.reason.contains("has it twice") == true)
    }

    @Test(
        "where nothing of it is sent yet, the last one counts",
        arguments: [
            (#"{"a":{},"a":{"b":1}}"#, #"{"x":1,"y":null}"#), (#"{"a":null,"a":{"c":1}}"#, #"{"y":1,"x":null}"#),
            (#"{"a":{"d":1},"a":null}"#, "null"),
        ]
    )
    func twiceAndNothingSent(_ document: String, _ expected: String) throws {
        let root = try rule("a", object(["x": rule("b"), "y": rule("c")]))
        #expect(try streamed(document, root) == expected)
    }

    @Test("what is missing: null, left out, an error that names both paths, or what stands in")
    func missing() throws {
        let document = #"{"list":[{"a":1},{"b":2},{"a":null}]}"#
        for (policy, expected) in [(MissingValue.null, "[1,null,null]"), (.omit, "[1]")] {
            let list = try rule("list", .each(rule("a", missing: policy)))
            #expect(try mapped(document, list) == expected)
            #expect(try streamed(document, list) == expected)
        }
        let strict = try MappingRule(
            object(["all": rule("list", .each(MappingRule(object(["x": rule("a", missing: .error)]))))])
        )
        let expected = MappingFailure(keyPath: "all[1].x", "'a' is missing")
        #expect(failure { try mapped(document, strict) } == expected)
        #expect(failure { try streamed(document, strict) } == expected)
        let standIn = try rule("list", .each(rule("a", standIn: "[7]")))
        #expect(try mapped(document, standIn) == "[1,[7],[7]]")
        let gone = try MappingRule(object(["x": rule("a", missing: .omit), "y": rule("b", missing: .omit)]))
        #expect(try mapped("{}", gone) == "{}")
        #expect(try streamed("{}", gone) == "{}")
        #expect(try streamed(#"{"b":2}"#, gone) == #"{"y":2}"#)
        let rooted = try MappingRule(from: MappingPath("data"), object(["x": rule("a")]), missing: .error)
        #expect(failure { try streamed("{}", rooted) } == MappingFailure("'data' is missing"))
        #expect(failure { try mapped("{}", rooted) } == MappingFailure("'data' is missing"))
        #expect(try streamed(#"{"data":{}}"#, rooted) == #"{"x":null}"#)
    }

    @Test("objects that take from several places; while it streams, members come as they come, and these last")
    func gathered() throws {
        let meta = try MappingRule(
            object(["total": rule("info.count"), "deep": MappingRule(object(["x": rule("x")]))])
        )
        let plan = try MappingRule(
            object(["meta": meta, "items": rule("items", .each(rule("id"))), "raw": rule("info")])
        )
        let document = #"{"x":[1],"info":{"count":2},"items":[{"id":"a"},{"id":"b"}]}"#
        #expect(
            try mapped(document, plan) == #"{"meta":{"total":2,"deep":{"x":[1]}},"items":["a","b"],"raw":{"count":2}}"#
        )
        let expected = #"{"raw":{"count":2},"items":["a","b"],"meta":{"total":2,"deep":{"x":[1]}}}"#
        for cut in 0...document.utf8.count { #expect(try streamed(document, plan, at: [cut]) == expected, "at \(cut)") }
    }

    @Test("an array at the root gets a name, and one that has a name loses it")
    func arrayAtTheRoot() throws {
        let named = try MappingRule(object(["items": rule(".", .each(MappingRule(object(["key": rule("id")]))))]))
        let array = #"[{"id":1,"x":0},{"id":"b"}]"#
        let expected = #"{"items":[{"key":1},{"key":"b"}]}"#
        #expect(try mapped(array, named) == expected)
        for cut in 0...array.utf8.count { #expect(try streamed(array, named, at: [cut]) == expected, "at \(cut)") }
        #expect(try mapped("[]", named) == #"{"items":[]}"#)
        #expect(failure { try mapped(#"{"items":1}"#, named) } == MappingFailure(keyPath: "items", "it is no array"))
        let bare = try rule("items", .each(rule("key")))
        #expect(try mapped(expected, bare) == #"[1,"b"]"#)
        #expect(try streamed(expected, bare) == #"[1,"b"]"#)
    }

    @Test("arrays in arrays, and an array that is none")
    func nested() throws {
        let inner = try MappingRule(object(["ids": rule("tags", .each(rule("id", .converted(.string, .usual))))]))
        let plan = try rule("list", .each(inner))
        let document = #"{"list":[{"tags":[{"id":1},{"id":"b"}]},{"tags":[]}]}"#
        #expect(try mapped(document, plan) == #"[{"ids":["1","b"]},{"ids":[]}]"#)
        #expect(try streamed(document, plan) == #"[{"ids":["1","b"]},{"ids":[]}]"#)
        let wrong = #"{"list":[{"tags":[]},{"tags":{}}]}"#
        #expect(failure { try mapped(wrong, plan) } == MappingFailure(keyPath: "[1].ids", "it is no array"))
        #expect(failure { try streamed(wrong, plan) } == MappingFailure(keyPath: "[1].ids", "it is no array"))
    }

    @Test(
        "what is no JSON is refused, whatever is taken of it",
        arguments: [
            "", " ", "{", "[1,]", #"{"a":1,}"#, #"{"a" 1}"#, "[1 2]", "01", "1.", "+1", "tru", "nul", "[\"\u{1}\"]",
            #"["\x"]"#,
            #"["\u12"]"#, "{} {}", "[}", #"{a:1}"#, "-", "1e", "[1]]", #""open"#,
        ]
    )
    func malformed(_ document: String) throws {
        #expect(failure { try mapped(document, rule("a")) } != nil)
        #expect(failure { try streamed(document, rule("a")) } != nil)
        #expect(failure { try streamed(document, rule("."), at: Array(0..<document.utf8.count)) } != nil)
    }

    @Test("text that is no UTF-8 is refused")
    func encoding() {
        for bad: [UInt8] in [
            [0xFF], [0xC0, 0x80], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xE2, 0x82],
        ] {
            let bytes = [0x22] + bad + [0x22]
            #expect(throws: MappingFailure.self) {
                try bytes.withUnsafeBytes { try MappingPlan(MappingRule()).map($0, limit: 100) }
            }
        }
    }

    @Test("depth, size and what has to be held are bounded")
    func bounds() throws {
        let deep = String(repeating: "[", count: 513) + String(repeating: "]", count: 513)
        #expect(failure { try mapped(deep, MappingRule()) } == .depth)
        #expect(failure { try streamed(deep, MappingRule()) } == .depth)
        #expect(try mapped(String(deep.dropFirst().dropLast()), MappingRule()).utf8.count == 1024)
        #expect(failure { try mapped("[1, 2, 3]", MappingRule(), limit: 8) } != nil)
        // Small elements become large ones.
        let wide = try MappingRule(.each(MappingRule(object(["a_member_with_a_long_name": rule("a")]))))
        let zeros = "[" + String(repeating: "0,", count: 999) + "0]"
        #expect(failure { try mapped(zeros, wide, limit: 2048) }?.reason == MappingFailure.tooLong(16384).reason)
        #expect(try streamed(zeros, wide, limit: 64).hasSuffix("]"))
        // One element is longer than may be held.
        let long = #"{"list":[{"a":""# + String(repeating: "x", count: 500) + #""}]}"#
        let list = try MappingRule(object(["x": rule("list", .each(rule("a")))]))
        let cuts = Array(stride(from: 10, to: long.utf8.count, by: 10))
        #expect(failure { try streamed(long, list, at: cuts, limit: 100) }?.keyPath == "x")
        // What nobody takes, and what goes through as it is, may be of any length.
        #expect(try streamed(long, rule("other"), at: cuts, limit: 100) == "null")
        #expect(try streamed(long, rule("list"), at: cuts, limit: 100).utf8.count == 510)
    }

    @Test("the digest is the same in every process, and tells mappings apart")
    func digest() throws {
        let plans = try [
            users(), rule("a"), rule("b"), rule("a", .converted(.string, .usual)), rule("a", missing: .omit),
            rule("a", standIn: "1"), MappingRule(object(["a": rule("a")])), rule("a", .each(MappingRule())),
            rule("a", .converted(.date, ValueFormat("unix", of: .date))),
        ].map { MappingPlan($0).digest }
        #expect(Set(plans).count == plans.count)
        #expect(plans.allSatisfy { $0.count == 16 })
        #expect(MappingPlan(try rule("a")).digest == MappingPlan(try rule("a")).digest)
        #expect(MappingPlan(try rule("a")).digest == "15ff6a68b5b51c05")
    }

    @Test("seeded documents: what streams, in random pieces, is what is mapped as a whole")
    func fuzz() throws {
        var random = SystemRandomNumberGenerator()
        let seed = UInt64.random(in: 0...UInt64.max, using: &random)
        var generator = Seeded(state: seed)
        let plan = try MappingRule(
            .each(MappingRule(object(["k": rule("a.b"), "l": rule("c[0]"), "m": rule("d", standIn: "{}")])))
        )
        for _ in 0..<300 {
            let document =
                "["
                + (0..<Int.random(in: 0...4, using: &generator)).map { _ in value(&generator, 4) }.joined(
                    separator: ","
                ) + "]"
            let count = document.utf8.count
            let cuts = (0..<5).map { _ in Int.random(in: 0...count, using: &generator) }.sorted()
            #expect(try streamed(document, plan, at: cuts) == mapped(document, plan), "seed \(seed): \(document)")
            // Damaged, it is refused by both or by none.
            var damaged = Array(document.utf8)
            damaged[Int.random(in: 0..<count, using: &generator)] = UInt8.random(in: 0x20...0x7E, using: &generator)
            let text = String(decoding: damaged, as: UTF8.self)
            let (whole, parts) = (failure { try mapped(text, plan) }, failure { try streamed(text, plan, at: cuts) })
            #expect((whole == nil) == (parts == nil), "seed \(seed): \(text)")
        }
    }

    private func value(_ generator: inout Seeded, _ depth: Int) -> String {
        switch Int.random(in: 0...(depth == 0 ? 3 : 6), using: &generator) {
        case 0: return String(Int.random(in: -1000...1000, using: &generator))
        case 1: return ["true", "false", "null", "1.5e-7"].randomElement(using: &generator) ?? "0"
        case 2, 3:
            return #""t\n\u00e9ü€😀 \"x\" "# + String(repeating: "y", count: Int.random(in: 0...20, using: &generator))
                + "\""
        case 4:
            return "["
                + (0..<Int.random(in: 0...3, using: &generator)).map { _ in value(&generator, depth - 1) }.joined(
                    separator: " , "
                ) + "]"
        default:
            let names = ["a", "b", "c", "d"].filter { _ in Bool.random(using: &generator) }
            return "{" + names.map { "\"\($0)\" : " + value(&generator, depth - 1) }.joined(separator: ",") + "}"
        }
    }
}

private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
