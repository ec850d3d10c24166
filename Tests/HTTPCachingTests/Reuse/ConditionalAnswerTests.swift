// Clients' conditional requests answered from the store (RFC 9110 section 13, RFC 9111 section 4.3.2).

import HTTPWire
import Testing

@testable import HTTPCaching

struct ConditionCase: Sendable, CustomTestStringConvertible {
    enum Outcome: Sendable { case full, notModified, forwarded }

    var stored: [(String, String)]
    var request: [(String, String)]
    var expected: Outcome
    var method: HTTPWire.Method
    var status: Int

    init(
        _ stored: [(String, String)],
        _ request: [(String, String)],
        _ expected: Outcome,
        method: HTTPWire.Method = .get,
        status: Int = 200
    ) {
        self.stored = stored
        self.request = request
        self.expected = expected
        self.method = method
        self.status = status
    }

    var testDescription: String { "\(method.name) \(request) \(status) \(stored)" }
}

@Suite("Conditional requests")
struct ConditionalAnswerTests {
    static let strong = ("ETag", "\"abcdef\"")
    static let weak = ("ETag", "W/\"abcdef\"")
    static let modified = ("Last-Modified", date(-1000))
    static func inm(_ value: String) -> [(String, String)] { [("If-None-Match", value)] }
    static func ims(_ offset: Int64) -> [(String, String)] { [("If-Modified-Since", date(offset))] }

    @Test(
        "RFC 9110 13.1.2: If-None-Match compares weakly with each member of the list",
        arguments: [
            ConditionCase([strong], inm("\"abcdef\""), .notModified), ConditionCase([strong], inm("\"abcde\""), .full),
            ConditionCase([strong], inm("W/\"abcdef\""), .notModified),
            ConditionCase([weak], inm("\"abcdef\""), .notModified),
            ConditionCase([weak], inm("W/\"abcdef\""), .notModified),
            ConditionCase([strong], inm("\"abcdef\", \"1\", \"2\""), .notModified),
            ConditionCase([strong], inm("\"1\",\"abcdef\" ,\"2\""), .notModified),
            ConditionCase([strong], inm("\"1\", \"2\", \"abcdef\""), .notModified),
            ConditionCase([strong], inm("\"1\"") + inm("\"abcdef\""), .notModified),
            ConditionCase([strong], inm("\"1, \"abcdef\"\""), .full), ConditionCase([strong], inm("abcdef"), .full),
            ConditionCase([("ETag", "abcdef")], inm("abcdef"), .notModified),
            ConditionCase([("ETag", "\"a,b\"")], inm("\"x\", \"a,b\""), .notModified),
            ConditionCase([("ETag", "\"a\\\"")], inm("\"a\\\", \"b\""), .notModified),
            ConditionCase([("ETag", "\"\u{FC}\"")], inm("\"\u{FC}\""), .notModified),
            ConditionCase([strong], inm("*"), .notModified), ConditionCase([], inm("*"), .notModified),
            ConditionCase([], inm("\"abcdef\""), .full), ConditionCase([strong], inm(""), .full),
            ConditionCase([strong], inm("w/\"abcdef\""), .full),
            ConditionCase([strong], inm("\"abcdef\""), .notModified, method: .head),
            ConditionCase([strong], inm("\"abcdef\""), .full, method: .post),
            ConditionCase([strong], inm("\"abcdef\""), .full, status: 404),
            ConditionCase([strong], inm("\"abcdef\""), .notModified, status: 203),
        ]
    )
    func ifNoneMatch(example: ConditionCase) { check(example) }

    @Test(
        "RFC 9110 13.1.3: If-Modified-Since counts without If-None-Match only, for GET and HEAD, and where it is one date",
        arguments: [
            ConditionCase([modified], ims(-1000), .notModified), ConditionCase([modified], ims(-999), .notModified),
            ConditionCase([modified], ims(-1001), .full), ConditionCase([modified], ims(-1000), .full, method: .delete),
            ConditionCase([modified], ims(-1000), .notModified, method: .head),
            ConditionCase([strong, modified], ims(-1000) + inm("\"x\""), .full),
            ConditionCase([strong, modified], ims(-2000) + inm("\"abcdef\""), .notModified),
            ConditionCase([modified], [("If-Modified-Since", "soon")], .full),
            ConditionCase([modified], ims(-1000) + ims(-1000), .full), ConditionCase([], ims(0), .notModified),
            ConditionCase([], ims(-1), .full), ConditionCase([modified], ims(-1000), .full, status: 404),
        ]
    )
    func ifModifiedSince(example: ConditionCase) { check(example) }

    @Test(
        "RFC 9111 4.3.2: If-Match, compared strongly, and If-Unmodified-Since without it are the origin's to refuse for",
        arguments: [
            ConditionCase([strong], [("If-Match", "\"abcdef\"")], .full),
            ConditionCase([strong], [("If-Match", "\"x\", \"abcdef\"")], .full),
            ConditionCase([strong], [("If-Match", "\"x\"")], .forwarded),
            ConditionCase([weak], [("If-Match", "W/\"abcdef\"")], .forwarded),
            ConditionCase([strong], [("If-Match", "*")], .full),
            ConditionCase([], [("If-Match", "\"x\"")], .forwarded),
            ConditionCase([strong], [("If-Match", "\"abcdef\"")] + inm("\"abcdef\""), .notModified),
            ConditionCase([modified], [("If-Unmodified-Since", date(-1000))], .full),
            ConditionCase([modified], [("If-Unmodified-Since", date(-1001))], .forwarded),
            ConditionCase([], [("If-Unmodified-Since", date(-1001))], .full),
            ConditionCase(
                [strong, modified],
                [("If-Match", "\"abcdef\""), ("If-Unmodified-Since", date(-1001))],
                .full
            ),
        ]
    )
    func preconditions(example: ConditionCase) { check(example) }

    @Test("RFC 9110 15.4.5: a 304 carries these fields of the stored response and no others")
    func fields() {
        let head = stored([
            ("Cache-Control", "max-age=60"), ("Content-Location", "/a"), Self.strong, ("Expires", date(60)),
            ("Vary", "Accept"), Self.modified, ("Content-Type", "text/html"), ("Content-Length", "3"),
            ("Set-Cookie", "a=1"), ("My-CDN-Cache-Control", "max-age=9"),
        ])
        let answer = Caching.answerConditional(request: request(.get, Self.inm("*")), stored: head)
        guard case .notModified(let fields) = answer else {
            Issue.record("expected 304, got \(answer)")
            return
        }
        #expect(
            fields.lines.map(\.name) == [
                "Cache-Control", "Content-Location", "ETag", "Expires", "Vary", "My-CDN-Cache-Control", "Date",
            ]
        )
        let untagged = Caching.answerConditional(request: request(.get, Self.ims(0)), stored: stored([Self.modified]))
        #expect(untagged == .notModified(Fields([Self.modified, ("Date", date())])))
    }

    private func check(_ example: ConditionCase) {
        let asked = request(example.method, example.request)
        let head = stored(example.stored + [("Cache-Control", "max-age=60")], status: example.status)
        var outcome: ConditionCase.Outcome =
            switch Caching.answerConditional(request: asked, stored: head) {
            case .full: .full
            case .notModified: .notModified
            }
        let decision = Caching.lookup(request: asked, stored: head, policy: CachePolicy(), now: arrival)
        if decision == .stale(age: 0, by: -60, reason: .requestPrecondition) { outcome = .forwarded }
        #expect(outcome == example.expected)
        #expect(
            decision.forward
                == (outcome == .forwarded
                    ? .request : example.method == .get || example.method == .head ? nil : .method)
        )
    }
}
