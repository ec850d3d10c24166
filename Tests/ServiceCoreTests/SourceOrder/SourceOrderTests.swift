// The stages of sources, what each says to the cache, and which answers are one of its own.

import DownloadCore
import HTTPCaching
import HTTPWire
import Policies
import Testing

@testable import ServiceCore

@Suite struct SourceOrderTests {
    private static func stage(_ sources: [OrderedSource]) -> SourceOrder<Int>.Stage {
        SourceOrder<Int>.Stage(sources: sources, route: 0)
    }

    @Test("sources of the cache that follow one another are one stage, and every other is one of its own")
    func stages() {
        #expect(OrderedSource.allCases.stages == [[.seed, .fresh, .live, .stale], [.recording], [.demo], [.fallback]])
        #expect(
            [OrderedSource.fresh, .recording, .live, .stale, .demo].stages
                == [[.fresh], [.recording], [.live, .stale], [.demo]]
        )
        #expect([OrderedSource.recording, .demo].stages == [[.recording], [.demo]])
        #expect(SourceOrder([.demo, .live]) { $0.count }.stages.map(\.route) == [1, 1])
    }

    @Test(
        "what a stage says to the cache leaves out what is no source",
        arguments: [
            ([.fresh, .live, .stale], nil), ([.seed, .fresh, .live, .stale], nil), ([.fresh, .stale], nil),
            ([.fresh, .live], "min-fresh=0, stale-if-error=0"),
            ([.live, .stale], "min-fresh=2147483647"), ([.stale], "min-fresh=2147483647"),
            ([.live], "min-fresh=2147483647, stale-if-error=0"),
            ([.fresh], "min-fresh=0, stale-if-error=0, only-if-cached"),
            ([.seed], "min-fresh=2147483647, stale-if-error=0, only-if-cached"),
            ([.recording], nil), ([.demo], nil), ([.fallback], nil),
        ] as [([OrderedSource], String?)]
    )
    func directives(sources: [OrderedSource], text: String?) {
        #expect(Self.stage(sources).directives == text)
    }

    private static func answer(_ status: Int = 200, _ said: CacheStatus? = nil) -> Answer {
        Answer(head: ResponseHead(status: status), cacheStatus: said)
    }

    private static func hit(ttl: Int64?, _ detail: String = "memory") -> CacheStatus {
        CacheStatus(cacheName: "d", hit: true, ttl: ttl, detail: detail)
    }

    @Test("an answer is of the source that it comes from, and of none that is left out")
    func sources() {
        let policy = CachePolicy()
        let cache = Self.stage([.seed, .fresh, .live, .stale])
        #expect(cache.source(of: Self.answer(200, Self.hit(ttl: 5)), policy) == .fresh)
        #expect(cache.source(of: Self.answer(304, Self.hit(ttl: 5)), policy) == .fresh)
        #expect(cache.source(of: Self.answer(200, Self.hit(ttl: -5)), policy) == .stale)
        #expect(cache.source(of: Self.answer(200, Self.hit(ttl: nil, "seed")), policy) == .seed)
        let live = CacheStatus(cacheName: "d", forward: .uriMiss, forwardStatus: 200)
        let stale = CacheStatus(cacheName: "d", forward: .stale, forwardStatus: 503, detail: "stale-if-error")
        #expect(cache.source(of: Self.answer(404, live), policy) == .live)
        #expect(cache.source(of: Self.answer(200, stale), policy) == .stale)
        #expect(cache.source(of: Self.answer(), policy) == .live)
        #expect(Self.stage([.fresh, .live]).source(of: Self.answer(200, stale), policy) == nil)
        #expect(Self.stage([.fresh, .live]).source(of: Self.answer(200, Self.hit(ttl: -5)), policy) == nil)
        #expect(Self.stage([.live]).source(of: Self.answer(200, Self.hit(ttl: 5)), policy) == nil)
        // Offline, however fresh.
        #expect(
            Self.stage([.live, .stale]).source(of: Self.answer(200, Self.hit(ttl: 5, "offline")), policy) == .stale
        )
        var standIn = Self.answer()
        standIn.isStandIn = true
        #expect(Self.stage([.fallback]).source(of: standIn, policy) == .fallback)
        #expect(cache.source(of: standIn, policy) == .live)
    }

    @Test("failures leave the answer to the next source; what recordings and demo mode say is what they say")
    func failures() {
        let policy = CachePolicy()
        let live = CacheStatus(cacheName: "d", forward: .uriMiss, forwardStatus: 503)
        #expect(Self.stage([.live]).source(of: Self.answer(503, live), policy) == nil)
        #expect(Self.stage([.recording]).source(of: Self.answer(503), policy) == .recording)
        #expect(Self.stage([.demo]).source(of: Self.answer(503), policy) == .demo)
        var failed = Self.answer()
        failed.failure = .unrecorded("none")
        for sources in [[.recording], [.demo], [.fallback], [.live]] as [[OrderedSource]] {
            #expect(Self.stage(sources).source(of: failed, policy) == nil)
        }
        let cached = Self.stage([.fresh, .live])
        #expect(cached.isOfOrigin(Self.answer(503, live)) && cached.isOfOrigin(failed))
        #expect(!cached.isOfOrigin(Self.answer(200, Self.hit(ttl: -5))))
        #expect(!Self.stage([.fresh]).isOfOrigin(failed))
        var own = policy
        own.success = StatusSet([200...299])
        #expect(Self.stage([.live]).source(of: Self.answer(404, live), own) == nil)
        #expect(Self.stage([.live]).source(of: Self.answer(416, live), own) == .live)
    }
}
