// How an answer of now differs from a recording: as a function of both.

import HTTPWire
import Policies
import Testing

@testable import ServiceCore

@Suite struct RecordingDriftTests {
    private static func recording(
        _ content: String,
        _ fields: [(String, String)] = [("Content-Type", "application/json")],
        status: Int = 200
    ) -> Recording {
        Recording(
            key: RecordingKey(.get, path: "/a", Fields(), content: [], RecordingRules()),
            recordedAt: 1_700_000_000,
            status: status,
            reason: "",
            fields: Fields(fields),
            content: Array(content.utf8)
        )
    }

    private static func drift(
        _ recording: Recording,
        _ content: String?,
        _ fields: [(String, String)] = [("Content-Type", "application/json")],
        status: Int = 200,
        _ rules: RecordingRules = RecordingRules(),
        comparing names: [String] = []
    ) -> RecordingDrift {
        let head = ResponseHead(status: status, fields: Fields(fields))
        return RecordingDrift(of: recording, head, content.map { Array($0.utf8) }, rules, SecretQuery(), fields: names)
    }

    @Test("documents are compared as trees, and other content as bytes")
    func content() {
        #expect(Self.drift(Self.recording(#"{"a":1,"b":2}"#), #"{ "b": 2, "a": 1 }"#).isEmpty)
        #expect(Self.drift(Self.recording(#"{"a":1}"#), #"{"a":2}"#).content == ["a has changed"])
        #expect(Self.drift(Self.recording(#"{"a":1}"#), "<html>").content == ["it is no JSON any more"])
        let text = Self.recording("one two", [])
        #expect(Self.drift(text, "one two", []).isEmpty)
        let change = Self.drift(text, "one ten!", [])
        #expect(change.content == ["it differs from byte 5, and has 8 bytes of 7"])
        #expect(Self.drift(text, "one", []).content == ["it differs from byte 3, and has 3 bytes of 7"])
        let long = Self.drift(text, nil, [], RecordingRules(maximumSize: 10))
        #expect(long.content == ["it has more than 10 bytes, and had 7"])
        let many = "[" + (0..<20).map(String.init).joined(separator: ",") + "]"
        let none = "[" + (0..<20).map { _ in "-1" }.joined(separator: ",") + "]"
        let found = Self.drift(Self.recording(many), none).content
        #expect(found.count == 11 && found.last == "there are more differences")
    }

    @Test("status and named fields are compared, and what an origin says anew each time is not")
    func heads() {
        let old = Self.recording("", [("Content-Type", "text/plain"), ("ETag", "\"1\""), ("X-Version", "1")])
        let now = [("Content-Type", "text/html"), ("ETag", "\"2\""), ("Date", "now"), ("Location", "/b?token=hush")]
        let drift = Self.drift(old, "", now, status: 201, comparing: ["x-version", "Content-Type"])
        #expect(drift.status == 201)
        #expect(drift.fields.map(\.name) == ["Content-Type", "Location", "x-version"])
        #expect(drift.fields.map(\.recorded) == ["text/plain", nil, "1"])
        #expect(drift.fields.map(\.now) == ["text/html", "/b?token=***", nil])
        #expect(Self.drift(old, "", [("Content-Type", "text/plain"), ("ETag", "\"2\"")]).isEmpty)
    }

    @Test("secrets are taken out of both before they are compared")
    func secrets() {
        let rules = RecordingRules(redactedFields: ["X-Trace"], redactedMembers: [["user", "token"]])
        let old = Self.recording(
            #"{"user":{"token":"***","name":"Ada"}}"#,
            [("Content-Type", "application/json"), ("X-Trace", "***"), ("Set-Cookie", "id=***")]
        )
        let now = [("Content-Type", "application/json"), ("X-Trace", "hush"), ("Set-Cookie", "id=hush")]
        let compared = ["X-Trace", "Set-Cookie"]
        let same = Self.drift(old, #"{"user":{"name":"Ada","token":"hush"}}"#, now, rules, comparing: compared)
        #expect(same.isEmpty)
        let changed = Self.drift(old, #"{"user":{"name":"Bob","token":"hush"}}"#, now, rules, comparing: compared)
        #expect(changed.content == ["user.name has changed"] && changed.fields.isEmpty)
        // What was recorded before the rules named it.
        let older = Self.recording(#"{"user":{"token":"old","name":"Ada"}}"#)
        #expect(Self.drift(older, #"{"user":{"name":"Ada","token":"hush"}}"#, now, rules).isEmpty)
        #expect(!"\(Self.drift(older, "{hush", now, rules))".contains("hush"))
    }

    @Test("a key says what can be asked for again")
    func keys() {
        func key(_ method: HTTPWire.Method, _ path: String, _ rules: RecordingRules = RecordingRules()) -> RecordingKey
        {
            RecordingKey(method, path: path, Fields(), content: [], rules)
        }
        #expect(key(.get, "/a?b=1").pathOfGET == "/a?b=1")
        #expect(key(.head, "/a").pathOfGET == "/a")
        #expect(key(.post, "/a").pathOfGET == nil)
        #expect(!key(.get, "/a?b=1&c").hasSecrets && !key(.get, "/a=***").hasSecrets)
        #expect(key(.get, "/a?b=1&token=x&c=2").hasSecrets)
        #expect(key(.get, "/a?b=1", RecordingRules(redactedQuery: ["b"])).hasSecrets)
    }
}
