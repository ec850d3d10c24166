// Storing responses (RFC 9111 section 3): what is, what is not, and the reason each names.

import HTTPWire
import Testing

@testable import HTTPCaching

struct StoreCase: Sendable, CustomTestStringConvertible {
    var response: [(String, String)]
    var expected: StoreDecision
    var status: Int
    var request: RequestHead
    var policy: CachePolicy

    init(
        _ response: [(String, String)],
        _ expected: StoreDecision,
        status: Int = 200,
        request: RequestHead = HTTPCachingTests.request(),
        policy: CachePolicy = CachePolicy()
    ) {
        self.response = response
        self.expected = expected
        self.status = status
        self.request = request
        self.policy = policy
    }

    var testDescription: String {
        "\(request.method.name) \(request.fields.lines.map(\.value)) \(status) \(response.map { "\($0.0): \($0.1)" })"
    }
}

@Suite("Storing")
struct StoreDecisionTests {
    static let fresh = ("Cache-Control", "max-age=60")
    static let tag = ("ETag", "\"a\"")
    static let authorized = request(.get, [("Authorization", "Basic eA==")])

    @Test(
        "RFC 9111 3: method, status, directives, Vary",
        arguments: [
            StoreCase([fresh], .store(.explicit)),
            StoreCase([("Expires", date(1))], .store(.explicit)),
            StoreCase([fresh], .refuse(.cacheOff), policy: CachePolicy(mode: .none)),
            StoreCase([fresh], .refuse(.method), request: request(.head)),
            StoreCase([fresh], .refuse(.method), request: request(.put)),
            StoreCase([fresh], .refuse(.post), request: request(.post)),
            StoreCase([fresh], .refuse(.method), request: request(.other("get"))),
            StoreCase([fresh], .refuse(.interim), status: 103),
            StoreCase([fresh], .refuse(.status206), status: 206),
            StoreCase([fresh], .refuse(.status304), status: 304),
            StoreCase([fresh], .refuse(.statusConditional), status: 412),
            StoreCase([fresh], .refuse(.statusConditional), status: 416),
            StoreCase([fresh], .store(.explicit), status: 599),
            StoreCase([fresh], .refuse(.statusUnknown), status: 600),
            StoreCase([fresh], .refuse(.statusUnknown), status: 999),
            StoreCase([fresh, ("Cache-Control", "no-store")], .refuse(.noStore)),
            StoreCase([("Cache-Control", "max-age=60, No-StOrE")], .refuse(.noStore)),
            StoreCase([fresh], .refuse(.requestNoStore), request: request(.get, [("Cache-Control", "no-store")])),
            StoreCase([("Cache-Control", "private, max-age=60")], .refuse(.private)),
            StoreCase([("Cache-Control", "private=\"x-a\", max-age=60")], .store(.explicit)),
            StoreCase([fresh, ("Vary", "*")], .refuse(.varyStar)),
            StoreCase([fresh, ("Vary", "Accept, *")], .refuse(.varyStar)),
            StoreCase([fresh, ("Vary", ""), ("Vary", "*")], .refuse(.varyStar)),
            StoreCase([fresh, ("Vary", "Accept Encoding")], .refuse(.varyInvalid)),
            StoreCase(
                [fresh, ("Vary", "Accept, X-Tenant")],
                .refuse(.varyUnderscore),
                request: HTTPCachingTests.request(.get, [("X_Tenant", "a")])
            ),
            StoreCase(
                [fresh, ("Vary", "x_tenant")],
                .refuse(.varyUnderscore),
                request: HTTPCachingTests.request(.get, [("X-Tenant", "a")])
            ),
            StoreCase(
                [fresh, ("Vary", "X-Tenant")],
                .store(.explicit),
                request: HTTPCachingTests.request(.get, [("X-Tenant", "a"), ("api_key", "b")])
            ),
            StoreCase([fresh, ("Vary", "Accept, Accept-Encoding")], .store(.explicit)),
            StoreCase([fresh, ("Content-Type", "text/event-stream;charset=utf-8")], .refuse(.eventStream)),
            StoreCase([fresh, ("Content-Type", "text/event-streams")], .store(.explicit)),
        ]
    )
    func rules(example: StoreCase) { check(example) }

    @Test("RFC 9111 3: any final status with explicit freshness, known or not")
    func anyFinalStatus() {
        for status in 200...599 where ![206, 304, 412, 416, 428, 429, 431, 511].contains(status) {
            check(StoreCase([Self.fresh], .store(.explicit), status: status))
        }
    }

    @Test("RFC 6585 3 to 6: these statuses are never stored", arguments: [428, 429, 431, 511])
    func neverStored(status: Int) {
        check(StoreCase([Self.fresh], .refuse(.statusNeverStored), status: status))
        check(StoreCase([("Cache-Control", "public"), Self.tag], .refuse(.statusNeverStored), status: status))
    }

    @Test(
        "RFC 9111 3: without explicit freshness only heuristically cacheable statuses, public ones, or configured ones",
        arguments: [
            StoreCase([tag], .store(.validator)),
            StoreCase([tag], .refuse(.statusNotCacheable), status: 302),
            StoreCase([tag], .refuse(.statusNotCacheable), status: 500),
            StoreCase([tag], .store(.validator), status: 404),
            StoreCase([tag, ("Cache-Control", "public")], .store(.validator), status: 302),
            StoreCase([("Last-Modified", date(-1000))], .store(.heuristic)),
            StoreCase([("Last-Modified", date(-1000))], .refuse(.statusNotCacheable), status: 302),
            StoreCase([("Last-Modified", date(-1000)), ("Cache-Control", "public")], .store(.heuristic), status: 302),
            StoreCase([], .store(.ttl), policy: CachePolicy(ttl: 5)),
            StoreCase([], .refuse(.statusNotCacheable), status: 302, policy: CachePolicy(ttl: 5)),
            StoreCase([], .store(.ttl), status: 302, policy: CachePolicy(ttlByStatus: [302: 5])),
            StoreCase([], .refuse(.noFreshnessAndNoValidator), status: 404, policy: CachePolicy(ttl: 5)),
            StoreCase([("ETag", "\"a\"")], .store(.validator), status: 404, policy: CachePolicy(ttl: 5)),
            StoreCase([], .store(.ttl), status: 404, policy: CachePolicy(ttl: 5, ttlByStatus: [404: 1])),
        ]
    )
    func implicitFreshness(example: StoreCase) { check(example) }

    @Test(
        "A response with no freshness and no validator is not kept: it could never be reused; one that speaks of both says so",
        arguments: [
            StoreCase([], .refuse(.noFreshnessAndNoValidator)),
            StoreCase([("Expires", "0")], .refuse(.noValidator)),
            StoreCase([("Cache-Control", "no-cache")], .refuse(.noValidator), policy: CachePolicy(ttl: 5)),
            StoreCase([("Last-Modified", "long ago")], .refuse(.noFreshnessAndNoValidator)),
            StoreCase([("Last-Modified", date(0))], .store(.validator)),
            StoreCase([("ETag", "")], .refuse(.noFreshnessAndNoValidator)),
            StoreCase([("Cache-Control", "no-cache")], .refuse(.noValidator)),
            StoreCase([("Cache-Control", "no-cache, max-age=60")], .refuse(.noValidator)),
            StoreCase([("Cache-Control", "no-cache"), tag], .store(.validator)),
            StoreCase([("Cache-Control", "max-age=0")], .refuse(.noValidator)),
            StoreCase([("Cache-Control", "max-age=x")], .refuse(.noValidator)),
            StoreCase([("Cache-Control", "max-age=0"), tag], .store(.validator)),
            StoreCase([fresh, ("Age", "60")], .refuse(.noValidator)),
            StoreCase([fresh, ("Age", "59")], .store(.explicit)),
            StoreCase([("Cache-Control", "max-age=0, stale-while-revalidate=9")], .store(.explicit)),
            StoreCase(
                [("Cache-Control", "max-age=0")],
                .store(.explicit),
                policy: CachePolicy(staleWhileRevalidate: 9)
            ),
            StoreCase(
                [("Cache-Control", "max-age=0, stale-while-revalidate=0")],
                .refuse(.noValidator),
                policy: CachePolicy(staleWhileRevalidate: 9)
            ),
            StoreCase([], .refuse(.noFreshnessAndNoValidator), policy: CachePolicy(staleWhileRevalidate: 9)),
            StoreCase(
                [("Cache-Control", "max-age=0, stale-if-error=9, must-revalidate")],
                .refuse(.noValidator)
            ),
            StoreCase([], .refuse(.noFreshnessAndNoValidator), policy: CachePolicy(ttl: 0)),
            StoreCase([("Cache-Control", "no-cache")], .store(.ttl), policy: CachePolicy(ttl: 5, overrideOrigin: true)),
            StoreCase(
                [("Cache-Control", "no-store")],
                .refuse(.noStore),
                policy: CachePolicy(ttl: 5, overrideOrigin: true)
            ),
            StoreCase(
                [("Cache-Control", "private")],
                .refuse(.private),
                policy: CachePolicy(ttl: 5, overrideOrigin: true)
            ),
        ]
    )
    func nothingToGoBy(example: StoreCase) { check(example) }

    @Test(
        "RFC 9111 3.5: an answer to a request with Authorization is shared only where public, s-maxage or must-revalidate says so",
        arguments: [
            StoreCase([fresh], .refuse(.authorization), request: authorized),
            StoreCase([("Cache-Control", "max-age=60, public")], .store(.explicit), request: authorized),
            StoreCase([("Cache-Control", "s-maxage=60")], .store(.explicit), request: authorized),
            StoreCase([("Cache-Control", "max-age=60, must-revalidate")], .store(.explicit), request: authorized),
            StoreCase([("Cache-Control", "max-age=60, public=x")], .refuse(.authorization), request: authorized),
            StoreCase([("Cache-Control", "s-maxage=x"), tag], .refuse(.authorization), request: authorized),
            StoreCase([("Cache-Control", "s-maxage=0"), tag], .store(.validator), request: authorized),
            StoreCase(
                [("Cache-Control", "max-age=60, proxy-revalidate")],
                .refuse(.authorization),
                request: authorized
            ),
            StoreCase(
                [("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "public")],
                .refuse(.authorization),
                request: authorized
            ),
            StoreCase([], .refuse(.authorization), request: authorized, policy: CachePolicy(ttl: 5)),
        ]
    )
    func authorization(example: StoreCase) { check(example) }

    @Test(
        "RFC 9111 7.3: Set-Cookie is stored with explicit freshness only",
        arguments: [
            StoreCase([fresh, ("Set-Cookie", "a=1")], .store(.explicit)),
            StoreCase([("Set-Cookie", "a=1"), ("Last-Modified", date(-1000))], .refuse(.setCookieHeuristic)),
            StoreCase([("Set-Cookie", "a=1"), tag], .refuse(.setCookieHeuristic)),
            StoreCase([("Set-Cookie", "a=1")], .refuse(.setCookieHeuristic), policy: CachePolicy(ttl: 5)),
            StoreCase(
                [("Set-Cookie", "a=1"), tag, ("Cache-Control", "private=\"set-cookie\"")],
                .store(.validator)
            ),
        ]
    )
    func setCookie(example: StoreCase) { check(example) }

    @Test(
        "RFC 9111 5.2.2.3: must-understand beats no-store for understood statuses, and forbids the others",
        arguments: [
            StoreCase([("Cache-Control", "must-understand, no-store, max-age=60")], .store(.explicit)),
            StoreCase([("Cache-Control", "must-understand, no-store, max-age=60")], .store(.explicit), status: 404),
            StoreCase([("Cache-Control", "must-understand, max-age=60")], .refuse(.mustUnderstand), status: 299),
            StoreCase(
                [("Cache-Control", "must-understand, no-store, max-age=60")],
                .refuse(.mustUnderstand),
                status: 599
            ),
            StoreCase(
                [("Cache-Control", "must-understand, no-store")],
                .refuse(.requestNoStore),
                request: request(.get, [("Cache-Control", "no-store")])
            ),
        ]
    )
    func mustUnderstand(example: StoreCase) { check(example) }

    @Test(
        "RFC 9110 9.3.3: an answer to POST is stored for GET with explicit freshness and the asked URL as Content-Location",
        arguments: [
            ([fresh, ("Content-Location", "/form?x")], 200, true),
            ([fresh, ("Content-Location", "http://A.test:80/form?x")], 200, true),
            ([fresh, ("Content-Location", "form?x")], 200, true),
            ([("Expires", date(60)), ("Content-Location", "/form?x")], 200, true),
            ([("Cache-Control", "max-age=0"), tag, ("Content-Location", "/form?x")], 200, true),
            ([fresh, ("Content-Location", "/form")], 200, false), ([fresh], 200, false),
            ([fresh, ("Content-Location", "https://a.test/form?x")], 200, false),
            ([fresh, ("Content-Location", "/form?x"), ("Content-Location", "/form?x")], 200, false),
            ([fresh, ("Content-Location", "/form?x")], 201, false),
            ([fresh, ("Content-Location", "/form?x")], 404, false),
            ([tag, ("Last-Modified", date(-1000)), ("Content-Location", "/form?x")], 200, false),
            ([("Cache-Control", "max-age=x"), tag, ("Content-Location", "/form?x")], 200, false),
        ] as [([(String, String)], Int, Bool)]
    )
    func post(fields: [(String, String)], status: Int, isStored: Bool) {
        let policy = CachePolicy(ttl: 9)
        let (asked, answer) = (request(.post), response(status, fields))
        let url = "http://a.test/form?x"
        let decision = Caching.decideStore(
            request: asked,
            response: answer,
            policy: policy,
            times: ResponseTimes(at: arrival),
            url: url
        )
        if isStored {
            if case .refuse(let refusal) = decision { Issue.record("refused: \(refusal)") }
        } else {
            #expect(decision == .refuse(.post))
        }
        func head(_ url: String?) -> StoredHead {
            Caching.makeStoredHead(
                request: asked,
                response: answer,
                times: ResponseTimes(at: arrival),
                policy: policy,
                url: url
            )
        }
        #expect(head(url).requestMethod == (isStored ? .get : .post))
        #expect(head(nil).requestMethod == .post)
        #expect(
            Caching.decideStore(request: asked, response: answer, policy: policy, times: ResponseTimes(at: arrival))
                == .refuse(.post)
        )
    }

    @Test("A freshened head is kept or dropped by the same rules")
    func keeping() {
        #expect(Caching.decideKeep(stored([Self.fresh]), policy: CachePolicy()) == .store(.explicit))
        #expect(Caching.decideKeep(stored([("Cache-Control", "no-store")]), policy: CachePolicy()) == .refuse(.noStore))
        #expect(Caching.decideKeep(stored([Self.fresh, ("Vary", "*")]), policy: CachePolicy()) == .refuse(.varyStar))
        let shared = stored([Self.fresh], for: Self.authorized)
        #expect(Caching.decideKeep(shared, policy: CachePolicy()) == .refuse(.authorization))
    }

    @Test(
        "RFC 9111 3.5: what is said to a request with Authorization updates only what may be shared",
        arguments: [
            ("max-age=1", "max-age=60", false), ("max-age=1", nil, false), ("max-age=1", "max-age=60, public", true),
            ("max-age=1, public", nil, true), ("max-age=1, public", "max-age=60", false),
            ("max-age=1", "must-revalidate", true), ("max-age=1", "s-maxage=60", true),
            ("max-age=1, public", "public, no-store", false), ("max-age=1, public", "public, private", false),
        ] as [(String, String?, Bool)]
    )
    func authorizedUpdate(before: String, after: String?, expected: Bool) {
        let alice = request(.get, [("Authorization", "Basic eA==")])
        let head = Caching.freshened(
            stored: stored([("Cache-Control", before), ("ETag", "\"a\"")]),
            by: response(
                304,
                [("ETag", "\"a\""), ("X-User", "alice")] + (after.map { [("Cache-Control", $0)] } ?? [])
            ),
            times: ResponseTimes(at: arrival + 9),
            request: alice
        )
        #expect(Caching.mayShareUpdate(head, request: alice, policy: CachePolicy()) == expected)
        // What everybody may be told is everybody's, whatever becomes of the response.
        #expect(Caching.mayShareUpdate(head, request: request(), policy: CachePolicy()))
        let noStore = request(.get, [("Cache-Control", "no-store")])
        #expect(!Caching.mayShareUpdate(head, request: noStore, policy: CachePolicy()))
    }

    @Test(
        "RFC 9112 6.3: nothing is stored of a message whose end others may find elsewhere, whatever it says",
        arguments: [200, 206, 404]
    )
    func oddFraming(status: Int) {
        for policy in [CachePolicy(), CachePolicy(mode: .library)] {
            var head = response(status, [Self.fresh, Self.tag, ("Content-Range", "bytes 0-1/9")])
            head.isOddlyFramed = true
            let decision = Caching.decideStore(
                request: request(),
                response: head,
                policy: policy,
                times: ResponseTimes(at: arrival)
            )
            #expect(decision == .refuse(.oddFraming))
            let part = Caching.decidePart(
                request: request(),
                response: head,
                content: ContentRange(range: 0..<2, length: 9),
                policy: policy,
                times: ResponseTimes(at: arrival)
            )
            #expect(part == .refuse(.oddFraming))
        }
    }

    @Test("The reasons are what diagnostics print")
    func reasons() {
        #expect(StoreRefusal.noFreshnessAndNoValidator.rawValue == "no-freshness-and-no-validator")
        #expect(StoreRefusal.allCases.map(\.rawValue).allSatisfy { $0.utf8.allSatisfy { $0 == 0x2D || $0 >= 0x30 } })
        #expect(Set(StoreRefusal.allCases.map(\.rawValue)).count == StoreRefusal.allCases.count)
    }

    private func check(_ example: StoreCase) {
        let decision = Caching.decideStore(
            request: example.request,
            response: response(example.status, example.response),
            policy: example.policy,
            times: ResponseTimes(at: arrival)
        )
        #expect(decision == example.expected, "status \(example.status)")
    }
}
