// The stages of rungs, what each says to the cache, and which answers are one of its own.

import DownloadCore
import HTTPCaching
import HTTPWire
import Policies
import Testing

@testable import ServiceCore

@Suite struct LadderTests {
    private static func stage(_ rungs: [AnswerRung]) -> Ladder<Int>.Stage { Ladder<Int>.Stage(rungs: rungs, route: 0) }

    @Test("rungs of the cache that follow one another are one stage, and every other is one of its own")
    func stages() {
        #expect(AnswerRung.allCases.stages == [[.seed, .fresh, .live, .stale], [.recording], [.demo], [.fallback]])
        #expect(
            [AnswerRung.fresh, .recording, .live, .stale, .demo].stages
                == [[.fresh], [.recording], [.live, .stale], [.demo]]
        )
        #expect([AnswerRung.recording, .demo].stages == [[.recording], [.demo]])
        #expect(Ladder([.demo, .live]) { $0.count }.stages.map(\.route) == [1, 1])
    }

    @Test(
        "what a stage says to the cache leaves out what is no rung",
        arguments: [
            ([.fresh, .live, .stale], nil), ([.seed, .fresh, .live, .stale], nil), ([.fresh, .stale], nil),
            ([.fresh, .live], "min-fresh=0, stale-if-error=0"),
            ([.live, .stale], "min-fresh=2147483647"), ([.stale], "min-fresh=2147483647"),
            ([.live], "min-fresh=2147483647, stale-if-error=0"),
            ([.fresh], "min-fresh=0, stale-if-error=0, only-if-cached"),
            ([.seed], "min-fresh=2147483647, stale-if-error=0, only-if-cached"),
            ([.recording], nil), ([.demo], nil), ([.fallback], nil),
        ] as [([AnswerRung], String?)]
    )
    func directives(rungs: [AnswerRung], text: String?) {
        #expect(Self.stage(rungs).directives == text)
    }

    private static func answer(_ status: Int = 200, _ said: CacheStatus? = nil) -> Answer {
        Answer(head: ResponseHead(status: status), cacheStatus: said)
    }

    private static func hit(ttl: Int64?, _ detail: String = "memory") -> CacheStatus {
        CacheStatus(cacheName: "d", hit: true, ttl: ttl, detail: detail)
    }

    @Test("an answer is of the rung that it comes from, and of none that is left out")
    func rungs() {
        let policy = CachePolicy()
        let cache = Self.stage([.seed, .fresh, .live, .stale])
        #expect(cache.rung(of: Self.answer(200, Self.hit(ttl: 5)), policy) == .fresh)
        #expect(cache.rung(of: Self.answer(304, Self.hit(ttl: 5)), policy) == .fresh)
        #expect(cache.rung(of: Self.answer(200, Self.hit(ttl: -5)), policy) == .stale)
        #expect(cache.rung(of: Self.answer(200, Self.hit(ttl: nil, "seed")), policy) == .seed)
        let live = CacheStatus(cacheName: "d", forward: .uriMiss, forwardStatus: 200)
        let stale = CacheStatus(cacheName: "d", forward: .stale, forwardStatus: 503, detail: "stale-if-error")
        #expect(cache.rung(of: Self.answer(404, live), policy) == .live)
        #expect(cache.rung(of: Self.answer(200, stale), policy) == .stale)
        #expect(cache.rung(of: Self.answer(), policy) == .live)
        #expect(Self.stage([.fresh, .live]).rung(of: Self.answer(200, stale), policy) == nil)
        #expect(Self.stage([.fresh, .live]).rung(of: Self.answer(200, Self.hit(ttl: -5)), policy) == nil)
        #expect(Self.stage([.live]).rung(of: Self.answer(200, Self.hit(ttl: 5)), policy) == nil)
        // Offline, however fresh.
        #expect(Self.stage([.live, .stale]).rung(of: Self.answer(200, Self.hit(ttl: 5, "offline")), policy) == .stale)
        var standIn = Self.answer()
        standIn.isStandIn = true
        #expect(Self.stage([.fallback]).rung(of: standIn, policy) == .fallback)
        #expect(cache.rung(of: standIn, policy) == .live)
    }

    @Test("failures leave the answer to the next rung; what recordings and demo mode say is what they say")
    func failures() {
        let policy = CachePolicy()
        let live = CacheStatus(cacheName: "d", forward: .uriMiss, forwardStatus: 503)
        #expect(Self.stage([.live]).rung(of: Self.answer(503, live), policy) == nil)
        #expect(Self.stage([.recording]).rung(of: Self.answer(503), policy) == .recording)
        #expect(Self.stage([.demo]).rung(of: Self.answer(503), policy) == .demo)
        var failed = Self.answer()
        failed.failure = .unrecorded("none")
        for rungs in [[.recording], [.demo], [.fallback], [.live]] as [[AnswerRung]] {
            #expect(Self.stage(rungs).rung(of: failed, policy) == nil)
        }
        let cached = Self.stage([.fresh, .live])
        #expect(cached.isOfOrigin(Self.answer(503, live)) && cached.isOfOrigin(failed))
        #expect(!cached.isOfOrigin(Self.answer(200, Self.hit(ttl: -5))))
        #expect(!Self.stage([.fresh]).isOfOrigin(failed))
        var own = policy
        own.success = StatusSet([200...299])
        #expect(Self.stage([.live]).rung(of: Self.answer(404, live), own) == nil)
        #expect(Self.stage([.live]).rung(of: Self.answer(416, live), own) == .live)
    }
}
