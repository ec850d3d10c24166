// Cache groups (RFC 9875): who belongs to a group, and what makes a group invalid.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Cache groups")
struct CacheGroupTests {
    @Test(
        "RFC 9875 2: a list of strings, compared to the letter; anything else is ignored as a whole",
        arguments: [
            ([], []), (["\"a\""], ["a"]), (["\"a\", \"b c\""], ["a", "b c"]), (["\"a\"", "\"b\""], ["a", "b"]),
            (["\"a\" ,\t\"a\", \"A\""], ["a", "A"]), (["\"a\";x=1, \"b\";y"], ["a", "b"]), (["\"\""], [""]),
            (["\"a\\\"b\\\\\""], ["a\"b\\"]), ([""], []), (["a"], []), (["\"a\", b"], []), (["\"a\", 1"], []),
            (["\"a\", (\"b\")"], []), (["\"a\","], []), (["\"a\" \"b\""], []), (["\"a"], []), (["\"\u{E9}\""], []),
        ] as [([String], [String])]
    )
    func membership(lines: [String], groups: [String]) {
        #expect(Caching.cacheGroups(Fields(lines.map { ("cache-groups", $0) })) == groups)
    }

    @Test("RFC 9875 2: 128 groups of 128 characters are read")
    func size() {
        let groups = (0..<128).map { String(repeating: "x", count: 125) + String(1000 + $0).dropFirst() }
        let value = groups.map { "\"\($0)\"" }.joined(separator: ", ")
        #expect(Caching.cacheGroups(Fields([("Cache-Groups", value)])) == groups)
    }

    @Test(
        "RFC 9875 3: invalidation by answers to unsafe methods that are no errors",
        arguments: [
            (HTTPWire.Method.post, 200, ["a"]), (.delete, 204, ["a"]), (.put, 399, ["a"]),
            (.other("PURGE"), 200, ["a"]),
            (.post, 400, []), (.post, 500, []), (.get, 200, []), (.head, 200, []), (.options, 200, []),
            (.trace, 200, []),
        ] as [(HTTPWire.Method, Int, [String])]
    )
    func invalidation(method: HTTPWire.Method, status: Int, groups: [String]) {
        let answer = response(status, [("Cache-Group-Invalidation", "\"a\";p=1"), ("Cache-Groups", "\"b\"")])
        #expect(Caching.invalidatedGroups(method: method, response: answer) == groups)
    }

    @Test("RFC 9875: a response with groups has no hot window, so that each use looks at them")
    func hotPath() {
        func window(_ groups: String) -> HotPathWindow? {
            let head = stored([("Cache-Control", "max-age=60"), ("Cache-Groups", groups)])
            return Caching.hotPath(stored: head, policy: CachePolicy())
        }
        #expect(window("\"a\"") == nil)
        #expect(window("a") != nil)
    }
}
