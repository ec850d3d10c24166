// Reading Cache-Control, Pragma and targeted fields to the letter.

import HTTPWire
import Testing

@testable import HTTPCaching

/// Field lines and the directives they mean.
struct DirectiveCase: Sendable, CustomTestStringConvertible {
    var lines: [String]
    var change: @Sendable (inout CacheControl) -> Void

    init(_ lines: String..., means change: @escaping @Sendable (inout CacheControl) -> Void) {
        self.lines = lines
        self.change = change
    }

    var testDescription: String { lines.joined(separator: " | ") }

    var expected: CacheControl {
        var control = CacheControl()
        change(&control)
        return control
    }
}

@Suite("Cache-Control")
struct CacheControlTests {
    @Test(
        "RFC 9111 1.2.2: delta-seconds are digits only and saturate at 2^31",
        arguments: [
            ("0", 0), ("1", 1), ("003600", 3600), ("2147483647", 2_147_483_647), ("2147483648", 2_147_483_648),
            ("2147483649", 2_147_483_648), ("99999999999999999999999999", 2_147_483_648), ("", nil), ("-1", nil),
            ("+1", nil), ("1.0", nil), ("1e3", nil), ("0x10", nil), (" 1", nil), ("1 ", nil), ("a1", nil), ("1a", nil),
            ("'1'", nil), ("\u{FF11}", nil),
        ] as [(String, Int64?)]
    )
    func deltaSeconds(text: String, seconds: Int64?) {
        #expect(DeltaSeconds.parse(Array(text.utf8)) == seconds)
    }

    @Test("RFC 9111 5.2: what is read where it lies means what it means member by member")
    func plain() {
        let members = [
            "no-store", "No-Cache", "private", "PUBLIC", "must-revalidate", "Proxy-Revalidate", "must-understand",
            "immutable",
            "no-transform", "only-if-cached", "max-age=60", "Max-Age=0", "s-maxage=7", "max-age=99999999999999999999",
            "max-age=", "max-age=x", "max-age =5", "max-age=\"5\"", "s-maxage=-1", "no-store=1", "private=\"a",
            "no-cache=b",
            "public;immutable", "no-store no-cache", "\t", "", "xx-store", "privates", "stale-if-error=5",
        ]
        var differing: [String] = []
        for first in members {
            for second in members {
                for third in members {
                    let line = "\(first), \(second)\t,\(third)"
                    let fields = Fields([("Cache-Control", line)])
                    var expected = CacheControl()
                    for directive in Directive.parse(fields.values(.cacheControl)[0]) { expected.apply(directive) }
                    if CacheControl(fields) != expected { differing.append(line) }
                }
            }
        }
        #expect(differing.isEmpty)
    }

    static let invalid: @Sendable (inout CacheControl) -> Void = {
        $0.maxAge = 0
        $0.hasInvalidFreshness = true
    }

    @Test(
        "RFC 9111 5.2: directives in any case, with or without quotes; duplicates: the strictest; what is malformed allows nothing",
        arguments: [
            DirectiveCase("max-age=60") { $0.maxAge = 60 },
            DirectiveCase("MaX-aGe=60") { $0.maxAge = 60 },
            DirectiveCase("max-age=\"60\"") { $0.maxAge = 60 },
            DirectiveCase(",, max-age=60 ,,\t,no-transform,") {
                $0.maxAge = 60
                $0.noTransform = true
            },
            DirectiveCase("max-age=1800, max-age=1") { $0.maxAge = 1 },
            DirectiveCase("max-age=1", "max-age=1800") { $0.maxAge = 1 },
            DirectiveCase("s-maxage=7, s-maxage=5") { $0.sMaxAge = 5 },
            DirectiveCase("max-age=60, max-age=x", means: invalid),
            DirectiveCase("max-age", means: invalid),
            DirectiveCase("max-age=", means: invalid),
            DirectiveCase("max-age =60", means: invalid),
            DirectiveCase("max-age= 60", means: invalid),
            DirectiveCase("max-age=-60", means: invalid),
            DirectiveCase("max-age=60.5", means: invalid),
            DirectiveCase("max-age='60'", means: invalid),
            DirectiveCase("max-age=\"60", means: invalid),
            DirectiveCase("max-age 60", means: invalid),
            DirectiveCase("\"max-age=60\"", means: invalid),
            DirectiveCase("extension=\"max-age=3600\", max-age=1") { $0.maxAge = 1 },
            DirectiveCase("max-age=1, extension=\"a\\\", max-age=3600\"") { $0.maxAge = 1 },
            DirectiveCase("extension=\"open, no-store, max-age=60") {
                $0.noStore = true
                $0.maxAge = 60
            },
            DirectiveCase("no-store=x, no-cache") {
                $0.noStore = true
                $0.noCache = true
            },
            DirectiveCase("max-age=60; private") {
                $0.maxAge = 0
                $0.hasInvalidFreshness = true
                $0.private = true
            },
            DirectiveCase("no-store public") { $0.noStore = true },
            DirectiveCase("no-cache=\"Set-Cookie, X-A\", private=\"x-b\"") {
                $0.noCacheFields = ["set-cookie", "x-a"]
                $0.privateFields = ["x-b"]
            },
            DirectiveCase("private=set-cookie") { $0.privateFields = ["set-cookie"] },
            DirectiveCase("private=\"\"") { $0.private = true },
            DirectiveCase("private=\"a b\"") { $0.private = true },
            DirectiveCase("no-cache=\"a") { $0.noCache = true },
            DirectiveCase("private, private=\"a\"") {
                $0.private = true
                $0.privateFields = ["a"]
            },
            DirectiveCase("public, must-revalidate, proxy-revalidate, must-understand, immutable") {
                $0.public = true
                $0.mustRevalidate = true
                $0.proxyRevalidate = true
                $0.mustUnderstand = true
                $0.immutable = true
            },
            DirectiveCase("public=1, must-understand=x, immutable=1") { $0.immutable = true },
            DirectiveCase("must-revalidate=x, proxy-revalidate=\"\"") {
                $0.mustRevalidate = true
                $0.proxyRevalidate = true
            },
            DirectiveCase("stale-while-revalidate=9, stale-if-error=8, stale-if-error=10") {
                $0.staleWhileRevalidate = 9
                $0.staleIfError = 8
            },
            DirectiveCase("stale-while-revalidate, stale-if-error=x") {
                $0.staleWhileRevalidate = 0
                $0.staleIfError = 0
            },
            DirectiveCase("only-if-cached, max-stale") {
                $0.onlyIfCached = true
                $0.maxStale = .any
            },
            DirectiveCase("max-stale=5, max-stale, max-stale=9") { $0.maxStale = .seconds(5) },
            DirectiveCase("max-stale=x") { $0.maxStale = .seconds(0) },
            DirectiveCase("min-fresh=5, min-fresh=9") { $0.minFresh = 9 },
            DirectiveCase("min-fresh=x") { $0.minFresh = 1 << 31 },
            DirectiveCase("foo, bar=1, max-ages=3, public-ish") { _ in },
        ]
    )
    func directives(example: DirectiveCase) {
        let control = CacheControl(Fields(example.lines.map { ("Cache-Control", $0) }))
        #expect(control == example.expected)
    }

    @Test(
        "RFC 9111 5.4: Pragma: no-cache counts in requests without Cache-Control only",
        arguments: [
            ([("Pragma", "no-cache")], true), ([("Pragma", "foo, No-Cache")], true), ([("Pragma", "foo")], false),
            ([("Pragma", "no-cache"), ("Cache-Control", "max-age=1")], false),
            ([("Pragma", "no-cache"), ("Cache-Control", "")], false),
        ] as [([(String, String)], Bool)]
    )
    func pragma(fields: [(String, String)], noCache: Bool) {
        #expect(CacheControl(request: Fields(fields)).noCache == noCache)
    }

    @Test(
        "RFC 9213 2.1: a targeted field is a dictionary of directives with their types; where it is none, or none is left, it is ignored",
        arguments: [
            (["max-age=60"], 60), (["max-age=60, foo, bar=\"x\";p=1"], 60), (["foo;max-age=1, max-age=60;a;b=?0"], 60),
            (["max-age=60", "must-revalidate"], 60), (["max-age=1, max-age=60"], 60),
            (["max-age=99999999999"], 1 << 31),
            (["max-age=60, x=(1 \"a\" b);q=1.5, y=:AA==:, z=@12, w=%\"f\""], 60), (["max-age=-1"], 0),
            ([""], nil), (["  "], nil), (["max-age=60, &&&&&"], nil), (["max-age=\"60\""], nil), (["MaX-aGe=60"], nil),
            (["max-age =60"], nil), (["max-age= 60"], nil), (["max-age=60,"], nil), (["max-age=60.0"], nil),
            (["max-age=?1"], nil), (["max-age=60, public=1"], 60), (["max-age=60, immutable=1.5"], 60),
            (["max-age=\"60\", public=1"], nil), (["max-age=\"60\", foo"], 0),
            (["max-age=60, x=(1"], nil), (["max-age=60, x=\"a"], nil), (["max-age=60, x=1.2345"], nil),
            (["max-age=60, x=1234567890123456"], nil), (["max-age=60, x=\"\u{E9}\""], nil), (["max-age=60 x"], nil),
        ] as [([String], Int64?)]
    )
    func targeted(lines: [String], maxAge: Int64?) {
        let fields = Fields(lines.map { ("CDN-Cache-Control", $0) } + [("Cache-Control", "s-maxage=5")])
        let control = ResponseControl(fields, policy: CachePolicy())
        #expect(control.targetedField == (maxAge == nil ? nil : "CDN-Cache-Control"))
        #expect(control.directives.maxAge == maxAge)
        #expect(control.directives.sMaxAge == (maxAge == nil ? 5 : nil))
    }

    @Test(
        "RFC 9213 2.1: a directive of the wrong type allows nothing, and takes no prohibition away",
        arguments: [
            DirectiveCase("no-store, max-age=\"60\"") { $0.noStore = true },
            DirectiveCase("max-age=\"60\", no-store") { $0.noStore = true },
            DirectiveCase("private, max-age=60.5") { $0.private = true },
            DirectiveCase("no-store=?1;x, must-revalidate=1") { $0.noStore = true },
            DirectiveCase("no-store=?1;x, must-revalidate=1") { $0.mustRevalidate = true },
            DirectiveCase("max-age=60, no-store=1") { $0.noStore = true },
            DirectiveCase("max-age=60, no-store=?0") { $0.noStore = true },
            DirectiveCase("max-age=60, private=1") { $0.private = true },
            DirectiveCase("max-age=60, no-cache=(a b)") { $0.noCache = true },
            DirectiveCase("max-age=60, proxy-revalidate=\"\"") { $0.proxyRevalidate = true },
            DirectiveCase("s-maxage=x, no-cache") { $0.noCache = true },
            DirectiveCase("s-maxage=x, max-age=60") { $0.hasInvalidFreshness = true },
        ]
    )
    func mistyped(example: DirectiveCase) {
        let fields = Fields(example.lines.map { ("CDN-Cache-Control", $0) } + [("Cache-Control", "max-age=600")])
        let control = ResponseControl(fields, policy: CachePolicy())
        var expected = control.directives
        example.change(&expected)
        #expect(control.targetedField == "CDN-Cache-Control" && control.directives == expected)
    }

    @Test("RFC 9213 2.1: permissions of the wrong type are none, and stale bounds of the wrong type are 0")
    func mistypedPermissions() throws {
        let line =
            "max-age=60, public=1, must-understand=1, immutable=\"\", stale-if-error=?1, stale-while-revalidate=x"
        let control = ResponseControl(Fields([("CDN-Cache-Control", line)]), policy: CachePolicy()).directives
        #expect(!control.public && !control.mustUnderstand && !control.immutable && !control.hasInvalidFreshness)
        #expect(control.maxAge == 60 && control.staleIfError == 0 && control.staleWhileRevalidate == 0)
    }

    @Test("RFC 9213 2.2: the first usable field of the list counts, none where the list is empty")
    func targetList() {
        let fields = Fields([
            ("Drydock-Cache-Control", "max-age=1"), ("CDN-Cache-Control", "max-age=2"), ("Cache-Control", "max-age=3"),
        ])
        func maxAge(_ list: [String]) -> Int64? {
            ResponseControl(fields, policy: CachePolicy(targetedFields: list)).directives.maxAge
        }
        #expect(maxAge(["drydock-cache-control", "CDN-Cache-Control"]) == 1)
        #expect(maxAge(["CDN-Cache-Control", "Drydock-Cache-Control"]) == 2)
        #expect(maxAge(["Absent-Cache-Control", "CDN-Cache-Control"]) == 2)
        #expect(maxAge([]) == 3)
    }

    @Test("Listing a field that the response depends on means the whole response", arguments: ["vary", "Date", "ETag"])
    func protectedNames(name: String) {
        let fields = Fields([("Cache-Control", "private=\"\(name)\", no-cache=\"x, \(name)\"")])
        let control = ResponseControl(fields, policy: CachePolicy())
        #expect(control.directives.private && control.directives.noCache)
    }
}
