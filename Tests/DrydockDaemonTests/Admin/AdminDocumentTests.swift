// What a daemon answers of itself: its status, a reload, the listing, an explanation, its switches and its metrics.

import CacheStore
import Foundation
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct AdminDocumentTests {
    private static let text = """
        services: [{ name: github, match: { prefix: /github }, base_url: "http://127.0.0.1:9" }]
        clock: { movable: true }
        """

    @Test func `status and entries are documents`() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            let status = try AdminJSON.decode(AdminStatus.self, from: try harness.ask("GET", "/v1/status").body)
            #expect(status.pid == Int(getpid()))
            #expect(status.services.map(\.name) == ["github", "forward"])
            #expect(status.disk == nil && status.clock.isMovable && !status.isOffline)
            let query = "prefix=http%3A%2F%2Fa%2F&limit=10&after=http://a/0"
            let list = try AdminJSON.decode(
                AdminEntries.self,
                from: try harness.ask("GET", "/v1/entries?\(query)").body
            )
            #expect(list.entries.isEmpty && list.next == nil)
        }
        var query = AdminEntryQuery()
        (query.list.prefix, query.list.limit, query.list.after) = ("http://a/", 10, "http://a/0")
        (query.isFresh, query.olderThan) = (true, 604_800)
        let members = ["prefix": "http://a/", "limit": "10", "after": "http://a/0", "fresh": "", "older_than": "7d"]
        #expect(try AdminEntryQuery(query: members) == query)
    }

    @Test func `a reload says what it came to`() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            let done = try harness.ask("POST", "/v1/reload")
            #expect(done.status == 200 && done.text.contains("1 service"), "\(done.text)")
            let file = harness.folder.file("drydock.yaml")
            let before = try String(contentsOfFile: file, encoding: .utf8)
            try (before + "\nunknown_key: 1\n").write(toFile: file, atomically: true, encoding: .utf8)
            let failed = try harness.ask("POST", "/v1/reload", "ignored")
            #expect(failed.status == 422 && failed.text.contains("the old configuration stays in force"))
            #expect(failed.text.contains("unknown_key"), "\(failed.text)")
        }
    }

    @Test func `health, readiness and metrics are text`() async throws {
        try await DaemonHarness.run { harness throws in
            #expect(try harness.ask("GET", "/healthz").text == "ok\n")
            #expect(try harness.ask("GET", "/readyz").text == "ready\n")
            let metrics = try harness.ask("GET", "/metrics")
            #expect(metrics.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            #expect(metrics.text.contains("# TYPE drydock_connections gauge\n"))
        }
    }

    @Test func `what is not understood changes nothing`() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            for (method, target) in [
                ("POST", "/v1/offline"), ("POST", "/v1/offline?on&off"), ("POST", "/v1/offline?yes"),
                ("POST", "/v1/offline?on=1"), ("POST", "/v1/clock"), ("POST", "/v1/clock?advance=2"),
                ("POST", "/v1/clock?advance=250ms"), ("POST", "/v1/clock?advance=-2h"),
                ("POST", "/v1/clock?advance=2h&reset"), ("POST", "/v1/clock?reset=1"), ("POST", "/v1/clock?back=2h"),
                ("GET", "/v1/entries?limit=0"), ("GET", "/v1/entries?limit=x"), ("GET", "/v1/entries?prefx=a"),
                ("GET", "/v1/entries?tier=seed"), ("GET", "/v1/entries?fresh&stale"),
                ("GET", "/v1/entries?min_size=-1"), ("GET", "/v1/entries?older_than=7"),
                ("GET", "/v1/entries?pattern="),
            ] {
                let answer = try harness.ask(method, target)
                #expect(answer.status == 400 && answer.text.contains("Bad query"), "\(target): \(answer.text)")
            }
            let status = try AdminJSON.decode(AdminStatus.self, from: try harness.ask("GET", "/v1/status").body)
            #expect(!status.isOffline && status.clock.ahead == 0)
        }
    }

    @Test func `a question has a URL and any fields`() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            let query = "url=%2Fgithub%2Fa%3Fb&as=text&field=Accept:%20x&field=X-Y:"
            let answer = try harness.ask("GET", "/v1/explain?\(query)")
            #expect(answer.status == 200 && answer.field("Content-Type") == "text/plain; charset=utf-8")
            #expect(answer.text.hasPrefix("request        GET /github/a?b\n"), "\(answer.text)")
            #expect(answer.text.contains("               Accept: x\n") && answer.text.contains("X-Y: \n"))
            let document = try harness.ask("GET", "/v1/explain?url=%2Fgithub%2Fa")
            #expect(try AdminJSON.decode(AdminExplanation.self, from: document.body).route.service == "github")
            let refused = try harness.ask("GET", "/v1/explain?url=%2Fnowhere")
            #expect(refused.status == 422 && refused.text.contains("no service matches /nowhere"), "\(refused.text)")
        }
    }

    @Test func `offline is switched by a word, and the clock is moved by a duration, or reset`() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            #expect(try harness.ask("POST", "/v1/offline?on").text == "{\"is_offline\":true}\n")
            #expect(try harness.ask("POST", "/v1/offline?off").text == "{\"is_offline\":false}\n")
            let moved = try harness.ask("POST", "/v1/clock?advance=2h")
            let document = try AdminJSON.decode(AdminClock.self, from: moved.body)
            #expect(moved.status == 200 && document.ahead == 7200 && moved.text.contains("\"unix_time\":"))
            let reset = try AdminJSON.decode(AdminClock.self, from: try harness.ask("POST", "/v1/clock?reset").body)
            #expect(reset.ahead == 0)
        }
        try await DaemonHarness.run { harness throws in
            let refused = try harness.ask("POST", "/v1/clock?advance=2h")
            #expect(refused.status == 403 && refused.text.contains("clock: { movable: true }"))
        }
    }
}
