// The keys under `cache`: their defaults by mode, what may stand beside what, and what is shown.

import HTTPCaching
import Testing

@testable import Configuration

@Suite struct CacheKeysTests {
    private func cache(_ text: String) throws -> CacheConfiguration {
        try #require(try load("services:\n" + service("a", "cache: \(text)")).services.first).cache
    }

    @Test func defaultsFollowTheMode() throws {
        let standard = try cache("{ mode: standard }")
        #expect(standard == CacheConfiguration())
        #expect(standard.ttl == nil && standard.staleIfError == 86_400 && standard.checkPause == 30)
        #expect(standard.gone == .fail && standard.methods == [.get] && standard.setCookie == .strict)
        #expect(standard.cookies == .explicit)
        let library = try cache("{ mode: library }")
        #expect(library.mode == .library && library.ttl == 7200 && library.staleIfError == 36_500 * 86_400)
        #expect(library.compare == [.etag, .lastModified, .length])
        let own = try cache("{ mode: library, ttl: 0s, stale_if_error: 1h, compare: [length], methods: [GET, POST] }")
        #expect(own.ttl == 0 && own.staleIfError == 3600 && own.compare == [.length] && own.methods == [.get, .post])
        #expect(try cache("{ mode: library, ttl: none }").ttl == nil)
    }

    @Test func everythingElse() throws {
        let text = """
            { check_pause: 5m, gone: serve-stale, other_variant: serve, set_cookie: strip, cookies: any, min_length: 100B,
              key: { ignore_query: ["utm_*", fbclid], fields: [X-Tenant] } }
            """
        let cache = try cache(text)
        #expect(cache.checkPause == 300 && cache.gone == .useStored && cache.setCookie == .strip)
        #expect(cache.cookies == .any && cache.otherVariant == .serve)
        #expect(cache.minLength == 100)
        #expect(cache.ignoreQuery == ["utm_*", "fbclid"] && cache.keyFields == ["X-Tenant"])
    }

    @Test(arguments: [
        ("{ mode: library, compare: [] }", "5:38", "no validation could succeed"),
        ("{ mode: library, compare: [date] }", "5:39", "does not know 'date'"),
        ("{ methods: [GET, POST] }", "5:23", "only in library mode"),
        ("{ methods: [] }", "5:23", "write mode: none"),
        ("{ mode: library, methods: [PUT] }", "5:39", "It takes POST, GET"),
        ("{ gone: stale }", "5:20", "it takes pass, serve-stale, evict"),
        ("{ other_variant: true }", "5:29", "it takes none, serve"),
        ("{ check_pause: 500ms }", "5:27", "not a whole number of seconds"),
        ("{ min_length: 100 }", "5:26", "write 100B"),
        ("{ key: { ignore_query: [\"a=b\"] } }", "5:36", "not the name of a query item"),
        ("{ key: { ignore_query: [\"\"] } }", "5:36", "not the name of a query item"),
        ("{ key: { fields: [\"X Y\"] } }", "5:30", "not a token"),
        ("{ set_cookie: keep }", "5:26", "strict, explicit, strip, skip"),
        ("{ cookies: all }", "5:23", "explicit, any, never"),
    ])
    func conflicts(text: String, position: String, part: String) {
        expectError("services:\n" + service("a", "cache: \(text)"), position, [part])
    }

    @Test func whatIsInheritedIsNoConflict() throws {
        let defaults = "defaults: { cache: { compare: [etag], methods: [GET, POST] } }\nservices:\n"
        let loaded = try load(
            defaults + service("a") + service("b", "cache: { mode: library }")
                + service("c", "cache: { mode: library }", "endpoints: [{ name: e, path: /e, cache: { mode: none } }]")
        )
        #expect(loaded.services.map(\.cache.mode) == [.standard, .library, .library])
        #expect(loaded.services[1].cache.compare == [.etag] && loaded.services[1].cache.methods == [.get, .post])
        #expect(loaded.services[2].endpoints[0].cache.mode == .none)
        #expect(loaded.services[2].endpoints[0].cache.staleIfError == 86_400)
    }

    @Test func whatIsShownSaysWhatIsInForce() throws {
        let loaded = try load(
            "forward: { cache: { mode: library } }\nservices:\n"
                + service("a", "cache: { mode: library }", "endpoints: [{ name: e, path: /e, cache: { ttl: 5m } }]")
        )
        let shown = loaded.shown()
        #expect(shown.split(separator: "\n").count { $0.hasSuffix("ttl: 2h") } == 2, "\(shown)")
        #expect(shown.split(separator: "\n").count { $0.hasSuffix("stale_if_error: 36500d") } == 3, "\(shown)")
        #expect(shown.contains("ttl: 5m"))
        #expect(try load(loaded.text(hidingSecrets: false)) == loaded)
    }
}
