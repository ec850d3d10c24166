// Which stored variant may stand in for one that is not there, and what of a request forbids it.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite struct OtherVariantTests {
    private static let vary = "Accept, Accept-Encoding, Accept-Language, X-Tenant"

    /// A variant with these response fields, which the request with these fields brought.
    private static func variant(
        _ fields: [(String, String)],
        for asked: [(String, String)] = [("Accept", "x/y"), ("Accept-Encoding", "x"), ("Accept-Language", "x")],
        age: Int64 = 0
    ) -> StoredHead {
        stored(
            [("Vary", vary), ("Cache-Control", "max-age=60"), ("Date", date(-age))] + fields,
            for: request(.get, asked)
        )
    }

    private static func other(_ variants: [StoredHead], _ asked: [(String, String)]) -> OtherVariant? {
        Caching.otherVariant(among: variants, request: request(.get, asked), policy: CachePolicy(), now: arrival)
    }

    @Test(
        arguments: [
            (nil, "text/html", true), ("*/*", "text/html", true), ("text/*", "text/html; charset=utf-8", true),
            ("text/html", "Text/HTML;charset=utf-8", true), ("application/json", "text/html", false),
            ("text/html;q=0, */*", "text/html", false), ("text/html;q=0, */*", "text/plain", true),
            ("text/html;level=1", "text/html", false), ("text/html;level=1", "text/html; level=1", true),
            ("application/json", nil, false), ("*/*", nil, true), ("", "text/html", false),
            ("nonsense", "text/html", false),
        ] as [(String?, String?, Bool)]
    )
    func `a media type has to be acceptable`(accept: String?, type: String?, isFound: Bool) {
        let variant = Self.variant(type.map { [("Content-Type", $0)] } ?? [])
        #expect((Self.other([variant], accept.map { [("Accept", $0)] } ?? []) != nil) == isFound)
    }

    @Test(
        arguments: [
            // Without its coding: true; as it is: false.
            (nil, "gzip", true), ("gzip", "gzip", false), ("deflate, gzip, br, zstd", "gzip", false),
            ("br", "gzip", true),
            ("*", "br", false), ("gzip, *;q=0", "br", nil), ("identity;q=0", "br", nil), ("identity", "x-gzip", true),
            ("x-gzip", "gzip", false), ("gzip;q=0", "gzip", true), ("br", "zstd", nil), (nil, "zstd", false),
            ("gzip", nil, false), ("identity;q=0, gzip", nil, nil), ("*;q=0", nil, nil), ("br", "gzip, br", nil),
            ("gzip, br", "gzip, br", false),
        ] as [(String?, String?, Bool?)]
    )
    func `a coding has to be acceptable, or is taken off`(accept: String?, coding: String?, isDecoded: Bool?) {
        let variant = Self.variant(coding.map { [("Content-Encoding", $0)] } ?? [])
        let asked = accept.map { [("Accept-Encoding", $0)] } ?? []
        #expect(Self.other([variant], asked)?.isDecoded == isDecoded)
    }

    @Test func nothingIsTakenOffThatMustNotBeTransformed() {
        let fixed = Self.variant([("Content-Encoding", "gzip"), ("Cache-Control", "no-transform")])
        #expect(Self.other([fixed], [("Accept-Encoding", "br")]) == nil)
        #expect(Self.other([fixed], [("Accept-Encoding", "gzip")])?.isDecoded == false)
        let plain = Self.variant([("Content-Encoding", "gzip")])
        #expect(Self.other([plain], [("Accept-Encoding", "br"), ("Cache-Control", "no-transform")]) == nil)
    }

    @Test(
        arguments: [
            (nil, "de", true), ("de", "de", true), ("de-AT", "de", true), ("de", "de-AT", true), ("en", "de", true),
            ("de;q=0", "de", false), ("en, *;q=0", "de", false), ("en, *;q=0", nil, false), ("en", nil, true),
            ("de;q=0, *", "de, en", true),
        ] as [(String?, String?, Bool)]
    )
    func `a language must not be refused`(accept: String?, language: String?, isFound: Bool) {
        let variant = Self.variant(language.map { [("Content-Language", $0)] } ?? [])
        #expect((Self.other([variant], accept.map { [("Accept-Language", $0)] } ?? []) != nil) == isFound)
    }

    @Test func theBestOfSeveralAnswers() {
        let variants = [
            Self.variant([("Content-Language", "de"), ("Content-Encoding", "gzip")], age: 1),
            Self.variant([("Content-Language", "en"), ("Content-Encoding", "gzip")], age: 9),
            Self.variant([("Content-Language", "en")], age: 10),
            Self.variant([("Content-Language", "en")], age: 5),
        ]
        func index(_ asked: [(String, String)]) -> Int? { Self.other(variants, asked)?.index }
        #expect(index([("Accept-Language", "de, en;q=0.5")]) == 0)
        #expect(index([("Accept-Language", "de;q=0.5, en")]) == 3, "not decoded, and the most recent")
        #expect(index([("Accept-Language", "fr, de;q=0.1")]) == 0)
        #expect(index([("Accept-Language", "en"), ("Accept-Encoding", "gzip, identity;q=0")]) == 1)
    }

    @Test func everyOtherFieldStillSelects() {
        let variant = Self.variant([], for: [("X-Tenant", "a"), ("Accept", "x/y")])
        #expect(Self.other([variant], [("X-Tenant", "a")]) != nil)
        #expect(Self.other([variant], [("X-Tenant", "b")]) == nil)
        #expect(Self.other([variant], []) == nil)
        // What answers everybody is selected by itself, and what answers nobody never.
        #expect(Self.other([stored(), stored([("Vary", "*")])], []) == nil)
        let stale = Self.variant([], for: [("X-Tenant", "a")], age: 1_000)
        #expect(Self.other([stale], [("X-Tenant", "a"), ("Accept", "*/*;q=0.1")]) != nil, "whatever its age")
        #expect(Self.other([stale], [("X-Tenant", "a"), ("If-Match", "\"x\"")]) == nil)
    }

    @Test(
        arguments: [
            ("", 0, [], nil, true), ("", 0, [], 503, true), ("", 0, [], 404, false), ("", 0, [], 406, false),
            ("", 1_060, [], nil, true), ("", 1_061, [], nil, false),
            ("stale-if-error=10", 70, [], nil, true), ("stale-if-error=10", 71, [], nil, false),
            ("must-revalidate", 0, [], nil, false), ("must-revalidate", 100, [], nil, false),
            ("proxy-revalidate", 0, [], 500, false), ("no-cache", 0, [], nil, false),
            ("s-maxage=60", 0, [], nil, true), ("s-maxage=60", 100, [], nil, false),
            ("", 0, [("Cache-Control", "no-cache")], nil, false), ("", 0, [("Pragma", "no-cache")], nil, false),
            ("", 0, [("Cache-Control", "only-if-cached")], nil, false),
            ("", 100, [("Cache-Control", "stale-if-error=20")], nil, false),
            ("", 80, [("Cache-Control", "stale-if-error=20")], nil, true),
            ("", 0, [("If-Match", "*")], nil, false),
        ] as [(String, Int64, [(String, String)], Int?, Bool)]
    )
    func `where the origin fails, what may not be used stale does not answer`(
        control: String,
        age: Int64,
        asked: [(String, String)],
        status: Int?,
        isFound: Bool
    ) {
        let variant = Self.variant([("Cache-Control", control)], age: age)
        func other(_ rule: OtherVariantPolicy) -> OtherVariant? {
            var policy = CachePolicy(staleIfError: 1_000)
            policy.otherVariant = rule
            return Caching.otherVariant(
                among: [variant],
                request: request(.get, asked),
                policy: policy,
                now: arrival,
                failed: FailedCheck(errorStatus: status)
            )
        }
        #expect((other(.serve) != nil) == isFound)
        #expect(other(.none) == nil, "off unless it is switched on")
    }

    @Test func aStoredFailureStandsInForNone() {
        var variant = Self.variant([])
        var policy = CachePolicy()
        policy.otherVariant = .serve
        func other() -> OtherVariant? {
            let failed = FailedCheck(errorStatus: nil)
            return Caching.otherVariant(
                among: [variant],
                request: request(.get),
                policy: policy,
                now: arrival,
                failed: failed
            )
        }
        #expect(other() != nil)
        variant.status = 503
        #expect(other() == nil)
        variant.status = 404
        #expect(other() != nil, "it is what the origin has said")
        policy.gone = .useStored
        #expect(other() == nil)
    }

    @Test func aDecodedHeadSaysNothingOfTheCodedBytes() {
        var head = stored([
            ("ETag", "\"a\""), ("Content-Encoding", "gzip"), ("Content-Length", "9"), ("Accept-Ranges", "bytes"),
            ("Repr-Digest", "sha-256=:x:"), ("Content-Type", "text/plain"),
        ])
        let decoded = Caching.decoded(head)
        #expect(decoded.fields.first(.contentType) == "text/plain" && decoded.bodyLength == nil)
        for name in ["Content-Encoding", "Content-Length", "Accept-Ranges", "Repr-Digest"] {
            #expect(!decoded.fields.contains(name), "\(name)")
        }
        let tag = decoded.fields.first(.etag)
        #expect(tag != nil && tag != "\"a\"" && tag?.hasPrefix("\"") == true)
        head.fields.set(.etag, "W/\"a\"")
        #expect(Caching.decoded(head).fields.first(.etag)?.hasPrefix("W/\"") == true)
    }
}
