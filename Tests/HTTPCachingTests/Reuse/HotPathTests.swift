// The window in which a stored response answers without a look at the rules.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Hot path")
struct HotPathTests {
    @Test("RFC 9111 4.2: the window says what the rules say, second by second")
    func agreement() throws {
        for (fields, policy) in [
            ([("Cache-Control", "max-age=20"), ("Age", "5")], CachePolicy()),
            ([("Expires", date(15))], CachePolicy()),
            ([("Last-Modified", date(-150))], CachePolicy()),
            ([], CachePolicy(ttl: 15)),
            ([("Cache-Control", "no-cache")], CachePolicy(ttl: 15, overrideOrigin: true)),
        ] as [([(String, String)], CachePolicy)] {
            let head = stored(fields, policy: policy)
            let window = try #require(Caching.hotPath(stored: head, policy: policy))
            for now in (arrival - 5)...(arrival + 30) {
                let decision = Caching.lookup(request: request(), stored: head, policy: policy, now: now)
                if window.isFresh(now: now) {
                    #expect(decision == .fresh(age: window.age(now: now), ttl: window.ttl(now: now)))
                } else if case .fresh = decision {
                    Issue.record("fresh by the rules, not by the window, at \(now - arrival)")
                }
            }
            #expect(window.isFresh(now: arrival + 14) && !window.isFresh(now: arrival + 15))
            // The clock was set back, by a second or by any other time.
            #expect(window.isFresh(now: arrival) && !window.isFresh(now: arrival - 1))
            for now in [0, -arrival, 1 - .max, .min] as [Int64] { #expect(!window.isFresh(now: now)) }
        }
    }

    @Test("There is no window where the request decides, or nothing is ever fresh")
    func none() {
        func window(
            _ fields: [(String, String)],
            for request: RequestHead = request(),
            policy: CachePolicy = CachePolicy()
        ) -> HotPathWindow? {
            Caching.hotPath(stored: stored(fields, for: request, policy: policy), policy: policy)
        }
        let authorized = request(.get, [("Authorization", "Basic eA==")])
        #expect(window([("Cache-Control", "max-age=9"), ("Vary", "Accept")]) != nil)
        #expect(window([("Cache-Control", "max-age=9"), ("Vary", "*")]) == nil)
        #expect(window([("Cache-Control", "max-age=9"), ("Vary", "Accept, (")]) == nil)
        #expect(window([("Cache-Control", "max-age=9, no-cache")]) == nil)
        #expect(window([("Cache-Control", "max-age=9"), ("Age", "9")]) == nil)
        #expect(window([("Cache-Control", "max-age=9"), ("Age", "8")]) != nil)
        #expect(window([("ETag", "\"a\"")]) == nil)
        #expect(window([("Cache-Control", "max-age=9")], policy: CachePolicy(mode: .none)) == nil)
        #expect(window([("Cache-Control", "max-age=9")], for: authorized) == nil)
        #expect(window([("Cache-Control", "max-age=9, public")], for: authorized) != nil)
        #expect(window([("Cache-Control", "max-age=9")], for: request(.post)) == nil)
        var changed = stored([("Cache-Control", "max-age=9")])
        changed.changedSince = arrival + 5
        #expect(Caching.hotPath(stored: changed, policy: CachePolicy()) == nil)
        var odd = stored([("Cache-Control", "max-age=9")])
        for time in [.min, .max, 1 << 62] as [Int64] {
            odd.responseTime = time
            #expect(Caching.hotPath(stored: odd, policy: CachePolicy()) == nil)
        }
    }

    @Test("Requests with a field that decides about reuse take the long way")
    func disqualifying() {
        for field in [KnownField.cacheControl, .pragma, .ifNoneMatch, .ifModifiedSince, .ifMatch, .range, .ifRange] {
            #expect(HotPathWindow.disqualifying.contains(field))
        }
        #expect(!HotPathWindow.disqualifying.contains(.accept))
    }
}
