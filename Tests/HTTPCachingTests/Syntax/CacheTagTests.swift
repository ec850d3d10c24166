// Tags: the fields that name them, and their forms.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Cache tags")
struct CacheTagTests {
    @Test(
        "Members of Cache-Tag, Surrogate-Key and Cache-Groups, each once, byte by byte",
        arguments: [
            ([], []), ([("Cache-Tag", "a, b ,,c d")], ["a", "b", "c d"]),
            ([("Cache-Tag", "a"), ("cache-tag", "B,a")], ["a", "B"]),
            ([("Surrogate-Key", " x  y\tz ")], ["x", "y", "z"]), ([("Surrogate-Key", "a,b")], ["a,b"]),
            ([("Cache-Groups", "\"g h\", \"a\""), ("Cache-Tag", "a")], ["a", "g h"]),
            ([("Cache-Groups", "not, strings")], []), ([("Cache-Tag", " , ")], []),
        ] as [([(String, String)], [String])]
    )
    func members(lines: [(String, String)], tags: [String]) {
        #expect(Caching.cacheTags(Fields(lines)) == tags)
    }

    @Test("A purge cuts the lifetime at its moment, in every mode", arguments: [CacheMode.standard, .library])
    func purge(mode: CacheMode) {
        var head = stored([("Cache-Control", "max-age=600"), ("ETag", "\"a\"")])
        let policy = CachePolicy(mode: mode, ttl: 600)
        head.staleSince = arrival + 100
        let lookup = { (now: Int64) in
            Caching.lookup(request: request(), stored: head, policy: policy, now: arrival + now)
        }
        // It is still to come: the clock was set back.
        #expect(lookup(99) == .stale(age: 99, by: 0, reason: .clockSetBack))
        #expect(lookup(100) == .stale(age: 100, by: 0, reason: .expired))
        #expect(lookup(103) == .stale(age: 103, by: 3, reason: .expired))
        #expect(Caching.freshnessLifetime(head, policy: policy) == Lifetime(seconds: 100, source: .purge))
        #expect(Caching.hotPath(stored: head, policy: policy) == nil)
        head.staleSince = arrival + 700
        #expect(Caching.freshnessLifetime(head, policy: policy).source != .purge)
        let check = response(304, [("ETag", "\"a\"")])
        let fresh = Caching.freshened(stored: head, by: check, times: ResponseTimes(at: arrival + 900))
        #expect(fresh.staleSince == nil)
    }
}
