// The texts in which values of a group stand, and the sources that values are taken from.

import Policies
import Testing

struct GroupPoliciesTests {
    @Test(
        "texts with places for values",
        arguments: [
            ("", []), ("plain", [.text("plain")]), ("$(a)", [.value("a")]),
            ("Bearer $(to-ken_1)!", [.text("Bearer "), .value("to-ken_1"), .text("!")]),
            ("$(a)$(b)", [.value("a"), .value("b")]), ("$$(a)", [.text("$(a)")]), ("$()", [.text("$()")]),
            ("$(a b)", [.text("$(a b)")]), ("$(a", [.text("$(a")]), ("5$ $x", [.text("5$ $x")]),
            ("$$x$", [.text("$$x$")]), ("${A}", [.text("${A}")]),
        ] as [(String, [PlaceholderText.Piece])]
    )
    func placeholders(_ text: String, _ expected: [PlaceholderText.Piece]) {
        #expect(PlaceholderText(text).pieces == expected)
    }

    @Test func eachPlaceholderIsFilled() {
        let text = PlaceholderText("a=$(a)&b=$(b)&a=$(a)")
        #expect(text.names == ["a", "b", "a"])
        #expect(text.filled { "<\($0)>" } == "a=<a>&b=<b>&a=<a>")
        #expect(text.shown == "a=$(a)&b=$(b)&a=$(a)")
    }

    @Test(
        "places of values in answers",
        arguments: [
            ("status", .status), ("header.X-A", .field("X-A")), ("body", .body([])),
            ("body.a.0.b", .body(["a", "0", "b"])),
            ("header.", nil), ("header", nil), ("body.", nil), ("body.a..b", nil), ("", nil), ("token", nil),
        ] as [(String, TakenPath?)]
    )
    func taken(_ words: String, _ expected: TakenPath?) { #expect(TakenPath(words: words) == expected) }

    @Test func percentEncoding() {
        #expect(PlaceholderText.percentEncoded("a-._~Z0 /?&=#%\u{E9}\n") == "a-._~Z0%20%2F%3F%26%3D%23%25%C3%A9%0A")
    }
}
