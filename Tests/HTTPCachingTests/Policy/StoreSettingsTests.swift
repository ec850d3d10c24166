// set_cookie, cookies and min_length: what the configuration keeps out of the store, in either mode.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Store settings")
struct StoreSettingsTests {
    static let cookie = [("Set-Cookie", "id=1")]
    static let explicit = [("Set-Cookie", "id=1"), ("Cache-Control", "max-age=60")]

    @Test(
        "set_cookie: strict, explicit, strip, skip",
        arguments: [
            (.strict, cookie, .refuse(.setCookieHeuristic)), (.strict, explicit, .store(.explicit)),
            (.strict, [], .store(.ttl)), (.explicit, cookie, .refuse(.setCookieHeuristic)),
            (.explicit, explicit, .store(.explicit)),
            (.strip, cookie, .store(.ttl)), (.strip, explicit, .store(.explicit)),
            (.skip, cookie, .refuse(.setCookie)), (.skip, explicit, .refuse(.setCookie)),
            (.skip, [], .store(.ttl)),
        ] as [(SetCookiePolicy, [(String, String)], StoreDecision)]
    )
    func setCookie(rule: SetCookiePolicy, fields: [(String, String)], expected: StoreDecision) {
        let policy = CachePolicy(ttl: 60, setCookie: rule)
        #expect(
            Caching.decideStore(
                request: request(),
                response: response(200, fields),
                policy: policy,
                times: ResponseTimes(at: arrival)
            )
                == expected
        )
        let keeps = (rule == .explicit || rule == .skip) && !fields.isEmpty
        #expect(stored(fields, policy: policy).fields.contains(.setCookie) == keeps)
    }

    @Test(
        "set_cookie: strict keeps the cookie where public or s-maxage says that it is for all",
        arguments: [
            ("max-age=60", false), ("max-age=60, public", true), ("s-maxage=60", true), ("max-age=60, public=x", false),
            ("max-age=60, s-maxage=x", false), ("max-age=60, must-revalidate", false), ("s-maxage=0", true),
            ("public, max-age=60, private=\"set-cookie\"", false),
        ]
    )
    func strictly(control: String, isKept: Bool) {
        let head = stored([("Set-Cookie", "id=1"), ("Set-Cookie", "b=2"), ("Cache-Control", control)])
        #expect(head.fields.all(.setCookie) == (isKept ? ["id=1", "b=2"] : []))
        // It is for nobody who waited, whatever is stored of it, and what was stored before answers
        // as it would be stored now.
        let fields = Fields([("Set-Cookie", "id=1"), ("Cache-Control", "public")])
        for rule in SetCookiePolicy.allCases {
            #expect(!Caching.shared(fields, policy: CachePolicy(setCookie: rule)).contains(.setCookie))
        }
        var before = head
        before.fields.set(.setCookie, "id=0")
        let isUsable = isKept || control.contains("private")
        #expect(Caching.usable(before, policy: CachePolicy()).fields.contains(.setCookie) == isUsable)
        #expect(!Caching.usable(before, policy: CachePolicy(setCookie: .skip)).fields.contains(.setCookie))
    }

    static let modified = [("Last-Modified", date(-1000))]

    @Test(
        "cookies: explicit, any, never",
        arguments: [
            (.explicit, [("Cache-Control", "max-age=60")], .store(.explicit)),
            (.explicit, [("Expires", date(60))], .store(.explicit)),
            (.explicit, [("Cache-Control", "max-age=0"), ("ETag", "\"a\"")], .store(.validator)),
            (.explicit, [], .refuse(.requestCookie)), (.explicit, modified, .refuse(.requestCookie)),
            (.explicit, [("Cache-Control", "public")], .refuse(.requestCookie)),
            (.explicit, [("Cache-Control", "no-cache"), ("ETag", "\"a\"")], .refuse(.requestCookie)),
            (.explicit, [("Cache-Control", "max-age=x"), ("ETag", "\"a\"")], .refuse(.requestCookie)),
            (.explicit, [("Cache-Control", "no-store")], .refuse(.noStore)),
            (.any, [], .store(.ttl)), (.any, [("Cache-Control", "max-age=60")], .store(.explicit)),
            (.never, [], .refuse(.requestCookie)),
            (.never, [("Cache-Control", "public, max-age=60")], .refuse(.requestCookie)),
        ] as [(CookiePolicy, [(String, String)], StoreDecision)]
    )
    func cookies(rule: CookiePolicy, fields: [(String, String)], expected: StoreDecision) {
        let asked = request(.get, [("Cookie", "id=1")])
        for mode in [CacheMode.standard, .library] {
            let policy = CachePolicy(mode: mode, ttl: 60, cookies: rule)
            let found = Caching.decideStore(
                request: asked,
                response: response(200, fields),
                policy: policy,
                times: ResponseTimes(at: arrival)
            )
            switch (expected, mode) {
            case (.store, .library): #expect(found == .store(.library))
            default: #expect(found == expected)
            }
            // Without a cookie the key changes nothing.
            let other = Caching.decideStore(
                request: request(),
                response: response(200, fields),
                policy: policy,
                times: ResponseTimes(at: arrival)
            )
            #expect(other != .refuse(.requestCookie))
            // The same holds for what a check brings.
            let head = stored(fields, policy: policy)
            let isStored = if case .store = expected { true } else { false }
            #expect(Caching.mayShareUpdate(head, request: asked, policy: policy) == isStored)
        }
        #expect(StoreRefusal.requestCookie.section == "configuration, cache.cookies")
    }

    @Test(
        "a cookie that comes with a check is for one client, unless cookies are stored",
        arguments: [(.strict, nil), (.explicit, "id=2"), (.strip, nil), (.skip, "id=1")] as [(SetCookiePolicy, String?)]
    )
    func cookieOfACheck(rule: SetCookiePolicy, expected: String?) {
        let policy = CachePolicy(setCookie: rule)
        let head = Caching.freshened(
            stored: stored(Self.explicit, policy: CachePolicy(setCookie: .explicit)),
            by: response(304, [("Set-Cookie", "id=2"), ("Cache-Control", "max-age=60")]),
            times: ResponseTimes(at: arrival + 60),
            request: request(),
            policy: policy
        )
        #expect(head.fields.first(.setCookie) == expected)
        // What was stored with a cookie before cookies were to be skipped goes at its next check.
        #expect((Caching.decideKeep(head, policy: policy) == .refuse(.setCookie)) == (rule == .skip))
    }

    @Test(
        "min_length: a 200 or 203 that is declared shorter is not stored; what is not declared is measured at its end",
        arguments: [
            (200, "99", 100, true), (200, "100", 100, false), (200, "0", 1, true), (200, "0", 0, false),
            (200, nil, 100, false), (203, "5", 100, true), (204, nil, 100, false), (301, "5", 100, false),
        ] as [(Int, String?, Int64, Bool)]
    )
    func minLength(status: Int, length: String?, least: Int64, isRefused: Bool) {
        let fields = [("Cache-Control", "max-age=60")] + (length.map { [("Content-Length", $0)] } ?? [])
        let policy = CachePolicy(minLength: least)
        let decision = Caching.decideStore(
            request: request(),
            response: response(status, fields),
            policy: policy,
            times: ResponseTimes(at: arrival)
        )
        #expect(decision == (isRefused ? .refuse(.tooShort) : .store(.explicit)))
        #expect(policy.isTooShort(99, status: 200) == (least >= 100))
        #expect(StoreRefusal.tooShort.section == "configuration, cache.min_length")
        #expect(StoreRefusal.setCookie.section == "configuration, cache.set_cookie")
    }
}
