// Mappings of WireMock as its users write them: each member of a request and of a response, and the order of stubs.

import Interchange
import Testing
import Trees

@Suite struct WireMockTests {
    private static func folder(_ options: ImportOptions = ImportOptions()) throws -> ImportedConfiguration {
        let sources = try ["mappings/hello.json", "mappings/orders.json"].map { name in
            ImportSource(name: name, bytes: try sample("wiremock/" + name))
        }
        return try Importer.read(sources, nil, options) { try? sample("wiremock/__files/" + $0) }
    }

    @Test func aFolderBecomesAConfiguration() throws {
        let folder = try Self.folder()
        try checked(folder)
        let names = folder.services[0].value(at: ["demo", "rules"]).flatMap { rules -> [String]? in
            if case .array(let rules) = rules { rules.compactMap { $0["name"]?.scalar } } else { nil }
        }
        #expect(
            names == [
                "templated", "contact", "delete-todo", "delete-todo-2", "get-todo", "post-todo", "same-order",
                "big-order",
                "hello-page", "any-order",
            ]
        )
        #expect(folder.body("hello-page.html") == "<h1>Hello</h1>\n")
        #expect(
            folder.services[0]["endpoints"].map { String(decoding: JSONWriter.bytes($0), as: UTF8.self) }
                == #"[{"name":"slow","method":"GET","path":"/slow","faults":[{"at":"demo","dribble":{"chunks":2,"over":"40ms"}},{"at":"demo","latency":{"lognormal":{"median":"10ms","p99":"13ms"}}}],"demo":{"enabled":true,"files":"./bodies","rules":[{"name":"slow","file":"slow.txt"}]}},{"name":"reset","method":"GET","path":"/reset","faults":[{"at":"demo","fault":"reset"}],"demo":{"enabled":true,"files":"./bodies","rules":[{"name":"reset"}]}}]"#
        )
        #expect(
            folder.notes.map(\.description) == [
                "mappings/orders.json#/mappings/1/request/headers/Authorization: changed: the value of 'Authorization' may be a secret: the rule asks only that it is there",
                "mappings/orders.json#/mappings/9/request/bodyPatterns/0/equalToXml: left out: a rule has no test like it",
                "mappings/orders.json#/mappings/11/response/transformers: changed: the body is sent as it stands: templates of WireMock are written in another way than those of Drydock",
                "mappings/orders.json#/mappings/10/response/proxyBaseUrl: left out: a rule answers by itself; demo.unmatched: pass lets requests go on to base_url",
                "mappings/orders.json#/mappings/1/response/statusMessage: changed: the reason phrase is that of the status: HTTP gives it no meaning",
            ]
        )
    }

    /// Names that are alike in their first 48 characters, or but for a sign, are those of other scenarios and states.
    @Test func scenariosAndStatesKeepTheirNames() throws {
        let long = String(repeating: "a", count: 60)
        func stub(_ scenario: String, _ state: String, _ next: String) -> String {
            #"{"scenarioName":"\#(scenario)","requiredScenarioState":"\#(state)","newScenarioState":"\#(next)","request":{"urlPath":"/a"},"response":{}}"#
        }
        let stubs = [
            stub(long + "1", long + "1", long + "2"), stub(long + "2", long + "1", "Started"),
            stub("a b", "x.", "x"), stub("a-b", "started", "Started"),
        ]
        let read = try imported(#"{"mappings":[\#(stubs.reversed().joined(separator: ","))]}"#)
        try checked(read)
        let rule = { (scenario: String, state: String, next: String) in
            #"{"when":{"path":"/a"},"state":{"scenario":"\#(scenario)","is":"\#(state)","then":"\#(next)"}}"#
        }
        #expect(
            read.rulesAsJSON == [
                rule(long + "1", long + "1", long + "2"), rule(long + "2", long + "1", "started"),
                rule("a-b", "x", "x-2"), rule("a-b-2", "started-2", "started"),
            ]
        )
    }

    /// A `url` has no other items than its own; the path of `urlPath` may have any.
    @Test func aURLIsTheWholeTarget() throws {
        let stubs = ["url\":\"/e", "url\":\"/e?page=2", "urlPath\":\"/e", "url\":\"/f", "url\":\"/e?page=2&size=9"].map
        {
            "{\"request\":{\"\($0)\"},\"response\":{}}"
        }
        let read = try imported(#"{"mappings":[\#(stubs.reversed().joined(separator: ","))]}"#)
        try checked(read)
        #expect(
            read.rulesAsJSON == [
                #"{"when":{"path":"/e","only_query":true}}"#,
                #"{"when":{"path":"/e","query":{"page":"2"},"only_query":true}}"#, #"{"when":{"path":"/e"}}"#,
                #"{"when":{"path":"/f","only_query":true}}"#,
                #"{"when":{"path":"/e","query":{"page":"2","size":"9"},"only_query":true}}"#,
            ]
        )
    }

    /// Only lists have an order that could be ignored: what has none is compared as a whole.
    @Test(arguments: [
        (#"{"a":{"b":1}}"#, "is"), (#"{"a":[1]}"#, "is"), (#"{"a":[1,2]}"#, "contains"),
        (#"[{"a":[1,2]}]"#, "contains"),
    ])
    func anIgnoredOrderIsThatOfLists(_ document: String, _ test: String) throws {
        let read = try imported(
            #"{"request":{"urlPath":"/a","bodyPatterns":[{"equalToJson":\#(document),"ignoreArrayOrder":true}]},"response":{}}"#
        )
        #expect(read.rulesAsJSON == [#"{"when":{"path":"/a","body":{"\#(test)":\#(document)}}}"#])
        #expect(read.told.isEmpty == (test == "is"))
    }

    @Test func fieldsThatAreNotKeptAreNamed() throws {
        let read = try imported(
            #"{"request":{"urlPath":"/a"},"response":{"headers":{"Age":"5","DATE":"x","X-Auth-Token":"hush","X-Is":"1"}}}"#
        )
        #expect(read.rulesAsJSON == [#"{"when":{"path":"/a"},"headers":{"X-Auth-Token":"***","X-Is":"1"}}"#])
        #expect(
            read.told == [
                "/response/headers changed: 'Age' is of the moment of an answer, and is made anew: it is not kept",
                "/response/headers changed: 'DATE' is of the moment of an answer, and is made anew: it is not kept",
                "/response/headers changed: the value of 'X-Auth-Token' may be a secret: *** is sent in its place",
            ]
        )
    }

    /// Fields of demo answers are sent as they stand, and a configuration with a template in one would be refused.
    @Test func aTemplateInAFieldIsReported() throws {
        let read = try imported(
            #"{"request":{"urlPath":"/a"},"response":{"headers":{"Location":"/a/{{request.id}}","X-Is":"1"}}}"#
        )
        try checked(read)
        #expect(read.rulesAsJSON == [#"{"when":{"path":"/a"},"headers":{"X-Is":"1"}}"#])
        #expect(
            read.told == [
                "/response/headers changed: 'Location' has a template, and fields of answers are not filled: it is not sent"
            ]
        )
    }

    /// What a request becomes; nil: the stub is left out, for the reason.
    @Test(arguments: [
        (
            #""url":"/a?x=1&y=%20z","method":"get""#,
            #"{"method":"GET","path":"/a","query":{"x":"1","y":" z"},"only_query":true}"#, ""
        ),
        (#""urlPath":"/a","method":"ANY""#, #"{"path":"/a"}"#, ""),
        (#""urlPath":"/a/:b/*.js""#, #"{"path":{"matches":"\\A/a/:b/\\*\\.js\\z"}}"#, ""),
        (#""urlPath":"/a","method":"GET_OR_HEAD""#, #"{"method":["GET","HEAD"],"path":"/a"}"#, ""),
        (#""urlPathPattern":"/a/\\d+""#, #"{"path":{"matches":"\\A(?:/a/\\d+)\\z"}}"#, ""),
        (#""urlPattern":"/a\\?x=.*""#, nil, "/request/urlPattern left out: the pattern looks into the query"),
        (#""urlPattern":"/a[""#, nil, "/request/urlPattern left out: the regular expression is none of PCRE2"),
        (#""urlPathTemplate":"/a/{b}.{c}""#, #"{"path":{"matches":"\\A/a/[^/]+\\.[^/]+\\z"}}"#, ""),
        (
            #""urlPathTemplate":"/a/{b}","pathParameters":{"b":{"matches":"[0-9]+"}}"#,
            #"{"path":{"matches":"\\A/a/(?:[0-9]+)\\z"}}"#, ""
        ),
        (
            #""urlPathTemplate":"/a/{b}/{c}","pathParameters":{"b":{"matches":"^[^/.]+.*$"},"c":{"contains":"x"}}"#,
            #"{"path":{"matches":"\\A/a/(?:[^/.]+[^/]*)/[^/]*x[^/]*\\z"}}"#, ""
        ),
        (
            #""urlPathTemplate":"/a/{b}","pathParameters":{"b":{"matches":"^a|^b"}}"#, nil,
            "/request/urlPathTemplate left out: the regular expression of 'b' has anchors within; write it without them"
        ),
        (
            #""headers":{"x":{"contains":"y"}},"url":"/a?x=1""#,
            #"{"path":"/a","query":{"x":"1"},"only_query":true,"fields":{"x":{"contains":"y"}}}"#, ""
        ),
        (
            #""url":"/a?x=1&x=2""#, #"{"path":"/a","query":{"x":"1"},"only_query":true}"#,
            "/request/url changed: the item 'x' stands there more than once: the rule asks for its first value"
        ),
        (
            #""headers":{"X-A":{"contains":"x"},"X-B":{"absent":true}}"#,
            #"{"fields":{"X-A":{"contains":"x"},"X-B":{"present":false}}}"#, ""
        ),
        (
            #""headers":{"X-A":{"equalTo":"x.y","caseInsensitive":true}}"#,
            #"{"fields":{"X-A":{"matches":"\\A(?i:x\\.y)\\z"}}}"#, ""
        ),
        (#""headers":{"X-A":{"doesNotMatch":"x"}}"#, #"{"fields":{"X-A":{"not":{"matches":"\\A(?:x)\\z"}}}}"#, ""),
        (
            #""headers":{"Host":{"equalTo":"x"}}"#, nil,
            "/request/headers/Host left out: a rule cannot ask for the field 'Host'"
        ),
        (
            #""queryParameters":{"q":{"and":[{"contains":"a"},{"contains":"b+"}]}}"#,
            #"{"query":{"q":{"contains":"a","matches":"\\A(?=[\\s\\S]*b\\+)"}}}"#, ""
        ),
        (
            #""queryParameters":{"q":{"or":[{"equalTo":"a"},{"equalTo":"b"}]}}"#,
            #"{"query":{"q":{"one_of":["a","b"]}}}"#, ""
        ),
        (
            #""queryParameters":{"q":{"before":"now"}}"#, nil,
            "/request/queryParameters/q/before left out: a rule has no test like it"
        ),
        (
            #""cookies":{"id":{"equalTo":"s3cr3t"}}"#, #"{"cookies":{"id":{"present":true}}}"#,
            "/request/cookies/id changed: the value of 'id' may be a secret"
        ),
        (#""formParameters":{"a":{"equalTo":"1"}}"#, #"{"body":{"form":{"a":"1"}}}"#, ""),
        (
            #""basicAuth":{"username":"u","password":"p"}"#, #"{"fields":{"Authorization":{"present":true}}}"#,
            "/request/basicAuth changed: "
        ),
        (
            #""bodyPatterns":[{"equalToJson":{"a":[1]},"ignoreExtraElements":true}]"#,
            #"{"body":{"contains":{"a":[1]}}}"#, ""
        ),
        (
            #""bodyPatterns":[{"equalToJson":{"a":[1,2]},"ignoreArrayOrder":true}]"#,
            #"{"body":{"contains":{"a":[1,2]}}}"#,
            "/request/bodyPatterns/0/equalToJson changed: the rule takes lists in any order"
        ),
        (
            #""bodyPatterns":[{"equalToJson":"{"}]"#, nil,
            "/request/bodyPatterns/0/equalToJson left out: this is no JSON"
        ),
        (
            #""bodyPatterns":[{"equalToJson":"{\"a\":\"${json-unit.any-string}\"}"}]"#, nil,
            "left out: a rule compares JSON without placeholders"
        ),
        (#""bodyPatterns":[{"matchesJsonPath":"$['a'].b[2]"}]"#, #"{"body":{"json":{"a.b.2":{"present":true}}}}"#, ""),
        (#""bodyPatterns":[{"matchesJsonPath":"$..a"}]"#, nil, "left out: '$..a' is more than names and positions"),
        (
            #""bodyPatterns":[{"matchesJsonPath":{"expression":"$.a","contains":"x"}},{"matches":".*y"}]"#,
            #"{"body":{"json":{"a":{"contains":"x"}},"text":{"matches":"\\A(?:.*y)\\z"}}}"#, ""
        ),
        (#""multipartPatterns":[]"#, nil, "/request/multipartPatterns left out: no rule of Drydock can ask for it"),
    ]) func requestsBecomeConditions(_ request: String, _ condition: String?, _ note: String) throws {
        // The second stub is there so that something is left.
        let text =
            #"{"mappings":[{"request":{"urlPath":"/other"},"response":{}},{"request":{\#(request)},"response":{"status":201}}]}"#
        let stubs = try imported(text)
        try checked(stubs)
        let rule = stubs.rulesAsJSON.first { $0.contains("201") }
        #expect(rule == condition.map { #"{"when":\#($0),"status":201}"# })
        let told = stubs.told.map { $0.replacing("/mappings/1", with: "") }
        #expect(note.isEmpty ? told.isEmpty : told.count == 1 && told[0].contains(note), "\(told)")
    }

    /// What a response becomes; nil: the stub is left out.
    @Test(arguments: [
        (
            #""status":200,"body":"x","headers":{"Content-Type":"text/css"}"#,
            #""file":"any-a.css","headers":{"Content-Type":"text/css"}"#, ""
        ),
        (#""jsonBody":{"a":1}"#, #""file":"any-a.json""#, ""),
        (#""base64Body":"AAEC""#, #""file":"any-a.bin""#, ""),
        (#""base64Body":"?""#, nil, "/response/base64Body left out: this is no base64"),
        (#""bodyFileName":"f.html""#, #""file":"any-a.txt""#, ""),
        (#""bodyFileName":"g.html""#, nil, "left out: there is no file 'g.html' in the folder __files"),
        (
            #""status":204,"body":"x""#, #""status":204"#,
            "/response changed: an answer with status 204 has no body (RFC 9110)"
        ),
        (#""status":101"#, nil, "/response/status left out: a rule answers with a status from 200 to 599"),
        (
            #""headers":{"Set-Cookie":["a=1; Path=/","b=2"]}"#,
            #""headers":{"Set-Cookie":["a=***; Path=/","b=***"]}"#,
            "/response/headers changed: the value of 'Set-Cookie' may be a secret: *** is sent in its place"
        ),
        (#""headers":{"Transfer-Encoding":"chunked","X-A":" v\u0000 "}"#, #""headers":{"X-A":"v"}"#, ""),
        (#""fixedDelayMilliseconds":20"#, #""latency":"20ms""#, ""),
        (#""delayDistribution":{"type":"uniform","lower":5,"upper":9}"#, #""latency":"5ms..9ms""#, ""),
        (#""delayDistribution":{"type":"pareto"}"#, nil, "left out: this distribution is unknown"),
        (#""fault":"EMPTY_RESPONSE""#, "", "/response changed: 'fault' needs an endpoint with one method and one path"),
        (#""fault":"OTHER""#, nil, "/response/fault left out: this fault is unknown"),
    ]) func responsesBecomeAnswers(_ response: String, _ answer: String?, _ note: String) throws {
        let text =
            #"{"mappings":[{"request":{"urlPath":"/other"},"response":{}},{"request":{"urlPath":"/a"},"response":{\#(response)}}]}"#
        let stubs = try imported(text, files: ["f.html": "found"])
        try checked(stubs)
        let rule = stubs.rulesAsJSON.first { $0.contains(#""/a""#) }
        #expect(rule == answer.map { #"{"when":{"path":"/a"}"# + ($0.isEmpty ? "" : ",") + $0 + "}" })
        let told = stubs.told.map { $0.replacing("/mappings/1", with: "") }
        #expect(note.isEmpty ? told.isEmpty : told.count == 1 && told[0].contains(note), "\(told)")
    }

    @Test(arguments: [
        ("EMPTY_RESPONSE", #""empty""#), ("CONNECTION_RESET_BY_PEER", #""reset""#),
        ("RANDOM_DATA_THEN_CLOSE", #""garbage""#),
        ("MALFORMED_RESPONSE_CHUNK", #"{"garbage":{"after":"status_line"}}"#),
    ]) func faultsBecomeFaultsOfAnEndpoint(_ name: String, _ fault: String) throws {
        let stub = #"{"request":{"method":"GET","url":"/a"},"response":{"fault":"\#(name)"}}"#
        let alone = try imported(stub)
        try checked(alone)
        #expect(alone.notes.isEmpty)
        let endpoints = try #require(alone.services[0]["endpoints"])
        #expect(
            String(decoding: JSONWriter.bytes(endpoints), as: UTF8.self).contains(#"[{"at":"demo","fault":\#(fault)}]"#)
        )
        // Another stub that answers the same requests: an endpoint would take them away from it.
        let shared = try imported(
            #"{"mappings":[\#(stub),{"request":{"urlPathPattern":"/.*"},"response":{"body":"x"}}]}"#
        )
        try checked(shared)
        #expect(shared.services[0]["endpoints"] == nil)
        #expect(shared.told.count == 1 && shared.told[0].contains("needs an endpoint for GET /a alone"))
    }

    @Test func stubsBehindOneThatAnswersEverythingAreLeftOut() throws {
        let stubs = try imported(
            #"{"mappings":[{"request":{"url":"/a"},"response":{}},{"request":{},"response":{"status":404}}]}"#
        )
        try checked(stubs)
        #expect(stubs.rulesAsJSON == [#"{"status":404}"#])
        #expect(
            stubs.told == [
                "/mappings/0 left out: the stub at x.json#/mappings/1 comes before it and answers every request"
            ]
        )
    }

    @Test func damagedFilesAreErrorsOrRightConfigurations() throws {
        let bytes = try sample("wiremock/mappings/orders.json")
        var random = SeededGenerator(13)
        let values = [
            "null", "-1", "\"\"", "\"/\\u2028\"", "[]", "{}", "\"${x}\"", "\"(\"", "true", "\"/*\"", "7", "\"any\"",
        ]
        var written = 0
        for _ in 0..<200 {
            var text = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let colons = text.indices.filter { text[$0] == UInt8(ascii: ":") }
                guard let colon = colons.randomElement(using: &random) else { continue }
                let end = text[colon...].firstIndex { ",}\n".utf8.contains($0) } ?? text.endIndex
                text.replaceSubrange(colon + 1..<end, with: Array(values.randomElement(using: &random)!.utf8))
            }
            guard
                let stubs = try? Importer.read(
                    [ImportSource(name: "x", bytes: text)],
                    .wiremock,
                    ImportOptions(),
                    bodyFile: { _ in nil }
                )
            else { continue }
            written += 1
            try checked(stubs)
        }
        #expect(written > 50)
    }
}
