// Paths and queries of the admin API: what the command line writes, the daemon reads.

import Testing

@testable import ProxyServer

@Suite struct AdminPathTests {
    @Test("a target is the path with its parameters filled, and the query")
    func targets() {
        #expect(AdminPath.status.target() == "/v1/status")
        #expect(AdminPath.retryJob.target(id: "a/b") == "/v1/jobs/a%2Fb/retry")
        #expect(AdminPath.entries.target([("url", "/a?b c"), ("soft", nil)]) == "/v1/entries?url=%2Fa%3Fb%20c&soft")
        #expect(AdminPath.entries.target([("tag", "")]) == "/v1/entries?tag=")
    }

    @Test("every path leads to itself alone, with any identifier", arguments: AdminPath.allCases)
    func leads(_ path: AdminPath) {
        for id in ["7", "a/b", "?&=%", "\u{e9} \u{1F600}", ":id"] {
            let (found, members) = AdminQuery.split(path.target(id: id, [("x", id), ("y", nil)]))
            #expect(AdminPath.allCases.filter { $0.parameters(in: found) != nil } == [path])
            #expect(path.parameters(in: found) == (path.rawValue.contains(":") ? [id] : []))
            #expect(members.map(\.name) == ["x", "y"] && members.map(\.value) == [id, ""])
        }
    }

    @Test(
        "a parameter is never empty, and never more than a segment",
        arguments: ["/v1/jobs/", "/v1/jobs/7/", "/v1/jobs/a/b", "v1/jobs/7"]
    )
    func strict(_ text: String) { #expect(AdminPath.job.parameters(in: text) == nil) }

    @Test(arguments: [
        ("", ""), ("a%20b", "a b"), ("%C3%a9\u{e9}", "\u{e9}\u{e9}"), ("%2B+%252b", "++%2b"), ("%00", "\0"), ("%", "%"),
        ("%20%4", "%20%4"), ("%20%zz", "%20%zz"), ("%%41", "%%41"), ("%20%FF", "%20%FF"), ("%ED%A0%80", "%ED%A0%80"),
        ("%+1", "%+1"), ("%\u{e9}", "%\u{e9}"),
    ])
    func `escapes are decoded, and text with one that is none stays as it is`(text: String, decoded: String) {
        #expect(AdminQuery.decode(text[...]) == decoded)
    }
}
