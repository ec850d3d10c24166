// How library mode checks what is stored: a HEAD without conditions, and what of its answer must be equal.

import HTTPWire
import Testing

@testable import HTTPCaching

struct ComparisonCase: Sendable, CustomTestStringConvertible {
    var before: [(String, String)]
    var answer: [(String, String)]
    /// Nil: unchanged.
    var expected: HeadChange?
    var rules: [ComparisonRule]

    init(
        _ before: [(String, String)],
        _ answer: [(String, String)],
        _ expected: HeadChange?,
        _ rules: [ComparisonRule] = ComparisonRule.allCases
    ) {
        self.before = before
        self.answer = answer
        self.expected = expected
        self.rules = rules
    }

    var testDescription: String { "\(before) HEAD \(answer) by \(rules.map(\.rawValue))" }
}

@Suite("Library check")
struct LibraryCheckTests {
    static let tag = ("ETag", "\"a\"")
    static let weak = ("ETag", "W/\"a\"")
    static let other = ("ETag", "\"b\"")
    static let modified = ("Last-Modified", date(-1000))
    static let later = ("Last-Modified", date(-999))
    static let earlier = ("Last-Modified", date(-2000))
    static let length = ("Content-Length", "10")
    static let longer = ("Content-Length", "11")

    @Test(
        "Last-Modified is compared for inequality: older is a change, too",
        arguments: [
            ComparisonCase([modified], [modified], nil), ComparisonCase([modified], [later], .lastModified),
            ComparisonCase([modified], [earlier], .lastModified),
            ComparisonCase(
                [("Last-Modified", "Fri, 13 Feb 2009 23:31:30 GMT")],
                [("Last-Modified", "Friday, 13-Feb-09 23:31:30 GMT")],
                nil
            ),
            ComparisonCase([("Last-Modified", "yesterday")], [("Last-Modified", "yesterday")], nil),
            ComparisonCase([("Last-Modified", "yesterday")], [("Last-Modified", "today")], .lastModified),
            ComparisonCase([("Last-Modified", "yesterday")], [modified], .lastModified),
            ComparisonCase([modified], [("Last-Modified", "yesterday")], .lastModified),
        ]
    )
    func dates(example: ComparisonCase) { check(example) }

    @Test(
        "what stands in one of the two only is unknown: ETag, Last-Modified and length make up for one another",
        arguments: [
            ComparisonCase([], [modified], .noValidator), ComparisonCase([modified], [], .noValidator),
            ComparisonCase([], [], .noValidator), ComparisonCase([tag], [tag, modified], nil),
            ComparisonCase([tag, modified], [tag], nil), ComparisonCase([length], [length, modified], nil),
            ComparisonCase([length, modified], [length], nil), ComparisonCase([length], [longer, modified], .length),
            ComparisonCase([tag, length], [modified, length], nil), ComparisonCase([tag], [weak], nil),
            ComparisonCase([weak], [tag], nil), ComparisonCase([tag], [other], .etag),
            ComparisonCase([tag, modified], [other, modified], .etag),
            ComparisonCase([tag, modified], [tag, later], .lastModified),
            ComparisonCase([tag, length], [tag, longer], .length), ComparisonCase([length], [length], nil),
        ]
    )
    func unknown(example: ComparisonCase) { check(example) }

    @Test(
        "compare: only what it lists counts",
        arguments: [
            ComparisonCase([tag, modified], [other, modified], nil, [.lastModified]),
            ComparisonCase([tag, modified], [tag, later], nil, [.etag]),
            ComparisonCase([tag, length], [tag, longer], nil, [.etag, .lastModified]),
            ComparisonCase([tag, modified, length], [other, later, length], nil, [.length]),
            ComparisonCase([tag], [tag], .noValidator, [.lastModified, .length]),
            ComparisonCase([tag, modified], [tag, later], .lastModified, [.lastModified, .etag]),
            ComparisonCase([tag], [tag], .noValidator, []),
        ]
    )
    func compare(example: ComparisonCase) { check(example) }

    private func check(_ example: ComparisonCase) {
        let policy = CachePolicy(mode: .library, compare: example.rules)
        let verdict = Caching.judgeHead(
            stored: stored(example.before, policy: policy),
            headAnswer: response(200, example.answer),
            times: ResponseTimes(at: arrival + 9000),
            policy: policy
        )
        guard case .unchanged(let head) = verdict else {
            #expect(example.expected.map { .changed($0) } == verdict)
            return
        }
        #expect(example.expected == nil)
        #expect(head.responseTime == arrival + 9000)
        #expect(Caching.staleness(head, policy: policy, now: arrival + 9000) == -7200)
    }

    @Test(
        "a HEAD carries no conditions; a conditional GET carries what is compared; no-cache asks for the whole",
        arguments: [
            ([tag, modified], .head, nil, [], .head), ([], .head, nil, [], .head),
            ([tag], .head, "max-age=0", [], .head),
            ([tag], .head, "no-cache", [], nil),
            ([tag, modified], .conditional, nil, [("If-None-Match", "\"a\"")], .conditional),
            ([modified], .conditional, nil, [("If-Modified-Since", date(-1000))], .conditional),
            ([], .conditional, nil, [], nil), ([tag], .never, nil, [], nil), ([tag], .never, "no-cache", [], nil),
        ] as [([(String, String)], ValidationMethod, String?, [(String, String)], Revalidation.Kind?)]
    )
    func asking(
        fields: [(String, String)],
        method: ValidationMethod,
        wish: String?,
        conditions: [(String, String)],
        kind: Revalidation.Kind?
    ) {
        let check = Caching.revalidation(
            request: request(.get, wish.map { [("Cache-Control", $0)] } ?? []),
            stored: stored(fields),
            policy: CachePolicy(mode: .library, revalidate: method)
        )
        #expect(check == kind.map { Revalidation(kind: $0, conditions: Fields(conditions)) })
    }

    @Test("the conditions of a GET after a HEAD that is refused follow compare, too")
    func fallback() {
        func ask(_ rules: [ComparisonRule]) -> Revalidation? {
            Caching.revalidation(
                request: request(),
                stored: stored([Self.tag, Self.modified]),
                policy: CachePolicy(mode: .library, compare: rules),
                forceConditional: true
            )
        }
        #expect(ask([.etag])?.conditions == Fields([("If-None-Match", "\"a\"")]))
        #expect(ask([.lastModified])?.conditions == Fields([("If-Modified-Since", date(-1000))]))
        #expect(ask([.length]) == nil)
        // Nothing is stored that the request selects: other variants are not asked about.
        #expect(Caching.revalidation(request: request(), stored: nil, policy: CachePolicy(mode: .library)) == nil)
    }

    @Test("a HEAD without conditions tells nothing about what the origin makes of them")
    func capabilities() {
        var capabilities = OriginCapabilities()
        capabilities.noteHead(status: 200, verdict: .unchanged(stored()), hadConditions: false)
        #expect(capabilities == OriginCapabilities(head: .honoured, conditional: .unknown))
        capabilities.noteHead(status: 200, verdict: .unchanged(stored()))
        #expect(capabilities == OriginCapabilities(head: .honoured, conditional: .refused))
    }
}
