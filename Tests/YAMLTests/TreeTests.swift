// Texts that are YAML: every kind of node, with its position.

import Testing
import YAML

@Suite struct TreeTests {
    @Test(arguments: [
        ("", "nothing"),
        (" \n\n", "nothing"),
        ("# nothing but this\n  # and this\n", "nothing"),
        ("\u{FEFF}", "nothing"),
        ("---\n", "2:1p''"),
        ("---\n...\n", "2:1p''"),
        ("a", "1:1p'a'"),
        ("a: b", "1:1{1:1p'a'=1:4p'b'}"),
        ("--- # a comment\na: b\n...\n# another\n", "2:1{2:1p'a'=2:4p'b'}"),
        ("%YAML 1.1\n%TAG ! tag:example.com,2000:\n---\n!x a\n", "4:1p'a'"),
    ])
    func documents(_ text: String, _ expected: String) { #expect(tree(text) == expected) }

    @Test(arguments: [
        // Without a value.
        ("a:\nb: ~\n", "1:1{1:1p'a'=1:3p'' 2:1p'b'=2:4p'~'}"),
        ("a: 'it''s'", "1:1{1:1p'a'=1:4s'it's'}"),
        (#"a: "\x41\u00e9\U0001F600\"\\\n""#, "1:1{1:1p'a'=1:4d'A\u{E9}\u{1F600}\"\\\n'}"),
        (#"a: "b\0c""#, "1:1{1:1p'a'=1:4d'b\u{0}c'}"),
        (#""""#, "1:1d''"),
        ("a: |\n  b\n   c\n\n\nd: e", "1:1{1:1p'a'=1:4l'b\n c\n' 6:1p'd'=6:4p'e'}"),
        ("a: |-\n  b\n", "1:1{1:1p'a'=1:4l'b'}"),
        ("a: |+\n  b\n\n", "1:1{1:1p'a'=1:4l'b\n\n'}"),
        ("a: >\n  b\n  c\n\n  d\n", "1:1{1:1p'a'=1:4f'b c\nd\n'}"),
        ("a: >2-\n   b\n", "1:1{1:1p'a'=1:4f' b'}"),
        // Over several lines.
        ("a: b\n  c\n\n  d", "1:1{1:1p'a'=1:4p'b c\nd'}"),
        ("'a\n\n  b'", "1:1s'a\nb'"),
        // A colon and a number sign alone mean nothing.
        ("a: http://b:80/#c #d", "1:1{1:1p'a'=1:4p'http://b:80/#c'}"),
        ("a:\tb\t#c", "1:1{1:1p'a'=1:4p'b'}"),
        // Columns are counted in scalars.
        ("e\u{301}\u{1F600}: [x]", "1:1{1:1p'e\u{301}\u{1F600}'=1:6[1:7p'x']}"),
        // Tags are taken.
        ("a: !!str 5\nb: !c d\ne: !<f> [g]", "1:1{1:1p'a'=1:4p'5' 2:1p'b'=2:4p'd' 3:1p'e'=3:4[3:10p'g']}"),
    ])
    func scalars(_ text: String, _ expected: String) { #expect(tree(text) == expected) }

    @Test(arguments: [
        ("[]", "1:1[]"),
        ("{}", "1:1{}"),
        ("- a\n- - b\n  - c\n-\n", "1:1[1:3p'a' 2:3[2:5p'b' 3:5p'c'] 4:2p'']"),
        ("a:\n- b\n- c: d\n  e: f\n", "1:1{1:1p'a'=2:1[2:3p'b' 3:3{3:3p'c'=3:6p'd' 4:3p'e'=4:6p'f'}]}"),
        (
            "a: [b, 'c', {d: e}, f: g,]",
            "1:1{1:1p'a'=1:4[1:5p'b' 1:8s'c' 1:13{1:14p'd'=1:17p'e'} 1:21{1:21p'f'=1:24p'g'}]}"
        ),
        ("{a, b: , c: d}", "1:1{1:2p'a'=1:3p'' 1:5p'b'=1:8p'' 1:10p'c'=1:13p'd'}"),
        ("? a\n: b\n? c\n", "1:1{1:3p'a'=2:3p'b' 3:3p'c'=4:1p''}"),
        ("? [a]\n: {b: c}\n", "1:1{1:3[1:4p'a']=2:3{2:4p'b'=2:7p'c'}}"),
        ("{[a]: b}", "1:1{1:2[1:3p'a']=1:7p'b'}"),
        // A key that occurs twice is for the reader of the tree to tell.
        ("a: b\na: c\n", "1:1{1:1p'a'=1:4p'b' 2:1p'a'=2:4p'c'}"),
    ])
    func collections(_ text: String, _ expected: String) { #expect(tree(text) == expected) }

    @Test(arguments: [
        ("a: &x b\nc: *x\n", "1:1{1:1p'a'=1:4p'b' 2:1p'c'=2:4*1:4p'b'}"),
        ("- &x [a]\n- *x\n- [*x]\n", "1:1[1:3[1:7p'a'] 2:3*1:3[1:7p'a'] 3:3[3:4*1:3[1:7p'a']]]"),
        // The latest before it counts.
        ("- &x a\n- &x b\n- *x\n", "1:1[1:3p'a' 2:3p'b' 3:3*2:3p'b']"),
        // As a key.
        ("&x a: *x\n*x : b\n", "1:1{1:1p'a'=1:7*1:1p'a' 2:1*1:1p'a'=2:6p'b'}"),
        ("- &x\n- *x\n", "1:1[1:3p'' 2:3*1:3p'']"),
        // Before a tag, and behind one.
        ("- &x !y a\n- !y &z b\n- *x\n- *z\n", "1:1[1:3p'a' 2:3p'b' 3:3*1:3p'a' 4:3*2:3p'b']"),
        // A merge key is a key.
        (
            "a: &x {b: c}\nd: {<<: *x, e: f}\n",
            "1:1{1:1p'a'=1:4{1:8p'b'=1:11p'c'} 2:1p'd'=2:4{2:5p'<<'=2:9*1:4{1:8p'b'=1:11p'c'} 2:13p'e'=2:16p'f'}}"
        ),
    ])
    func aliases(_ text: String, _ expected: String) { #expect(tree(text) == expected) }

    @Test(arguments: ["\n", "\r\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"])
    func linesEnd(_ end: String) {
        #expect(tree("a: b\(end)\(end)c: [d,\(end)e]") == "1:1{1:1p'a'=1:4p'b' 3:1p'c'=3:4[3:5p'd' 4:1p'e']}")
    }

    /// Editors on other systems write one.
    @Test func aByteOrderMarkCountsAsNothing() {
        #expect(tree("\u{FEFF}a: b\nc: d\n") == tree("a: b\nc: d\n"))
        #expect(tree("\u{FEFF}a: b\n c: d\n") == tree("a: b\n c: d\n"))
        #expect(tree("\u{FEFF}\u{7}") == "character 1:1: control characters are not allowed")
    }

    @Test func aMebibyte() throws {
        var text = ""
        while text.utf8.count < 1 << 20 { text += "- { name: api, text: \"\(String(repeating: "x", count: 900))\" }\n" }
        let root = try #require(try Node.read(Array(text.utf8), limits: wide))
        guard case .sequence(let nodes) = root.content else {
            Issue.record("no sequence")
            return
        }
        #expect(nodes.count == text.split(separator: "\n").count)
        #expect(nodes.last?.mark == Mark(line: nodes.count, column: 3))
        // One scalar, and one line.
        let long = String(repeating: "y", count: 1 << 20)
        #expect(tree("a: \(long)") == "1:1{1:1p'a'=1:4p'\(long)'}")
        #expect(
            tree("- \"\(long)")
                == "token 1:\(3 + 1 + 1 << 20): found unexpected end of stream while scanning a quoted scalar that began at 1:3"
        )
    }
}
