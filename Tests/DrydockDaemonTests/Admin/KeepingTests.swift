// Purges and pins in the admin API: what may be asked for, and what is refused before anything is touched.

import HTTPWire
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct KeepingTests {
    @Test(arguments: [
        ("url=http%3A%2F%2Fa%2F", PurgeQuery(.urls(["http://a/"]))),
        ("url=%2Fa&url=%2Fb&soft", PurgeQuery(.urls(["/a", "/b"]), isSoft: true)),
        ("prefix=http%3A", PurgeQuery(.prefixes(["http:"]))),
        ("glob=*&service=", PurgeQuery(.globs(["*"]), service: "")),
        ("tag=a%20b&service=s", PurgeQuery(.tags(["a b"]), service: "s")),
        ("older_than=7d", PurgeQuery(.olderThan(604_800))), ("all", PurgeQuery(.all)),
        ("all&soft", PurgeQuery(.all, isSoft: true)),
    ])
    func questions(query: String, question: PurgeQuery) throws {
        #expect(try PurgeQuery(members: AdminQuery.split("/v1/entries?\(query)").members) == question)
    }

    @Test(arguments: [
        "", "soft", "service=s", "all=1", "all&all", "all&tag=a", "url=", "url=a&prefix=b", "older_than=7",
        "older_than=1d&older_than=2d",
        "tag=a&soft=1", "tag=a&service=s&service=t", "tg=a", "tag=a&verbose",
    ])
    func refusals(query: String) {
        #expect(throws: Problem.self) { try PurgeQuery(members: AdminQuery.split("/v1/entries?\(query)").members) }
    }

    @Test func `there is a bound on one request`() throws {
        let many = (0...PurgeQuery.most).map { "tag=\($0)" }
        #expect(throws: Problem.self) {
            try PurgeQuery(members: AdminQuery.split("/?\(many.joined(separator: "&"))").members)
        }
        let few = many.dropLast().joined(separator: "&")
        #expect(
            try PurgeQuery(members: AdminQuery.split("/?\(few)").members).target == .tags((0..<100).map(String.init))
        )
        let long = String(repeating: "x", count: PurgeQuery.longest + 1)
        #expect(throws: Problem.self) { try PurgeQuery(members: [("url", long)]) }
    }

    @Test func `routes take their methods, and nothing else`() async throws {
        try await DaemonHarness.run { harness throws in
            func ask(_ method: String, _ target: String) throws -> String { try harness.ask(method, target).text }
            #expect(try ask("DELETE", "/v1/entries?tag=a") == "{\"is_soft\":false,\"purged\":0}\n")
            #expect(try ask("DELETE", "/v1/entries?all&soft") == "{\"is_soft\":true,\"purged\":0}\n")
            let pinned = try ask("PUT", "/v1/pins?url=http%3A%2F%2Fa%2F")
            #expect(pinned == "{\"is_changed\":true,\"is_pinned\":true,\"url\":\"http://a/\"}\n")
            #expect(try ask("GET", "/v1/pins") == "{\"urls\":[\"http://a/\"]}\n")
            for query in ["", "url=", "url=a&url=b", "name=a"] {
                #expect(try harness.ask("PUT", "/v1/pins?\(query)").status == 400, "\(query)")
            }
            #expect(try harness.ask("GET", "/v1/pins?x=1").status == 400)
            #expect(try harness.ask("DELETE", "/v1/entries?tag=").status == 400)
            let unpinned = try ask("DELETE", "/v1/pins?url=http%3A%2F%2Fa%2F")
            #expect(unpinned == "{\"is_changed\":true,\"is_pinned\":false,\"url\":\"http://a/\"}\n")
            #expect(try ask("GET", "/v1/pins") == "{\"urls\":[]}\n")
        }
    }
}
