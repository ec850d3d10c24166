// HAR files as browsers write them, and what is wrong with those that cannot be read.

import Configuration
import Content
import Interchange
import Testing
import Trees

@Suite struct HARTests {
    /// A redirect from one origin of the file to another one leads to what was recorded of that.
    @Test func redirectsStayAmongTheOrigins() throws {
        func entry(_ url: String, _ location: String) -> String {
            #"{"request":{"method":"GET","url":"\#(url)"},"response":{"status":301,"headers":[{"name":"Location","value":"\#(location)"}],"content":{}}}"#
        }
        let entries = [
            entry("http://h.example/a/b?c", "https://h.example/a/b?c=1#d"),
            entry("http://h.example/", "https://h.example"),
            entry("https://h.example/a/b", "https://h.example/x"),
            entry("https://h.example/y", "https://other.example/z"),
        ]
        let read = try imported(#"{"log":{"entries":[\#(entries.joined(separator: ","))]}}"#)
        try checked(read)
        let locations = read.services.flatMap { service -> [String] in
            guard case .array(let rules)? = service.value(at: ["demo", "rules"]) else { return [] }
            return rules.compactMap { $0["headers"]?["Location"]?.scalar }
        }
        #expect(
            locations == [
                "../../h.example-2/a/b?c=1#d", "../h.example-2/", "https://h.example/x", "https://other.example/z",
            ]
        )
        let prefixes = read.services.compactMap { $0["match"]?["prefix"]?.scalar }
        #expect(prefixes == ["/h.example", "/h.example-2"])
    }

    private static func log(_ entries: String...) -> String {
        #"{"log":{"entries":["# + entries.joined(separator: ",") + "]}}"
    }

    /// An entry with a plain answer.
    private static func entry(_ url: String, method: String = "GET", answer: String = "{}", post: String? = nil)
        -> String
    {
        let data = post.map { #","postData":\#($0)"# } ?? ""
        return
            #"{"request":{"method":"\#(method)","url":"\#(url)"\#(data)},"response":{"status":200,"content":{"text":"\#(answer)"}}}"#
    }

    @Test func aLogOfABrowserBecomesAConfiguration() throws {
        let log = try imported(String(decoding: sample("browser.har"), as: UTF8.self))
        try checked(log)
        #expect(
            log.rulesAsJSON == [
                #"{"when":{"method":["GET","HEAD"],"path":"/api/items","query":{"page":"1","access_token":{"present":true}}},"file":"get-api-items.json","headers":{"content-type":"application/json; charset=utf-8","etag":"\"v1\"","set-cookie":["sid=***; Path=/; HttpOnly","theme=***"],"x-trace":"a, b"}}"#,
                #"{"when":{"method":["GET","HEAD"],"path":"/api/items"},"file":"get-api-items.txt","headers":{"Content-Type":"text/plain; charset=utf-8"}}"#,
                #"{"when":{"method":["GET","HEAD"],"path":"/logo.png"},"file":"get-logo.png","headers":{"content-type":"image/png"}}"#,
                #"{"when":{"method":["GET","HEAD"],"path":"/api/job/7"},"sequence":[{"status":202,"headers":{"Retry-After":"1"}},{"file":"get-job-7.json"}]}"#,
                #"{"when":{"method":"POST","path":"/api/orders","body":{"is":{"item":1}}},"status":201,"file":"post-api-orders.json","headers":{"Location":"/api/orders/1"}}"#,
                #"{"when":{"method":"POST","path":"/api/orders","body":{"is":{"item":2}}},"status":422,"file":"post-api-orders-2.json"}"#,
            ]
        )
        #expect(log.body("get-api-items.json") == #"{"items":[{"id":1,"name":"Käse"}]}"#)
        #expect(log.files.first { $0.name == "get-logo.png" }?.bytes == [0x89, 0x50, 0x4E, 0x47])
        #expect(
            log.told == [
                "/log/entries/0/request/url changed: the value of 'access_token' may be a secret: the rule asks only that it is there",
                "/log/entries/7/response/status left out: there is no answer with a status from 200 to 599",
                "/log/entries/8/response left out: an answer with status 304 says that a copy is still right; whole answers are needed",
                "/log/entries/9/response/content left out: the file has no content for it, although there were 90210 bytes; save the log with content",
                "/log/entries/10/request/url left out: this is no http or https URL of a plain host",
            ]
        )
        #expect(!log.text(comment: []).contains("s3cr3t"))
        #expect(log.secrets == 3)
    }

    @Test func aURLOfAFieldKeepsNoSecretUnlessItIsAskedTo() throws {
        let entry =
            #"{"request":{"method":"GET","url":"http://a/x"},"response":{"status":302,"headers":[{"name":"Location","value":"/cb?code=1&access_token=hush#id_token=hush2"}],"content":{}}}"#
        let log = try imported(Self.log(entry))
        #expect(log.rulesAsJSON[0].contains(#""Location":"/cb?code=1&access_token=***#id_token=***""#))
        #expect(log.secrets == 1)
        var options = ImportOptions()
        options.keepsSecrets = true
        let kept = try imported(Self.log(entry), nil, options)
        #expect(kept.rulesAsJSON[0].contains("access_token=hush#id_token=hush2"))
    }

    /// A log of a redirect from http to https has both.
    @Test func twoSchemesOfOneHostAreTwoServices() throws {
        let log = try imported(Self.log(Self.entry("https://a.example/x"), Self.entry("http://a.example/x")))
        try checked(log)
        #expect(log.text(comment: []).contains("prefix: /a.example"))
    }

    /// HAR 1.2 has either the text of a form or its items.
    @Test func formsMayStandThereAsItemsAlone() throws {
        func post(_ value: String) -> String {
            Self.entry(
                "http://a/p",
                method: "POST",
                answer: value,
                post: #"{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"k","value":"\#(value)"}]}"#
            )
        }
        let log = try imported(Self.log(post("1 &"), post("2")))
        #expect(log.rulesAsJSON.count == 2 && log.told.isEmpty)
        #expect(log.rulesAsJSON[0].contains(#""form":{"k":"1 &"}"#))
    }

    @Test func theOrderOfAQueryMakesNoSecondRule() throws {
        let log = try imported(
            Self.log(Self.entry("http://a/x?a=1&b=2", answer: "1"), Self.entry("http://a/x?b=2&a=1", answer: "2"))
        )
        #expect(log.rulesAsJSON.count == 1 && log.rulesAsJSON[0].contains("sequence"))
    }

    /// Contents that cannot be told apart are one rule, and that is told.
    @Test func contentsWithSecretsAreToldToBeOne() throws {
        func login(_ user: String) -> String {
            let post = #"{"mimeType":"application/json","text":"{\"user\":\"\#(user)\",\"password\":\"x\"}"}"#
            return Self.entry("http://a/login", method: "POST", answer: user, post: post)
        }
        let log = try imported(Self.log(login("a"), login("b")))
        #expect(log.rulesAsJSON.count == 1 && log.told.count == 1 && log.told[0].contains("has secrets"))
    }

    @Test func noSecretOfAURLWithinAValueIsKept() throws {
        let nested =
            #"{"request":{"method":"GET","url":"http://a/x?next=%2Fcb%3Faccess_token%3Dhush"},"response":{"status":200,"headers":[{"name":"Set-Cookie","value":"hush; Path=/"},{"name":"Set-Cookie","value":"b=hush"}],"content":{}}}"#
        let log = try imported(Self.log(nested))
        try checked(log)
        #expect(!log.text(comment: []).contains("hush"))
        #expect(log.rulesAsJSON[0].contains(#""Set-Cookie":["***; Path=/","b=***"]"#))
    }

    /// YAML reads no longer key before a colon.
    @Test func longNamesAreKeysAllTheSame() throws {
        let name = String(repeating: "b", count: 1100)
        let post = #"{"mimeType":"application/json","text":"{\"\#(name)\":1}"}"#
        let log = try imported(
            Self.log(Self.entry("http://a/q?\(name)"), Self.entry("http://a/p", method: "POST", post: post))
        )
        try checked(log)
        #expect(log.rulesAsJSON[0].contains(name))
    }

    @Test func anItemOfAQueryThatStandsThereTwiceIsTold() throws {
        let log = try imported(Self.log(Self.entry("http://a/x?a=1&b=2&a=3")))
        #expect(log.rulesAsJSON[0].contains(#""query":{"a":"1","b":"2"}"#))
        #expect(
            log.told == [
                "/log/entries/0/request/url changed: the item 'a' stands there more than once: the rule asks for its first value"
            ]
        )
    }

    @Test func credentialsStayOnlyWhereTheyAreAskedFor() throws {
        var options = ImportOptions()
        options.keepsSecrets = true
        let log = try imported(String(decoding: sample("browser.har"), as: UTF8.self), nil, options)
        try checked(log)
        #expect(log.secrets == 0)
        #expect(log.text(comment: []).contains("sid=s3cr3t; Path=/; HttpOnly"))
        #expect(log.rulesAsJSON[0].contains(#""access_token":"s3cr3t""#))
    }

    @Test func everyOriginIsAService() throws {
        let text = Self.log(
            Self.entry("https://api.example.com/a"),
            Self.entry("https://user:s3cr3t@CDN.example.com:8443/b?x#y"),
            Self.entry("http://127.0.0.1/")
        )
        let log = try imported(text)
        #expect(try checked(log).services.map(\.name) == ["api.example.com", "cdn.example.com-8443", "127.0.0.1"])
        let written = log.text(comment: [])
        #expect(
            written.contains("match: { prefix: /cdn.example.com-8443 }\n    base_url: \"https://cdn.example.com:8443\"")
        )
        #expect(!written.contains("s3cr3t"))
        var options = ImportOptions()
        options.hosts = ["cdn.example.com"]
        options.service = "my cdn"
        #expect(try checked(imported(text, nil, options)).services.map(\.name) == ["my-cdn"])
    }

    @Test func requestsThatDifferInTheirContentAreToldApart() throws {
        let form = #"{"mimeType":"application/x-www-form-urlencoded","text":"a=1&b=x+y"}"#
        let secret = #"{"mimeType":"application/json","text":"{\"password\":\"s3cr3t\"}"}"#
        let log = try imported(
            Self.log(
                Self.entry("http://h/a", method: "POST", answer: "1", post: form),
                Self.entry("http://h/a", method: "POST", answer: "2", post: secret),
                Self.entry(
                    "http://h/a",
                    method: "POST",
                    answer: "3",
                    post: #"{"mimeType":"text/plain","text":"plain"}"#
                ),
                Self.entry("http://h/b", method: "POST", answer: "4", post: secret)
            )
        )
        try checked(log)
        #expect(
            log.rulesAsJSON == [
                #"{"when":{"method":"POST","path":"/a","body":{"form":{"a":"1","b":"x y"}}},"file":"post-a.txt"}"#,
                #"{"when":{"method":"POST","path":"/a","body":{"text":"plain"}},"file":"post-a-3.txt"}"#,
                #"{"when":{"method":"POST","path":"/a"},"file":"post-a-2.txt"}"#,
                #"{"when":{"method":"POST","path":"/b"},"file":"post-b.txt"}"#,
            ]
        )
        #expect(log.told.count == 1 && log.told[0].hasPrefix("/log/entries/1/request/postData changed: "))
    }

    @Test func aHeadIsAnsweredByTheGet() throws {
        let both = Self.log(Self.entry("http://h/a", method: "HEAD"), Self.entry("http://h/a"))
        #expect(try imported(both).rulesAsJSON.map { $0.contains(#"["GET","HEAD"]"#) } == [true])
        let alone = try imported(Self.log(Self.entry("http://h/a", method: "HEAD")))
        #expect(alone.rulesAsJSON == [#"{"when":{"method":"HEAD","path":"/a"}}"#])
    }

    @Test(arguments: [
        ("", "x.json: this cannot be read: the text ends early, at byte 0"),
        ("[1,", "x.json: this cannot be read: the text ends early, at byte 3"),
        (
            String(repeating: "[", count: 100),
            "x.json: this cannot be read: more than 64 objects and arrays are nested, at byte 64"
        ),
        ("{}", "x.json: it looks like none of har, wiremock, postman, openapi; say what it is with --format"),
        (#"{"log":{"entries":{}}}"#, "x.json#/log/entries: is no list; a HAR file has its requests there"),
        (
            #"{"log":{"entries":[7]}}"#,
            "x.json: nothing in it can be made into a rule; the first reason is at x.json#/log/entries/0: left out: it has no request with a URL, or no response"
        ),
        (#"{"log":{"entries":[]}}"#, "x.json: nothing in it can be made into a rule"),
    ]) func whatCannotBeReadIsAnErrorWithItsLocation(_ text: String, _ error: String) {
        #expect { try imported(text) } throws: { "\($0)" == error }
    }

    @Test func aConfigurationHasNoMoreRulesThanItMay() throws {
        let entries = (0...5000).map { Self.entry("http://h/\($0)") }
        #expect { try imported(#"{"log":{"entries":["# + entries.joined(separator: ",") + "]}}") } throws: {
            "\($0)".hasPrefix("x.json: it would be 5001 rules with ")
        }
    }

    /// Whatever a file says, what is made of it is a right configuration.
    @Test func damagedFilesAreErrorsOrRightConfigurations() throws {
        let bytes = try sample("browser.har")
        var random = SeededGenerator(7)
        let values = [
            "null", "-1", "1e999", "\"\"", "\"\\u0000\\u2028\"", "[]", "{}", "\"${x}\"", "\"http://h/%zz?=&=\"", "true",
        ]
        var written = 0
        for _ in 0..<200 {
            var text = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                // The value behind a colon is another one.
                let colons = text.indices.filter { text[$0] == UInt8(ascii: ":") }
                guard let colon = colons.randomElement(using: &random) else { continue }
                let end = text[colon...].firstIndex { ",}\n".utf8.contains($0) } ?? text.endIndex
                text.replaceSubrange(colon + 1..<end, with: Array(values.randomElement(using: &random)!.utf8))
            }
            guard
                let log = try? Importer.read(
                    [ImportSource(name: "x", bytes: text)],
                    .har,
                    ImportOptions(),
                    bodyFile: { _ in nil }
                )
            else { continue }
            written += 1
            try checked(log)
        }
        #expect(written > 50)
    }
}
