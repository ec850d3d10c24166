// Leaves that are made once, renewed, and bounded in number.

import Synchronization
import Testing

@testable import TLS

@Suite struct LeafCacheTests {
    private final class Clock: Sendable {
        let seconds = Mutex(now)
    }

    @Test func `a leaf is made once, and anew when it is two days old`() throws {
        let clock = Clock()
        let cache = try LeafCache(authority()) { clock.seconds.withLock { $0 } }
        let first = try #require(cache.leaf(for: .name("a.example")))
        #expect(cache.leaf(for: .name("a.example")) === first)
        #expect(cache.leaf(for: .name("b.example")) !== first)
        #expect(cache.counts == (2, 2))
        clock.seconds.withLock { $0 += 2 * 86_400 }
        let second = try #require(cache.leaf(for: .name("a.example")))
        #expect(second !== first)
        #expect(second.certificate.notAfter == now + 9 * 86_400)
        #expect(cache.counts == (3, 2))
    }

    @Test func `those that were not asked for longest go first`() throws {
        let cache = try LeafCache(authority(), capacity: 10) { now }
        let kept = try #require(cache.leaf(for: .name("kept.example")))
        for index in 0..<100 {
            #expect(cache.leaf(for: .name("h\(index).example")) != nil)
            #expect(cache.leaf(for: .name("kept.example")) === kept)
            #expect(cache.counts.kept <= 10)
        }
        #expect(cache.counts.made == 101)
    }
}
