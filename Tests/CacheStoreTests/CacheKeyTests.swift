// What the whole room rests on: keys and checksums.

import CacheStore
import Testing

@Suite struct CacheKeyTests {
    @Test(arguments: [
        ("HTTP://Example.COM/A?b=C", "http://example.com/A?b=C"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com:80/x", "https://example.com:80/x"),
        ("http://example.com:8080", "http://example.com:8080/"),
        ("http://example.com?q=http://B", "http://example.com/?q=http://B"),
        ("http://[::1]:80/a/../b", "http://[::1]/a/../b"),
    ])
    func `scheme, host and port are normalised, and nothing else`(url: String, expected: String) {
        let key = CacheKey(service: "", url: url)
        #expect(key.description == expected)
        #expect(key == CacheKey(service: "", url: expected))
    }

    @Test func `what else tells requests apart stands behind the URL`() {
        let plain = CacheKey(service: "s", url: "http://example.com/a?b")
        let more = CacheKey(service: "s", url: "http://example.com/a?b", lines: ["x-tenant: 1", "cookie"])
        #expect(more != plain)
        #expect(more.service == "s" && more.description == plain.description)
        #expect(more.extras == "x-tenant: 1\ncookie" && plain.extras == nil)
        #expect(more.plainBytes == plain.bytes && plain.plainBytes == plain.bytes)
        #expect(more.originBytes == plain.originBytes)
        #expect(CacheKey(bytes: more.bytes) == more)
        #expect(plain.adding(lines: ["x-tenant: 1"]).adding(lines: ["cookie"]) == more)
        #expect(more.adding(lines: []) == more)
        // The URL ends where it ends.
        let other = CacheKey(service: "s", url: "http://example.com/a?bx-tenant: 1", lines: ["cookie"])
        #expect(other != more && other.extras == "cookie")
    }

    @Test func `two services on one origin never share a key`() {
        let one = CacheKey(service: "one", url: "http://example.com/")
        let two = CacheKey(service: "two", url: "http://example.com/")
        #expect(one != two)
        #expect(one.service == "one")
        #expect(one.bytes.withUnsafeBytes(CacheKey.hash) == one.hash)
    }
}
