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
            "/a/%25%32%65%25%32%65/b", "/a/%%32%65%%32e/b", "/a/%2%65%2%65/b", "/%%32%65", "/%2%65", "/%25%32e",
            "/%%%33%32%65/b", "/a%2%66..", "/..%2%66b", "/a%25%32%66..%25%35%63b", "/..%25%33%62/b", "/..%2%35%30%30",
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
            "/.%2", "/.%zz", "/%25", "/%2525", "/%25zz", "/a%3f/..a", "/a//b", "//", "/..%20/", "/..%", "/..%%2/",
            "/..%2%6", "/%%%%%", "/%2%2%2%2", "/a?%25%32%65",
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
}
