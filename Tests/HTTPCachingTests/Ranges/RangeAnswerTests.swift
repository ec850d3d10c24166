// Range and If-Range against a representation at hand (RFC 9110 sections 13.1.5, 13.2.2, 14.2 and 15.3.7).

import HTTPWire
import Testing

@testable import HTTPCaching

struct IfRangeCase: Sendable, CustomTestStringConvertible {
    var stored: [(String, String)]
    var ifRange: [String]
    var holds: Bool

    init(_ stored: [(String, String)], _ ifRange: String..., holds: Bool) {
        self.stored = stored
        self.ifRange = ifRange
        self.holds = holds
    }

    var testDescription: String { "\(ifRange) \(stored)" }
}

@Suite("Answers to Range")
struct RangeAnswerTests {
    static let strong = ("ETag", "\"a\"")
    static let weak = ("ETag", "W/\"a\"")
    static let old = ("Last-Modified", date(-1000))

    private func answer(
        _ range: String?,
        _ more: [(String, String)] = [],
        method: HTTPWire.Method = .get,
        status: Int = 200,
        length: Int64 = 10
    ) -> RangeAnswer {
        let fields = (range.map { [("Range", $0)] } ?? []) + more
        let head = stored([Self.strong], status: status)
        return Caching.rangeAnswer(request: request(method, fields), stored: head, length: length)
    }

    @Test("RFC 9110 14.2: only GET, only where the answer is a 200")
    func whole() {
        #expect(answer("bytes=0-1") == .parts([0..<2]))
        #expect(answer(nil) == .whole)
        #expect(answer("bytes=1-0") == .whole)
        #expect(answer("items=0-1") == .whole)
        #expect(answer("bytes=0-1", method: .head) == .whole)
        #expect(answer("bytes=0-1", method: .post) == .whole)
        for status in [203, 204, 206, 301, 404, 500] { #expect(answer("bytes=0-1", status: status) == .whole) }
    }

    @Test("RFC 9110 15.5.17: nothing of it is 416")
    func unsatisfiable() {
        #expect(answer("bytes=10-") == .unsatisfiable)
        #expect(answer("bytes=9-") == .parts([9..<10]))
        #expect(answer("bytes=-0") == .unsatisfiable)
        #expect(answer("bytes=10-,20-30") == .unsatisfiable)
        #expect(answer("bytes=10-,0-0") == .parts([0..<1]))
        #expect(answer("bytes=0-", length: 0) == .unsatisfiable)
        #expect(answer("bytes=-0", length: 0) == .unsatisfiable)
        #expect(answer("bytes=-1", length: 0) == .whole)
        #expect(answer("bytes=10-", [("If-Range", "\"b\"")]) == .whole)
        let head = Caching.unsatisfiableHead(length: 10)
        #expect(head.status == 416 && head.fields.first(.contentRange) == "bytes */10")
    }

    @Test(
        "RFC 9110 13.1.5: If-Range compares strongly, a date exactly",
        arguments: [
            IfRangeCase([strong], holds: true), IfRangeCase([strong], "\"a\"", holds: true),
            IfRangeCase([strong], "\"b\"", holds: false), IfRangeCase([strong], "W/\"a\"", holds: false),
            IfRangeCase([weak], "\"a\"", holds: false), IfRangeCase([weak], "W/\"a\"", holds: false),
            IfRangeCase([], "\"a\"", holds: false), IfRangeCase([strong], "*", holds: false),
            IfRangeCase([strong], "", holds: false), IfRangeCase([strong], "\"a\"", "\"a\"", holds: false),
            IfRangeCase([strong], "\"a\", \"b\"", holds: false), IfRangeCase([old], date(-1000), holds: true),
            IfRangeCase([strong, old], date(-1000), holds: true), IfRangeCase([old], date(-999), holds: false),
            IfRangeCase([old], date(-1001), holds: false), IfRangeCase([strong], date(-1000), holds: false),
            IfRangeCase([old], "yesterday", holds: false),
            // Strong only where Date is at least a second later (section 8.8.2.2).
            IfRangeCase([("Last-Modified", date(-1))], date(-1), holds: true),
            IfRangeCase([("Last-Modified", date())], date(), holds: false),
            IfRangeCase([("Last-Modified", date(1))], date(1), holds: false),
            IfRangeCase([("Last-Modified", date(-5)), ("Date", "soon")], date(-5), holds: false),
        ]
    )
    func ifRange(example: IfRangeCase) {
        let fields = Fields(example.ifRange.map { ("If-Range", $0) })
        #expect(stored(example.stored).withValidators { Caching.ifRangeHolds(fields, stored: $0) } == example.holds)
    }

    @Test(
        "RFC 9110 13.2.2: the other conditions come first",
        arguments: [
            ([("If-None-Match", "\"a\"")], "304"), ([("If-None-Match", "\"b\"")], "206"),
            ([("If-None-Match", "\"a\""), ("If-Range", "\"b\"")], "304"), ([("If-Match", "\"b\"")], "origin"),
            ([("If-Match", "\"a\"")], "206"), ([("If-Match", "\"b\""), ("If-Range", "\"a\"")], "origin"),
            ([("If-Match", "\"a\""), ("If-Range", "\"b\"")], "200"),
            ([("If-Unmodified-Since", date(-2000))], "origin"), ([("If-Unmodified-Since", date(-1000))], "206"),
            ([("If-Modified-Since", date(-1000))], "304"), ([("If-Modified-Since", date(-1001))], "206"),
            ([("If-Modified-Since", date(-1000)), ("If-None-Match", "\"b\"")], "206"),
        ]
    )
    func precedence(_ conditions: [(String, String)], _ expected: String) {
        let asked = request(.get, [("Range", "bytes=0-1")] + conditions)
        let head = stored([Self.strong, Self.old])
        // Nobody but the origin refuses (RFC 9111 section 4.3.2).
        if case .stale(_, _, .requestPrecondition) = Caching.lookup(
            request: asked,
            stored: head,
            policy: CachePolicy(),
            now: arrival
        ) {
            #expect(expected == "origin")
            return
        }
        let result =
            switch Caching.answerConditional(request: asked, stored: head) {
            case .notModified: "304"
            case .full: Caching.rangeAnswer(request: asked, stored: head, length: 10) == .whole ? "200" : "206"
            }
        #expect(result == expected)
    }

    @Test("RFC 9110 15.3.7.1: one part has the fields of the whole, its own length and Content-Range")
    func partHead() {
        let fields = [
            Self.strong, ("Content-Type", "a/b"), ("Content-Length", "10"), ("Content-Digest", "sha-256=:x:"),
            ("Repr-Digest", "sha-256=:y:"), ("X-Own", "1"),
        ]
        let head = Caching.partHead(stored: stored(fields), range: 2..<5, length: 10)
        #expect(head.status == 206 && head.reason == "Partial Content")
        #expect(head.fields.first(.contentRange) == "bytes 2-4/10" && head.fields.first(.contentLength) == "3")
        #expect(head.fields.first(.contentType) == "a/b" && head.fields.first(.etag) == "\"a\"")
        #expect(head.fields.first("X-Own") == "1" && head.fields.first("Repr-Digest") == "sha-256=:y:")
        #expect(!head.fields.contains("Content-Digest") && head.fields.first(.acceptRanges) == "bytes")
        let none = Caching.partHead(stored: stored([("Accept-Ranges", "none")]), range: 0..<1, length: 1)
        #expect(none.fields.all(.acceptRanges) == ["none"])
    }

    @Test("RFC 9110 14.6: several parts", arguments: [true, false])
    func multipart(_ hasType: Bool) throws {
        let head = stored(hasType ? [("Content-Type", "text/\u{FC}")] : [])
        let multipart = Multipart(ranges: [8..<10, 0..<1], complete: 10, stored: head.fields, boundary: "B")
        let type = hasType ? "Content-Type: text/\u{FC}\r\n" : ""
        let expected = [
            "--B\r\n\(type)Content-Range: bytes 8-9/10\r\n\r\n",
            "\r\n--B\r\n\(type)Content-Range: bytes 0-0/10\r\n\r\n",
        ]
        #expect(multipart.heads == expected.map { Latin1.bytes($0) })
        #expect(multipart.tail == Array("\r\n--B--\r\n".utf8))
        let framing = (multipart.heads.joined() + multipart.tail).count
        #expect(multipart.length == Int64(framing + 3))
        let answer = Caching.multipartHead(stored: head, multipart)
        #expect(answer.status == 206 && !answer.fields.contains(.contentRange))
        #expect(answer.fields.all(.contentType) == ["multipart/byteranges; boundary=B"])
        #expect(answer.fields.first(.contentLength) == "\(framing + 3)")
    }
}
