// Values found in JSON texts by keys and positions.

import Testing

@testable import Trees

struct JSONLookupTests {
    private static let text = """
        {"token": "t\\"1", "user": {"id": 18446744073709551615, "on": true, "no": null, "tags": ["a", {"n": -2}, 1.50, 123456789012345678901234567890]}}
        """

    @Test(
        arguments: [
            ("token", "t\"1"), ("user.id", "18446744073709551615"), ("user.on", "true"), ("user.tags.0", "a"),
            ("user.tags.1.n", "-2"), ("user.tags.2", "1.50"), ("user.tags.3", "123456789012345678901234567890"),
        ]
    )
    func found(_ path: String, _ expected: String) throws {
        let keys = path.split(separator: ".").map(String.init)
        #expect(try JSONLookup.text(at: keys, in: Array(Self.text.utf8)) == expected)
    }

    @Test(
        arguments: [
            ("tok", "no 'tok'"), ("token.x", "no 'x'"), ("user", "null, an object or an array"),
            ("user.no", "null, an object or an array"), ("user.tags.4", "no position '4'"),
            ("user.tags.-1", "no position '-1'"), ("user.tags.x", "no position 'x'"),
        ]
    )
    func missing(_ path: String, _ words: String) {
        let keys = path.split(separator: ".").map(String.init)
        #expect {
            try JSONLookup.text(at: keys, in: Array(Self.text.utf8))
        } throws: {
            ($0 as? JSONLookupError)?.reason.contains(words) == true
        }
    }

    @Test("what is no JSON text, and a scalar as the whole", arguments: ["", "{", "<a>", "{\"a\": 1} x"])
    func noJSON(_ text: String) throws {
        #expect(throws: JSONLookupError("it is not JSON")) { try JSONLookup.text(at: ["a"], in: Array(text.utf8)) }
        #expect(try JSONLookup.text(at: [], in: Array("\"whole\"".utf8)) == "whole")
    }

    @Test func theLastOfTwoCounts() throws {
        #expect(try JSONLookup.text(at: ["a"], in: Array(#"{"a":1,"b":2,"a":{"c":3},"a":4}"#.utf8)) == "4")
    }

    @Test func escapes() { #expect(JSONWriter.escaped("a\"b\\c\n\u{1}\u{E9}") == "a\\\"b\\\\c\\u000a\\u0001\u{E9}") }
}
