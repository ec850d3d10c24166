// What the modules below do by default is what the table of keys says: the library has their
// defaults, the daemon the table's.

import CacheStore
import Configuration
import Content
import DownloadCore
import HTTPCaching
import HTTPWire
import Policies
import ProxyServer
import ServiceCore
import Testing
import Upstream

@testable import Plans

@Suite struct CoreDefaultTests {
    private static let service = ServiceConfiguration(name: "s", match: .prefix("/"), baseURL: nil)

    @Test func ofTheRulesOfCaching() throws {
        #expect(RoutePlan.policy(CacheConfiguration()) == CachePolicy())
        var configuration = CacheConfiguration()
        configuration.mode = .library
        let text = """
            services: [{ name: s, match: { prefix: / }, base_url: "http://127.0.0.1:9", cache: { mode: library } }]
            """
        let loaded = try Configuration.load(text: text, file: "/nowhere/drydock.yaml", environment: [:])
        let library = RoutePlan.policy(try #require(loaded.services.first).cache)
        #expect(library.ttl == CachePolicy.libraryTTL)
        // Longer than any answer gets old in both: the file writes days, the rules count in 31 bits.
        #expect(library.staleIfError >= CachePolicy(mode: .library).staleIfError)
    }

    @Test func ofFetches() {
        #expect(Self.service.timeout == Timeouts())
        #expect(Self.service.cache.collapse == CollapseLimits())
        #expect(Self.service.cache.onClientAbort == .finish && Self.service.expect == .anything)
        let placeholder = PlaceholderConfiguration(answer: StandInConfiguration(file: "/x"))
        #expect(placeholder.after == PhasePlan().placeholderDelay)
    }

    @Test func ofHeads() {
        let limits = ServerSettings(Configuration())
        #expect(limits.head == HeadLimits())
        let origin = Configuration().limits
        #expect(
            HeadLimits(head: origin.responseHead, fields: origin.responseFields, field: origin.responseLine)
                == .response
        )
    }

    @Test func ofBatches() throws {
        let text = "prefetch: [{ name: p, urls: [/a], every: 1h }]"
        let loaded = try Configuration.load(text: text, file: "/nowhere/drydock.yaml", environment: [:])
        let prefetch = try #require(loaded.prefetch.first)
        #expect(BatchOptions(concurrency: prefetch.concurrency, onError: prefetch.onError) == BatchOptions())
    }

    @Test func ofServices() {
        #expect(
            AdmissionLimits(
                concurrent: Self.service.maxConcurrent,
                queueLength: Self.service.maxQueue.length,
                wait: Self.service.maxQueue.wait
            ) == AdmissionLimits()
        )
    }
}
