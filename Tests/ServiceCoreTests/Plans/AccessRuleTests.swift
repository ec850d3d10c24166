// Rules that allow and deny, and the readings of a path that none of them may miss.

import HTTPWire
import Testing

@testable import ServiceCore

@Suite struct AccessRuleTests {
    private static func request(_ method: Method, _ fields: [(String, String)] = []) -> RequestHead {
        RequestHead(method: method, target: "/", fields: Fields(fields))
    }

    private static func rule(_ name: String, _ methods: [Method] = [], path: String? = nil) -> AccessRule {
        let segments = path?.split(separator: "/").map { segment -> PathPattern.Segment in
            if segment == "*" { return .rest }
            return segment.hasPrefix(":") ? .parameter(String(segment.dropFirst())) : .literal(Array(segment.utf8))
        }
        return AccessRule(name: name, methods: methods, path: segments.map { PathPattern(segments: $0) }, fields: [])
    }

    @Test(
        arguments: [
            "/admin/x", "/admin", "//admin/x", "/admin//x", "/%61dmin/x", "/%2561dmin/x", "/%252561dmin", "/admin%2Fx",
            "/admin;v=1/x", "/admin;v=1", "/admin%3Bv/x", "\\admin\\x", "/admin%5Cx", "/admin/?q", "/admin%00/x",
            "//%61dmin;a/x?y=/open", "/admin/", "/%25%36%31dmin/x", "/%%36%31dmin", "/%6%31dmin/x", "/%%%33%36%31dmin",
            "/admin%25%32%66x", "/admin%2%66x",
        ]
    )
    func `no spelling of a path gets past a rule that denies`(path: String) {
        let rules = AccessRules(deny: [Self.rule("deny[0]", path: "/admin/*")])
        #expect(rules.refusal(of: Self.request(.get), path) == "deny[0]")
    }

    @Test(arguments: ["/open", "/administrator", "/open/admin", "/open?x=/admin/x", "", "?admin", "/Admin"])
    func `what no rule denies may go on`(path: String) {
        let rules = AccessRules(deny: [Self.rule("deny[0]", path: "/admin/*")])
        #expect(rules.refusal(of: Self.request(.get), path) == nil)
    }

    @Test func aSlashAtTheEndIsNoWayPastARule() {
        let rules = AccessRules(deny: [Self.rule("deny[0]", path: "/secret")])
        for path in ["/secret", "/secret/", "//secret//", "/secret%2F", "/secret;x/"] {
            #expect(rules.refusal(of: Self.request(.get), path) == "deny[0]", "\(path)")
        }
        #expect(rules.refusal(of: Self.request(.get), "/secret/x") == nil)
    }

    @Test(
        arguments: [
            "/a/x%3F/%73ecret", "/a/;x/%73ecret", "/a/x\\y/%73ecret", "/a/x%5Cy/%73ecret", "/a/x;y//%73ecret",
            "/a/x\\y//secret", "/a/;x//secret", "/a/x\\y;v/secret;v", "/a/x%3F/%73ecret%2F", "/a/x%252Fy/%73ecret",
            "/a/x%25252Fy/%73ecret", "/a/x%25252Fy/%2573ecret",
        ]
    )
    func `an origin may apply one reading and not another`(path: String) {
        let rules = AccessRules(deny: [Self.rule("deny[0]", path: "/a/:id/secret")])
        #expect(rules.refusal(of: Self.request(.get), path) == "deny[0]")
    }

    @Test func aRuleThatDeniesHoldsForEverySpellingOfMethodsAndFields() {
        let condition = AccessRule.FieldCondition(name: "X-Debug", value: nil)
        let rules = AccessRules(
            allow: [AccessRule(name: "allow[0]", methods: [.get, .post], path: nil, fields: [])],
            deny: [
                Self.rule("deny[0]", [.delete, .get], path: "/a"),
                AccessRule(name: "deny[1]", methods: [], path: nil, fields: [condition]),
            ]
        )
        for method in ["DELETE", "delete", "Delete", "GET", "get", "HEAD", "head"] {
            #expect(rules.refusal(of: Self.request(Method(method)), "/a") == "deny[0]", "\(method)")
        }
        #expect(rules.refusal(of: Self.request(.post), "/a") == nil)
        #expect(rules.refusal(of: Self.request(Method("post")), "/b") == "allow", "what is allowed has one spelling")
        for name in ["X-Debug", "x-debug", "X_Debug", "x_debug"] {
            #expect(rules.refusal(of: Self.request(.get, [(name, "1")]), "/b") == "deny[1]", "\(name)")
        }
        #expect(rules.refusal(of: Self.request(.get, [("X-Debugger", "1")]), "/b") == nil)
    }

    @Test func anEncodedPatternMeansTheSameBytes() {
        let deny = AccessRules(deny: [Self.rule("deny[0]", path: "/caf%C3%A9")])
        let allow = AccessRules(allow: [Self.rule("allow[0]", path: "/caf%C3%A9")])
        for path in ["/caf%C3%A9", "/caf%c3%a9", "/c%61f%C3%A9"] {
            #expect(deny.refusal(of: Self.request(.get), path) == "deny[0]", "\(path)")
        }
        #expect(allow.refusal(of: Self.request(.get), "/caf%C3%A9") == nil)
    }

    @Test func anEncodedSlashOfAPatternMeansTheSameBytes() {
        let deny = AccessRules(deny: [Self.rule("deny[0]", path: "/group%2Fname/:id")])
        for path in ["/group%2Fname/1", "/group%2fname/1", "/gr%6Fup%2Fname/1", "/group/name/1", "/group%252Fname/1"] {
            #expect(deny.refusal(of: Self.request(.get), path) == "deny[0]", "\(path)")
        }
        let allow = AccessRules(allow: [Self.rule("allow[0]", path: "/group%2Fname/:id")])
        #expect(allow.refusal(of: Self.request(.get), "/group%2Fname/1") == nil)
        #expect(allow.refusal(of: Self.request(.get), "/group/name/1") == "allow")
    }

    @Test(
        arguments: [
            ("/open/x", true), ("/open", true), ("/open//x", true), ("/open%2Fx", false), ("/%6Fpen/x", false),
            ("//open/x", false), ("/other", false), ("", false), ("/open/%2561", true), ("/open/%2%65", true),
            ("/%25%36%66pen/x", false),
        ] as [(String, Bool)]
    )
    func `a rule that allows holds in every reading`(path: String, isAllowed: Bool) {
        let rules = AccessRules(allow: [Self.rule("allow[0]", path: "/open/*")])
        #expect((rules.refusal(of: Self.request(.get), path) == nil) == isAllowed)
    }

    @Test func methodsAndOrder() {
        let rules = AccessRules(
            allow: [Self.rule("allow[0]", [.get]), Self.rule("allow[1]", [.post], path: "/orders")],
            deny: [Self.rule("deny[0]", [.get], path: "/orders/secret")]
        )
        let refusal = { (method: Method, path: String) in rules.refusal(of: Self.request(method), path) }
        #expect(refusal(.get, "/orders") == nil)
        #expect(refusal(.head, "/orders") == nil, "GET stands for HEAD")
        #expect(refusal(.head, "/orders/secret") == "deny[0]", "a rule that denies wins")
        #expect(refusal(.post, "/orders") == nil)
        #expect(refusal(.post, "/orders/secret") == "allow")
        #expect(refusal(.delete, "/orders") == "allow")
        #expect(AccessRules().refusal(of: Self.request(.delete), "/orders") == nil)
    }

    @Test(
        arguments: [
            (["X-Role": "admin"], true), (["x-role": "admin"], true), (["X-Role": "user"], false), ([:], false),
            (["X-Role": "user, admin"], true), (["X-Role": "administrator"], false), (["X-Other": "admin"], false),
        ] as [([String: String], Bool)]
    )
    func `a field has a value, or has it as a member`(fields: [String: String], isDenied: Bool) {
        let condition = AccessRule.FieldCondition(name: "X-Role", value: "admin")
        let rules = AccessRules(deny: [AccessRule(name: "r", methods: [], path: nil, fields: [condition])])
        let request = Self.request(.get, fields.map { ($0.key, $0.value) })
        #expect((rules.refusal(of: request, "/") == "r") == isDenied)
    }

    @Test func aFieldMayHaveAnyValue() {
        let conditions = [
            AccessRule.FieldCondition(name: "X-Key", value: nil), AccessRule.FieldCondition(name: "X-Name", value: "é"),
        ]
        let rules = AccessRules(allow: [AccessRule(name: "r", methods: [], path: nil, fields: conditions)])
        // The bytes of é in UTF-8, as fields have them: in Latin-1.
        #expect(rules.refusal(of: Self.request(.get, [("X-Key", ""), ("X-Name", "Ã©")]), "/") == nil)
        #expect(rules.refusal(of: Self.request(.get, [("X-Key", "k")]), "/") == "allow")
    }
}
