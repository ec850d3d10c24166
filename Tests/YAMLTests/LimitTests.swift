// The limits of a tree, with each alias counted as a copy.

import Testing
import YAML

@Suite struct LimitTests {
    @Test(
        arguments: [
            ("[[a]]", 2, nil), ("[[a]]", 1, "1:2"), ("[[]]", 1, "1:2"), ("{a: {b: c}}", 1, "1:5"),
            ("- - - a", 2, "1:5"), ("a", 0, nil), ("[]", 0, "1:1"),
            // The alias brings its own levels.
            ("a: &x [[b]]\nc: *x", 3, nil), ("a: &x [[b]]\nc: [*x]", 3, "2:5"),
            ("a: &x [b]\nc: &y [*x]\nd: [*y]", 3, "3:5"),
            ("a: &x []\nc: [*x]", 3, nil), ("a: &x []\nc: [[*x]]", 3, "2:6"),
        ] as [(String, Int, String?)]
    )
    func levels(_ text: String, _ levels: Int, _ mark: String?) {
        let found = tree(text, limits: Limits(levels: levels, values: 100))
        if let mark {
            #expect(found == "tooManyLevels \(mark): found more than \(levels) levels")
        } else {
            #expect(found == tree(text))
        }
    }

    @Test(
        arguments: [
            ("[a, b]", 3, nil), ("[a, b]", 2, "1:5"), ("{a: b}", 2, "1:5"), ("{a: {}}", 2, "1:5"),
            ("[&x [a, b], *x]", 7, nil), ("[&x [a, b], *x]", 6, "1:13"),
            ("[&x a, &y [*x, *x], *y, *y]", 11, nil), ("[&x a, &y [*x, *x], *y, *y]", 10, "1:25"),
        ] as [(String, Int, String?)]
    )
    func values(_ text: String, _ values: Int, _ mark: String?) {
        let found = tree(text, limits: Limits(levels: 100, values: values))
        if let mark {
            #expect(found == "tooManyValues \(mark): found more than \(values) values")
        } else {
            #expect(found == tree(text))
        }
    }

    /// Ten of the line before on each line: ten to the thirtieth values would be the last line's.
    @Test func aBomb() {
        var text = "- &a0 x\n"
        for level in 1...30 {
            text += "- &a\(level) [\(Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", "))]\n"
        }
        #expect(tree(text) == "tooManyValues 7:8: found more than 200000 values")
    }

    /// Each line has the line before in it: a tree as deep as it has lines.
    @Test func aLadder() {
        var text = "- &a0 x\n"
        for level in 1...5000 { text += "- &a\(level) [*a\(level - 1)]\n" }
        #expect(tree(text) == "tooManyLevels 101:10: found more than 100 levels")
    }

    @Test(arguments: ["[", "{a: ", "- ", "? ", "[{a: "])
    func depth(_ opening: String) {
        let text = String(repeating: opening, count: 200_000)
        #expect(tree(text).hasPrefix("tooManyLevels 1:"))
    }

    /// libyaml keeps every key that a line could still turn out to have.
    @Test func manyOnOneLine() {
        #expect(tree("[" + String(repeating: "a, ", count: 150_000) + "]").hasSuffix("p'a']"))
    }
}
