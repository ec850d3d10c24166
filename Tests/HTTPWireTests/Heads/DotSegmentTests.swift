// Dot segments, in all the ways in which a server may come to see them (RFC 3986 sections 3.3 and 5.2.4).

import HTTPWire
import Testing

@Suite("Dot segments")
struct DotSegmentTests {
    @Test(
        "each way to leave a path is seen",
        arguments: [
            "/..", "/.", "/../", "/./", "/a/..", "/a/../b", "/a/./b", "/a/..?q", "/..;", "/a/..;/b", "/a/..;x=1/b",
            "/.;/b",
            "/..%3b/b", "/%2e", "/%2e%2e", "/%2E%2e/b", "/.%2e/b", "/%2e./b", "/a%2f..", "/..%2fb", "/a%2F..%2Fb",
            "/a\\..\\b", "/..\\b", "/a%5c..", "/..%5Cb", "/%252e%252e/b", "/..%252fb", "/%25252e/b", "/a/..%00",
            "/a/..%00/b",
            "..", ".", "%2e%2e", "\\..",
        ]
    )
    func occurs(target: String) { #expect(DotSegments.mayOccur(in: target)) }

    @Test(
        "what only has dots is left alone",
        arguments: [
            "", "/", "/a", "/...", "/..a", "/a..", "/a../b", "/.a", "/.well-known/x", "/a.b/c.d", "/a?/../b",
            "/a?../..", "?..",
            "/a%2Fb", "/group%2Fproject", "/a%5cb", "/a;b/c", "/;..a", "/a;..", "/%2e%2e%2e", "/%2ea", "/a%2e%2e", "/%",
            "/%2",
            "/.%2", "/.%zz", "/%25", "/%2525", "/%25zz", "/a%3f/..a", "/a//b", "//", "/..%20/",
        ]
    )
    func doesNotOccur(target: String) { #expect(!DotSegments.mayOccur(in: target)) }

    @Test(
        "a browser's way through them",
        arguments: [
            ("/a/b", "/a/b"), ("/", "/"), ("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/../../b", "/b"), ("/a/..", "/"),
            ("/a/b/..", "/a/"), ("/a/.", "/a/"), ("/a/%2e%2E/b", "/b"), ("/a/.%2e/b?x=/../y", "/b?x=/../y"),
            ("/a/../b#/../c", "/b#/../c"), ("/a\\..\\b", "/b"), ("/a\\b", "/a\\b"), ("/.//a", "//a"),
            ("/a//../b", "/a/b"),
            ("/a/..%2fb", "/a/..%2fb"), ("/a/..;/b", "/a/..;/b"), ("/...", "/..."), ("/a?..", "/a?.."),
        ]
    )
    func resolved(reference: String, path: String) { #expect(DotSegments.resolved(reference) == path) }

    @Test(
        "a byte is decoded however often it was encoded",
        arguments: [
            ("a", 0x61, 1), ("%2e", 0x2E, 3), ("%2E", 0x2E, 3), ("%252e", 0x2E, 5), ("%25252e", 0x2E, 7),
            ("%", 0x25, 1),
            ("%2", 0x25, 1), ("%zz", 0x25, 1), ("%25", 0x25, 3), ("%25z", 0x25, 3), ("%2525", 0x25, 5), ("%00", 0, 3),
            ("%ff", 0xFF, 3),
        ] as [(String, UInt8, Int)]
    )
    func decoded(text: String, byte: UInt8, next: Int) {
        let decoded = bytes(text).withUnsafeBytes { DecodedByte($0, at: 0) }
        #expect(decoded.byte == byte)
        #expect(decoded.next == next)
    }
}
