// The folders above a path, as texts.

import Testing

@testable import Files

@Suite struct AncestorTests {
    @Test(arguments: [
        ("/a/b", "/a"), ("/a", "/"), ("/", "/"), ("a/b", "a"), ("a", "/"), ("", "/"), ("/a/b/", "/a/b"),
    ])
    func parent(path: String, expected: String) { #expect(Ancestors.parent(of: path) == expected) }

    @Test("the nearest is the first of which something is found; nothing is asked beyond it")
    func nearest() {
        var asked: [String] = []
        let found = Ancestors.nearest(to: "/a/b/c") { path -> Int? in
            asked.append(path)
            return path == "/a" ? 1 : nil
        }
        #expect(found?.path == "/a" && found?.found == 1)
        #expect(asked == ["/a/b/c", "/a/b", "/a"])
        asked = []
        let none: (path: String, found: Int)? = Ancestors.nearest(to: "/a/b") { path in
            asked.append(path)
            return nil
        }
        #expect(none == nil)
        #expect(asked == ["/a/b", "/a", "/"])
    }
}
