// What of a request enters the key besides its URL, and what of the URL does not.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Key rules")
struct KeyRulesTests {
    @Test(
        "ignore_query: items with such a name do not enter the key; the rest stays byte for byte",
        arguments: [
            ("/a", ["utm_*"], "/a"), ("/a?", ["utm_*"], "/a?"), ("/a?x=1", ["utm_*"], "/a?x=1"),
            ("/a?utm_source=n", ["utm_*"], "/a"), ("/a?utm_", ["utm_*"], "/a"), ("/a?utm=1", ["utm_*"], "/a?utm=1"),
            ("/a?x=1&utm_source=n&y=2", ["utm_*"], "/a?x=1&y=2"), ("/a?y=2&x=1", ["y"], "/a?x=1"),
            ("/a?x=utm_1", ["utm_*"], "/a?x=utm_1"), ("/a?UTM_a=1", ["utm_*"], "/a?UTM_a=1"),
            ("/a?x=1&x=2&z=3", ["x"], "/a?z=3"), ("/a?x&&z=3", ["x"], "/a?&z=3"), ("/a?x==1", ["x"], "/a"),
            ("/a?b=%7E&x=1&c=a+b", ["x"], "/a?b=%7E&c=a+b"), ("/a?x=1", ["*"], "/a"), ("/a?x=1", [], "/a?x=1"),
            ("/a?session_id=1&sid=2&s=3", ["s*id"], "/a?s=3"), ("/a?x=1?x=2", ["x"], "/a"),
            ("/a?fbclid=1&gclid=2&q=3", ["fbclid", "gclid"], "/a?q=3"), ("/a?aXbXc=1", ["a*b*c"], "/a"),
            ("/a?utm_a=1;admin=1&utm_b=2&q", ["utm_*"], "/a?utm_a=1;admin=1&q"),
            ("/a?q;utm_a", ["utm_*"], "/a?q;utm_a"),
            ("/a?utm_a;", ["*"], "/a?utm_a;"), ("/a?utm_a=%3B", ["utm_*"], "/a"),
            ("/a?aXb=1", ["a*b*c"], "/a?aXb=1"), ("/a?=1", [""], "/a"), ("/a?a.b=1&axb=2", ["a.b"], "/a?axb=2"),
        ]
    )
    func ignoredQuery(path: String, patterns: [String], expected: String) {
        #expect(KeyRules(ignoreQuery: patterns).path(path) == expected)
    }

    @Test("key.fields: a line for each name, whether the request has it or not")
    func fields() {
        let rules = KeyRules(fields: ["X-Tenant", "accept-language"])
        #expect(rules.lines(Fields([("x-tenant", "a"), ("Cookie", "c")])) == ["x-tenant: a", "accept-language"])
        #expect(
            rules.lines(Fields([("X-Tenant", "a"), ("X-TENANT", "b"), ("Accept-Language", "")]))
                == ["x-tenant: a, b", "accept-language: "]
        )
        #expect(KeyRules().lines(Fields([("X-Tenant", "a")])) == [])
    }

    @Test(
        "a field that differs from one of the key only in an underscore is not it, and is told from others",
        arguments: [
            ("X_Tenant", true), ("x_tenant", true), ("X-Tenant", false), ("X-Tenant_", false), ("X_Tenan", false),
            ("A-B_C", true), ("a_b-c", true), ("a_b_c", true), ("a-b-c", true), ("A_B-D", false),
        ]
    )
    func twins(name: String, isTwin: Bool) {
        let rules = KeyRules(fields: ["X-Tenant", name == "a_b-c" ? "a-b_c" : "a_b-c"])
        #expect(Array(name.utf8).withUnsafeBytes { rules.hasTwin(of: $0) } == isTwin)
    }

    @Test("key.fields: names are found in any case")
    func names() {
        let rules = KeyRules(fields: ["X-Forwarded-Host"])
        let found = ["x-forwarded-host", "X-FORWARDED-HOST", "X-Forwarded-For", ""].map { name in
            Array(name.utf8).withUnsafeBytes { rules.names($0) }
        }
        #expect(found == [true, true, false, false])
    }

    @Test("POST: its content and what says how to read it enter the key")
    func post() {
        let plain = KeyRules.lines(post: Array("abc".utf8), Fields([("Accept", "text/html")]))
        #expect(plain == ["POST sha-256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"])
        let typed = KeyRules.lines(
            post: Array("abc".utf8),
            Fields([("Content-Type", "application/json"), ("Content-Encoding", "gzip")])
        )
        #expect(typed == plain + ["content-type: application/json", "content-encoding: gzip"])
    }
}
