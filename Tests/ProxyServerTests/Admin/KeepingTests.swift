// Purges and pins in the admin API: what may be asked for, and what is refused before anything is touched.

import AdminAPI
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

private final class ScriptedKeeping: HousekeepingActions {
    let questions = Monitor<[PurgeQuery]>([])
    let pinned = Monitor<[String]>([])

    func purge(_ question: PurgeQuery) async throws(Problem) -> AdminPurge {
        questions.update { $0.append(question) }
        return AdminPurge(purged: 3, isSoft: question.isSoft)
    }

    func setPinned(_ url: String, _ isPinned: Bool) async throws(Problem) -> AdminPin {
        pinned.update { $0.append("\(isPinned ? "+" : "-")\(url)") }
        return AdminPin(url: url, isPinned: isPinned, isChanged: true)
    }

    func pins() async -> AdminPins { AdminPins(urls: ["http://a/"]) }
}

@Suite struct KeepingTests {
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
        let actions = ScriptedKeeping()
        let routes = actions.keepingRoutes
        func perform(_ method: String, _ path: String, _ query: String) async throws -> String {
            let route = try #require(routes.first { $0.method.name == method && $0.path.places(in: path) != nil })
            let answer = try await route.perform(AdminRequest(queryItems: AdminQuery.split("?\(query)").members))
            return String(decoding: answer.body, as: UTF8.self)
        }
        #expect(try await perform("DELETE", "/v1/entries", "tag=a") == "{\"is_soft\":false,\"purged\":3}\n")
        #expect(try await perform("GET", "/v1/pins", "") == "{\"urls\":[\"http://a/\"]}\n")
        let pinned = try await perform("PUT", "/v1/pins", "url=http%3A%2F%2Fa%2F")
        #expect(pinned == "{\"is_changed\":true,\"is_pinned\":true,\"url\":\"http://a/\"}\n")
        _ = try await perform("DELETE", "/v1/pins", "url=%2Fa")
        #expect(actions.pinned.read { $0 } == ["+http://a/", "-/a"])
        for query in ["", "url=", "url=a&url=b", "name=a"] {
            await #expect(throws: Problem.self) { try await perform("PUT", "/v1/pins", query) }
        }
        await #expect(throws: Problem.self) { try await perform("GET", "/v1/pins", "x=1") }
        #expect(actions.questions.read { $0.count } == 1)
    }
}
