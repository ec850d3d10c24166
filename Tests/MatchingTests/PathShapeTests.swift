// Paths that are taken for patterns, and the regular expressions that are proposed in their place.

import Matching
import Testing

@Suite struct PathShapeTests {
    @Test(arguments: [
        ("/users/:id", "^/users/[^/]+$"), ("/files/*", "^/files/[^/]*$"), ("/a/**", "^/a/.*$"),
        ("/a/{id}/b.json", #"^/a/[^/]+/b\.json$"#), ("/a/x-{id}.{kind}", #"^/a/x-[^/]+\.[^/]+$"#), ("*", "^[^/]*$"),
        ("/:_a/(b", #"^/[^/]+/\(b$"#),
    ])
    func patterns(path: String, expression: String) {
        #expect(PathShape.looksLikePattern(path))
        #expect(PathShape.expression(path) == expression)
    }

    @Test(arguments: ["/", "", "/users/7", "/v1/users:batch", "/a/:", "/a/:1", "/a/{b", "/a/b}", "/a/{/}", "/a?b.c+d"])
    func otherPathsAreNone(path: String) { #expect(!PathShape.looksLikePattern(path)) }
}
