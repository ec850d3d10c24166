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
            (CachePolicy(gone: .useStored), 404, true), (CachePolicy(gone: .useStored), 410, true),
            (CachePolicy(gone: .useStored), 403, false), (CachePolicy(gone: .remove), 404, false),
            (CachePolicy(mode: .library, gone: .useStored), 410, true),
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
        "what may still serve, so that no server error takes its place",
        arguments: [
            (standard, "max-age=60", 200, 59, true), (standard, "max-age=60, must-revalidate", 200, 59, true),
            (standard, "max-age=60, no-cache", 200, 59, false), (standard, "max-age=60", 503, 59, false),
            (standard, "max-age=60", 404, 59, true), (standard, "max-age=60", 200, 60, true),
            (standard, "max-age=60", 200, 60 + 86400, true), (standard, "max-age=60", 200, 60 + 86401, false),
            (standard, "max-age=60, stale-if-error=5", 200, 65, true),
            (standard, "max-age=60, stale-if-error=5", 200, 66, false),
            (standard, "max-age=60, must-revalidate", 200, 60, false), (standard, "s-maxage=60", 200, 60, false),
            (CachePolicy(staleIfError: 0), "max-age=60", 200, 60, false),
            (CachePolicy(staleIfError: 0), "max-age=60, stale-while-revalidate=5", 200, 65, true),
            (CachePolicy(staleIfError: 0), "max-age=60, stale-while-revalidate=5", 200, 66, false),
            (CachePolicy(staleIfError: 0, staleWhileRevalidate: 5), "max-age=60", 200, 65, true),
            (
                CachePolicy(staleIfError: 0, staleWhileRevalidate: 5), "max-age=60, stale-while-revalidate=0", 200, 60,
                false
            ),
            (library, "no-store, must-revalidate", 200, 100_000_000, true),
            // A clock that was set back: as stale as what has just expired.
            (standard, "max-age=60", 200, -1000, true), (standard, "max-age=60, must-revalidate", 200, -1000, false),
        ] as [(CachePolicy, String, Int, Int64, Bool)]
    )
    func stillServes(policy: CachePolicy, control: String, status: Int, after: Int64, expected: Bool) {
        let head = stored([("Cache-Control", control)], status: status, policy: policy)
        let now = arrival + after
        #expect(Caching.mayStillServe(head, errorStatus: 503, policy: policy, now: now) == expected)
    }

    @Test(
        "a time that is still to come: stale since no time, to be checked, and good for nothing but an origin that fails",
        arguments: [
            (nil, .stale(age: 0, by: 0, reason: .clockSetBack)),
            ("max-stale", .stale(age: 0, by: 0, reason: .clockSetBack)),
            ("max-stale=9", .stale(age: 0, by: 0, reason: .clockSetBack)),
            ("only-if-cached", .onlyIfCachedMiss(.clockSetBack)),
            ("no-cache", .stale(age: 0, by: 0, reason: .requestNoCache)),
        ] as [(String?, ReuseDecision)]
    )
    func clockSetBack(wish: String?, expected: ReuseDecision) {
        let fields = [("Cache-Control", "max-age=60, immutable, stale-while-revalidate=9")]
        let asked = request(.get, wish.map { [("Cache-Control", $0)] } ?? [])
        for policy in [Self.standard, CachePolicy(mode: .library, staleWhileRevalidate: 9)] {
            let head = stored(fields, policy: policy)
            #expect(Caching.lookup(request: asked, stored: head, policy: policy, now: arrival - 1) == expected)
            let now = Caching.lookup(request: request(), stored: head, policy: policy, now: arrival)
            #expect(now == .fresh(age: 0, ttl: policy.mode == .library ? CachePolicy.libraryTTL : 60))
            #expect(Caching.staleness(head, policy: policy, now: arrival - 1) == 0)
        }
        // What was shown to be stale does not become fresh again.
        var changed = stored(fields)
        changed.changedSince = arrival + 30
        for (now, by) in [(29, 0), (30, 0), (31, 1)] as [(Int64, Int64)] {
            #expect(Caching.staleness(changed, policy: Self.standard, now: arrival + now) == by)
        }
        #expect(Caching.freshnessLifetime(changed, policy: Self.standard) == Lifetime(seconds: 30, source: .head))
        #expect(StaleReason.clockSetBack.section == "RFC 9111 section 4.2.3")
    }

    @Test(
        "check_pause: what may stand in answers without another check, unless the request or the response asks for one",
        arguments: [
            ("max-age=60", nil, 70, nil, .staleAllowed(age: 70, staleness: 10, allowance: .checkPause)),
            ("max-age=60", nil, 59, nil, .fresh(age: 59, ttl: 1)),
            ("max-age=60", nil, 70, 503, .staleAllowed(age: 70, staleness: 10, allowance: .checkPause)),
            ("max-age=60", nil, 70, 404, .stale(age: 70, by: 10, reason: .expired)),
            ("max-age=60, must-revalidate", nil, 70, nil, .stale(age: 70, by: 10, reason: .expired)),
            ("no-cache", nil, 70, nil, .stale(age: 70, by: 70, reason: .noCache)),
            ("max-age=60", nil, 86461, nil, .stale(age: 86461, by: 86401, reason: .expired)),
            ("max-age=60", "no-cache", 70, nil, .stale(age: 70, by: 10, reason: .requestNoCache)),
            ("max-age=60", "max-age=0", 70, nil, .stale(age: 70, by: 10, reason: .requestMaxAge)),
            ("max-age=60", "min-fresh=1", 70, nil, .stale(age: 70, by: 10, reason: .expired)),
            (
                "max-age=60, stale-while-revalidate=30", nil, 70, nil,
                .staleAllowed(age: 70, staleness: 10, allowance: .checkPause)
            ),
            ("max-age=60", "only-if-cached", 70, nil, .staleAllowed(age: 70, staleness: 10, allowance: .checkPause)),
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
