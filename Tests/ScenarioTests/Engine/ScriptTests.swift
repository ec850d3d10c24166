// Tests of the scripts themselves: every file is whole, and the parser says what is wrong and where.

import Testing

@Suite struct ScriptTests {
    @Test func everyFileIsReadAndHasScenarios() throws {
        let rules = ScriptFiles.rules
        #expect(rules.errors.isEmpty, "\(rules.errors.map(\.description).joined(separator: "\n"))")
        #expect(!rules.files.isEmpty)
        for (file, scenarios) in rules.files { #expect(!scenarios.isEmpty, "\(file) has no scenario") }
        print("\(rules.scenarios.count) scenarios in \(rules.files.count) files")
        #expect(ScriptFiles.wrongChoice == nil)
    }

    @Test(
        arguments: [
            ("reverse head", nil), ("reverse head|forward conditional", nil), (" forward head | reverse head", nil),
            ("", "“” is no way"), ("|", "“” is no way"), ("reverse-head", "“reverse-head” is no way"),
            ("reverse head|auto", "“auto” is no way"), ("reverse", "“reverse” is no way"),
        ] as [(String, String?)]
    )
    func aWayThatIsNoneIsNotPassedOver(_ list: String, _ message: String?) {
        let wrong = ScriptFiles.wrongWays(ScriptFiles.wayNames(list))
        if let message { #expect(wrong?.contains(message) == true, "\(wrong ?? "")") } else { #expect(wrong == nil) }
    }

    @Test func titlesAreUnique() {
        for (title, scenarios) in Dictionary(grouping: ScriptFiles.rules.scenarios, by: \.title)
        where scenarios.count > 1 {
            Issue.record("“\(title)” stands at \(scenarios.map(\.position.description).joined(separator: " and "))")
        }
    }

    @Test func everyScenarioRunsInSomeWayAndChecksSomething() {
        for scenario in ScriptFiles.rules.scenarios {
            #expect(Way.all.contains { scenario.runs(in: $0) }, "\(scenario.position) runs in no way")
            let checks = scenario.steps.contains { step in
                switch step.action {
                case .asked: true
                case .ask(_, let expectations), .finish(_, let expectations): !expectations.isEmpty
                case .explain(_, let lines): !lines.isEmpty
                default: false
                }
            }
            #expect(checks, "\(scenario.position) expects nothing")
        }
    }

    @Test(arguments: [
        ("get /", "t:1: “get /” where a line"),
        ("  get /", "t:1: a step before the first scenario"),
        ("scenarios x", "t:1: “scenarios x” where"),
        ("scenario", "t:1: “scenario” where"),
        ("scenario a", "t:1: the scenario has no step"),
        ("scenario a\n   get /", "t:2: indented by 3"),
        ("scenario a\n    200", "t:2: this line belongs to no step"),
        ("scenario a\n  gte /", "t:2: “gte /” is no step; there are origin, get"),
        ("scenario a\n  get", "t:2: a request takes a path"),
        ("scenario a\n  get x", "t:2: a request takes a path"),
        ("scenario a\n  get / HTTP/2", "t:2: after the path only HTTP/1.0"),
        ("scenario a\n  get /\n    Age 5", "t:3: “Age 5” is neither"),
        ("scenario a\n  get /\n      Age: 5", "t:3: indented by 6 where 4 is right"),
        ("scenario a\n  get /\n    # no line\n\n    body \\q", "t:5: an escape is one of"),
        ("scenario a\n  get /\n    body \\x1", "t:3: \\x takes two"),
        ("scenario a\n  get /\n    body pattern 5", "t:3: the body of a pattern"),
        ("scenario a\n  get /\n    body pattern 5..<4", "t:3: the body of a pattern"),
        ("scenario a\n  get /\n    Date: {now-5}", "t:3: “5” is no duration"),
        ("scenario a\n  clock 5", "t:2: “5” is no duration"),
        ("scenario a\n  clock 99999999999999999d", "t:2: “99999999999999999d” is no duration"),
        ("scenario a\n  clock 5s\n    200", "t:3: clock takes no lines"),
        ("scenario a\n  only backward\n  get /", "t:2: only takes one or more of reverse"),
        ("scenario a\n  own demon\n  get /", "t:2: did you mean"),
        ("scenario a\n  offline maybe", "t:2: offline takes on or off"),
        ("scenario a\n  release", "t:2: release takes a path"),
        ("scenario a\n  settle now", "t:2: settle takes nothing"),
        ("scenario a\n  origin a b c", "t:2: origin takes a path"),
        ("scenario a\n  origin /\n    cut x", "t:3: “x” is no number of bytes"),
        ("scenario a\n  origin /\n    interim Link: </a>", "t:3: interim takes a status"),
        ("scenario a\n  origin /\n    interim 200", "t:3: interim takes a status"),
        ("scenario a\n  origin /\n    holds", "t:3: “holds” is neither"),
        ("scenario a\n  start A GET /\n    200", "t:3: what must arrive stands below finish"),
        ("scenario a\n  finish", "t:2: finish takes the name"),
        ("scenario a\n  asked", "t:2: asked takes lines"),
        ("scenario a\n  asked\n      Via: -", "t:3: a field before the first request"),
        ("scenario a\n  asked\n    GET", "t:3: a request that was asked"),
        ("scenario a\n  explain", "t:2: explain takes a path"),
    ])
    func theParserSaysWhatIsWrongAndWhere(_ text: String, _ message: String) {
        let parser = ScriptParser(file: "t", text: text)
        #expect(parser.errors.count == 1)
        #expect(parser.errors.first?.description.hasPrefix(message) == true, "\(parser.errors)")
    }

    @Test func aScriptBecomesSteps() throws {
        let parser = ScriptParser(
            file: "t",
            text: """
                # a comment
                scenario 4.2 a title
                  only reverse head
                  own daemon
                  origin PUT /a
                    299 Odd
                    Cache-Control: max-age="1"
                    Date: -
                    body a\\x20b
                    interim 103
                    interim Link: </x>
                  get /a
                    > Accept: *
                    > body pattern 7
                    404
                    Age: ~ 5
                    Via: !~ x
                    X: -
                    Y: {path}
                    body -
                  asked
                    CHECK /a
                      If-None-Match: "1"
                """
        )
        #expect(parser.errors.isEmpty)
        let scenario = try #require(parser.scenarios.first)
        #expect(scenario.title == "4.2 a title" && scenario.position.line == 2 && scenario.hasOwnDaemon)
        #expect(Way.all.filter { scenario.runs(in: $0) } == [Way(mode: .reverse, check: .head)])
        #expect(scenario.steps.map(\.position.line) == [5, 12, 21])
        guard case .origin(let origin) = scenario.steps[0].action,
            case .ask(let request, let expectations) = scenario.steps[1].action,
            case .asked(let asked) = scenario.steps[2].action
        else {
            Issue.record("\(scenario.steps)")
            return
        }
        #expect(origin.method == "PUT" && origin.status == 299 && origin.reason == "Odd")
        #expect(origin.fields == [ScriptField(name: "Cache-Control", value: "max-age=\"1\"")])
        #expect(origin.omitted == ["date"] && origin.body == .bytes(Array("a b".utf8)))
        #expect(origin.interims.map(\.status) == [103] && origin.interims[0].fields.count == 1)
        #expect(request.method == "GET" && request.fields.count == 1 && request.body == .pattern(7))
        #expect(
            expectations.map(\.what) == [
                .status(404), .field("Age", .contains("5")), .field("Via", .lacks("x")), .field("X", .absent),
                .field("Y", .equals("{path}")), .body([]),
            ]
        )
        #expect(asked.map(\.method) == ["CHECK"] && asked[0].fields.map(\.test) == [.equals("\"1\"")])
    }

    @Test func templatesStandForDatesAndPositions() throws {
        let scope = ScriptScope(now: 784_111_777, authority: "h:1", path: "/c")
        let cases = [
            ("{now}", "Sun, 06 Nov 1994 08:49:37 GMT"), ("{now-37s}", "Sun, 06 Nov 1994 08:49:00 GMT"),
            ("{now+1h}", "Sun, 06 Nov 1994 09:49:37 GMT"), ("{rfc850}", "Sunday, 06-Nov-94 08:49:37 GMT"),
            ("{asctime}", "Sun Nov  6 08:49:37 1994"), ("<{url}/x>, {path}/{authority}", "<http://h:1/c/x>, /c/h:1"),
            ("{\"a\": {}} {", "{\"a\": {}} {"), ("{nowhere}", "{nowhere}"),
        ]
        for (text, expected) in cases { #expect(try scope.expand(text) == expected) }
        #expect(DateForm.seconds("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777)
        #expect(DateForm.seconds("Mon, 06 Nov 1994 08:49:37 GMT") == nil)
    }
}
