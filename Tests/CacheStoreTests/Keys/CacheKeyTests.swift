// What the whole room rests on: keys and checksums.

import StoreSupport
import Testing

@testable import CacheStore

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

    /// As CPython computes it with a key of zeros, for whom this is the hash of bytes.
    @Test(
        arguments: [
            ("a", 0x4074_48D2_B89B_1813), ("1234567", 0xA33D_6515_94FD_AE81), ("12345678", 0x3489_9824_3056_0A87),
            ("service\0http://127.0.0.1:8080/files/1024", 0xFDBC_571B_CE31_8721),
        ] as [(String, UInt64)]
    )
    func `the hash is SipHash-1-3`(key: String, expected: UInt64) {
        #expect(Array(key.utf8).withUnsafeBytes { KeyHash.hash($0, 0, 0) } == expected)
    }

    @Test func `every byte of a key counts in its hash, and its length`() {
        let bytes = (0..<40).map { UInt8($0 + 0x30) }
        for count in bytes.indices {
            let part = Array(bytes[..<count])
            let hash = CacheKey(bytes: part).hash
            #expect(hash == part.withUnsafeBytes(CacheKey.hash))
            #expect(hash != CacheKey(bytes: part + [0]).hash)
            for position in part.indices {
                var other = part
                other[position] ^= 1
                #expect(CacheKey(bytes: other).hash != hash)
            }
        }
    }

    @Test func `two services on one origin never share a key`() {
        let one = CacheKey(service: "one", url: "http://example.com/")
        let two = CacheKey(service: "two", url: "http://example.com/")
        #expect(one != two)
        #expect(one.service == "one")
        #expect(one.bytes.withUnsafeBytes(CacheKey.hash) == one.hash)
    }
}
