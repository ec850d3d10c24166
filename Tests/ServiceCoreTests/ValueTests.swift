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
            return path.withUTF8 { plan.paths.first(for: method, path: UnsafeRawBufferPointer($0)) }
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

    @Test("none changes nothing")
    func none() {
        #expect(QueryDefaults([]).isEmpty && QueryDefaults([]).apply(to: "/a?") == "/a?")
        #expect(QueryDefaults([("a", ["1"])]) == QueryDefaults([("a", ["1"])]))
        #expect(QueryDefaults([("a", ["1"])]) != QueryDefaults([("a", ["2"])]))
    }

    @Test("every byte but the unreserved is encoded")
    func encoding() { #expect(QueryDefaults.encode("aZ09-._~ +/é\u{1}") == "aZ09-._~%20%2B%2F%C3%A9%01") }
}

@Suite
struct FieldRulesTests {
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
