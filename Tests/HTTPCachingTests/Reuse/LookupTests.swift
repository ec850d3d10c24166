// Reusing stored responses (RFC 9111 section 4): request directives, staleness, and what may be served stale.

import HTTPWire
import Testing

@testable import HTTPCaching

struct ReuseCase: Sendable, CustomTestStringConvertible {
    var response: [(String, String)]
    var request: String?
    /// Seconds after the arrival.
    var after: Int64
    var expected: ReuseDecision
    var policy: CachePolicy

    init(
        _ response: [(String, String)],
        request: String? = nil,
        after: Int64,
        _ expected: ReuseDecision,
        policy: CachePolicy = CachePolicy()
    ) {
        self.response = response
        self.request = request
        self.after = after
        self.expected = expected
        self.policy = policy
    }

    var testDescription: String { "\(response.map { "\($0.0): \($0.1)" }) \(request ?? "") +\(after)" }
}

@Suite("Reuse")
struct LookupTests {
    static let fresh = [("Cache-Control", "max-age=60")]
    static func cc(_ value: String) -> [(String, String)] { [("Cache-Control", value)] }

    @Test(
        "RFC 9111 4.2: fresh while the age is below the lifetime",
        arguments: [
            ReuseCase(fresh, after: 0, .fresh(age: 0, ttl: 60)),
            ReuseCase(fresh, after: 59, .fresh(age: 59, ttl: 1)),
            ReuseCase(fresh, after: 60, .stale(age: 60, by: 0, reason: .expired)),
            ReuseCase(fresh, after: 61, .stale(age: 61, by: 1, reason: .expired)),
            ReuseCase(fresh + [("Age", "59")], after: 0, .fresh(age: 59, ttl: 1)),
            ReuseCase(fresh + [("Age", "60")], after: 0, .stale(age: 60, by: 0, reason: .expired)),
            ReuseCase([("ETag", "\"a\"")], after: 0, .stale(age: 0, by: 0, reason: .noFreshness)),
            ReuseCase(cc("max-age=x"), after: 0, .stale(age: 0, by: 0, reason: .invalidFreshness)),
            ReuseCase(cc("no-cache, max-age=60"), after: 1, .stale(age: 1, by: -59, reason: .noCache)),
            ReuseCase(cc("no-cache=\"x\", max-age=60"), after: 1, .fresh(age: 1, ttl: 59)),
            ReuseCase(
                cc("no-cache"),
                after: 1,
                .fresh(age: 1, ttl: 4),
                policy: CachePolicy(ttl: 5, overrideOrigin: true)
            ),
            ReuseCase(
                cc("no-cache"),
                after: 1,
                .stale(age: 1, by: -4, reason: .noCache),
                policy: CachePolicy(ttl: 5)
            ),
            ReuseCase(fresh, after: 0, .mismatch(.cacheOff), policy: CachePolicy(mode: .none)),
        ]
    )
    func freshness(example: ReuseCase) { check(example) }

    @Test(
        "RFC 9111 5.2.1: what a request's Cache-Control asks for",
        arguments: [
            ReuseCase(fresh, request: "no-cache", after: 1, .stale(age: 1, by: -59, reason: .requestNoCache)),
            ReuseCase(fresh, request: "max-age=0", after: 0, .stale(age: 0, by: -60, reason: .requestMaxAge)),
            ReuseCase(fresh, request: "max-age=1", after: 1, .fresh(age: 1, ttl: 59)),
            ReuseCase(fresh, request: "max-age=0", after: 1, .stale(age: 1, by: -59, reason: .requestMaxAge)),
            ReuseCase(fresh, request: "max-age=10", after: 10, .fresh(age: 10, ttl: 50)),
            ReuseCase(fresh, request: "max-age=10", after: 11, .stale(age: 11, by: -49, reason: .requestMaxAge)),
            ReuseCase(fresh, request: "max-age=x", after: 1, .stale(age: 1, by: -59, reason: .requestMaxAge)),
            ReuseCase(fresh, request: "min-fresh=50", after: 10, .fresh(age: 10, ttl: 50)),
            ReuseCase(fresh, request: "min-fresh=50", after: 11, .stale(age: 11, by: -49, reason: .requestMinFresh)),
            ReuseCase(fresh, request: "no-store", after: 1, .fresh(age: 1, ttl: 59)),
            ReuseCase(
                fresh,
                request: "max-stale",
                after: 90,
                .staleAllowed(age: 90, staleness: 30, allowance: .maxStale)
            ),
            ReuseCase(
                fresh,
                request: "max-stale=30",
                after: 90,
                .staleAllowed(age: 90, staleness: 30, allowance: .maxStale)
            ),
            ReuseCase(fresh, request: "max-stale=30", after: 91, .stale(age: 91, by: 31, reason: .expired)),
            ReuseCase(fresh, request: "max-stale, min-fresh=1", after: 90, .stale(age: 90, by: 30, reason: .expired)),
            ReuseCase(
                fresh,
                request: "max-stale, max-age=100",
                after: 100,
                .staleAllowed(age: 100, staleness: 40, allowance: .maxStale)
            ),
            ReuseCase(
                fresh,
                request: "max-stale, max-age=100",
                after: 101,
                .stale(age: 101, by: 41, reason: .requestMaxAge)
            ),
            ReuseCase(
                cc("max-age=x"),
                request: "max-stale",
                after: 1,
                .stale(age: 1, by: 1, reason: .invalidFreshness)
            ),
            ReuseCase(fresh, request: "only-if-cached", after: 1, .fresh(age: 1, ttl: 59)),
            ReuseCase(fresh, request: "only-if-cached", after: 60, .onlyIfCachedMiss(.expired)),
            ReuseCase(fresh, request: "only-if-cached, no-cache", after: 1, .onlyIfCachedMiss(.requestNoCache)),
            ReuseCase(
                fresh,
                request: "only-if-cached, max-stale",
                after: 61,
                .staleAllowed(age: 61, staleness: 1, allowance: .maxStale)
            ),
        ]
    )
    func requestDirectives(example: ReuseCase) { check(example) }

    @Test(
        "RFC 8246 2.1: what is immutable is checked for no-cache only, while it is fresh",
        arguments: [
            ReuseCase(cc("max-age=60, immutable"), request: "max-age=0", after: 59, .fresh(age: 59, ttl: 1)),
            ReuseCase(cc("max-age=60, immutable"), request: "max-age=5", after: 6, .fresh(age: 6, ttl: 54)),
            ReuseCase(
                cc("max-age=60, immutable"),
                request: "max-age=0",
                after: 60,
                .stale(age: 60, by: 0, reason: .requestMaxAge)
            ),
            ReuseCase(cc("max-age=60, immutable"), after: 60, .stale(age: 60, by: 0, reason: .expired)),
            ReuseCase(
                cc("max-age=60, immutable"),
                request: "no-cache",
                after: 1,
                .stale(age: 1, by: -59, reason: .requestNoCache)
            ),
            ReuseCase(
                cc("max-age=60, immutable, no-cache"),
                request: "max-age=0",
                after: 1,
                .stale(age: 1, by: -59, reason: .noCache)
            ),
            ReuseCase(
                cc("max-age=60"),
                request: "max-age=0, immutable",
                after: 1,
                .stale(age: 1, by: -59, reason: .requestMaxAge)
            ),
        ]
    )
    func immutable(example: ReuseCase) { check(example) }

    @Test("RFC 9111 5.4: Pragma: no-cache counts without Cache-Control, and says so")
    func pragma() {
        func decision(_ fields: [(String, String)]) -> ReuseDecision {
            Caching.lookup(
                request: request(.get, fields),
                stored: stored(Self.fresh),
                policy: CachePolicy(),
                now: arrival + 1
            )
        }
        let pragma = [("Pragma", "no-cache")]
        #expect(decision(pragma) == .stale(age: 1, by: -59, reason: .requestPragma))
        #expect(decision(pragma + Self.cc("max-age=60")) == .fresh(age: 1, ttl: 59))
        #expect(decision(pragma + Self.cc("no-cache")) == .stale(age: 1, by: -59, reason: .requestNoCache))
    }

    @Test(
        "RFC 9111 4.2.4: must-revalidate, proxy-revalidate, s-maxage and no-cache forbid stale answers",
        arguments: [
            "max-age=60, must-revalidate", "max-age=60, proxy-revalidate", "s-maxage=60", "max-age=60, s-maxage=60",
        ]
    )
    func prohibitions(directives: String) {
        let stale = ReuseDecision.stale(age: 70, by: 10, reason: .expired)
        check(ReuseCase(Self.cc(directives), request: "max-stale", after: 70, stale))
        check(ReuseCase(Self.cc(directives + ", stale-while-revalidate=60"), after: 70, stale))
    }

    @Test(
        "RFC 5861 3: stale-while-revalidate answers at once up to its bound, unless the request forbids it",
        arguments: [
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                after: 60,
                .staleAllowed(age: 60, staleness: 0, allowance: .whileRevalidate)
            ),
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                after: 70,
                .staleAllowed(age: 70, staleness: 10, allowance: .whileRevalidate)
            ),
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                after: 71,
                .stale(age: 71, by: 11, reason: .expired)
            ),
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                request: "max-age=100",
                after: 61,
                .stale(age: 61, by: 1, reason: .expired)
            ),
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                request: "no-cache",
                after: 61,
                .stale(age: 61, by: 1, reason: .requestNoCache)
            ),
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                request: "min-fresh=0",
                after: 61,
                .stale(age: 61, by: 1, reason: .expired)
            ),
            // RFC 9111 section 5.2.1.7: it answers, and nobody is asked behind the answer.
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                request: "only-if-cached",
                after: 70,
                .staleAllowed(age: 70, staleness: 10, allowance: .unrefreshed)
            ),
            ReuseCase(
                cc("max-age=60, stale-while-revalidate=10"),
                request: "only-if-cached",
                after: 71,
                .onlyIfCachedMiss(.expired)
            ),
        ]
    )
    func staleWhileRevalidate(example: ReuseCase) { check(example) }

    @Test(
        "The configured stale-while-revalidate holds where the response has none of its own; prohibitions hold, too",
        arguments: [
            ("max-age=60", 60, 10, .staleAllowed(age: 60, staleness: 0, allowance: .whileRevalidate)),
            // RFC 5861 section 3: a bound of 0, or one that cannot be read, is none, also at the very moment of expiry.
            ("max-age=60, stale-while-revalidate=0", 60, 10, .stale(age: 60, by: 0, reason: .expired)),
            ("max-age=60, stale-while-revalidate=ever", 60, 10, .stale(age: 60, by: 0, reason: .expired)),
            (
                "max-age=60, stale-while-revalidate=1", 60, 0,
                .staleAllowed(age: 60, staleness: 0, allowance: .whileRevalidate)
            ),
            ("max-age=60", 70, 10, .staleAllowed(age: 70, staleness: 10, allowance: .whileRevalidate)),
            ("max-age=60", 71, 10, .stale(age: 71, by: 11, reason: .expired)),
            ("max-age=60", 60, 0, .stale(age: 60, by: 0, reason: .expired)),
            ("max-age=60, stale-while-revalidate=5", 66, 10, .stale(age: 66, by: 6, reason: .expired)),
            ("max-age=60, must-revalidate", 61, 10, .stale(age: 61, by: 1, reason: .expired)),
            ("s-maxage=60", 61, 10, .stale(age: 61, by: 1, reason: .expired)),
            ("max-age=x", 1, 10, .stale(age: 1, by: 1, reason: .invalidFreshness)),
        ] as [(String, Int64, Int64, ReuseDecision)]
    )
    func configuredStaleWhileRevalidate(directives: String, after: Int64, configured: Int64, expected: ReuseDecision) {
        let policy = CachePolicy(staleWhileRevalidate: configured)
        check(ReuseCase(Self.cc(directives), after: after, expected, policy: policy))
    }

    @Test(
        "RFC 9111 4.2.4: offline, what the request selects answers whatever its age and whatever asks for a check",
        arguments: [
            (fresh, nil, 59, .fresh(age: 59, ttl: 1)),
            (fresh, nil, 60, .staleAllowed(age: 60, staleness: 0, allowance: .offline)),
            (fresh, nil, 1 << 40, .staleAllowed(age: 1 << 31, staleness: (1 << 31) - 60, allowance: .offline)),
            (fresh, "no-cache", 1, .staleAllowed(age: 1, staleness: -59, allowance: .offline)),
            (fresh, "max-age=0", 1, .staleAllowed(age: 1, staleness: -59, allowance: .offline)),
            (fresh, "only-if-cached", 61, .staleAllowed(age: 61, staleness: 1, allowance: .offline)),
            (fresh, "max-stale", 61, .staleAllowed(age: 61, staleness: 1, allowance: .offline)),
            (cc("max-age=60, must-revalidate"), nil, 61, .staleAllowed(age: 61, staleness: 1, allowance: .offline)),
            (cc("no-cache"), nil, 1, .staleAllowed(age: 1, staleness: 1, allowance: .offline)),
            ([("ETag", "\"a\"")], nil, 1, .staleAllowed(age: 1, staleness: 1, allowance: .offline)),
            (fresh + [("Vary", "Cache-Control")], "max-age=1", 1, .mismatch(.vary)),
        ] as [([(String, String)], String?, Int64, ReuseDecision)]
    )
    func offline(response: [(String, String)], wish: String?, after: Int64, expected: ReuseDecision) {
        let decision = Caching.lookup(
            request: request(.get, wish.map { [("Cache-Control", $0)] } ?? []),
            stored: stored(response),
            policy: CachePolicy(),
            now: arrival + after,
            isOffline: true
        )
        #expect(decision == expected)
    }

    @Test("RFC 9111 4.3.2: a precondition that does not hold is the origin's, whatever else would allow the answer")
    func preconditions() {
        func decision(_ tag: String, _ wish: String, after: Int64, isOffline: Bool = false) -> ReuseDecision {
            Caching.lookup(
                request: request(.get, [("If-Match", tag), ("Cache-Control", wish)]),
                stored: stored([("Cache-Control", "max-age=60, stale-while-revalidate=60"), ("ETag", "\"b\"")]),
                policy: CachePolicy(),
                now: arrival + after,
                isOffline: isOffline
            )
        }
        for (after, wish) in [(1, "x"), (61, "x"), (61, "max-stale"), (1, "no-cache")] as [(Int64, String)] {
            let asks = ReuseDecision.stale(age: after, by: after - 60, reason: .requestPrecondition)
            #expect(decision("\"a\"", wish, after: after) == asks)
            #expect(decision("\"a\"", wish, after: after, isOffline: true) == asks)
        }
        #expect(decision("\"a\"", "only-if-cached", after: 61) == .onlyIfCachedMiss(.requestPrecondition))
        #expect(decision("\"b\"", "x", after: 61) == .staleAllowed(age: 61, staleness: 1, allowance: .whileRevalidate))
        #expect(decision("\"b\"", "x", after: 1, isOffline: true) == .fresh(age: 1, ttl: 59))
    }

    @Test("RFC 9111 3.5: offline, another user's authorized answer is still none")
    func offlineAuthorized() {
        let head = stored(Self.fresh, for: request(.get, [("Authorization", "Basic eA==")]))
        let decision = Caching.lookup(
            request: request(),
            stored: head,
            policy: CachePolicy(),
            now: arrival,
            isOffline: true
        )
        #expect(decision == .mismatch(.authorization))
    }

    @Test("RFC 9111 4: GET and HEAD are answered from a stored GET, other methods are not")
    func methods() {
        func decision(_ method: HTTPWire.Method, _ head: StoredHead = stored(Self.fresh)) -> ReuseDecision {
            Caching.lookup(request: request(method), stored: head, policy: CachePolicy(), now: arrival)
        }
        #expect(decision(.get) == .fresh(age: 0, ttl: 60))
        #expect(decision(.head) == .fresh(age: 0, ttl: 60))
        #expect(decision(.post) == .mismatch(.method))
        #expect(decision(.other("GETS")) == .mismatch(.method))
        #expect(decision(.get, stored(Self.fresh, for: request(.post))) == .mismatch(.method))
    }

    @Test("RFC 9111 3.5: what an authorized request brought is not shared once nothing allows it any more")
    func authorized() {
        let asked = request(.get, [("Authorization", "Basic eA==")])
        func decision(_ directives: String, for request: RequestHead) -> ReuseDecision {
            Caching.lookup(
                request: HTTPCachingTests.request(),
                stored: stored(Self.cc(directives), for: request),
                policy: CachePolicy(),
                now: arrival
            )
        }
        #expect(decision("max-age=60", for: asked) == .mismatch(.authorization))
        #expect(decision("max-age=60, public", for: asked) == .fresh(age: 0, ttl: 60))
        #expect(decision("max-age=60", for: request()) == .fresh(age: 0, ttl: 60))
    }

    @Test("RFC 9211 2.2: each decision says why a request is forwarded")
    func forwarding() {
        #expect(ReuseDecision.stale(age: 9, by: 1, reason: .expired).forward == .stale)
        #expect(ReuseDecision.stale(age: 9, by: -1, reason: .requestNoCache).forward == .request)
        #expect(ReuseDecision.stale(age: 9, by: 1, reason: .requestNoCache).forward == .stale)
        #expect(ReuseDecision.stale(age: 9, by: -1, reason: .noCache).forward == .stale)
        #expect(ReuseDecision.stale(age: 9, by: -1, reason: .requestPragma).forward == .request)
        #expect(ReuseDecision.stale(age: 9, by: -1, reason: .requestPrecondition).forward == .request)
        #expect(ReuseDecision.mismatch(.vary).forward == .varyMiss)
        #expect(ReuseDecision.mismatch(.method).forward == .method)
        #expect(ReuseDecision.mismatch(.cacheOff).forward == .bypass)
        #expect(ReuseDecision.fresh(age: 0, ttl: 1).forward == nil)
    }

    @Test(
        "RFC 5861 4: after an error a stale response serves up to the smallest stale-if-error bound",
        arguments: [
            ("max-age=60", nil, 86400, .allowed(limit: 86400)), ("max-age=60", nil, 86401, .refused(.tooStale)),
            ("max-age=60, stale-if-error=10", nil, 10, .allowed(limit: 10)),
            ("max-age=60, stale-if-error=10", nil, 11, .refused(.tooStale)),
            ("max-age=60, stale-if-error=99999", nil, 86401, .refused(.tooStale)),
            ("max-age=60, stale-if-error=0", nil, 0, .refused(.tooStale)),
            ("max-age=60", "stale-if-error=5", 5, .allowed(limit: 5)),
            ("max-age=60", "stale-if-error=5", 6, .refused(.tooStale)),
            ("max-age=60", "no-cache", 1, .refused(.requestNoCache)),
            ("max-age=60", "max-age=0", 1, .allowed(limit: 86400)),
            ("max-age=60, must-revalidate", nil, 1, .refused(.mustRevalidate)),
            ("max-age=60, proxy-revalidate, stale-if-error=9", nil, 1, .refused(.proxyRevalidate)),
            ("s-maxage=60", nil, 1, .refused(.sMaxAge)), ("max-age=60, no-cache", nil, 1, .refused(.noCache)),
        ] as [(String, String?, Int64, StaleVerdict)]
    )
    func staleIfError(directives: String, wish: String?, staleness: Int64, expected: StaleVerdict) {
        let verdict = Caching.mayServeStale(
            stored: stored(Self.cc(directives)),
            policy: CachePolicy(),
            staleness: staleness,
            request: request(.get, wish.map { [("Cache-Control", $0)] } ?? [])
        )
        #expect(verdict == expected)
    }

    @Test("RFC 5861 4: a configured bound of 0 never serves stale; only answers from 500 on are replaced")
    func staleIfErrorBounds() {
        func verdict(_ bound: Int64, _ status: Int?) -> StaleVerdict {
            Caching.mayServeStale(
                stored: stored(Self.fresh),
                policy: CachePolicy(staleIfError: bound),
                staleness: 0,
                errorStatus: status
            )
        }
        #expect(verdict(0, nil) == .refused(.tooStale))
        #expect(verdict(1, nil) == .allowed(limit: 1))
        #expect(verdict(1, 499) == .refused(.status))
        #expect(verdict(1, 500) == .allowed(limit: 1))
        #expect(verdict(1, 599) == .allowed(limit: 1))
        // RFC 9110 section 15: a status beyond 599 means what a 5xx means.
        #expect(verdict(1, 600) == .allowed(limit: 1))
    }

    private func check(_ example: ReuseCase) {
        let decision = Caching.lookup(
            request: request(.get, example.request.map { [("Cache-Control", $0)] } ?? []),
            stored: stored(example.response, policy: example.policy),
            policy: example.policy,
            now: arrival + example.after
        )
        #expect(decision == example.expected)
    }
}
