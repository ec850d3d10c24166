// mode: library: a lifetime of the configuration, counted from the arrival or the last check, whatever the origin says.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Library mode")
struct LibraryModeTests {
    static let policy = CachePolicy(mode: .library)
    static func library(_ ttl: Int64) -> CachePolicy { CachePolicy(mode: .library, ttl: ttl) }
    static func cc(_ value: String) -> [(String, String)] { [("Cache-Control", value)] }

    // MARK: - Lifetime

    @Test(
        "the lifetime is two hours, or the configured one; what the origin says does not count",
        arguments: [
            ([], policy, Lifetime(seconds: 7200, source: .library)),
            (cc("max-age=1, s-maxage=2"), policy, Lifetime(seconds: 7200, source: .library)),
            ([("Expires", "0")], policy, Lifetime(seconds: 7200, source: .library)),
            (cc("max-age=x"), library(5), Lifetime(seconds: 5, source: .ttl)),
            ([("Last-Modified", date(-1_000_000))], library(0), Lifetime(seconds: 0, source: .ttl)),
            (
                cc("max-age=1"), CachePolicy(mode: .library, ttl: 5, ttlByStatus: [200: 9]),
                Lifetime(seconds: 9, source: .ttlByStatus)
            ),
            (
                cc("max-age=1"), CachePolicy(mode: .library, ttl: 5, revalidate: .never),
                Lifetime(seconds: DeltaSeconds.limit, source: .forever)
            ),
        ] as [([(String, String)], CachePolicy, Lifetime)]
    )
    func lifetime(fields: [(String, String)], policy: CachePolicy, expected: Lifetime) {
        #expect(Caching.freshnessLifetime(stored(fields), policy: policy) == expected)
        #expect(!expected.source.section.isEmpty)
    }

    @Test(
        "it is counted from the arrival: an Age or a Date that came with the response shortens nothing",
        arguments: [
            ReuseCase([("Age", "9000")], after: 0, .fresh(age: 9000, ttl: 7200), policy: policy),
            ReuseCase([("Age", "9000")], after: 7199, .fresh(age: 16199, ttl: 1), policy: policy),
            ReuseCase(
                [("Age", "9000")],
                after: 7200,
                .stale(age: 16200, by: 0, reason: .expired),
                policy: policy
            ),
            ReuseCase([("Date", date(-9000))], after: 1, .fresh(age: 9001, ttl: 7199), policy: policy),
            ReuseCase(cc("no-cache"), after: 1, .fresh(age: 1, ttl: 7199), policy: policy),
            ReuseCase(cc("max-age=0, must-revalidate"), after: 1, .fresh(age: 1, ttl: 7199), policy: policy),
            ReuseCase([], after: 0, .stale(age: 0, by: 0, reason: .expired), policy: library(0)),
            ReuseCase(
                [],
                after: 1_000_000_000,
                .fresh(age: 1_000_000_000, ttl: DeltaSeconds.limit - 1_000_000_000),
                policy: CachePolicy(mode: .library, ttl: 1, revalidate: .never)
            ),
        ]
    )
    func reuse(example: ReuseCase) { check(example) }

    @Test(
        "what the request asks for counts as in standard mode",
        arguments: [
            ReuseCase(
                [],
                request: "no-cache",
                after: 1,
                .stale(age: 1, by: -7199, reason: .requestNoCache),
                policy: policy
            ),
            ReuseCase(
                [],
                request: "max-age=0",
                after: 1,
                .stale(age: 1, by: -7199, reason: .requestMaxAge),
                policy: policy
            ),
            ReuseCase(
                [],
                request: "min-fresh=7200",
                after: 1,
                .stale(age: 1, by: -7199, reason: .requestMinFresh),
                policy: policy
            ),
            ReuseCase([], request: "only-if-cached", after: 7200, .onlyIfCachedMiss(.expired), policy: policy),
            ReuseCase(
                cc("must-revalidate"),
                request: "max-stale",
                after: 7210,
                .staleAllowed(age: 7210, staleness: 10, allowance: .maxStale),
                policy: policy
            ),
            ReuseCase(
                cc("stale-while-revalidate=100"),
                after: 7210,
                .stale(age: 7210, by: 10, reason: .expired),
                policy: policy
            ),
            ReuseCase(
                cc("stale-while-revalidate=0"),
                after: 7210,
                .staleAllowed(age: 7210, staleness: 10, allowance: .whileRevalidate),
                policy: CachePolicy(mode: .library, staleWhileRevalidate: 30)
            ),
        ]
    )
    func requests(example: ReuseCase) { check(example) }

    private func check(_ example: ReuseCase) {
        let fields = example.request.map { [("Cache-Control", $0)] } ?? []
        let decision = Caching.lookup(
            request: request(.get, fields),
            stored: stored(example.response, policy: example.policy),
            policy: example.policy,
            now: arrival + example.after
        )
        #expect(decision == example.expected)
    }

    @Test(
        "who waits is answered by what is fresh, or came no earlier than the question",
        arguments: [
            (library(10), 9, 5, true), (library(10), 10, 5, false), (library(10), 10, 0, true),
            (library(10), 600, 599, false), (library(0), 1, 0, true), (library(0), 1, 1, false),
            (CachePolicy(), 0, 0, false),
        ] as [(CachePolicy, Int64, Int64, Bool)]
    )
    func waiting(policy: CachePolicy, now: Int64, asked: Int64, isAnswered: Bool) {
        let answers = Caching.answersWaiting(
            request: request(),
            stored: stored([("ETag", "\"a\"")], policy: policy),
            policy: policy,
            asked: arrival + asked,
            now: arrival + now
        )
        #expect(answers == isAnswered)
    }

    @Test("the hot window is the same as the decision", arguments: [0, 1, 7199, 7200] as [Int64])
    func hotWindow(after: Int64) throws {
        let head = stored([("Age", "9000"), ("Cache-Control", "no-cache")], policy: Self.policy)
        let window = try #require(Caching.hotPath(stored: head, policy: Self.policy))
        let now = arrival + after
        let decision = Caching.lookup(request: request(), stored: head, policy: Self.policy, now: now)
        if case .fresh(let age, let ttl) = decision {
            #expect(window.isFresh(now: now) && window.age(now: now) == age && window.ttl(now: now) == ttl)
        } else {
            #expect(!window.isFresh(now: now))
        }
        #expect(Caching.hotPath(stored: head, policy: Self.library(0)) == nil)
    }

    // MARK: - Storing

    @Test(
        "what succeeds is stored without a word of the origin; what is not for all is not",
        arguments: [
            (200, [], nil, .store(.library)), (204, [], nil, .store(.library)),
            (200, cc("no-cache"), nil, .store(.library)),
            (200, cc("max-age=0"), nil, .store(.library)), (200, [("Expires", "0")], nil, .store(.library)),
            (200, cc("no-store"), nil, .refuse(.noStore)), (200, cc("private"), nil, .refuse(.private)),
            (200, [], "Basic x", .refuse(.authorization)), (200, cc("public"), "Basic x", .store(.library)),
            (200, [("Vary", "*")], nil, .refuse(.varyStar)), (206, [], nil, .refuse(.status206)),
            (200, [("Set-Cookie", "a=b")], nil, .refuse(.setCookieHeuristic)),
            (200, [("Set-Cookie", "a=b"), ("Cache-Control", "max-age=60")], nil, .store(.library)),
            (200, [("Content-Type", "text/event-stream")], nil, .refuse(.eventStream)),
            (301, [], nil, .refuse(.statusNotSuccessful)), (302, cc("max-age=60"), nil, .refuse(.statusNotSuccessful)),
            (404, cc("max-age=60"), nil, .refuse(.statusNotSuccessful)), (503, [], nil, .refuse(.statusNotSuccessful)),
            (410, [], nil, .store(.library)), (503, cc("no-store"), nil, .refuse(.noStore)),
        ] as [(Int, [(String, String)], String?, StoreDecision)]
    )
    func storing(status: Int, fields: [(String, String)], authorization: String?, expected: StoreDecision) {
        let decision = Caching.decideStore(
            request: request(.get, authorization.map { [("Authorization", $0)] } ?? []),
            response: response(status, fields),
            policy: CachePolicy(mode: .library, ttlByStatus: [410: 60]),
            times: ResponseTimes(at: arrival)
        )
        #expect(decision == expected)
    }

    @Test("Random heads: nothing that is not for all is stored, and nothing is fresh past its lifetime")
    func random() {
        var generator = SeededGenerator(seed: 77)
        var storedCount = 0
        for round in 0..<3000 {
            let (asked, answer) = (RandomHeads.request(&generator), RandomHeads.response(&generator))
            let ttl = [0, 10, 60].randomElement(using: &generator, or: 0) as Int64
            let policy = Self.library(ttl)
            guard
                case .store(let reason) = Caching.decideStore(
                    request: asked,
                    response: answer,
                    policy: policy,
                    times: ResponseTimes(at: arrival)
                )
            else { continue }
            storedCount += 1
            #expect(reason == .library && Reference.mayStore(asked, answer), "round \(round)\n\(answer.fields)")
            let head = kept(answer, asked, policy)
            let after = [0, 9, 10, 59, 60, 7200].randomElement(using: &generator, or: 0) as Int64
            let next = RandomHeads.request(&generator)
            if case .fresh(_, let left) = Caching.lookup(
                request: next,
                stored: head,
                policy: policy,
                now: arrival + after
            ) {
                #expect(left == ttl - after && left > 0)
                #expect(Reference.selects(asked, answer, next) && Reference.mayShare(asked, answer))
            }
        }
        #expect(storedCount > 300)
    }

    private func kept(_ answer: ResponseHead, _ asked: RequestHead, _ policy: CachePolicy) -> StoredHead {
        Caching.makeStoredHead(
            request: asked,
            response: answer,
            times: ResponseTimes(at: arrival),
            policy: policy
        )
    }
}
