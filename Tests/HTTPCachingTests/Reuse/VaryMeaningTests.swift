// Content negotiation compared by meaning (RFC 9111 section 4.1, RFC 9110 section 12.5).

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Vary by meaning")
struct VaryMeaningTests {
    /// Whether a response stored for one value answers a request with the other; nil stands for no field.
    private func matches(_ field: String, _ stored: String?, _ asked: String?) -> Bool {
        func fields(_ value: String?) -> [(String, String)] { value.map { [(field, $0)] } ?? [] }
        let head = HTTPCachingTests.stored([("Vary", field)], for: request(.get, fields(stored)))
        return Caching.selects(stored: head, request: request(.get, fields(asked)))
    }

    /// The name of the variant that such a response is.
    private func key(_ field: String, _ value: String?) -> [UInt8] {
        let asked = request(.get, value.map { [(field, $0)] } ?? [])
        return Caching.variantKey(HTTPCachingTests.stored([("Vary", field)], for: asked))
    }

    private func check(_ field: String, _ one: String?, _ other: String?, _ expected: Bool) {
        #expect(matches(field, one, other) == expected)
        #expect(matches(field, other, one) == expected)
        #expect((key(field, one) == key(field, other)) == expected)
        // What is the same for one spelling of the name is the same for any.
        #expect(matches(field.uppercased(), one, other) == expected)
    }

    @Test(
        "RFC 9110 12.5.3: Accept-Encoding: codings and weights in any order, case and spelling",
        arguments: [
            ("gzip, br", "br, gzip", true), ("gzip,br", "GZip ,\tBR", true), ("gzip, br", "gzip", false),
            ("gzip;q=1.0, br;q=0.5", "br; q=0.500, gzip", true), ("gzip;Q=0.5", "gzip;q=0.5", true),
            ("gzip;q=0.5", "gzip;q=0.6", false), ("gzip;q=1", "gzip", true), ("gzip;q=0.999", "gzip", false),
            ("x-gzip", "gzip", true), ("X-Compress", "compress", true), ("gzip, gzip", "gzip", true),
            ("gzip;q=0.5, gzip", "gzip;q=0.5", true), ("gzip;q=0", "", true), ("gzip, br;q=0", "gzip", true),
            ("gzip;q=0, *", "*", false), ("*;q=0.5", "*", false), ("gzip, *;q=0", "gzip, identity;q=0", true),
            ("gzip, *;q=0", "gzip", false), ("gzip, identity;q=0.5, *;q=0", "identity;q=0.5, gzip", true),
            ("identity;q=0", "", false), ("*;q=0", "identity;q=0", true), ("identity", "", true),
            ("identity;q=0.3", "identity", true), ("identity", "gzip, identity", false),
            ("gzip, identity;q=0.5", "gzip", false), ("foo", "bar", false), (nil, "", false), (nil, "*", false),
            (nil, nil, true), (nil, "identity", false),
        ] as [(String?, String?, Bool)]
    )
    func encoding(one: String?, other: String?, expected: Bool) { check("Accept-Encoding", one, other, expected) }

    @Test(
        "A malformed Accept-Encoding makes no variants of its own, and shares none with a well-formed one",
        arguments: [
            [
                "gzip;q=x", "gzip;q=2", "gzip;q=1.001", "gzip;q=0.1234", "\"gzip\"", "gzip;", "GZip;a=1", "=x-gzip;",
                "gzip;q=x, gzip;q=y",
            ], ["g z", "=;", "foo;q=x", "q=;=", "\"", "foo;q=x, =;"],
        ]
    )
    func malformedEncoding(junk: [String]) {
        for one in junk {
            for other in junk { check("Accept-Encoding", one, other, true) }
            check("Accept-Encoding", one, "gzip", false)
            check("Accept-Encoding", one, "", false)
            check("Accept-Encoding", one, nil, false)
            check("Accept-Encoding", "br, " + one, junk[0] + ", br", true)
            check("Accept-Encoding", "br, " + one, "br", false)
            check("Accept-Encoding", "br, " + one, one, false)
        }
    }

    @Test(
        "What a malformed member names is no other's: no coding reaches a client that did not name it",
        arguments: [
            ("gzip, br;q=high", "gzip, zstd;q=high"), ("gzip, br;q=high", "gzip"),
            ("gzip, br;q=high", "gzip, foo;q=high"),
            ("gzip, br;q=high", "gzip;q=high"), ("br;q=high, zstd;q=high", "br;q=high"), ("gzip, *;q=all", "gzip, =;"),
            ("deflate;q=x", "compress;q=x"), ("dcb;q=x", "dcz;q=x"), ("gzip, br;q=high", "gzip, br"),
        ]
    )
    func namedInMalformed(one: String, other: String) {
        check("Accept-Encoding", one, other, false)
        check("Accept-Encoding", one, one.uppercased(), true)
    }

    @Test(
        "RFC 9110 12.5.4: Accept-Language: ranges and weights in any order and case",
        arguments: [
            ("en, de", "de, en", true), ("en-GB", "EN-gb", true), ("en, de;q=0.5", "de;q=0.5,en;q=1.0", true),
            ("en, de;q=0.5", "en, de;q=0.4", false), ("en", "en-GB", false), ("en, *;q=0.1", "*;q=0.100 , en", true),
            ("en;q=0", "", false), ("en;q=x", "en", false), ("en;q=x", "en;q=y", false), ("*", nil, false),
            ("e n", "e n", true),
        ] as [(String?, String?, Bool)]
    )
    func language(one: String?, other: String?, expected: Bool) { check("Accept-Language", one, other, expected) }

    @Test(
        "RFC 9110 12.5.1: Accept: media ranges, parameters and weights in any order; names in any case",
        arguments: [
            ("text/html, */*;q=0.1", "*/*;q=0.1, TEXT/html", true), ("text/html;level=1", "text/html;LEVEL=1", true),
            ("text/html;level=1", "text/html", false), ("text/html;a=1;b=2", "text/html ; b=2;a=1", true),
            ("text/html;a=x", "text/html;a=X", false), ("text/html;a=\"x, y;q=0.5\"", "text/html", false),
            ("text/html;a=\"x, y\"", "text/html ;a=\"x, y\"", true), ("text/html;q=0.5", "text/html;q=0.50", true),
            ("text/html;q=0.5", "text/html", false), ("text/html;q=0.5;a=1", "text/html;q=0.50;a=1", false),
            ("text/*", "text/html", false), ("text", "text", true), ("text", "TEXT", false), ("*/*", nil, true),
            ("*/*;q=0.5", nil, false), ("text/html", nil, false), ("", nil, false),
        ] as [(String?, String?, Bool)]
    )
    func accept(one: String?, other: String?, expected: Bool) { check("Accept", one, other, expected) }

    @Test("RFC 9111 4.1: the name of a variant: the order of Vary does not count, absent and empty differ")
    func variantKeys() {
        func key(_ vary: String, _ fields: [(String, String)]) -> [UInt8] {
            Caching.variantKey(HTTPCachingTests.stored([("Vary", vary)], for: request(.get, fields)))
        }
        let fields = [("A", "1"), ("B", "2")]
        #expect(key("A, B", fields) == key("b, a", fields.reversed()))
        #expect(key("A", fields) != key("B", fields))
        #expect(key("A, B", fields) != key("A", fields))
        #expect(key("A, B", [("A", "1")]) != key("A, B", [("B", "1")]))
        #expect(key("A", []) != key("A", [("A", "")]))
        #expect(Caching.variantKey(HTTPCachingTests.stored()).isEmpty)
    }

    @Test("RFC 9111 4.1: other fields keep the order and the case of their members")
    func others() {
        check("X-List", "a, b", "b, a", false)
        check("X-List", "a", "A", false)
        check("X-List", "a, b", "a,b", false)
        check("Prefer", "a, b", "a,b", true)
        check("User-Agent", "a, b", "a,b", false)
        check("Accept-Charset", "utf-8;q=1, iso-8859-1", "ISO-8859-1, UTF-8", true)
    }
}
