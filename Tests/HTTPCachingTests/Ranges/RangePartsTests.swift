// Parts from the origin: Content-Range, what may be stored and what belongs together (RFC 9110
// 14.4, RFC 9111 3.3 and 3.4).

import HTTPWire
import Testing

@testable import HTTPCaching

private let strong = ("ETag", "\"a\"")
private let fresh = ("Cache-Control", "max-age=60")

private func part(_ range: String? = "bytes 0-1/10", _ fields: [(String, String)] = [strong, fresh]) -> ResponseHead {
    response(206, fields + (range.map { [("Content-Range", $0)] } ?? []))
}

struct PartCase: Sendable, CustomTestStringConvertible {
    var asked: String
    var range: String?
    var fields: [(String, String)]
    var expected: PartMismatch?

    init(_ asked: String, _ range: String?, _ fields: [(String, String)] = [], _ expected: PartMismatch? = nil) {
        self.asked = asked
        self.range = range
        self.fields = fields
        self.expected = expected
    }

    var testDescription: String { "\(asked) \(range ?? "-") \(fields)" }
}

@Suite("Parts")
struct RangePartsTests {
    @Test(
        "RFC 9110 14.4: Content-Range",
        arguments: [
            ("bytes 0-0/1", "bytes 0-0/1"), ("bytes 0-499/1234", "bytes 0-499/1234"), ("BYTES 1-2/*", "bytes 1-2/*"),
            ("bytes */0", "bytes */0"), ("bytes */1234", "bytes */1234"), ("bytes 1-1/2", "bytes 1-1/2"),
            ("bytes 0-9223372036854775805/9223372036854775807", "bytes 0-9223372036854775805/9223372036854775807"),
            ("bytes 2-1/10", nil), ("bytes 0-10/10", nil), ("bytes 0-9/10", "bytes 0-9/10"), ("bytes 0-/10", nil),
            ("bytes -1/10", nil), ("bytes */*", nil), ("bytes 0-1", nil), ("bytes 0-1/", nil), ("bytes  0-1/2", nil),
            ("bytes=0-1/2", nil), ("items 0-1/2", nil), ("bytes 0-1/2/3", nil), ("bytes 0-1-2/3", nil), ("", nil),
            ("bytes +0-1/2", nil), ("bytes 0-9223372036854775807/*", nil), ("bytes 0-99999999999999999999/*", nil),
            ("bytes 0-1/99999999999999999999", nil), ("bytes 0-1/-2", nil),
        ] as [(String, String?)]
    )
    func contentRange(_ field: String, _ expected: String?) {
        #expect(ContentRange.parse(Fields([("Content-Range", field)]))?.value == expected)
        #expect(ContentRange.parse(Fields([("Content-Range", field), ("Content-Range", field)])) == nil)
    }

    @Test(
        "http-rules.md 30: a part is what was asked for",
        arguments: [
            PartCase("0-1", "bytes 0-1/10"), PartCase("0-1", "bytes 0-1/*"), PartCase("0-", "bytes 0-9/10"),
            PartCase("0-99", "bytes 0-9/10"), PartCase("-2", "bytes 8-9/10"), PartCase("-20", "bytes 0-9/10"),
            // Less may come (RFC 9110 section 15.3.7), more may not.
            PartCase("0-5", "bytes 0-1/10"), PartCase("0-1", "bytes 0-2/10", [], .range),
            PartCase("1-2", "bytes 0-2/10", [], .range), PartCase("1-2", "bytes 2-2/10", [], .range),
            PartCase("5-6", "bytes 0-1/10", [], .range), PartCase("-2", "bytes 7-9/10", [], .range),
            PartCase("-2", "bytes 9-9/10", [], .range), PartCase("-2", "bytes 0-1/10", [], .range),
            PartCase("-2", "bytes 8-9/*"), PartCase("-2", "bytes 7-9/*", [], .range),
            PartCase("0-1", nil, [], .contentRange), PartCase("0-1", "bytes */10", [], .contentRange),
            PartCase("0-1", "0-1/10", [], .contentRange),
            PartCase("0-1", "bytes 0-1/10", [("Content-Length", "2")]),
            PartCase("0-1", "bytes 0-1/10", [("Content-Length", "3")], .length),
            PartCase("0-1", "bytes 0-1/10", [("Content-Length", "10")], .length),
            PartCase("0-1", "bytes 0-1/10", [("Content-Type", "multipart/byteranges; boundary=x")], .multipart),
            PartCase("0-1", nil, [("Content-Type", "Multipart/ByteRanges")], .multipart),
            PartCase("0-1", "bytes 0-1/10", [("Content-Type", "multipart/form-data")]),
        ]
    )
    func check(example: PartCase) throws {
        let asked = try #require(ByteRanges.parse(Fields([("Range", "bytes=" + example.asked)])))
        let head = part(example.range, example.fields)
        do throws(PartMismatch) {
            _ = try Caching.checkPart(head, asked: asked.specs[0])
            #expect(example.expected == nil)
        } catch {
            #expect(error == example.expected)
        }
    }

    @Test(
        "RFC 9111 3.3: a part is stored where the whole would be, under a strong validator",
        arguments: [
            ([strong, fresh], "bytes 0-1/10", "store"),
            ([strong, ("Cache-Control", "no-store")], "bytes 0-1/10", "no-store"),
            ([strong, ("Cache-Control", "private")], "bytes 0-1/10", "private"),
            ([("ETag", "W/\"a\""), fresh], "bytes 0-1/10", "no-strong-validator"),
            ([fresh], "bytes 0-1/10", "no-strong-validator"),
            ([strong, fresh], "bytes 0-1/*", "complete-length-unknown"), ([strong], "bytes 0-1/10", "store"),
            ([("Last-Modified", date(-1)), fresh], "bytes 0-1/10", "store"),
            ([("Last-Modified", date()), fresh], "bytes 0-1/10", "no-strong-validator"),
            ([("ETag", "W/\"a\""), ("Last-Modified", date(-9)), fresh], "bytes 0-1/10", "no-strong-validator"),
            ([strong, fresh, ("Vary", "*")], "bytes 0-1/10", "vary-star"),
        ]
    )
    func decide(_ fields: [(String, String)], _ range: String, _ expected: String) throws {
        let head = part(range, fields)
        let content = try #require(ContentRange.parse(head.fields))
        let decision = Caching.decidePart(
            request: request(.get, [("Range", "bytes=0-1")]),
            response: head,
            content: content,
            policy: CachePolicy(),
            times: ResponseTimes(at: arrival)
        )
        switch decision {
        case .store(let stored):
            #expect(expected == "store" && stored.status == 200 && stored.bodyLength == 10)
            #expect(stored.fields.first(.contentLength) == "10" && !stored.fields.contains(.contentRange))
        case .refuse(let refusal): #expect(refusal.rawValue == expected)
        case .refusePart(let refusal):
            #expect(refusal.rawValue == expected && refusal.section.hasPrefix("RFC 911"))
        }
    }

    @Test(
        "RFC 9111 3.4: parts join under one strong validator and one length",
        arguments: [
            ([strong], [strong], "bytes 5-6/10", true), ([strong], [strong], "bytes 5-6/*", true),
            ([strong], [strong], "bytes 5-6/11", false), ([strong], [strong], "bytes 5-10/*", false),
            ([strong], [("ETag", "\"b\"")], "bytes 5-6/10", false),
            ([strong], [("ETag", "W/\"a\"")], "bytes 5-6/10", false),
            ([strong], [], "bytes 5-6/10", false),
            ([("ETag", "W/\"a\"")], [("ETag", "W/\"a\"")], "bytes 5-6/10", false),
            ([("Last-Modified", date(-9))], [("Last-Modified", date(-9))], "bytes 5-6/10", true),
            ([("Last-Modified", date(-9))], [("Last-Modified", date(-8))], "bytes 5-6/10", false),
            ([("Last-Modified", date(-9))], [("Last-Modified", date(-9)), strong], "bytes 5-6/10", false),
            ([strong, ("Last-Modified", date(-9))], [("Last-Modified", date(-9))], "bytes 5-6/10", false),
            ([], [], "bytes 5-6/10", false),
        ]
    )
    func joins(_ own: [(String, String)], _ other: [(String, String)], _ range: String, _ expected: Bool) throws {
        var head = stored(own)
        head.bodyLength = 10
        let new = part(range, other)
        let content = try #require(ContentRange.parse(new.fields))
        #expect(Caching.joins(head, part: new, content: content, now: arrival) == expected)
    }

    @Test("RFC 9111 3.4: the part that joins updates the head, but not what describes its own bytes")
    func joined() {
        var head = stored([strong, fresh, ("Content-Length", "10"), ("X-A", "1")])
        head.bodyLength = 10
        let new = part(
            "bytes 5-6/10",
            [strong, ("Cache-Control", "max-age=9"), ("Content-Length", "2"), ("X-A", "2"), ("Content-Digest", "x")]
        )
        let joined = Caching.joined(
            head,
            part: new,
            times: ResponseTimes(requestTime: arrival + 5, responseTime: arrival + 6),
            request: request(),
            policy: CachePolicy()
        )
        #expect(joined.status == 200 && joined.bodyLength == 10 && joined.responseTime == arrival + 6)
        #expect(joined.fields.first(.cacheControl) == "max-age=9" && joined.fields.first("X-A") == "2")
        #expect(joined.fields.first(.contentLength) == "10" && !joined.fields.contains(.contentRange))
        #expect(!joined.fields.contains("Content-Digest"))
    }

    @Test(
        "what came of a cut response is kept where the rest can be asked for",
        arguments: [
            ([strong, ("Accept-Ranges", "bytes"), ("Content-Length", "10")], 200, true),
            ([strong, ("Accept-Ranges", "x, Bytes"), ("Content-Length", "10")], 200, true),
            ([strong, ("Accept-Ranges", "none"), ("Content-Length", "10")], 200, false),
            ([strong, ("Content-Length", "10")], 200, false), ([strong, ("Accept-Ranges", "bytes")], 200, false),
            ([("Accept-Ranges", "bytes"), ("Content-Length", "10")], 200, false),
            ([strong, ("Accept-Ranges", "bytes"), ("Content-Length", "10")], 404, false),
        ]
    )
    func resume(_ fields: [(String, String)], _ status: Int, _ expected: Bool) {
        #expect(Caching.mayResume(stored(fields, status: status)) == expected)
    }

    @Test(
        "RFC 9111 4.3.4: a 304 confirms parts where its validators are theirs, or where it has none",
        arguments: [
            ([strong], [strong], true), ([strong], [], true), ([strong], [("ETag", "\"b\"")], false),
            ([strong], [("ETag", "W/\"a\"")], false), ([strong], [("Last-Modified", date(-9))], true),
            ([strong, ("Last-Modified", date(-9))], [("Last-Modified", date(-9))], true),
            ([strong, ("Last-Modified", date(-9))], [("Last-Modified", date(-8))], false),
            ([strong, ("Last-Modified", date(-9))], [strong, ("Last-Modified", date(-8))], true),
            ([("Last-Modified", date(-9))], [], true),
            ([("Last-Modified", date(-9))], [("Last-Modified", date(-9))], true),
            ([("Last-Modified", date(-9))], [("Last-Modified", date(-10))], false),
            ([("Last-Modified", date(-9))], [strong], false),
            ([("Last-Modified", date(-9))], [strong, ("Last-Modified", date(-9))], false),
        ] as [([(String, String)], [(String, String)], Bool)]
    )
    func confirms(_ own: [(String, String)], _ notModified: [(String, String)], _ expected: Bool) {
        #expect(Caching.confirms(Fields(notModified), stored(own)) == expected)
    }

    @Test("If-Range is the stored validator, byte for byte")
    func ifRange() {
        #expect(Caching.strongValidator(stored([("ETag", "\"\u{FC}\"")]))?.ifRange == "\"\u{FC}\"")
        #expect(Caching.strongValidator(stored([("Last-Modified", date(-9))]))?.ifRange == date(-9))
        #expect(Caching.strongValidator(stored([("ETag", "W/\"a\"")])) == nil)
        // What is no entity tag (RFC 9110 section 8.8.3) says nothing about its strength.
        for tag in ["a", "w/\"a\"", "\"a", "\"a\"b\"", "\""] {
            let head = stored([("ETag", tag), ("Last-Modified", date(-9))])
            #expect(Caching.strongValidator(head) == nil)
            #expect(!head.withValidators { Caching.ifRangeHolds(Fields([("If-Range", tag)]), stored: $0) })
        }
    }
}
