// Fields of answers that point at the origin, as the client sees them.

import HTTPWire
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite struct RewritingTests {
    private static func rewrite(
        _ fields: [(String, String)],
        prefix: String = "/gh",
        base: String = "http://api.test/v1",
        more: String = ""
    ) throws -> Fields {
        let match = prefix.hasPrefix("/") ? "prefix" : "host"
        let plan = try compile(
            "services: [{ name: s, match: { \(match): \(prefix) }, base_url: \"\(base)\" }\(more)]"
        )
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
        // Elsewhere on the origin: no URL of this service, and none of another's.
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

    /// Browsers drop tabs, and read a backslash as a slash.
    @Test(arguments: [
        ("/", "http://api.test/base", "/base/\\evil.test/", "/./\\evil.test/"),
        ("/", "http://api.test/base", "/base/\t/evil.test/", "/.//evil.test/"),
        ("/", "http://api.test/base", "/base\\\\evil.test/", "/./\\evil.test/"),
        ("/", "http://api.test/base", "/base\\/evil.test/", "/.//evil.test/"),
        ("/", "http://api.test/base", "http://api.test/base/\\evil.test", "/./\\evil.test"),
        ("/", "http://api.test/base", "http://api.test/base/\t\\evil.test", "/./\\evil.test"),
        ("/", "http://api.test", "/\\evil.test/", "/./\\evil.test/"),
        ("/", "http://api.test", "/\t/evil.test/", "/.//evil.test/"),
        ("/", "http://api.test", "\\/evil.test/", "/.//evil.test/"),
        ("/", "http://api.test", "\\\\evil.test/", "/./\\evil.test/"),
        ("/", "http://api.test", "http://api.test\\\\evil.test/", "/./\\evil.test/"),
        ("/", "http://api.test", "http://api.test\\@evil.test/", "/@evil.test/"),
        ("/", "http://api.test", "/x\\y?a\\b", "/x\\y?a\\b"),
        ("/gh", "http://api.test/v1", "/v1\\x", "/gh/x"), ("/gh", "http://api.test/v1", "\\v1/x", "/gh/x"),
        ("/gh", "http://api.test/v1", "/\\evil.test/", "http://api.test/\\evil.test/"),
        ("/gh", "http://api.test/v1", "/\t/evil.test/", "http://api.test//evil.test/"),
        ("/gh", "http://api.test/v1", "ht\ttp://api.test/v1/x", "/gh/x"),
        // Where a path with dots leads on the origin is where it leads here.
        ("/gh", "http://api.test/v1", "/v1/../v2/x", "http://api.test/v1/../v2/x"),
        ("/gh", "http://api.test/v1", "http://api.test/v1/%2e%2e/v2", "http://api.test/v1/%2e%2e/v2"),
        ("/gh", "http://api.test/v1", "/v1/a/../b?x=/../", "/gh/b?x=/../"),
        ("/gh", "http://api.test/v1", "/v1/a\\..\\..\\..\\x", "http://api.test/v1/a\\..\\..\\..\\x"),
        ("/gh", "http://api.test/v1", "/v2/../v1/x", "/gh/x"),
        ("/", "http://api.test/base", "/base/.//evil.test/", "/.//evil.test/"),
    ])
    func `no reference to the origin becomes one to another host or service`(
        prefix: String,
        base: String,
        value: String,
        expected: String
    ) throws {
        let fields = try Self.rewrite([("Location", value), ("Content-Location", value)], prefix: prefix, base: base)
        #expect(fields.first(.location) == expected)
        #expect(fields.first(.contentLocation) == expected)
    }

    @Test(arguments: [
        ("0; url=/v1/x", "0; url=/gh/x"), ("5;URL='http://api.test/v1/x'", "5; url=/gh/x"),
        ("0, /v1/x", "0; url=/gh/x"),
        ("0;\turl = \"/v1/\\x\" more", "0; url=/gh/\\x"), ("0.5 url=/v2", "0.5 ; url=http://api.test/v2"),
        ("5", "5"), ("5; url=next", "5; url=next"), ("0; url=http://other.test/v1", "0; url=http://other.test/v1"),
        ("url=/v1/x", "url=/v1/x"), ("", ""),
    ])
    func `the URL of Refresh is a reference, too`(value: String, expected: String) throws {
        #expect(try Self.rewrite([("Refresh", value)]).first("Refresh") == expected)
    }

    @Test(arguments: [
        ("/gh", "a=b; Domain=api.test; Path=/v1", "a=b; Path=/gh"),
        ("/gh", "a=b;domain = .api.test;Secure", "a=b;Secure"),
        ("/gh", "a=b; Domain=localhost", "a=b"), ("/gh", "domain=api.test; HttpOnly", "domain=api.test; HttpOnly"),
        ("/gh", "a=b; Domain", "a=b; Domain"),
        // By host: what covers that host is taken by browsers, all else is thrown away.
        ("app.example.test", "a=b; Domain=example.test", "a=b; Domain=example.test"),
        ("app.example.test", "a=b; domain=.APP.example.test; Secure", "a=b; domain=.APP.example.test; Secure"),
        ("app.example.test", "a=b; Domain=api.test", "a=b"),
        ("app.example.test", "a=b; Domain=other.example.test", "a=b"),
        ("app.example.test", "a=b; Domain=ample.test", "a=b"), ("api.localhost", "a=b; Domain=localhost", "a=b"),
    ])
    func `a cookie's domain is the origin's`(match: String, cookie: String, expected: String) throws {
        let base = match.hasPrefix("/") ? "http://api.test/v1" : "http://api.test"
        #expect(try Self.rewrite([("Set-Cookie", cookie)], prefix: match, base: base).all(.setCookie) == [expected])
    }

    @Test(arguments: [
        ("/", "/gh/"), ("/v1", "/gh/"), ("/v1/", "/gh/"), ("/v1/app/", "/gh/app/"),
        ("http://api.test/v1/app/", "/gh/app/"),
        ("/v2/", nil), ("/v1/../", "/gh/"), ("/v1/..%2f", "/gh/..%2f"), ("../", nil), ("./", nil),
        ("//other.test/", nil),
        ("http://other.test/", nil),
    ])
    func `a service worker watches over its own service`(value: String, expected: String?) throws {
        #expect(try Self.rewrite([("Service-Worker-Allowed", value)]).first(.serviceWorkerAllowed) == expected)
        let hosted = try Self.rewrite(
            [("Service-Worker-Allowed", value)],
            prefix: "api.localhost",
            base: "http://api.test"
        )
        #expect(hosted.first(.serviceWorkerAllowed) == value)
    }

    @Test func `no service clears the data of another`() throws {
        let clear = [("Clear-Site-Data", "\"cookies\", \"storage\"")]
        let other = ", { name: o, match: { prefix: /o }, base_url: \"http://o.test\" }"
        let hosted = ", { name: o, match: { host: o.localhost }, base_url: \"http://o.test\" }"
        #expect(try Self.rewrite(clear, more: other).isEmpty)
        #expect(try Self.rewrite(clear, prefix: "/", more: other).isEmpty)
        #expect(try Self.rewrite(clear).count == 1)
        #expect(try Self.rewrite(clear, more: hosted).count == 1)
        #expect(try Self.rewrite(clear, prefix: "api.localhost", more: other).count == 1)
    }

    @Test func `no service has browsers use https on every port of its host`() throws {
        let strict = [("Strict-Transport-Security", "max-age=31536000")]
        #expect(try Self.rewrite(strict).isEmpty)
        #expect(try Self.rewrite(strict, prefix: "/").isEmpty)
        #expect(try Self.rewrite(strict, prefix: "api.localhost").count == 1)
    }

    @Test func `no secret of the query is passed back`() throws {
        let plan = try compile(
            """
            services:
              - { name: outer, match: { prefix: /outer }, base_url: service:inner, query: { token: 0uter } }
              - name: inner
                match: { prefix: /inner }
                base_url: "http://api.test/v1"
                query: { page: 1 }
                endpoints: [{ name: e, path: /e, query: { appid: { value: "1n ner", secret: true } } }]
            """
        )
        for (name, prefix) in [("outer", "/outer"), ("inner", "/inner")] {
            var fields = Fields([
                ("Location", "http://api.test/v1/x?page=1&appid=1n%20ner"), ("Content-Location", "/v1/x?appid=1n+ner"),
                ("Refresh", "0; url=http://other.test/x?appid=1n%20ner"),
                ("Link", "</v1/x?appid=1n%20ner&page=2>; rel=next"), ("Link", "</v1/y>; rel=last"),
            ])
            try #require(plan.service(named: name)).rewriting.apply(to: &fields)
            #expect(fields.first(.location) == prefix + "/x?page=1")
            #expect(fields.first(.contentLocation) == prefix + "/x")
            #expect(fields.first("Refresh") == "0; url=http://other.test/x")
            #expect(fields.all("Link") == ["</v1/x?page=2>; rel=next", "</v1/y>; rel=last"])
        }
        var fields = Fields([("Location", "/v1/x?token=0uter&appid=1n%20ner")])
        try #require(plan.service(named: "outer")).rewriting.apply(to: &fields)
        #expect(fields.first(.location) == "/outer/x")
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
