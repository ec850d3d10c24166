// `/v1/journal` and `/v1/verify`: which questions are understood, and what a stream has.

import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct JournalRouteTests {
    @Test func understood() throws {
        #expect(try JournalQuery(members: []) == JournalQuery())
        var query = JournalQuery()
        (query.service, query.limit) = ("api", 3)
        #expect(try JournalQuery(members: [("service", "api"), ("limit", "3")]) == query)
        (query.service, query.limit, query.follows) = (nil, 0, true)
        #expect(try JournalQuery(members: [("follow", ""), ("limit", "0")]) == query)
    }

    @Test(
        arguments: [
            [("service", "")], [("service", "a"), ("service", "b")], [("limit", "-1")], [("limit", "x")],
            [("follow", "1")], [("follow", ""), ("limit", "3")], [("other", "")],
        ]
    )
    func refused(_ members: [(String, String)]) {
        #expect(throws: Problem.self) { try JournalQuery(members: members.map { (name: $0.0, value: $0.1) }) }
    }

    @Test func aStreamHasTheLinesOfOneService() async throws {
        let journal = Journal(JournalSettings(size: 256 << 10))
        var entry = JournalEntry(time: 1_769_860_800_123_456_789, method: "GET", target: "/a", status: 200)
        journal.record(entry)
        (entry.service, entry.body, entry.isBodyCut) = ("api", Array("caf\u{E9}".utf8.dropLast()), true)
        journal.record(entry)
        var query = JournalQuery()
        query.service = "api"
        let stream = JournalStream(try #require(journal.follow(from: journal.start)), query)
        let lines = try #require(await stream.next())
        #expect(
            String(decoding: lines, as: UTF8.self)
                == #"{"body":"caf","duration_ms":0,"fields":[],"is_body_cut":true,"method":"GET","number":2,"service":"api","source":"","status":200,"target":"/a","time":"2026-01-31T12:00:00.123Z"}"#
                + "\n"
        )
        stream.close()
        #expect(journal.readerCount == 0)
    }

    @Test func `the routes of a journal that is kept, and of one that is not`() async throws {
        try await DaemonHarness.run("services: []\njournal: 256KiB") { harness throws in
            #expect(try harness.ask("GET", "/v1/journal?limit=3").text.contains("\"entries\":[]"))
            #expect(try harness.ask("GET", "/v1/journal?limit=x").status == 400)
            let stream = try harness.ask("HEAD", "/v1/journal?follow")
            #expect(stream.status == 200 && stream.field("Content-Type") == "application/jsonl")
            #expect(try harness.ask("DELETE", "/v1/journal?service=a").status == 400)
            #expect(try harness.ask("DELETE", "/v1/journal").text == "{\"entries\":0}\n")
            let verdict = try harness.ask("POST", "/v1/verify", #"{"path": "/a", "times": 0}"#)
            #expect(try AdminJSON.decode(AdminVerdict.self, from: verdict.body).isMet)
            for text in [#"{"path": "/a", "tmes": 0}"#, "{", #"{"times": "1"}"#] {
                #expect(try harness.ask("POST", "/v1/verify", text).status == 400, "\(text)")
            }
        }
        try await DaemonHarness.run { harness throws in
            for (method, target) in [("GET", "/v1/journal"), ("DELETE", "/v1/journal"), ("POST", "/v1/verify")] {
                let answer = try harness.ask(method, target, method == "POST" ? "{}" : nil)
                #expect(answer.status == 409 && answer.text.contains("write journal: 16MiB"), "\(answer.text)")
            }
        }
    }
}
