// set_cookie and min_length: what the configuration keeps out of the store, in either mode.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Store settings")
struct StoreSettingsTests {
    static let cookie = [("Set-Cookie", "id=1")]
    static let explicit = [("Set-Cookie", "id=1"), ("Cache-Control", "max-age=60")]

    @Test(
        "set_cookie: explicit, strip, skip",
        arguments: [
            (.explicit, cookie, .refuse(.setCookieHeuristic)), (.explicit, explicit, .store(.explicit)),
            (.strip, cookie, .store(.ttl)), (.strip, explicit, .store(.explicit)),
            (.skip, cookie, .refuse(.setCookie)), (.skip, explicit, .refuse(.setCookie)),
            (.skip, [], .store(.ttl)),
        ] as [(SetCookiePolicy, [(String, String)], StoreDecision)]
    )
    func setCookie(rule: SetCookiePolicy, fields: [(String, String)], expected: StoreDecision) {
        let policy = CachePolicy(ttl: 60, setCookie: rule)
        #expect(
            Caching.decideStore(request: request(), response: response(200, fields), policy: policy, now: arrival)
                == expected
        )
        #expect(stored(fields, policy: policy).fields.contains(.setCookie) == (rule != .strip && !fields.isEmpty))
    }

    @Test(
        "a cookie that comes with a check is for one client, unless cookies are stored",
        arguments: [(.explicit, "id=2"), (.strip, nil), (.skip, "id=1")] as [(SetCookiePolicy, String?)]
    )
    func cookieOfACheck(rule: SetCookiePolicy, expected: String?) {
        let policy = CachePolicy(setCookie: rule)
        let head = Caching.freshened(
            stored: stored(Self.explicit),
            by: response(304, [("Set-Cookie", "id=2"), ("Cache-Control", "max-age=60")]),
            requestTime: arrival + 60,
            responseTime: arrival + 60,
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
            now: arrival
        )
        #expect(decision == (isRefused ? .refuse(.tooShort) : .store(.explicit)))
        #expect(policy.isTooShort(99, status: 200) == (least >= 100))
        #expect(StoreRefusal.tooShort.section == "configuration, cache.min_length")
        #expect(StoreRefusal.setCookie.section == "configuration, cache.set_cookie")
    }
}
