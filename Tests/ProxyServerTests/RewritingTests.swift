// Fields of answers that point at the origin, as the client sees them.

import HTTPWire
import Testing

@testable import ProxyServer

@Suite struct RewritingTests {
    private static func rewrite(
        _ fields: [(String, String)],
        prefix: String = "/gh",
        base: String = "http://api.test/v1"
    ) throws -> Fields {
        let plan = try compile("services: [{ name: s, match: { prefix: \(prefix) }, base_url: \"\(base)\" }]")
        var result = Fields(fields)
        try #require(plan.service(named: "s")).rewriting.apply(to: &result)
        return result
    }

    @Test(arguments: [
        // Below the base path.
        ("http://api.test/v1/users?page=2#top", "/gh/users?page=2#top"), ("http://api.test/v1", "/gh"),
        ("http://API.TEST/v1/x", "/gh/x"), ("HTTP://api.test:80/v1/x", "/gh/x"), ("http://api.test/v1?q", "/gh?q"),
        ("/v1/x", "/gh/x"), ("/v1", "/gh"), ("/v1/", "/gh/"), ("/v1?q", "/gh?q"), ("//api.test/v1/x", "/gh/x"),
        ("//api.test:80/v1/x", "/gh/x"), ("/v1//x", "/gh//x"), ("/v1/a%2Fb", "/gh/a%2Fb"),
        // Elsewhere on the origin: no place here, and no other service's place either.
        ("http://api.test/v2/x", "http://api.test/v2/x"), ("http://api.test/", "http://api.test/"),
        ("http://api.test", "http://api.test"), ("/v10/x", "http://api.test/v10/x"), ("/", "http://api.test/"),
        ("//api.test/v2", "http://api.test/v2"),
        // Other hosts, ports and schemes.
        ("http://api.test.evil/v1/x", "http://api.test.evil/v1/x"),
        ("http://api.test:8080/v1", "http://api.test:8080/v1"),
        ("https://api.test/v1/x", "https://api.test/v1/x"), ("//other.test/v1/x", "//other.test/v1/x"),
        ("http://api.test@evil/v1", "http://api.test@evil/v1"), ("mailto:me@api.test", "mailto:me@api.test"),
        // Relative to the path: the same below the prefix.
        ("next", "next"), ("../up", "../up"), ("?page=2", "?page=2"), ("#part", "#part"), ("", ""),
    ])
    func `references to the base path lead to the prefix`(value: String, expected: String) throws {
        let fields = try Self.rewrite([("Location", value), ("Content-Location", value)])
        #expect(fields.first(.location) == expected)
        #expect(fields.first(.contentLocation) == expected)
    }

    @Test(arguments: [
        ("/gh", "http://api.test", "http://api.test", "/gh/"),
        ("/gh", "http://api.test", "http://api.test?q", "/gh/?q"),
        ("/gh", "http://api.test", "/x", "/gh/x"), ("/", "http://api.test", "http://api.test/x", "/x"),
        ("/", "http://api.test/v1", "/v1/x", "/x"), ("/", "http://api.test/v1", "/v1", "/"),
        ("/gh", "http://[::1]:9/v1", "http://[::1]:9/v1/x", "/gh/x"),
        ("/gh", "https://api.test", "https://api.test:443/x", "/gh/x"),
        ("/gh", "http://api.test:8080", "http://api.test/x", "http://api.test/x"),
        // Never another host: a path that begins with two slashes would be one.
        ("/", "http://api.test", "http://api.test//evil.test/x", "/.//evil.test/x"),
        ("/", "http://api.test/v1", "/v1//evil.test/x", "/.//evil.test/x"),
    ])
    func `prefix and base path of any shape`(
        prefix: String,
        base: String,
        value: String,
        expected: String
    ) throws {
        let fields = try Self.rewrite([("Location", value)], prefix: prefix, base: base)
        #expect(fields.first(.location) == expected)
    }

    @Test(arguments: [
        ("a=b; Path=/v1; HttpOnly", "a=b; Path=/gh; HttpOnly"), ("a=b; path=/v1/users", "a=b; Path=/gh/users"),
        ("a=b;Path = /v1/users ;Secure", "a=b; Path=/gh/users;Secure"), ("a=b; Path=/v1/", "a=b; Path=/gh"),
        // A path above the base covers the service; it must not cover the others here.
        ("a=b; Path=/", "a=b; Path=/gh"), ("a=b; Path=/v2", "a=b; Path=/v2"), ("a=b; Path=/v10", "a=b; Path=/v10"),
        // Not an attribute, or none that is a path.
        ("path=/v1; HttpOnly", "path=/v1; HttpOnly"), ("a=b; Path=", "a=b; Path="), ("a=b; Path", "a=b; Path"),
        ("a=b; Path=v1", "a=b; Path=v1"), ("a=b", "a=b"), ("", ""),
        ("a=\"/v1; Path=/v1\"", "a=\"/v1; Path=/v1\""),
    ])
    func `cookie paths move to the prefix`(cookie: String, expected: String) throws {
        let fields = try Self.rewrite([("Set-Cookie", cookie), ("Set-Cookie", "other=1; Path=/v1/o")])
        #expect(fields.all(.setCookie) == [expected, "other=1; Path=/gh/o"])
    }

    @Test func `a service in front of another one rewrites what the origin behind both says`() throws {
        let plan = try compile(
            """
            services:
              - { name: outer, match: { prefix: /outer }, base_url: service:inner }
              - { name: inner, match: { prefix: /inner }, base_url: "http://api.test/v1" }
            """
        )
        for (name, expected) in [("outer", "/outer/x"), ("inner", "/inner/x")] {
            var fields = Fields([("Location", "http://api.test/v1/x")])
            try #require(plan.service(named: name)).rewriting.apply(to: &fields)
            #expect(fields.first(.location) == expected)
        }
    }

    @Test func `a service by host keeps paths as they are`() throws {
        let plan = try compile("services: [{ name: s, match: { host: api.localhost }, base_url: \"http://api.test\" }]")
        var fields = Fields([("Location", "http://api.test/x"), ("Set-Cookie", "a=b; Path=/x")])
        try #require(plan.service(named: "s")).rewriting.apply(to: &fields)
        #expect(fields.first(.location) == "/x")
        #expect(fields.first(.setCookie) == "a=b; Path=/x")
    }
}
