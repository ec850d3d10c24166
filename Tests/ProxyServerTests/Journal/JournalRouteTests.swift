// `/v1/journal` and `/v1/verify`: which questions are understood, and what a stream has.

import AdminAPI
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct JournalRouteTests {
    private final class Actions: JournalActions {
        let journal = Journal(JournalSettings(size: 256 << 10))
        let asked = Monitor([JournalQuery]())

        func journal(_ query: JournalQuery) async throws(Problem) -> AdminJournal {
            asked.update { $0.append(query) }
            return AdminJournal(entries: [], bytes: 0, limit: 0, dropped: 0)
        }
        func follow(_ query: JournalQuery) async throws(Problem) -> JournalStream {
            guard let reader = journal.follow(from: journal.start) else { throw .journalOff }
            return JournalStream(reader, query)
        }
        func clearJournal() async throws(Problem) -> AdminJournalCleared {
            AdminJournalCleared(entries: journal.clear())
        }
        func verify(_ wanted: AdminVerification) async throws(Problem) -> AdminVerdict {
            try JournalCheck(wanted, redacted: [], now: 0).run(journal)
        }
    }

    private func route(_ actions: Actions, _ method: HTTPWire.Method, _ path: AdminPath) throws -> AdminRoute {
        try #require(actions.journalRoutes.first { $0.method == method && $0.path == path })
    }

    @Test(
        arguments: [
            ([], JournalQuery()),
            (
                [("service", "api"), ("limit", "3")],
                {
                    var query = JournalQuery(); (query.service, query.limit) = ("api", 3); return query
                }()
            ),
        ]
    )
    func understood(_ members: [(String, String)], _ query: JournalQuery) async throws {
        let actions = Actions()
        let items = members.map { (name: $0.0, value: $0.1) }
        let answer = try await route(actions, .get, .journal).perform(AdminRequest(queryItems: items))
        #expect(answer.status == 200 && actions.asked.read { $0 } == [query])
    }

    @Test(
        arguments: [
            [("service", "")], [("service", "a"), ("service", "b")], [("limit", "-1")], [("limit", "x")],
            [("follow", "1")], [("follow", ""), ("limit", "3")], [("other", "")],
        ]
    )
    func refused(_ members: [(String, String)]) async throws {
        let actions = Actions()
        let items = members.map { (name: $0.0, value: $0.1) }
        await #expect(throws: Problem.self) {
            try await route(actions, .get, .journal).perform(AdminRequest(queryItems: items))
        }
        await #expect(throws: Problem.self) {
            try await route(actions, .delete, .journal).perform(
                AdminRequest(queryItems: [(name: "service", value: "a")])
            )
        }
    }

    @Test func aStreamHasTheLinesOfOneService() async throws {
        let actions = Actions()
        var entry = JournalEntry(time: 1_769_860_800_123_456_789, method: "GET", target: "/a", status: 200)
        actions.journal.record(entry)
        (entry.service, entry.body, entry.isBodyCut) = ("api", Array("caf\u{E9}".utf8.dropLast()), true)
        actions.journal.record(entry)
        let items = [(name: "follow", value: ""), (name: "service", value: "api")]
        let answer = try await route(actions, .get, .journal).perform(AdminRequest(queryItems: items))
        #expect(answer.type == "application/jsonl")
        let stream = try #require(answer.stream)
        let lines = try #require(await stream.next())
        #expect(
            String(decoding: lines, as: UTF8.self)
                == #"{"body":"caf","duration_ms":0,"fields":[],"is_body_cut":true,"method":"GET","number":2,"service":"api","source":"","status":200,"target":"/a","time":"2026-01-31T12:00:00.123Z"}"#
                + "\n"
        )
        stream.close()
        #expect(actions.journal.readerCount == 0)
    }

    @Test func aQuestionWithAnUnknownMemberIsRefused() async throws {
        let verify = try route(Actions(), .post, .verify)
        let answer = try await verify.perform(AdminRequest(body: Array(#"{"path": "/a", "times": 0}"#.utf8)))
        #expect(try AdminJSON.decode(AdminVerdict.self, from: answer.body).isMet)
        for text in [#"{"path": "/a", "tmes": 0}"#, "{", #"{"times": "1"}"#] {
            await #expect(throws: Problem.self) { try await verify.perform(AdminRequest(body: Array(text.utf8))) }
        }
    }
}
