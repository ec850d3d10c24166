// Age and freshness lifetime (RFC 9111 section 4.2), both sides of every boundary.

import HTTPWire
import Testing

@testable import HTTPCaching

/// Response fields, and the lifetime they give under a policy.
struct LifetimeCase: Sendable, CustomTestStringConvertible {
    var fields: [(String, String)]
    var seconds: Int64
    var source: FreshnessSource
    var status: Int
    var policy: CachePolicy

    init(
        _ fields: [(String, String)],
        _ seconds: Int64,
        _ source: FreshnessSource,
        status: Int = 200,
        policy: CachePolicy = CachePolicy()
    ) {
        self.fields = fields
        self.seconds = seconds
        self.source = source
        self.status = status
        self.policy = policy
    }

    var testDescription: String { "\(status) \(fields.map { "\($0.0): \($0.1)" })" }
}

@Suite("Freshness")
struct FreshnessTests {
    @Test(
        "RFC 9111 4.2.1: s-maxage over max-age over Expires minus Date; what does not parse is stale",
        arguments: [
            LifetimeCase([], 0, .none),
            LifetimeCase([("Cache-Control", "max-age=60, s-maxage=30"), ("Expires", date(90))], 30, .sMaxAge),
            LifetimeCase([("Cache-Control", "max-age=60"), ("Expires", date(-90))], 60, .maxAge),
            LifetimeCase([("Cache-Control", "max-age=0"), ("Expires", date(90))], 0, .maxAge),
            LifetimeCase([("Cache-Control", "public"), ("Expires", date(90))], 90, .expires),
            LifetimeCase([("Expires", date(90)), ("Date", date(-10))], 100, .expires),
            LifetimeCase([("Expires", date(0))], 0, .expires),
            LifetimeCase([("Expires", date(1))], 1, .expires),
            LifetimeCase([("Expires", date(-1))], 0, .expires),
            LifetimeCase([("Expires", date(90)), ("Date", "yesterday")], 90, .expires),
            LifetimeCase([("Expires", date(90)), ("Expires", date(30))], 30, .expires),
            LifetimeCase([("Expires", date(90)), ("Expires", "0")], 0, .invalid),
            LifetimeCase([("Expires", "0")], 0, .invalid),
            LifetimeCase([("Expires", "")], 0, .invalid),
            LifetimeCase([("Expires", "Fri, 13 Feb 2009 23:32:30 GMT")], 60, .expires),
            LifetimeCase([("Expires", "fri, 13 feb 2009 23:32:30 gmt")], 60, .expires),
            LifetimeCase([("Expires", "Fri, 13 Feb 2009 23:32:30 UTC")], 0, .invalid),
            LifetimeCase([("Expires", "Fri, 13 Feb 2009 23:32:30 EST")], 0, .invalid),
            LifetimeCase([("Expires", "Fri, 13 Feb 2009 23:32:30")], 0, .invalid),
            LifetimeCase([("Expires", "Friday, 13-Feb-09 23:32:30 GMT")], 60, .expires),
            LifetimeCase([("Expires", "Friday, 13-Feb-09 23:32:30 utc")], 0, .invalid),
            LifetimeCase([("Expires", "Fri Feb 13 23:32:30 2009")], 60, .expires),
            LifetimeCase([("Expires", "Thu, 18 Aug 2050 2:01:18 GMT")], 0, .invalid),
            LifetimeCase([("Expires", "Thu, 31 Dec 9999 23:59:59 GMT")], 1 << 31, .expires),
            LifetimeCase([("Cache-Control", "max-age=x"), ("Expires", date(90))], 0, .invalid),
            LifetimeCase([("Cache-Control", "max-age=60, s-maxage=x")], 0, .invalid),
            LifetimeCase([("Cache-Control", "max-age=60, s-maxage=0")], 0, .sMaxAge),
        ]
    )
    func explicit(example: LifetimeCase) { check(example) }

    @Test(
        "RFC 9213 2.2: a targeted field replaces Cache-Control and Expires wholly",
        arguments: [
            LifetimeCase(
                [("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "s-maxage=1, no-store")],
                60,
                .targeted
            ),
            LifetimeCase([("CDN-Cache-Control", "max-age=0"), ("Expires", date(90))], 0, .targeted),
            LifetimeCase([("CDN-Cache-Control", "must-revalidate"), ("Cache-Control", "max-age=1")], 0, .none),
            LifetimeCase([("CDN-Cache-Control", "foo"), ("Expires", date(90))], 0, .none),
            LifetimeCase([("CDN-Cache-Control", "\"x\""), ("Expires", date(90))], 90, .expires),
            LifetimeCase([("CDN-Cache-Control", "max-age=-1"), ("Cache-Control", "max-age=9")], 0, .invalid),
            LifetimeCase(
                [("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "max-age=1")],
                1,
                .maxAge,
                policy: CachePolicy(targetedFields: [])
            ),
        ]
    )
    func targeted(example: LifetimeCase) { check(example) }

    @Test(
        "RFC 9111 4.2.2: a tenth of Date minus Last-Modified, at most a day, where nothing is explicit",
        arguments: [
            LifetimeCase([("Last-Modified", date(-1000))], 100, .heuristic),
            LifetimeCase([("Last-Modified", date(-10))], 1, .heuristic),
            LifetimeCase([("Last-Modified", date(-9))], 0, .none),
            LifetimeCase([("Last-Modified", date(0))], 0, .none),
            LifetimeCase([("Last-Modified", date(1000))], 0, .none),
            LifetimeCase([("Last-Modified", "long ago")], 0, .none),
            LifetimeCase([("Last-Modified", date(-864_000))], 86400, .heuristic),
            LifetimeCase([("Last-Modified", date(-864_010))], 86400, .heuristic),
            LifetimeCase([("Last-Modified", date(-863_990))], 86399, .heuristic),
            LifetimeCase([("Last-Modified", date(-1000)), ("Date", date(-500))], 50, .heuristic),
            LifetimeCase([("Last-Modified", date(-1000)), ("Cache-Control", "max-age=0")], 0, .maxAge),
            LifetimeCase([("Last-Modified", date(-1000)), ("Cache-Control", "max-age=x")], 0, .invalid),
            LifetimeCase([("Last-Modified", date(-1000)), ("Expires", "0")], 0, .invalid),
        ]
    )
    func heuristic(example: LifetimeCase) { check(example) }

    @Test("RFC 9110 15.1: only these statuses are heuristically cacheable, others with public")
    func heuristicStatuses() {
        for status in 200...599 {
            let isCacheable = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
            let plain = stored([("Last-Modified", date(-1000))], status: status)
            let open = stored([("Last-Modified", date(-1000)), ("Cache-Control", "public")], status: status)
            #expect((lifetime(plain).source == .heuristic) == isCacheable, "status \(status)")
            #expect(lifetime(open).source == .heuristic, "status \(status)")
        }
    }

    @Test("cache.ttl is for what there is, and no error sticks by it")
    func statusesOfTheConfiguredTTL() {
        let policy = CachePolicy(ttl: 7)
        let given = (100...599).filter { Caching.freshnessLifetime(stored([], status: $0), policy: policy).seconds > 0 }
        #expect(given == [200, 203, 204, 301, 308])
    }

    @Test(
        "The configured ttl gives freshness to responses that bring none; override_origin makes it win",
        arguments: [
            LifetimeCase([], 7, .ttl, policy: CachePolicy(ttl: 7)),
            LifetimeCase([("Last-Modified", date(-1000))], 7, .ttl, policy: CachePolicy(ttl: 7)),
            LifetimeCase([("Cache-Control", "max-age=60")], 60, .maxAge, policy: CachePolicy(ttl: 7)),
            LifetimeCase([("Expires", "0")], 0, .invalid, policy: CachePolicy(ttl: 7)),
            LifetimeCase([], 0, .none, status: 302, policy: CachePolicy(ttl: 7)),
            LifetimeCase([], 0, .none, status: 500, policy: CachePolicy(ttl: 7)),
            LifetimeCase([], 0, .none, status: 404, policy: CachePolicy(ttl: 7)),
            LifetimeCase([("Cache-Control", "max-age=60")], 60, .maxAge, status: 404, policy: CachePolicy(ttl: 7)),
            LifetimeCase(
                [("Cache-Control", "max-age=60")],
                60,
                .maxAge,
                status: 404,
                policy: CachePolicy(ttl: 7, overrideOrigin: true)
            ),
            LifetimeCase([], 3, .ttlByStatus, status: 404, policy: CachePolicy(ttl: 7, ttlByStatus: [404: 3])),
            LifetimeCase([], 3, .ttlByStatus, status: 302, policy: CachePolicy(ttlByStatus: [302: 3])),
            LifetimeCase([], 0, .ttlByStatus, status: 404, policy: CachePolicy(ttl: 7, ttlByStatus: [404: 0])),
            LifetimeCase([], 0, .ttl, policy: CachePolicy(ttl: -5)),
            LifetimeCase([], 1 << 31, .ttl, policy: CachePolicy(ttl: .max)),
            LifetimeCase(
                [("Cache-Control", "max-age=60")],
                7,
                .ttl,
                policy: CachePolicy(ttl: 7, overrideOrigin: true)
            ),
            LifetimeCase(
                [("Cache-Control", "max-age=x"), ("Expires", "0")],
                7,
                .ttl,
                policy: CachePolicy(ttl: 7, overrideOrigin: true)
            ),
            LifetimeCase([("Cache-Control", "max-age=60")], 60, .maxAge, policy: CachePolicy(overrideOrigin: true)),
            LifetimeCase(
                [("Cache-Control", "max-age=60")],
                60,
                .maxAge,
                status: 503,
                policy: CachePolicy(ttl: 7, overrideOrigin: true)
            ),
        ]
    )
    func configured(example: LifetimeCase) { check(example) }

    @Test(
        "RFC 9111 5.1: Age is delta-seconds; of a list the first member; else ignored; over 2^31 it saturates",
        arguments: [
            (["30"], 30), (["0"], 0), (["30, 99"], 30), (["0,7200"], 0), (["7200", "0"], 7200),
            (["99999999999"], 1 << 31),
            (["2147483648"], 1 << 31), (["2147483647"], 2_147_483_647), (["-30"], 0), (["+30"], 0), (["30.5"], 0),
            (["abc"], 0), ([""], 0), ([",30"], 0), (["\"30\""], 0),
        ] as [([String], Int64)]
    )
    func ageParsing(lines: [String], age: Int64) {
        #expect(stored(lines.map { ("Age", $0) }).initialAge == age)
    }

    @Test("where the clock was moved, a Date up to the system's time counts against that time")
    func agesOfAMovedClock() {
        let moved = arrival + 7200
        func age(_ fields: [(String, String)], delay: Int64 = 0) -> Int64 {
            let answer = response(200, fields)
            let (sent, came) = (moved - delay, moved)
            let head = Caching.makeStoredHead(
                request: request(),
                response: answer,
                times: ResponseTimes(requestTime: sent, responseTime: came, ahead: 7200)
            )
            let checked = Caching.freshened(
                stored: stored([]),
                by: answer,
                times: ResponseTimes(requestTime: sent, responseTime: came, ahead: 7200)
            )
            #expect(head.initialAge == checked.initialAge && head.responseTime == moved && checked.validatedAt == moved)
            #expect(Caching.age(head, now: moved + 9) == head.initialAge + 9)
            return head.initialAge
        }
        #expect(age([("Date", date())]) == 0)
        #expect(age([("Date", date(-2))]) == 2)
        #expect(age([("Date", date(2))]) == 0)
        #expect(age([("Date", date(-1)), ("Age", "30")], delay: 2) == 32)
        // Another cache has had it for a while, by the system's time.
        #expect(age([("Date", date(-300)), ("Age", "300")]) == 300)
        #expect(age([("Date", date(-20))]) == 20)
        // The origin was moved along.
        #expect(age([("Date", date(7200))]) == 0)
        #expect(age([("Date", date(7180))]) == 20)
        #expect(age([("Date", date(3))]) == 7197)
        #expect(age([]) == 0)
    }

    @Test("RFC 9111 4.2.3: the greater of the apparent age and Age plus the response's delay, then resident time")
    func ageCalculation() {
        func initial(_ fields: [(String, String)], delay: Int64 = 0) -> Int64 {
            Caching.initialAge(Fields(fields), ResponseTimes(requestTime: arrival - delay, responseTime: arrival))
        }
        #expect(initial([("Date", date(-20))]) == 20)
        #expect(initial([("Date", date(20))]) == 0)
        #expect(initial([("Date", date(-20)), ("Age", "19")]) == 20)
        #expect(initial([("Date", date(-20)), ("Age", "21")]) == 21)
        #expect(initial([("Date", date(-20)), ("Age", "19")], delay: 2) == 21)
        #expect(initial([("Age", "99999999999")], delay: 2) == 1 << 31)

        let head = stored([("Age", "5")])
        #expect(Caching.age(head, now: arrival) == 5)
        #expect(Caching.age(head, now: arrival + 10) == 15)
        #expect(Caching.age(head, now: arrival - 10) == 5)
        #expect(Caching.age(head, now: .max) == 1 << 31)
        #expect(Caching.age(head, now: .min) == 5)
    }

    private func check(_ example: LifetimeCase) {
        let head = stored(example.fields, status: example.status, policy: example.policy)
        let expected = Lifetime(seconds: example.seconds, source: example.source)
        #expect(Caching.freshnessLifetime(head, policy: example.policy) == expected)
    }

    private func lifetime(_ head: StoredHead) -> Lifetime { Caching.freshnessLifetime(head, policy: CachePolicy()) }
}
