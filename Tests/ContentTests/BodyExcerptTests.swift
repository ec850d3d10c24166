// What a log shows of a body: secrets hidden, wherever the beginning ends.

import Testing

@testable import Content

@Suite struct BodyExcerptTests {
    private static func shown(_ text: String, _ type: String?, limit: Int = 1000, coding: String? = nil) -> String {
        var excerpt = BodyExcerpt(limit: limit)
        // Byte by byte, and as one.
        for byte in text.utf8 { withUnsafeBytes(of: byte) { excerpt.append($0) } }
        var whole = BodyExcerpt(limit: limit)
        whole.append(Array(text.utf8.prefix(limit)), of: text.utf8.count)
        let result = excerpt.text(contentType: type, coding: coding)
        #expect(whole.text(contentType: type, coding: coding) == result)
        #expect(excerpt.length == Int64(text.utf8.count))
        return result
    }

    @Test(
        arguments: [
            (#"{"user":"ann","password":"x\"y"}"#, #"{"user":"ann","password":"***"}"#),
            (#"{"token" : {"a":[1,{"b":"}"}]}, "n":1}"#, #"{"token" : "***", "n":1}"#),
            (#"[{"apiKey":12},{"apiKey":null,"x":true}]"#, #"[{"apiKey":"***"},{"apiKey":"***","x":true}]"#),
            (#"{"a":"password","b":["token"]}"#, #"{"a":"password","b":["token"]}"#),
            (#"{"p\u0061ssword":"x"}"#, #"{"p\u0061ssword":"***"}"#),
            (#"{"session":[1,2],"z":"é"}"#, #"{"session":"***","z":"é"}"#),
            ("{\"a\":\n1}", #"{"a":\n1}"#), (#"{"secret":"#, #"{"secret":"#), ("not json \u{7}", "not json \\u{7}"),
            (#"{"secret":}"#, #"{"secret":"***"}"#),
            (
                #"{"tokens":["a","b"],"apiKeys":{"x":"y"},"keys":[1]}"#,
                #"{"tokens":"***","apiKeys":"***","keys":"***"}"#
            ),
            (#"{"max_tokens":5,"tokens":null,"monkeys":[1]}"#, #"{"max_tokens":5,"tokens":null,"monkeys":[1]}"#),
        ]
    )
    func `JSON keeps its secrets`(text: String, shown: String) {
        for type in ["application/json", "application/problem+json; charset=utf-8", "APPLICATION/JSON"] {
            #expect(Self.shown(text, type) == shown)
        }
    }

    @Test func aSecretIsHiddenWhereverTheBeginningEnds() {
        let text = #"{"user":"ann","password":"t0psecret","nested":{"access_token":["t0psecret"]}}"#
        for limit in 1...text.utf8.count {
            let shown = Self.shown(text, "application/json", limit: limit)
            #expect(!shown.contains("t0p"), "\(limit): \(shown)")
            #expect(shown.contains("… (\(limit) of ") == (limit < text.utf8.count))
        }
    }

    @Test(
        arguments: [
            ("user=ann&password=x&b", "user=ann&password=***&b"), ("token=", "token=***"), ("token", "token"),
            ("pass%77ord=x&user=a%20b", "pass%77ord=***&user=a%20b"),
            ("passwords[]=x&user[token]=y&user[name]=z", "passwords[]=***&user[token]=***&user[name]=z"),
            ("max_tokens=5&tokens=&tokens", "max_tokens=5&tokens=&tokens"),
        ]
    )
    func `forms keep their secrets`(text: String, shown: String) {
        #expect(Self.shown(text, "application/x-www-form-urlencoded") == shown)
    }

    @Test func nothingIsShownBehindBytesThatCannotBeHad() {
        var excerpt = BodyExcerpt(limit: 10)
        excerpt.append(Array("abc".utf8), of: 3)
        excerpt.append(Array("d".utf8), of: 5)
        #expect(excerpt.room == 0)
        excerpt.append(Array("later".utf8), of: 5)
        #expect(excerpt.text(contentType: "text/plain") == "abcd… (4 of 13 bytes)")
    }

    @Test func whatIsNoTextIsALength() {
        #expect(Self.shown("GIF89a", "image/gif") == "6 bytes of image/gif")
        #expect(Self.shown("abc", nil) == "3 bytes")
        #expect(Self.shown("abc", "text/plain", coding: "gzip") == "3 bytes, gzip")
        #expect(Self.shown("a<b>", "application/xhtml+xml") == "a<b>")
        #expect(Self.shown("line\r\nline", "text/plain; charset=utf-8") == "line\\r\\nline")
        #expect(Self.shown("a\u{2028}b\u{85}c\u{202E}d", "text/plain") == "a\\u{2028}b\\u{85}c\\u{202e}d")
        #expect(Self.shown("", "text/plain") == "")
    }
}
