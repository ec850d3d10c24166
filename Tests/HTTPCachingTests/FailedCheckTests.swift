// What a failed check leaves: which answers count as failures, and for how long nobody asks again.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Failed checks")
struct FailedCheckTests {
    static let standard = CachePolicy()
    static let library = CachePolicy(mode: .library)

    @Test(
        "which answers are failures that a stale response may stand in for",
        arguments: [
            (standard, nil, true), (standard, 500, true), (standard, 599, true), (standard, 429, false),
            (standard, 404, false), (standard, 410, false), (standard, 302, false), (library, nil, true),
            (library, 503, true), (library, 429, true), (library, 401, true), (library, 404, false),
            (library, 410, false), (library, 302, false), (library, 200, false),
            (CachePolicy(gone: .serveStale), 404, true), (CachePolicy(gone: .serveStale), 410, true),
            (CachePolicy(gone: .serveStale), 403, false), (CachePolicy(gone: .evict), 404, false),
            (CachePolicy(mode: .library, gone: .serveStale), 410, true),
        ] as [(CachePolicy, Int?, Bool)]
    )
    func failures(policy: CachePolicy, status: Int?, isAllowed: Bool) {
        let head = stored([("Cache-Control", "max-age=60")], policy: policy)
        let verdict = Caching.mayServeStale(stored: head, policy: policy, staleness: 10, errorStatus: status)
        #expect(verdict.isAllowed == isAllowed, "\(verdict)")
        if !isAllowed { #expect(verdict == .refused(.status)) }
    }

    @Test(
        "the bound: a day unless configured, in library mode none; the origin's directives do not count there",
        arguments: [
            (standard, "max-age=60", 86400, true), (standard, "max-age=60", 86401, false),
            (standard, "max-age=60, must-revalidate", 1, false), (standard, "max-age=60, stale-if-error=5", 6, false),
            (library, "max-age=60", 10_000_000, true), (library, "must-revalidate, no-cache", 10, true),
            (library, "stale-if-error=5", 6, true),
            (CachePolicy(mode: .library, staleIfError: 60), "max-age=60", 61, false),
            (CachePolicy(mode: .library, staleIfError: 0), "max-age=60", 0, false),
        ] as [(CachePolicy, String, Int64, Bool)]
    )
    func bounds(policy: CachePolicy, control: String, staleness: Int64, isAllowed: Bool) {
        let head = stored([("Cache-Control", control)], policy: policy)
        #expect(Caching.mayServeStale(stored: head, policy: policy, staleness: staleness).isAllowed == isAllowed)
    }

    @Test(
        "check_pause: what may stand in answers without another check, unless the request or the response asks for one",
        arguments: [
            ("max-age=60", nil, 70, nil, .staleAllowed(age: 70, by: 10, allowance: .checkPause)),
            ("max-age=60", nil, 59, nil, .fresh(age: 59, ttl: 1)),
            ("max-age=60", nil, 70, 503, .staleAllowed(age: 70, by: 10, allowance: .checkPause)),
            ("max-age=60", nil, 70, 404, .stale(age: 70, by: 10, reason: .expired)),
            ("max-age=60, must-revalidate", nil, 70, nil, .stale(age: 70, by: 10, reason: .expired)),
            ("no-cache", nil, 70, nil, .stale(age: 70, by: 70, reason: .noCache)),
            ("max-age=60", nil, 86461, nil, .stale(age: 86461, by: 86401, reason: .expired)),
            ("max-age=60", "no-cache", 70, nil, .stale(age: 70, by: 10, reason: .requestNoCache)),
            ("max-age=60", "max-age=0", 70, nil, .stale(age: 70, by: 10, reason: .requestMaxAge)),
            ("max-age=60", "min-fresh=1", 70, nil, .stale(age: 70, by: 10, reason: .expired)),
            (
                "max-age=60, stale-while-revalidate=30", nil, 70, nil,
                .staleAllowed(age: 70, by: 10, allowance: .checkPause)
            ),
            ("max-age=60", "only-if-cached", 70, nil, .staleAllowed(age: 70, by: 10, allowance: .checkPause)),
        ] as [(String, String?, Int64, Int?, ReuseDecision)]
    )
    func pause(control: String, wish: String?, after: Int64, status: Int?, expected: ReuseDecision) {
        let decision = Caching.lookup(
            request: request(.get, wish.map { [("Cache-Control", $0)] } ?? []),
            stored: stored([("Cache-Control", control)]),
            policy: CachePolicy(),
            now: arrival + after,
            failedCheck: FailedCheck(errorStatus: status)
        )
        #expect(decision == expected)
        #expect(StaleAllowance.checkPause.section == "configuration, cache.check_pause")
    }
}
