// One grammar of JSON for all who read it: the same tokens and mistakes however the bytes are cut, and the differences
// that its users ask for.

import Testing

@testable import Trees

/// The tokens of a text that comes in pieces, and its mistake.
private func tokens(_ text: [UInt8], cut size: Int, depth: Int = 8) -> ([JSONTokenizer.Token], JSONFault?) {
    var tokenizer = JSONTokenizer(depth: depth)
    var found: [JSONTokenizer.Token] = []
    do throws(JSONFault) {
        var start = 0
        repeat {
            let end = min(start + size, text.count)
            let isLast = end == text.count
            // No byte of an earlier piece is there any more.
            let piece = Array(text[start..<end]) + [0]
            try piece.withUnsafeBufferPointer { piece throws(JSONFault) in
                guard let base = piece.baseAddress else { return }
                var position = 0
                while let token = try tokenizer.next(base, &position, end - start, isLast: isLast) {
                    found.append(token)
                }
                #expect(position == end - start || tokenizer.isDone)
            }
            start = end
        } while start < text.count && !tokenizer.isDone
    } catch {
        return (found, error)
    }
    return (found, nil)
}

@Suite struct JSONTokenizerTests {
    private static let well: [(String, [JSONTokenizer.Token])] = [
        ("null", [.literal]), ("-0.5e+10", [.number]), (#""ä€😀\ud83d\"\\ é""#, [.text]),
        (" [ ] ", [.arrayBegins, .arrayEnds]),
        (
            #"{"a\u0041":[1,true,"x"],"":{}}"#,
            [
                .objectBegins, .name, .arrayBegins, .number, .literal, .text, .arrayEnds, .name, .objectBegins,
                .objectEnds, .objectEnds,
            ]
        ),
    ]

    @Test("tokens are the same however the text is cut", arguments: well)
    func wellFormed(_ text: String, _ expected: [JSONTokenizer.Token]) {
        let bytes = Array(text.utf8)
        for size in 1...bytes.count {
            let (found, fault) = tokens(bytes, cut: size)
            #expect(found == expected && fault == nil, "cut at \(size)")
        }
    }

    @Test(
        "a mistake is the same however the text is cut",
        arguments: [
            ("", .end, true), ("[1,", .end, true), ("{", .name, true), (#"{"a""#, .colon, true), (#""ab"#, .end, true),
            ("[1 2]", .comma, false), ("[1,]", .value, false), ("{a", .name, false), (#"{"a",1}"#, .colon, false),
            ("01", .value, false), ("-", .value, false), ("-x", .value, false), ("1.", .digits, false),
            ("1.5e+]", .digits, false), ("tru", .value, false), ("[nulL]", .value, false), ("+1", .value, false),
            ("\"\n\"", .control, false), (#""\x""#, .escape, false), (#""\u12""#, .hexadecimal, false),
            ("[[[[[[[[[", .depth, false),
        ] as [(String, JSONFault.Kind, Bool)]
    )
    func malformed(_ text: String, _ kind: JSONFault.Kind, _ isAtEnd: Bool) {
        let bytes = Array(text.utf8)
        for size in 1...max(bytes.count, 1) {
            #expect(tokens(bytes, cut: size).1 == JSONFault(kind, isAtEnd: isAtEnd), "cut at \(size)")
        }
    }

    @Test(
        "bytes that are not UTF-8 are no string",
        arguments: [
            [0xFF], [0xC0, 0x80], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xC3, 0x22], [0xE2, 0x82, 0x41], [0x80],
        ] as [[UInt8]]
    )
    func foreign(_ bytes: [UInt8]) {
        let text = [0x22] + bytes + Array(#"abcdefgh""#.utf8)
        for size in 1...text.count { #expect(tokens(text, cut: size).1?.kind == .utf8) }
    }

    /// A tree has no text with half of a surrogate pair; whoever only skips the value takes its grammar as it is.
    @Test func halfOfASurrogatePairIsForTreesAlone() throws {
        let text = Array(#"["\ud83dx"]"#.utf8)
        #expect(tokens(text, cut: text.count).1 == nil)
        #expect(throws: TreeError("half of a surrogate pair is missing, at byte 8")) { try JSONReader.read(text) }
        let inner = Array(#"\ud83dx\ude00"#.utf8)
        #expect(inner.withUnsafeBytes { JSONTokenizer.unescaped($0) } == Array("\u{FFFD}x\u{FFFD}".utf8))
    }

    @Test(
        "the place of a mistake in a tree",
        arguments: [
            ("  ", "the text ends early, at byte 2"), ("[1,,2]", "this is no JSON value, at byte 3"),
            ("[tru]", "this is no JSON value, at byte 1"), ("[012]", "this is no JSON value, at byte 1"),
            ("[1.x]", "digits are missing, at byte 3"), ("[1  2]", "a comma is missing, at byte 4"),
            ("{", "the name of a member is missing, at byte 1"), (#"{"a" 1}"#, "a colon is missing, at byte 5"),
            (#"{"a":1,"a":2}"#, "the member 'a' occurs twice, at byte 10"),
            ("1 2", "something follows the value, at byte 2"),
            (#""a\x""#, "this escape is unknown, at byte 4"),
            (#""\u00x1""#, "four hexadecimal digits are missing, at byte 3"),
            ("\"a\u{1}\"", "a control character is not escaped, at byte 2"),
        ]
    )
    func positions(_ text: String, _ reason: String) {
        #expect(throws: TreeError(reason)) { try JSONReader.read(Array(text.utf8)) }
    }

    @Test(
        "control characters in the escapes of each user",
        arguments: [
            (JSONWriter.Escapes.letters, #"\n\r\t\u0001\"\\"#), (.lineFeed, #"\n\u000d\u0009\u0001\"\\"#),
            (.numbers, #"\u000a\u000d\u0009\u0001\"\\"#),
        ]
    )
    func escapes(_ escapes: JSONWriter.Escapes, _ expected: String) {
        var written: [UInt8] = []
        JSONWriter.append(escaped: "\n\r\t\u{1}\"\\", escapes, to: &written)
        #expect(String(decoding: written, as: UTF8.self) == expected)
    }
}
