// Texts that are no YAML: what is wrong, and where.

import Testing
import YAML

@Suite struct ErrorTests {
    @Test(arguments: [
        (
            "a: [b\nc: d",
            "structure 2:2: did not find expected ',' or ']' while parsing a flow sequence that began at 1:4"
        ),
        ("a: {b: c", "structure 2:1: did not find expected ',' or '}' while parsing a flow mapping that began at 1:4"),
        ("a: b\n]", "structure 2:1: did not find expected key while parsing a block mapping that began at 1:1"),
        (
            "a:\n  b: c\n d: e",
            "structure 3:2: did not find expected key while parsing a block mapping that began at 1:1"
        ),
        (
            "- a\nb: c",
            "structure 2:1: did not find expected '-' indicator while parsing a block collection that began at 1:1"
        ),
        ("a: b: c", "token 1:5: mapping values are not allowed in this context"),
        ("a: - b", "token 1:4: block sequence entries are not allowed in this context"),
        ("a: 'b\nc", "token 2:2: found unexpected end of stream while scanning a quoted scalar that began at 1:4"),
        (
            "a: \"b\n--- c",
            "token 2:1: found unexpected document indicator while scanning a quoted scalar that began at 1:4"
        ),
        (#"a: "\q""#, "token 1:5: found unknown escape character while parsing a quoted scalar that began at 1:4"),
        (
            #"a: "\ud800""#,
            "token 1:7: found invalid Unicode character escape code while parsing a quoted scalar that began at 1:4"
        ),
        (
            "a: @b",
            "token 1:4: found character that cannot start any token while scanning for the next token that began at 1:4"
        ),
        (
            "a:\n\tb: c",
            "token 2:1: found character that cannot start any token while scanning for the next token that began at 2:1"
        ),
        (
            "a: |\n\tb",
            "token 2:1: found a tab character where an indentation space is expected while scanning a block scalar that began at 1:4"
        ),
        (
            "a: |0\n  b",
            "token 1:5: found an indentation indicator equal to 0 while scanning a block scalar that began at 1:4"
        ),
        ("a\nb: c", "token 2:2: mapping values are not allowed in this context"),
        ("%YAML 2.0\n---\n", "structure 1:1: found incompatible YAML document"),
        ("!x!y a", "structure 1:1: found undefined tag handle while parsing a node that began at 1:1"),
        ("&a &b c", "structure 1:4: did not find expected <document start>"),
        (
            "& a",
            "token 1:2: did not find expected alphabetic or numeric character while scanning an anchor that began at 1:1"
        ),
    ])
    func grammar(_ text: String, _ expected: String) { #expect(tree(text) == expected) }

    @Test(arguments: [
        ("a: *b", "unknownAlias 1:4: found undefined alias"),
        // It stands later.
        ("a: *b\nc: &b d", "unknownAlias 1:4: found undefined alias"),
        // It is not complete.
        ("a: &b [c, *b]", "unknownAlias 1:11: found undefined alias"),
    ])
    func aliases(_ text: String, _ expected: String) { #expect(tree(text) == expected) }

    @Test(arguments: [
        ("a: b\n---\nc: d\n", "2:1"), ("--- a\n--- b\n", "2:1"), ("---\n---\n", "2:1"),
        ("a\n...\n%YAML 1.1\n--- b", "3:1"), ("a\n# b\n  # c\n---\n", "4:1"),
    ])
    func secondDocuments(_ text: String, _ mark: String) {
        #expect(tree(text) == "secondDocument \(mark): found another document")
    }

    @Test(arguments: [
        ("a\u{0}b", "1:2"), ("name: a\u{7}b", "1:8"), ("a: b\r\nc: \u{1F600}\u{7F}", "2:5"),
        ("\u{85}\u{2028}\r\u{B}", "4:1"),
        ("a\rb\nc: \u{1B}", "3:4"), ("a: \u{FFFE}", "1:4"),
    ])
    func characters(_ text: String, _ mark: String) {
        #expect(tree(text) == "character \(mark): control characters are not allowed")
    }

    @Test(
        arguments: [
            ([0xFF], "1:1: invalid leading UTF-8 octet"),
            ([0x61, 0x0A, 0x62, 0x80], "2:2: invalid leading UTF-8 octet"),
            ([0x61, 0xC3], "1:2: incomplete UTF-8 octet sequence"),
            ([0x61, 0xC3, 0x28], "1:3: invalid trailing UTF-8 octet"),
            // Too long a form of a slash, half a surrogate pair, and one past the last.
            ([0xC0, 0xAF], "1:1: invalid length of a UTF-8 sequence"),
            ([0xED, 0xA0, 0x80], "1:1: invalid Unicode character"),
            ([0xF4, 0x90, 0x80, 0x80], "1:1: invalid Unicode character"),
            // UTF-16 with its mark, either way round.
            ([0xFF, 0xFE, 0x61, 0x00], "1:1: invalid leading UTF-8 octet"),
            ([0xFE, 0xFF, 0x00, 0x61], "1:1: invalid leading UTF-8 octet"),
        ] as [([UInt8], String)]
    )
    func bytes(_ bytes: [UInt8], _ expected: String) { #expect(tree(bytes) == "character \(expected)") }
}
