// Invalidation by unsafe methods (RFC 9111 section 4.4).

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Invalidation")
struct InvalidationTests {
    @Test(
        "RFC 9111 4.4: non-error answers to methods not known to be safe",
        arguments: [
            (HTTPWire.Method.post, 199, false), (.post, 200, true), (.post, 399, true), (.post, 400, false),
            (.put, 204, true), (.delete, 302, true), (.patch, 500, false), (.other("PURGE"), 200, true),
            (.other("get"), 200, true), (.get, 200, false), (.head, 200, false), (.options, 200, false),
            (.trace, 200, false),
        ]
    )
    func methods(method: HTTPWire.Method, status: Int, expected: Bool) {
        #expect(Caching.invalidates(method: method, status: status) == expected)
    }

    @Test(
        "RFC 9111 4.4: Location and Content-Location count on the same origin",
        arguments: [
            ("/b", "http://a.test/b"), ("b?x=1", "http://a.test/dir/b?x=1"), ("?x=1", "http://a.test/dir/page?x=1"),
            ("../b", "http://a.test/b"), ("./b/../c/.", "http://a.test/dir/c/"), ("../../../b", "http://a.test/b"),
            ("//a.test/b", "http://a.test/b"), ("http://A.test:80/b#part", "http://a.test/b"),
            ("HTTP://a.test", "http://a.test/"), ("", "http://a.test/dir/page?q"),
            ("/dir/page", "http://a.test/dir/page"),
            ("http://a.test:81/b", nil), ("https://a.test/b", nil), ("http://b.test/b", nil), ("//b.test/b", nil),
            ("mailto:a@a.test", nil), ("http://user@a.test/b", nil), ("/b c", nil),
        ] as [(String, String?)]
    )
    func locations(reference: String, expected: String?) {
        for field in ["Location", "Content-Location"] {
            let answer = response(201, [(field, reference)])
            // The target itself is invalidated anyway, and not named again.
            let urls = Caching.invalidatedURLs(url: "http://a.test/dir/page?q", response: answer)
            #expect(urls == (expected == "http://a.test/dir/page?q" ? [] : expected.map { [$0] } ?? []))
        }
    }

    @Test("RFC 9111 4.4: both fields, each URL once, default ports left out")
    func both() {
        let answer = response(201, [("Location", "/b"), ("Content-Location", "/c")])
        #expect(
            Caching.invalidatedURLs(url: "HTTPS://A.test:443/", response: answer)
                == ["https://a.test/b", "https://a.test/c"]
        )
        let twice = response(201, [("Location", "/b"), ("Content-Location", "https://a.test:8443/b")])
        #expect(Caching.invalidatedURLs(url: "https://a.test:8443/", response: twice) == ["https://a.test:8443/b"])
        #expect(Caching.invalidatedURLs(url: "not a URL", response: answer).isEmpty)
    }
}
