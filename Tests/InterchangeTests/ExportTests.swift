// Rules as stubs of WireMock and as entries of a log: each clause, and what neither can say.

import Interchange
import Matching
import Testing
import Trees

@Suite struct ExportTests {
    private static func rule(_ clauses: [RequestClause], prefix: String = "/") -> ExportedRule {
        let answer = ExportedAnswer(status: 200, fields: [("Content-Type", "text/plain")], content: Array("x".utf8))
        return ExportedRule(name: "r", baseURL: "http://h", prefix: prefix, clauses: clauses, answers: [answer])
    }

    private static func text(_ tree: ContentTree?) -> String {
        tree.map { String(decoding: JSONWriter.bytes($0), as: UTF8.self) } ?? ""
    }

    /// The requests of the stubs that are made of a rule, or why there are none.
    private static func requests(_ rule: ExportedRule) -> String {
        let export = Export.write([rule], .wiremock, version: "1")
        guard case .array(let stubs)? = export.tree["mappings"] else { return "" }
        return (stubs.map { text($0["request"]) } + export.notes.map(\.reason)).joined(separator: " ")
    }

    private static func pattern(_ text: String) throws -> Pattern { try Pattern(text) }

    /// A recording has the path on the origin, of which the path of the base is a part.
    @Test func recordingsBehindABaseWithAPathHaveTheirOwnURLs() throws {
        let document =
            #"{"request":"GET /base/users/7?a=1&a=2","status":200,"fields":[],"recorded_at":"2026-11-21T07:00:00Z"}"#
        let recorded = try #require(RecordedAnswer(Array(document.utf8)))
        let (rule, _) = recorded.rule(service: "q", baseURL: "http://h:81/base", prefix: "/q", content: [])
        let log = Export.write([rule], .har, version: "1").tree
        let url = log["log"]?["entries"]?.element(at: ["0", "request", "url"])
        #expect(url == .string("http://h:81/base/users/7?a=1&a=2"))
        #expect(
            Self.requests(rule)
                == #"{"method":"GET_OR_HEAD","urlPath":"/q/users/7","queryParameters":{"a":{"includes":[{"equalTo":"1"},{"equalTo":"2"}]}}}"#
        )
    }

    @Test func methodsThatALogCannotHaveAreTold() {
        func notes(_ clauses: [RequestClause]) -> [String] {
            Export.write([Self.rule(clauses + [.path(.equals("/a"))])], .har, version: "1").notes.map(\.reason)
        }
        #expect(notes([.method(["GET", "HEAD"])]).isEmpty && notes([.method(["PUT"])]).isEmpty)
        #expect(notes([.method(["POST", "PUT"])]) == ["it is for several methods, and the log has it for POST"])
        #expect(notes([]) == ["it is for any method, and the log has it for GET"])
    }

    @Test(
        arguments: [
            ([.method(["PUT"]), .path(.equals("/a"))], #"{"method":"PUT","urlPath":"/v/a"}"#),
            (
                [.method(["GET", "PUT"])],
                #"{"method":"GET","urlPathPattern":"/v.*"} {"method":"PUT","urlPathPattern":"/v.*"}"#
            ),
            ([.path(.contains("a.b"))], #"{"method":"ANY","urlPathPattern":"/v.*a\\.b.*"}"#),
            ([.path(.oneOf(["/a", "/b"]))], #"{"method":"ANY","urlPathPattern":"/v(?:/a|/b)"}"#),
            ([.path(.not(.equals("/a")))], "WireMock has no test like that of its path"),
            (
                [.query("q", .present(false)), .query("r", .not(.contains("x")))],
                #"{"method":"ANY","urlPathPattern":"/v.*","queryParameters":{"q":{"absent":true},"r":{"doesNotContain":"x"}}}"#
            ),
            (
                [.path(.equals("/a")), .query("q", .equals("1 2")), .onlyQuery(["q"])],
                #"{"method":"ANY","url":"/v/a?q=1%202"}"#
            ),
            (
                [.onlyQuery([])],
                "its query has no further items, and WireMock can ask for that only of one whole path"
            ),
            (
                [.field("X-A", .oneOf(["a"]))],
                #"{"method":"ANY","urlPathPattern":"/v.*","headers":{"X-A":{"or":[{"equalTo":"a"}]}}}"#
            ),
            (
                [.cookie("c", .all([.contains("a"), .not(.equals("b"))]))],
                #"{"method":"ANY","urlPathPattern":"/v.*","cookies":{"c":{"and":[{"contains":"a"},{"doesNotMatch":"b"}]}}}"#
            ),
            ([.cookie("c", .not(.present(true)))], "WireMock has no opposite of one of its tests"),
            (
                [.body(.form("f", .equals("1")))],
                #"{"method":"ANY","urlPathPattern":"/v.*","formParameters":{"f":{"equalTo":"1"}}}"#
            ),
            (
                [.body(.text(.contains("t")))],
                #"{"method":"ANY","urlPathPattern":"/v.*","bodyPatterns":[{"contains":"t"}]}"#
            ),
            (
                [.body(.json([], .equals(.array([]))))],
                #"{"method":"ANY","urlPathPattern":"/v.*","bodyPatterns":[{"equalToJson":"[]"}]}"#
            ),
            (
                [.body(.json([], .contains(.empty)))],
                #"{"method":"ANY","urlPathPattern":"/v.*","bodyPatterns":[{"equalToJson":"{}","ignoreArrayOrder":true,"ignoreExtraElements":true}]}"#
            ),
            (
                [.body(.json(["a", "0", "b"], .present(true))), .body(.json(["c"], .equals(.number("1"))))],
                #"{"method":"ANY","urlPathPattern":"/v.*","bodyPatterns":[{"matchesJsonPath":"$['a'][0]['b']"},{"matchesJsonPath":{"expression":"$['c']","equalToJson":"1"}}]}"#
            ),
            ([.body(.json(["a"], .not(.present(true))))], "WireMock has no test like that of $['a']"),
        ] as [([RequestClause], String)]
    ) func conditionsBecomeRequests(_ clauses: [RequestClause], _ request: String) {
        #expect(Self.requests(Self.rule(clauses, prefix: "/v")) == request)
    }

    @Test(arguments: [
        (#"\A(?:a|b)\z"#, "a|b"), (#"\A(?:a)|(?:b)\z"#, #"[\s\S]*?(?:\A(?:a)|(?:b)\z)[\s\S]*"#), ("^a$", "(?:a)"),
        (#"a\$"#, #"[\s\S]*?(?:a\$)[\s\S]*"#), ("^a", #"(?:a)[\s\S]*"#), ("a", #"[\s\S]*?(?:a)[\s\S]*"#),
        ("^a|b", #"[\s\S]*?(?:^a|b)[\s\S]*"#),
    ]) func patternsAreTheWholeText(_ found: String, _ whole: String) throws {
        let rule = Self.rule([.query("q", .matches(try Self.pattern(found)))])
        let request = Export.write([rule], .wiremock, version: "1").tree["mappings"].map(Self.text) ?? ""
        #expect(request.contains(Self.text(.object([.init("matches", .string(whole))]))), "\(request)")
        let path = Self.rule([.path(.matches(try Self.pattern("^/a|/b")))], prefix: "/v")
        #expect(Self.requests(path) == "its pattern has anchors, and the path of a stub has the prefix, too")
    }

    @Test func pathsOfEndpointsAreTemplates() {
        let cases: [([ExportedRule.Segment], String)] = [
            ([.literal("a"), .parameter("id")], #"{"method":"ANY","urlPathTemplate":"/v/a/{id}"}"#),
            ([.literal("a.b"), .rest], #"{"method":"ANY","urlPathPattern":"/v/a\\.b/.*"}"#),
            ([], #"{"method":"ANY","urlPath":"/v/"}"#),
        ]
        for (template, request) in cases {
            var rule = Self.rule([], prefix: "/v")
            rule.template = template
            #expect(Self.requests(rule) == request)
        }
    }

    @Test func answersThatFollowOneAnotherAreStatesOfAScenario() {
        var rule = Self.rule([.path(.equals("/a"))])
        rule.answers.append(ExportedAnswer(status: 500, fields: [("A", "1"), ("a", "2")], content: [0xFF]))
        rule.latency = 5...9
        let export = Export.write([rule], .wiremock, version: "1")
        #expect(export.count == 2 && export.notes.map(\.kind) == [.changed])
        #expect(
            Self.text(export.tree["mappings"])
                == #"[{"name":"r","priority":1,"scenarioName":"r","requiredScenarioState":"Started","newScenarioState":"answer 2","request":{"method":"ANY","urlPath":"/a"},"response":{"status":200,"headers":{"Content-Type":"text/plain"},"body":"x","delayDistribution":{"type":"uniform","lower":5,"upper":9}}},{"name":"r","priority":2,"scenarioName":"r","requiredScenarioState":"answer 2","request":{"method":"ANY","urlPath":"/a"},"response":{"status":500,"headers":{"A":["1","2"]},"base64Body":"/w==","delayDistribution":{"type":"uniform","lower":5,"upper":9}}}]"#
        )
    }

    @Test func aLongTailIsOneForWireMock() {
        var rule = Self.rule([.path(.equals("/a"))])
        (rule.latency, rule.lognormal) = (80...80, (median: 80, sigma: 1.0405))
        let export = Export.write([rule], .wiremock, version: "1")
        #expect(
            Self.text(export.tree["mappings"]).hasSuffix(
                #""body":"x","delayDistribution":{"type":"lognormal","median":80.0,"sigma":1.0405}}}]"#
            )
        )
    }

    @Test func aRuleForOneRequestIsAnEntry() throws {
        let rules: [ExportedRule] = [
            Self.rule([
                .method(["POST"]), .path(.equals("/a")), .query("q", .equals("a b")),
                .body(.json([], .equals(.number("1")))),
            ]),
            Self.rule([.path(.matches(try Self.pattern("a")))]), Self.rule([]),
        ]
        let export = Export.write(rules, .har, version: "1")
        #expect(export.count == 1)
        #expect(
            export.notes.map(\.reason) == [
                "it is for more than one request, and a log has one for each answer",
                "it is for more than one path, and a log has one for each answer",
            ]
        )
        #expect(
            Self.text(export.tree)
                == #"{"log":{"version":"1.2","creator":{"name":"drydock","version":"1"},"entries":[{"startedDateTime":"1970-01-01T00:00:00Z","time":0,"request":{"method":"POST","url":"http://h/a?q=a%20b","httpVersion":"HTTP/1.1","cookies":[],"headers":[],"queryString":[{"name":"q","value":"a b"}],"headersSize":-1,"bodySize":1,"postData":{"mimeType":"application/json","text":"1"}},"response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","cookies":[],"headers":[{"name":"Content-Type","value":"text/plain"}],"content":{"size":1,"mimeType":"text/plain","text":"x"},"redirectURL":"","headersSize":-1,"bodySize":1},"cache":{},"timings":{"send":0,"wait":0,"receive":0}}]}}"#
        )
    }
}
