// A private cache (RFC 9111 sections 3 and 5.2.2): what it stores and reuses that a shared one does not.

import HTTPWire
import Testing

@testable import HTTPCaching

/// What both kinds of cache make of one response.
struct PrivateCase: Sendable, CustomTestStringConvertible {
    var cacheControl: String
    var isAuthorized = false
    var shared: StoreDecision
    var `private`: StoreDecision

    var testDescription: String { "\(cacheControl)\(isAuthorized ? ", authorized" : "")" }
}

/// How long both kinds of cache take one response to be fresh.
struct PrivateLifetime: Sendable, CustomTestStringConvertible {
    var cacheControl: String
    var shared: Lifetime
    var `private`: Lifetime

    var testDescription: String { cacheControl }
}

@Suite("A private cache")
struct PrivateCacheTests {
    static let privatePolicy: CachePolicy = {
        var policy = CachePolicy()
        policy.isShared = false
        return policy
    }()

    private static let authorized = request(.get, [("Authorization", "Basic eA==")])

    @Test(
        "RFC 9111 3: what is stored",
        arguments: [
            PrivateCase(cacheControl: "max-age=60", shared: .store(.explicit), private: .store(.explicit)),
            PrivateCase(cacheControl: "private, max-age=60", shared: .refuse(.private), private: .store(.explicit)),
            PrivateCase(
                cacheControl: "private=\"etag\", max-age=60",
                shared: .refuse(.private),
                private: .store(.explicit)
            ),
            PrivateCase(cacheControl: "private, no-store", shared: .refuse(.noStore), private: .refuse(.noStore)),
            PrivateCase(
                cacheControl: "max-age=60",
                isAuthorized: true,
                shared: .refuse(.authorization),
                private: .store(.explicit)
            ),
            PrivateCase(
                cacheControl: "private, max-age=60",
                isAuthorized: true,
                shared: .refuse(.private),
                private: .store(.explicit)
            ),
            PrivateCase(
                cacheControl: "public, max-age=60",
                isAuthorized: true,
                shared: .store(.explicit),
                private: .store(.explicit)
            ),
            PrivateCase(
                cacheControl: "no-store",
                isAuthorized: true,
                shared: .refuse(.noStore),
                private: .refuse(.noStore)
            ),
            // Fresh for nobody here: s-maxage is for shared caches.
            PrivateCase(
                cacheControl: "s-maxage=60",
                shared: .store(.explicit),
                private: .refuse(.noFreshnessAndNoValidator)
            ),
        ]
    )
    func storing(_ example: PrivateCase) {
        for (policy, expected) in [(CachePolicy(), example.shared), (Self.privatePolicy, example.private)] {
            let decision = Caching.decideStore(
                request: example.isAuthorized ? Self.authorized : request(),
                response: response(200, [("Cache-Control", example.cacheControl)]),
                policy: policy,
                times: ResponseTimes(at: arrival)
            )
            #expect(decision == expected)
        }
    }

    @Test(
        "RFC 9111 4.2.1: freshness",
        arguments: [
            PrivateLifetime(
                cacheControl: "s-maxage=10, max-age=60",
                shared: Lifetime(seconds: 10, source: .sMaxAge),
                private: Lifetime(seconds: 60, source: .maxAge)
            ),
            PrivateLifetime(
                cacheControl: "s-maxage=x, max-age=60",
                shared: Lifetime(seconds: 0, source: .invalid),
                private: Lifetime(seconds: 60, source: .maxAge)
            ),
            PrivateLifetime(
                cacheControl: "s-maxage=10, max-age=x",
                shared: Lifetime(seconds: 0, source: .invalid),
                private: Lifetime(seconds: 0, source: .invalid)
            ),
        ]
    )
    func freshness(_ example: PrivateLifetime) {
        let head = stored([("Cache-Control", example.cacheControl)])
        #expect(Caching.freshnessLifetime(head, policy: CachePolicy()) == example.shared)
        #expect(Caching.freshnessLifetime(head, policy: Self.privatePolicy) == example.private)
    }

    @Test("RFC 9111 5.2.2.8 and 5.2.2.10: proxy-revalidate and s-maxage forbid nothing to it")
    func staleness() {
        var policy = Self.privatePolicy
        policy.staleWhileRevalidate = 100
        for control in ["max-age=10, proxy-revalidate", "max-age=10, s-maxage=10"] {
            let head = stored([("Cache-Control", control)])
            var shared = policy
            shared.isShared = true
            let now = arrival + 20
            #expect(
                Caching.lookup(request: request(), stored: head, policy: shared, now: now)
                    == .stale(age: 20, by: 10, reason: .expired)
            )
            #expect(
                Caching.lookup(request: request(), stored: head, policy: policy, now: now)
                    == .staleAllowed(age: 20, staleness: 10, allowance: .whileRevalidate)
            )
        }
        let strict = stored([("Cache-Control", "max-age=10, must-revalidate")])
        #expect(
            Caching.lookup(request: request(), stored: strict, policy: policy, now: arrival + 20)
                == .stale(age: 20, by: 10, reason: .expired)
        )
    }

    @Test("RFC 9111 3.5: the answer to a request with Authorization is used again, on the hot path, too")
    func reuse() {
        let head = stored([("Cache-Control", "max-age=60")], for: Self.authorized)
        #expect(
            Caching.lookup(request: Self.authorized, stored: head, policy: CachePolicy(), now: arrival)
                == .mismatch(.authorization)
        )
        #expect(
            Caching.lookup(request: Self.authorized, stored: head, policy: Self.privatePolicy, now: arrival)
                == .fresh(age: 0, ttl: 60)
        )
        #expect(Caching.hotPath(stored: head, policy: CachePolicy()) == nil)
        #expect(Caching.hotPath(stored: head, policy: Self.privatePolicy)?.freshFor == 60)
    }

    @Test("RFC 9111 5.2.2.7: the fields that private names are stored with the others")
    func namedFields() {
        let fields = [("Cache-Control", "max-age=60, private=\"x-user\""), ("X-User", "anna")]
        #expect(stored(fields).fields.first("X-User") == nil)
        #expect(stored(fields, policy: Self.privatePolicy).fields.first("X-User") == "anna")
    }

    @Test("RFC 4231: a digest under a key")
    func keyedDigest() {
        let jefe = ContentDigest.keyed(Array("what do ya want for nothing?".utf8), by: Array("Jefe".utf8))
        #expect(jefe == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let long = ContentDigest.keyed(
            Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            by: [UInt8](repeating: 0xAA, count: 131)
        )
        #expect(long == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }
}
