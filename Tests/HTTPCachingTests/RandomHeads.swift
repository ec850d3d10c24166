// Random heads, made of pieces that matter to a cache, well-formed and not.

import HTTPWire

@testable import HTTPCaching

enum RandomHeads {
    static let responseDirectives = [
        "max-age=60", "max-age=10", "max-age=0", "max-age=x", "max-age=-1", "max-age=\"60\"", "max-age", "s-maxage=60",
        "s-maxage=0", "no-store", "no-cache", "No-Cache", "private", "public", "must-revalidate", "proxy-revalidate",
        "must-understand", "stale-while-revalidate=60", "stale-if-error=60", "no-cache=\"x-a\"", "private=\"x-a\"",
        "foo", "bar=\"a, b\"", "\"", "=", "max-age =60", "immutable", "max-age=60", "max-age=99999999999",
    ]
    static let requestDirectives = [
        "no-cache", "no-store", "max-age=0", "max-age=10", "max-stale", "max-stale=10", "min-fresh=10",
        "only-if-cached",
        "foo", "max-age=x", "\"",
    ]
    static let responseFields: [(String, String)] = [
        ("ETag", "\"a\""), ("ETag", "W/\"b\""), ("Last-Modified", date(-1000)), ("Last-Modified", "x"),
        ("Expires", date(60)), ("Expires", "0"), ("Expires", date(-60)), ("Age", "5"), ("Age", "x"), ("Age", "59, 1"),
        ("Vary", "Accept"), ("Vary", "*"), ("Vary", "accept, X-T"), ("Set-Cookie", "a=1"), ("Location", "../x"),
        ("Date", date(-5)), ("Date", "x"), ("Connection", "X-A"), ("X-A", "1"), ("Content-Length", "5"),
        ("Content-Location", "/"), ("Content-Location", "/other"), ("Vary", "Accept-Encoding"),
        ("Cache-Groups", "\"g\""), ("Cache-Groups", "g"), ("Cache-Group-Invalidation", "\"g\", \"h\""),
        ("Content-Range", "bytes 0-1/5"), ("Content-Range", "bytes 3-4/*"),
    ]
    static let requestFields: [(String, String)] = [
        ("Accept", "a, b"), ("Accept", "c"), ("X-T", "1"), ("Authorization", "Basic eA=="), ("If-None-Match", "\"a\""),
        ("If-Modified-Since", date(-1000)), ("If-Match", "*"), ("Pragma", "no-cache"), ("Range", "bytes=0-"),
        ("Cookie", "a=1"), ("Accept-Encoding", "gzip, br"), ("Accept-Encoding", "BR;q=1,gzip"),
        ("Accept-Encoding", "gzip;q=x"), ("Accept-Encoding", ""), ("If-Unmodified-Since", date(-2000)),
        ("Range", "bytes=-2, 1-3"), ("Range", "bytes=9-"), ("If-Range", "\"a\""), ("If-Range", date(-1000)),
    ]

    static func request(_ generator: inout SeededGenerator) -> RequestHead {
        var fields = pick(requestFields, atMost: 3, &generator)
        let directives = pick(requestDirectives, atMost: 2, &generator)
        if !directives.isEmpty { fields.append(("Cache-Control", directives.joined(separator: ", "))) }
        let method = [HTTPWire.Method.get, .get, .get, .get, .get, .head, .post, .post].randomElement(
            using: &generator,
            or: .get
        )
        return HTTPCachingTests.request(method, fields)
    }

    static func response(_ generator: inout SeededGenerator) -> ResponseHead {
        var fields = pick(responseFields, atMost: 4, &generator)
        let directives = pick(responseDirectives, atMost: 3, &generator)
        if !directives.isEmpty { fields.append(("Cache-Control", directives.joined(separator: ", "))) }
        let status = [200, 200, 200, 200, 203, 206, 301, 302, 304, 404, 412, 429, 500, 503].randomElement(
            using: &generator,
            or: 200
        )
        return HTTPCachingTests.response(status, fields)
    }

    static func policy(_ generator: inout SeededGenerator) -> CachePolicy {
        CachePolicy(
            ttl: [nil, nil, 10].randomElement(using: &generator, or: nil),
            revalidate: [.head, .conditional, .automatic, .never].randomElement(using: &generator, or: .head),
            staleWhileRevalidate: [0, 0, 30].randomElement(using: &generator, or: 0)
        )
    }

    /// Fields with values of bytes that mean something somewhere, in no order.
    static func noise(_ generator: inout SeededGenerator) -> Fields {
        let names = [
            "Cache-Control", "CDN-Cache-Control", "Pragma", "Expires", "Age", "Date", "Vary", "ETag", "Last-Modified",
            "Accept", "Accept-Encoding", "Accept-Language", "Cookie", "X-T", "If-None-Match", "If-Match",
            "If-Modified-Since", "If-Unmodified-Since", "Range", "If-Range", "Content-Range", "Content-Location",
            "Location", "Cache-Groups", "Cache-Group-Invalidation", "Content-Length", "Connection", "Content-Type",
        ]
        let bytes = Array("aq01*W/,;=\"\\ \t-.:?()@%_GMT".utf8) + [0xE9, 0xFF]
        var fields = Fields()
        for _ in 0..<Int.random(in: 0...12, using: &generator) {
            let name = Array(names.randomElement(using: &generator, or: "X-T").utf8)
            let unit = name == Array("Range".utf8) ? "bytes=" : name == Array("Content-Range".utf8) ? "bytes " : ""
            let value =
                Array(unit.utf8)
                + (0..<Int.random(in: 0...16, using: &generator)).map { _ in
                    bytes.randomElement(using: &generator, or: 0)
                }
            name.withUnsafeBytes { name in
                value.withUnsafeBytes { _ = fields.append(nameBytes: name, valueBytes: $0) }
            }
        }
        // Some names of fields in Vary, so that what selects is noise, too.
        if Bool.random(using: &generator) { fields.append("Vary", "accept, Accept-Encoding, cookie, x-t") }
        return fields
    }

    private static func pick<Element>(
        _ pieces: [Element],
        atMost: Int,
        _ generator: inout SeededGenerator
    ) -> [Element] {
        (0..<Int.random(in: 0...atMost, using: &generator)).compactMap { _ in pieces.randomElement(using: &generator) }
    }
}

extension Array {
    func randomElement(using generator: inout SeededGenerator, or fallback: Element) -> Element {
        randomElement(using: &generator) ?? fallback
    }
}
