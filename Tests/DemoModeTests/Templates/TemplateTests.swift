// Templates: what each tag writes, how values are escaped, and where a mistake stands.

import HTTPWire
import Policies
import Testing
import Trees

@testable import DemoMode

@Suite struct TemplateTests {
    static let values = TemplateValues(
        method: "POST",
        target: "/shop/items/7?q=a%20b+c&flag&role=admin",
        parameters: [("id", "7"), ("name", "Zo\u{eb}")],
        fields: Fields([("X-Trace", "t\"1"), ("Cookie", "a=1; session=s3; b=")]),
        body: Array(
            #"{"user":{"name":"A <b> & \"c\""},"tags":["x","y"],"n":1.50,"none":null,"list":[{"k":1},{"k":2}]}"#.utf8
        ),
        now: 1_700_000_000,
        requestCount: 3,
        ruleCount: 12,
        start: 42
    )

    static func render(_ text: String, _ escaping: TemplateEscaping = .none) throws -> String {
        String(decoding: try DemoTemplate(text, escaping: escaping).render(values), as: UTF8.self)
    }

    @Test(arguments: [("{{request.json.n}}", true), ("{{request.body}}", true), ("{{request.path}}", false)])
    func `one of several answers that is made of the body has it read`(text: String, needsBody: Bool) throws {
        let template = try DemoTemplate(text, escaping: .none)
        let answer = DemoAnswer(content: .template(template, contentType: "text/plain"))
        for choice in [DemoChoice.sequence([DemoAnswer(), answer], after: .last), .weighted([(1, answer)])] {
            #expect(DemoPlan(DemoRule(endpoint: "e", choice: choice)).needsBody == needsBody)
        }
    }

    @Test(
        arguments: [
            ("plain {text} }}", "plain {text} }}"),
            ("{{request.method}} {{request.path}}", "POST /shop/items/7"),
            ("{{ request.parameters.id }}/{{request.parameters.name}}", "7/Zo\u{eb}"),
            ("{{request.query.q}}|{{request.query.flag}}|{{request.query.none}}|", "a b c|||"),
            ("{{request.fields.x-trace}}|{{request.fields.none}}", "t\"1|"),
            ("{{request.cookies.session}}|{{request.cookies.b}}|{{request.cookies.c}}", "s3||"),
            ("{{request.json.user.name}}", "A <b> & \"c\""),
            ("{{request.json.tags.1}}{{request.json.tags.2}}{{request.json.tags}}", "y[\"x\",\"y\"]"),
            ("{{request.json.n}} {{request.json.none}}.", "1.50 ."),
            ("{{counter.request}} {{counter.rule}}", "3 12"),
            ("{{now}}", "2023-11-14T22:13:20Z"),
            ("{{now(+1h)}} {{now(-1d, '%Y/%m/%d')}}", "2023-11-14T23:13:20Z 2023/11/13"),
            ("{{now(unix)}} {{now(http, +40s)}}", "1700000000 Tue, 14 Nov 2023 22:14:00 GMT"),
            ("{{! a comment }}x", "x"),
            ("{{#request.query.role}}<{{.}}>{{/request.query.role}}", "<admin>"),
            (
                "{{^request.query.none}}none{{/request.query.none}}{{^request.query.role}}no{{/request.query.role}}",
                "none"
            ),
            ("{{#request.json.list}}{{k}}{{^@last}},{{/@last}}{{/request.json.list}}", "1,2"),
            ("{{#request.json.tags}}{{@index}}{{.}} {{/request.json.tags}}", "0x 1y "),
            ("{{#request.json.user}}{{name}}{{/request.json.user}}", "A <b> & \"c\""),
            (
                "{{#request.json.list}}{{#request.json.tags}}{{k}}{{.}}{{/request.json.tags}}{{/request.json.list}}",
                "1x1y2x2y"
            ),
            ("{{#repeat(3)}}{{@index}}{{#@first}}!{{/@first}}{{/repeat}}", "0!12"),
            ("{{#repeat(0)}}x{{/repeat(0)}}{{^repeat(0)}}y{{/repeat}}", "y"),
        ]
    )
    func writes(text: String, result: String) throws { #expect(try Self.render(text) == result) }

    @Test("lines that hold a section or a comment alone leave nothing behind")
    func ownLines() throws {
        let text = "[\n  {{#request.json.tags}}\n  {{.}}\n  {{/request.json.tags}}\n{{! done }}\r\n]"
        #expect(try Self.render(text) == "[\n  x\n  y\n]")
        #expect(try Self.render("a {{! b }} c\n") == "a  c\n")
    }

    @Test(
        arguments: [
            ("application/json; charset=utf-8", #""A <b> & \"c\"""#), ("application/problem+json", #""A <b> & \"c\"""#),
            ("text/html", #""A &lt;b&gt; &amp; &quot;c&quot;""#),
            ("text/javascript", #""A <b> & \"c\"""#), ("text/json", #""A <b> & \"c\"""#),
            ("image/svg+xml", #""A &lt;b&gt; &amp; &quot;c&quot;""#),
            ("text/plain", #""A <b> & "c"""#),
        ]
    )
    func escapesForTheContentType(type: String, result: String) throws {
        let escaping = TemplateEscaping(contentType: type)
        #expect(try Self.render("\"{{request.json.user.name}}\"", escaping) == result)
        #expect(try Self.render("{{{request.json.user.name}}}{{& request.method}}", escaping) == "A <b> & \"c\"POST")
    }

    @Test("a control character of a value stays within its JSON string")
    func controlCharacters() throws {
        var values = Self.values
        values.parameters = [("id", "a\nb\u{1}\t\\")]
        let template = try DemoTemplate("{{request.parameters.id}}", escaping: .json)
        #expect(String(decoding: try template.render(values), as: UTF8.self) == #"a\nb\u0001\t\\"#)
    }

    @Test(
        arguments: [
            ("a\n  {{reqest.path}}", 2, 3, "did you mean 'request'?"),
            ("{{request.pth}}", 1, 1, "did you mean 'request.path'?"),
            ("{{fake.nam}}", 1, 1, "did you mean 'fake.name'?"),
            ("{{fake.integer(9, 1)}}", 1, 1, "two numbers"),
            ("{{fake.name(1)}}", 1, 1, "no arguments"),
            ("{{request.path(1)}}", 1, 1, "takes no arguments"),
            ("{{request.query}}", 1, 1, "needs a name behind it"),
            ("{{counter}}", 1, 1, "counter.request or counter.rule"),
            ("{{now(1h)}}", 1, 1, "'now' does not know '1h'"),
            ("{{now('%Y-%Q')}}", 1, 1, "a time has no '%Q'"), ("{{now('5%')}}", 1, 1, "a time has no '%'"),
            ("{{now('%Y)}}", 1, 1, "quoted text is not closed"),
            ("{{now(+1h}}", 1, 1, "a parenthesis is not closed"),
            ("{{repeat}}", 1, 1, "'repeat' takes how often"),
            ("{{#repeat(100001)}}{{/repeat}}", 1, 1, "up to 100000"),
            ("x\r\ny {{request.path", 2, 3, "not closed; write }}"),
            ("{{{request.path}}", 1, 1, "not closed; write }}}"),
            ("{{request.{{now}}", 1, 1, "not closed"),
            ("\n{{#request.path}}", 2, 1, "the section 'request.path' is not closed"),
            ("{{/request.path}}", 1, 1, "closes no section"),
            ("{{#repeat(2)}}{{/request.path}}", 1, 15, "'repeat(2)' is open"),
            ("{{> other}}", 1, 1, "includes no other one"),
            ("{{=<% %>=}}", 1, 1, "cannot be changed"),
            ("{{.}}", 1, 1, "no section is open here"),
            ("{{@first}}", 1, 1, "within a section only"),
            ("{{}}", 1, 1, "names nothing"),
        ]
    )
    func mistakes(text: String, line: Int, column: Int, message: String) throws {
        let error = try #require(throws: TemplateError.self) { try DemoTemplate(text, escaping: .none) }
        #expect((error.line, error.column) == (line, column))
        #expect(error.message.contains(message), "\(error)")
    }

    /// A text of a JSON value that is one tag with three braces is a JSON value itself, whatever the request has.
    @Test(
        arguments: [
            ("{{{request.json.user}}}", #"{"name":"A <b> & \"c\""}"#), ("{{{request.json.none}}}", "null"),
            ("{{{request.json.user.name}}}", #""A <b> & \"c\"""#), ("{{{request.query.none}}}", "null"),
            ("{{{request.path}}}", #""/users/7""#), ("{{{request.parameters.id}}}", "7"),
            ("{{{fake.one_of(1, 1)}}}", "1"), ("{{{fake.one_of(a, a)}}}", #""a""#), ("{{{counter.request}}}", "3"),
            ("{{{now('%Y')}}}", #""1970""#), ("{{now(\"%Y\")}} \"{{{request.method}}}", #""1970 \"POST""#),
        ]
    )
    func valuesOfJSON(text: String, written: String) throws {
        var values = Self.values
        values.target = "/users/7"
        values.parameters = [("id", "7")]
        values.now = 0
        let template = try DemoTemplate(.object([.init("a", .array([.string(text)]))]), escaping: .json)
        let made = try template.render(values)
        #expect(String(decoding: made, as: UTF8.self) == "{\"a\":[\(written)]}")
        #expect(throws: Never.self) { try JSONReader.read(made) }
    }

    @Test("a text is bounded in bytes, and in steps where it has none")
    func bounds() throws {
        let long = try DemoTemplate("{{#repeat(1000)}}0123456789{{/repeat}}", escaping: .none)
        #expect(try long.render(Self.values).count == 10_000)
        #expect(throws: RenderError.tooLong(limit: 9_999)) { try long.render(Self.values, limit: 9_999) }
        let empty = "{{#repeat(100000)}}{{#repeat(100000)}}{{/repeat}}{{/repeat}}"
        #expect(throws: RenderError.tooManySteps(limit: 1000)) {
            try DemoTemplate(empty, escaping: .none).render(Self.values, limit: 1000)
        }
        #expect(throws: TemplateError.self) {
            try DemoTemplate(String(repeating: "{{#repeat(1)}}", count: 33), escaping: .none)
        }
    }

    @Test func knowsWhatItTakes() throws {
        func template(_ text: String) throws -> DemoTemplate { try DemoTemplate(text, escaping: .none) }
        #expect(try template("{{request.path}}").isRepeatable)
        for text in ["{{now}}", "{{counter.request}}", "{{#repeat(1)}}{{fake.name}}{{/repeat}}"] {
            #expect(try !template(text).isRepeatable)
        }
        #expect(try template("{{^request.json.a}}{{/request.json.a}}").readsBody)
        #expect(try template("{{request.body}}").readsBody)
        #expect(try !template("{{request.path}}").readsBody)
        #expect(try template("{{counter.rule}}").countsRule)
        #expect(try !template("{{counter.request}}").countsRule)
    }

    /// Any bytes compile or are refused, and what compiles is rendered within its bounds.
    @Test func fuzz() {
        let pieces = [
            "{{", "}}", "{{{", "}}}", "#", "^", "/", "!", "&", ".", "(", ")", ",", "'", "request", ".json", ".a", "now",
            "repeat(2)", "fake.", "name", " ", "\n", "é", "{{#repeat(2)}}", "{{/repeat}}", "{{#request.json}}", "@last",
        ]
        var random = SplitMix(7)
        for _ in 0..<20_000 {
            let text = (0..<random.next() % 12).map { _ in pieces[Int(random.next() % UInt64(pieces.count))] }.joined()
            guard let template = try? DemoTemplate(text, escaping: .json) else { continue }
            if let bytes = try? template.render(Self.values, limit: 10_000) { #expect(bytes.count <= 10_000) }
        }
    }
}

struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= goldenGamma
        return mix(state)
    }
}
