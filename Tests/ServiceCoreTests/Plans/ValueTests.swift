// Path patterns, base URLs, default queries and field rules: plain values.

import HTTPWire
import Testing

@testable import ServiceCore

private func pattern(_ text: String) -> PathPattern {
    PathPattern(
        segments: text.split(separator: "/").map { segment in
            if segment == "*" { return .rest }
            return segment.hasPrefix(":") ? .parameter(String(segment.dropFirst())) : .literal(Array(segment.utf8))
        }
    )
}

private func matches(_ pattern: PathPattern, _ path: String) -> Bool {
    var path = path
    return path.withUTF8 { pattern.matches(UnsafeRawBufferPointer($0)) }
}

@Suite
struct PathPatternTests {
    @Test(
        "what a pattern matches",
        arguments: [
            ("/", ["/", "", "/?q=1", "?q"], ["/a", "//"]),
            ("/users", ["/users", "/users?x=/y"], ["/users/", "/user", "/users/1", "/Users", "users", ""]),
            (
                "/users/:id", ["/users/1", "/users/a%2Fb", "/users/1?x"],
                ["/users/", "/users", "/users/1/", "/users/1/2", "/users/?1"]
            ),
            ("/users/:id/posts", ["/users/1/posts"], ["/users//posts", "/users/1/post"]),
            (
                "/files/*", ["/files", "/files/", "/files/a", "/files/a/b//c", "/files?x"],
                ["/filesystem", "/file", "/"]
            ),
            ("/*", ["/", "", "/a/b", "?q"], ["a"]),
        ]
    )
    func matching(_ text: String, _ good: [String], _ bad: [String]) {
        for path in good { #expect(matches(pattern(text), path), "\(text) \(path)") }
        for path in bad { #expect(!matches(pattern(text), path), "\(text) \(path)") }
    }

    @Test(
        "the more specific comes first: a literal, a parameter, the end, the rest",
        arguments: [
            ["/a/b", "/a/:x", "/a", "/a/*", "/:x/b", "/:x", "/*"], ["/", "/*"], ["/a/:x", "/a", "/a/*"],
        ]
    )
    func order(_ texts: [String]) {
        for (first, left) in texts.enumerated() {
            for (second, right) in texts.enumerated() {
                #expect(
                    pattern(left).isMoreSpecific(than: pattern(right)) == (first < second),
                    "\(left) before \(right)"
                )
            }
        }
    }

    @Test("the first endpoint that answers; GET endpoints answer HEAD")
    func endpoints() {
        let plan = ServicePlan(
            name: "s",
            origin: nil,
            endpoints: [
                EndpointPlan(name: "one", method: .get, pattern: pattern("/u/:id"), request: RequestPlan()),
                EndpointPlan(name: "two", method: .post, pattern: pattern("/u/:id"), request: RequestPlan()),
                EndpointPlan(name: "all", method: .get, pattern: pattern("/u/*"), request: RequestPlan()),
            ]
        )
        func find(_ method: Method, _ path: String) -> Int? {
            var path = path
            return path.withUTF8 { plan.paths?.first(for: method, path: UnsafeRawBufferPointer($0)) }
        }
        #expect(find(.get, "/u/1") == 0 && find(.head, "/u/1") == 0 && find(.post, "/u/1") == 1)
        #expect(find(.get, "/u/1/2") == 2 && find(.put, "/u/1") == nil && find(.get, "/v") == nil)
    }
}

@Suite
struct OriginAddressTests {
    @Test(
        "joins byte for byte",
        arguments: [
            ("", "", "/"), ("", "/a", "/a"), ("", "?q", "/?q"), ("/", "/a", "/a"), ("/v1", "", "/v1"),
            ("/v1/", "/a", "/v1/a"),
            ("/v1", "?q=1", "/v1?q=1"), ("/v1", "/", "/v1/"), ("/v1", "/%2e%2e//b?x=%20", "/v1/%2e%2e//b?x=%20"),
        ]
    )
    func joins(_ base: String, _ rest: String, _ result: String) {
        #expect(OriginAddress(scheme: "http", host: "h", port: nil, basePath: base).path(appending: rest) == result)
    }

    @Test(
        "default ports are left out",
        arguments: [
            ("http", UInt16?.some(80), "http://h", UInt16(80)), ("https", 443, "https://h", 443),
            ("http", 443, "http://h:443", 443), ("https", 80, "https://h:80", 80), ("http", nil, "http://h", 80),
            ("https", nil, "https://h", 443),
        ]
    )
    func ports(_ scheme: String, _ port: UInt16?, _ root: String, _ effective: UInt16) {
        let address = OriginAddress(scheme: scheme, host: "h", port: port, basePath: "/b/")
        #expect(address.root == root && address.base == root + "/b" && address.effectivePort == effective)
    }

    @Test("an IPv6 address keeps its brackets")
    func brackets() {
        #expect(OriginAddress(scheme: "http", host: "[::1]", port: 8080, basePath: "").authority == "[::1]:8080")
    }
}

@Suite
struct QueryDefaultsTests {
    static let defaults = QueryDefaults([("per page", ["50"]), ("tag[]", ["a", "b&c"]), ("empty", [""])])

    @Test(
        "adds what the client did not send, and leaves the client's bytes alone",
        arguments: [
            ("/a", "/a?per%20page=50&tag%5B%5D=a&tag%5B%5D=b%26c&empty="),
            ("/a?", "/a?per%20page=50&tag%5B%5D=a&tag%5B%5D=b%26c&empty="),
            ("/a?x=%7e&", "/a?x=%7e&per%20page=50&tag%5B%5D=a&tag%5B%5D=b%26c&empty="),
            ("/a?empty&tag%5B%5D=z", "/a?empty&tag%5B%5D=z&per%20page=50"),
            ("/a?tag%5b%5d=z&empty=1&per+page=2", "/a?tag%5b%5d=z&empty=1&per+page=2"),
            ("/a?tag[]=z&per%20page&empty", "/a?tag[]=z&per%20page&empty"),
            ("/a?x=empty=tag", "/a?x=empty=tag&per%20page=50&tag%5B%5D=a&tag%5B%5D=b%26c&empty="),
        ]
    )
    func applies(_ target: String, _ result: String) { #expect(Self.defaults.apply(to: target) == result) }

    @Test(
        "what a target may have been before is told from its end",
        arguments: [
            ("/a?empty=&per%20page=50", ["/a?empty=&per%20page=50", "/a?empty=&", "/a?empty=", "/a?", "/a"]),
            ("/a?x&tag%5B%5D=a", ["/a?x&tag%5B%5D=a", "/a?x&", "/a?x"]), ("/a?tag%5B%5D=a&x", ["/a?tag%5B%5D=a&x"]),
            ("/aempty=", ["/aempty="]), ("/a", ["/a"]),
        ]
    )
    func targets(_ target: String, _ before: [String]) { #expect(Self.defaults.targets(of: target) == before) }

    @Test("none changes nothing")
    func none() {
        #expect(QueryDefaults([]).isEmpty && QueryDefaults([]).apply(to: "/a?") == "/a?")
        #expect(QueryDefaults([("a", ["1"])]) == QueryDefaults([("a", ["1"])]))
        #expect(QueryDefaults([("a", ["1"])]) != QueryDefaults([("a", ["2"])]))
    }

    static let withSecret = QueryDefaults([("page", ["1"])], secrets: [("api key", ["s&1"]), ("t", ["a", "b"])])

    @Test("a secret is not among what is added for all to see")
    func secrets() {
        let query = Self.withSecret
        #expect(query.hasSecrets && !query.isEmpty && !Self.defaults.hasSecrets)
        #expect(query.apply(to: "/a") == "/a?page=1")
        #expect(query.hidden(missingIn: "/a?page=1") == ["api%20key=s%261", "t=a", "t=b"])
        #expect(query.hidden(missingIn: "/a?api+key=mine") == ["t=a", "t=b"])
        #expect(QueryDefaults([], secrets: [("a", ["1"])]).isEmpty)
        #expect(QueryDefaults([], secrets: [("a", ["1"])]) != QueryDefaults([("a", ["1"])]))
    }

    @Test("what services in front add counts as named")
    func behind() {
        #expect(Self.withSecret.apply(to: "/a", behind: ["page=9"]) == "/a")
        #expect(Self.withSecret.hidden(missingIn: "/a", behind: ["t=z"]) == ["api%20key=s%261"])
    }

    @Test(
        "items go to the end of the query",
        arguments: [("/a", "/a?x=1"), ("/a?", "/a?x=1"), ("/a?b", "/a?b&x=1"), ("/a?b&", "/a?b&x=1")]
    )
    func adding(target: String, result: String) {
        #expect(QueryDefaults.adding(["x=1"], to: target) == result)
        #expect(QueryDefaults.adding([], to: target) == target)
    }

    @Test("every byte but the unreserved is encoded")
    func encoding() { #expect(QueryDefaults.encode("aZ09-._~ +/é\u{1}") == "aZ09-._~%20%2B%2F%C3%A9%01") }
}

@Suite
struct FieldRulesTests {
    @Test("names with an underscore go where they are dropped, but for those that are set")
    func underscores() {
        var fields = Fields([("api_key", "1"), ("X-A", "2"), ("_", "3"), ("X_A", "4")])
        let rules = FieldRules(set: [("a_b", "5")], dropsUnderscores: true)
        rules.apply(to: &fields)
        #expect(fields.lines.map { "\($0.name): \($0.value)" } == ["X-A: 2", "a_b: 5"])
        #expect(
            !rules.isEmpty && !FieldRules(dropsUnderscores: true).isEmpty
                && FieldRules() != FieldRules(dropsUnderscores: true)
        )
    }

    @Test("remove, then set, then add")
    func order() {
        let rules = FieldRules(
            remove: ["x-gone", "X-Both"],
            set: [("X-Both", "set"), ("X-Set", "one")],
            add: [("X-Set", "two"), ("X-Add", "three")]
        )
        var fields = Fields([
            ("X-Gone", "1"), ("X-Both", "1"), ("x-set", "0"), ("x-set", "00"), ("X-Add", "0"), ("K", "v"),
        ])
        rules.apply(to: &fields)
        #expect(!fields.contains("X-Gone"))
        #expect(fields.all("X-Both") == ["set"] && fields.all("X-Set") == ["one", "two"])
        #expect(fields.all("X-Add") == ["0", "three"] && fields.all("K") == ["v"])
        #expect(!rules.isEmpty && FieldRules().isEmpty && rules == rules && rules != FieldRules())
    }
}

@Suite
struct SecretQueryTests {
    static let secrets: SecretQuery = {
        var secrets = SecretQuery()
        secrets.insert("api_key", ["s3cret/1 +%41"])
        secrets.insert("t", ["", "x=="])
        return secrets
    }()

    @Test(
        "an item goes, with one mark beside it, and what is around it stays",
        arguments: [
            ("/a?api_key=s3cret%2F1%20%2B%2541", "/a"), ("/a?api_key=s3cret/1+%2B%41&b=2", "/a?b=2"),
            ("/a?b=2&api_key=s3cret%2f1%20%2b%2541", "/a?b=2"),
            ("/a?b=2&api%5fkey=s3cret%2F1%20%2B%2541&c", "/a?b=2&c"),
            ("http://h/a?b&api_key=s3cret%2F1%20%2B%2541#f", "http://h/a?b#f"),
            ("/a#api_key=s3cret%2F1%20%2B%2541", "/a#"), ("/a?b;api_key=s3cret%2F1%20%2B%2541;c", "/a?b;c"),
            // In the query of a URL in a query.
            ("/in?next=%2Fa%3Fapi_key%3Ds3cret%252F1%2520%252B%252541&lang=de", "/in?next=%2Fa&lang=de"),
            ("/in?next=%2Fa%3Fapi_key%3Ds3cret%252F1%2520%252B%252541%26b%3D2&c", "/in?next=%2Fa%3Fb%3D2&c"),
            ("/in?next=%2Fa%3Fb%3D2%26api_key%3Ds3cret%252F1%2520%252B%252541&c", "/in?next=%2Fa%3Fb%3D2&c"),
            // Twice, and another one.
            ("/a?t=x%3D%3D&b&t=x==&api_key=s3cret%2F1%20%2B%2541", "/a?b"),
            ("<http://h/a?t=x==>; rel=next, <http://h/b?c&t=x==>", "<http://h/a>; rel=next, <http://h/b?c>"),
            // The client's own, and what only begins or ends alike.
            ("/a?api_key=mine", "/a?api_key=mine"),
            ("/a?my_api_key=s3cret%2F1%20%2B%2541", "/a?my_api_key=s3cret%2F1%20%2B%2541"),
            ("/a?api_key=s3cret%2F1%20%2B%25412", "/a?api_key=s3cret%2F1%20%2B%25412"), ("/a?t=", "/a?t="),
            ("/a?t", "/a?t"),
            ("", ""), ("/a%", "/a%"),
        ]
    )
    func removes(text: String, shown: String) { #expect(Self.secrets.removed(from: text) == shown) }

    @Test("none changes nothing")
    func none() {
        #expect(SecretQuery().isEmpty && !Self.secrets.isEmpty)
        #expect(SecretQuery().removed(from: "/a?t=x==") == "/a?t=x==")
    }
}
