// What is accepted and reaches nothing: paths of mappings and of targets, URLs of prefetches, files of an include.

import Testing

@testable import Configuration

@Suite struct ReachTests {
    private static func warnings(_ text: String) throws -> [String] {
        try load(text).warnings.map { $0.description.replacing("test.yaml:", with: "") }
    }

    @Test(arguments: [
        ("$.results", "write results, or '\\$.results'"), ("$", "write ., or '\\$'"),
        ("$[0].id", "write [0].id, or '\\$[0].id'"),
    ])
    func aJSONPathIsNoKeyPath(_ path: String, _ remedy: String) throws {
        for map in ["{ a: '\(path)' }", "{ from: '\(path)', each: { b: c } }", "{ from: x, each: { b: '\(path)' } }"] {
            let said = try Self.warnings("services:\n" + service("a", "response: { map: \(map) }"))
            #expect(said.count == 1 && said[0].contains("asks for a member named '$'"), "\(said)")
            #expect(said.first?.contains(remedy) == true, "\(said)")
        }
        // What is meant as a member is written with a backslash.
        #expect(try Self.warnings("services:\n" + service("a", "response: { map: { a: '\\\(path)' } }")).isEmpty)
    }

    @Test func membersOfAnError() throws {
        func map(_ rule: String) -> String { "services:\n" + service("a", "error: { map: \(rule) }") }
        for rule in [
            "{ a: status, b: code, c: message, d: service, e: endpoint, f: source, g: body.error.0.text }",
            "body.error",
            "{ from: body.errors, each: { text: reason } }", "{ from: ., fields: { text: message } }", "none",
        ] {
            #expect(try Self.warnings(map(rule)).isEmpty, "\(rule)")
        }
        let constant = try Self.warnings(map("{ kind: { from: none, default: problem } }"))
        #expect(constant.count == 1 && constant[0].hasPrefix("5:35: 'error.map' takes values"), "\(constant)")
        expectError(map("{ text: mesage }"), "5:27", ["has no 'mesage'; did you mean 'message'?"])
        expectError(
            map("error.detail"),
            "5:19",
            ["has no 'error'; it has status, code, message, service, endpoint, source, body"]
        )
        expectError(map("{ from: errors, each: { text: reason } }"), "5:27", ["has no 'errors'"])
        expectError(map("{ fields: { text: { from: bdy.x } } }"), "5:45", ["has no 'bdy'; did you mean 'body'?"])
    }

    @Test func parametersOfOtherTools() {
        func endpoint(_ more: String) -> String { "services:\n" + service("a", "endpoints: [{ name: e, \(more) }]") }
        expectError(
            endpoint("path: \"/users/{id}\""),
            "5:34",
            ["'{id}' has a parameter of another tool", "written :id"]
        )
        expectError(endpoint("path: \"/users/{id}.json\""), "5:34", ["a whole segment, written :id"])
        expectError(endpoint("path: /a, to: \"/b/{id}?x=1\""), "5:42", ["has a parameter of another tool; write :id"])
        #expect(errors(endpoint("path: \"/users/{}\"")) == [], "a name is missing, so that it is no parameter")
    }

    @Test func aParameterThatIsNearlyOneOfThePath() throws {
        func endpoint(_ more: String) throws -> [String] {
            try Self.warnings("services:\n" + service("a", "endpoints: [{ name: e, \(more) }]"))
        }
        let said = try endpoint("path: \"/users/:id\", to: \"/people/:idd\"")
        #expect(
            said == [
                "5:52: 'to' has ':idd', which neither 'path' nor 'params' has, and leaves out ':id'; write ':id' if that is meant"
            ]
        )
        // A parameter may come from the query as well.
        for meant in [
            "path: \"/users/:id\", to: \"/people/:id?x=:idx\"",
            "path: \"/users/:id\", to: \"/people/:idd\", params: { idd: 7 }",
            "path: \"/users/:id\", to: \"/search?text=:words\"",
        ] {
            #expect(try endpoint(meant).isEmpty, "\(meant)")
        }
    }

    @Test func urlsThatNoServiceAnswers() throws {
        func prefetch(_ url: String, _ more: String = "") throws -> [String] {
            let text = "prefetch: [{ name: p, every: 1h, urls: [\"\(url)\"] }]\n\(more)services:\n" + service("shop")
            return try Self.warnings(text)
        }
        #expect(
            try prefetch("/shops/a") == ["1:41: no service answers '/shops/a'; add one, or correct 'prefetch[].urls'"]
        )
        for served in ["/shop", "/shop/a", "/shop?a=1", "http://any.example/a", "https://any.example/a"] {
            #expect(try prefetch(served).isEmpty, "\(served)")
        }
        let closed = "forward: { enabled: false }\nhosts: [\"*.lan\"]\n"
        #expect(try prefetch("http://any.example/a", closed).count == 1)
        for own in [
            "http://localhost:8080/shop/a", "http://127.0.0.1:9/a", "http://box.lan/shop", "http://machine/shop",
        ] {
            #expect(try prefetch(own, closed).isEmpty, "\(own)")
        }
        let hosted = "services: [{ name: h, match: { host: h.example }, base_url: \"https://api.example.com/v1\" }]\n"
        for (url, count) in [
            ("/a", 1), ("http://h.example/a", 0), ("https://api.example.com/v1/a", 0), ("http://other.example/", 1),
        ] {
            let text = "prefetch: [{ name: p, every: 1h, urls: [\"\(url)\"] }]\nforward: { enabled: false }\n" + hosted
            #expect(try Self.warnings(text).count == count, "\(url)")
        }
    }

    @Test func anIncludeOfNothing() throws {
        let folder = try Folder()
        let text = "include: [\"services/*.yaml\"]\n"
        let said = try folder.load(text).warnings
        #expect(said.map(\.position.column) == [11])
        #expect(
            said.first?.message
                == "'include' finds no file: nothing matches \(folder.path)/services/*.yaml; add one, or remove the pattern"
        )
        try folder.write("services/a.yaml", "services:\n" + service("a"))
        #expect(try folder.load(text).warnings.isEmpty)
    }

    @Test func aTimeThatEndsBeforeTheFirstRetryOfAnotherService() throws {
        func front(_ total: String, _ retry: String, _ defaults: String = "") throws -> [String] {
            try Self.warnings(
                "\(defaults)services:\n" + service("inner", "retry: \(retry)")
                    + "  - { name: front, match: { prefix: /front }, base_url: service:inner, timeout: { total: \(total) } }\n"
            )
        }
        let said = try front("400ms", "{ count: 2 }")
        #expect(
            said == [
                "6:90: 'timeout.total' ends before the first retry of the service 'inner'; raise it, or lower 'retry.delay' there"
            ]
        )
        // A wait may be a fifth shorter, and without a retry there is none.
        #expect(try front("401ms", "{ count: 2 }").isEmpty)
        #expect(try front("400ms", "{ count: 0 }").isEmpty)
        // Each attempt of a service itself has all of the time.
        #expect(
            try Self.warnings("services:\n" + service("a", "timeout: { total: 1ms }", "retry: { count: 1 }")).isEmpty
        )
    }

    /// The warnings of all files, in the order of the files and then of the lines, each once.
    @Test func theOrderOfWarnings() throws {
        let folder = try Folder()
        try folder.write("more.yaml", "services:\n" + service("b", "retry: { delay: 2s }"))
        let text =
            "include: [more.yaml, \"none*.yaml\"]\nservices:\n"
            + service(
                "a",
                "retry: { delay: 1s }",
                "response: { map: { x: $.y } }",
                "endpoints: [{ name: e, path: /e }]"
            )
        let said = try folder.load(text).warnings.map { $0.position.description.replacing(folder.path + "/", with: "") }
        #expect(said == ["main.yaml:1:22", "main.yaml:6:21", "main.yaml:7:27", "more.yaml:5:21"])
    }
}
