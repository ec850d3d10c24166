// Which media types a route may expect, and which heads have one of them.

import Content
import HTTPWire
import Testing

struct ExpectedTypesTests {
    @Test(
        "what is a pattern",
        arguments: [
            ("application/json", true), ("TEXT/*", true), ("*/*", true), ("application/vnd.api+json", true),
            ("json", false), ("*/json", false), ("text/", false), ("/json", false), ("a/b/c", false), ("", false),
            ("text/html; charset=utf-8", false), ("te*/html", false), ("text/ht*", false),
        ]
    )
    func pattern(_ text: String, _ isPattern: Bool) { #expect(ExpectedTypes.isPattern(text) == isPattern) }

    @Test(
        "a type is compared without its parameters, in any case",
        arguments: [
            ("application/json", nil), ("Application/JSON; charset=utf-8", nil), ("text/html;x=application/json", nil),
            (" text/plain", nil), ("application/problem+json", "the type application/problem+json"),
            ("image/png", "the type image/png"), ("json", "the type json"), ("text", "the type text"),
            ("", "the type "), (nil, "no Content-Type"),
        ] as [(String?, String?)]
    )
    func mismatch(_ value: String?, _ found: String?) throws {
        let types = try #require(ExpectedTypes(["application/JSON", "text/*"]))
        #expect(types.mismatch(Fields(value.map { [("Content-Type", $0)] } ?? [])) == found)
        #expect(types.description == "application/json or text/*")
    }

    @Test("several types are one too many")
    func several() throws {
        let types = try #require(ExpectedTypes(["application/json", "text/*"]))
        let fields = Fields([("Content-Type", "application/json"), ("Content-Type", "text/html")])
        #expect(types.mismatch(fields) == "2 Content-Type fields")
    }

    @Test("no types are any, and */* wants a type at all")
    func any() throws {
        #expect(ExpectedTypes([]) == nil)
        let types = try #require(ExpectedTypes(["*/*"]))
        #expect(types.mismatch(Fields([("Content-Type", "a/b")])) == nil && types.mismatch(Fields()) != nil)
    }
}
