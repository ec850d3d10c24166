// The targets of endpoints: filled from a request, refused where a parameter does not fit, and found back.

import Policies
import Testing
import Trees

@testable import ServiceCore

/// `/users/:id`, `/files/*`
private func pattern(_ text: String) -> PathPattern {
    PathPattern(
        segments: text.split(separator: "/").map { segment in
            if segment == "*" { return .rest }
            return segment.hasPrefix(":") ? .parameter(String(segment.dropFirst())) : .literal(Array(segment.utf8))
        }
    )
}

private func shape(
    _ path: String,
    to: String? = nil,
    _ parameters: [(String, ContentTree)] = [],
    in placement: ParameterPlacement = .query,
    style: FormStyle = FormStyle()
) throws -> RequestShape {
    RequestShape(
        to: try to.map { try TargetTemplate($0) },
        parameters: parameters.map { DefaultParameter($0, $1) },
        placement: placement,
        style: style,
        pattern: pattern(path)
    )
}

@Suite struct TargetTests {
    private static let people = "/v2/people/:id?expand=:expand"

    @Test(
        "a target is filled from the path, the query and the defaults",
        arguments: [
            ("/users/7", "/v2/people/7?expand=none"), ("/users/7?expand=all", "/v2/people/7?expand=all"),
            ("/users/7?a=%2F&expand=x%20y+z&b", "/v2/people/7?expand=x%20y%20z&a=%2F&b"),
            ("/users/a%2Fb", "/v2/people/a%2Fb?expand=none"), ("/users/a%3Fb%23c", "/v2/people/a%3Fb%23c?expand=none"),
            ("/users/%C3%A9%00%0D%0A", "/v2/people/%C3%A9%00%0D%0A?expand=none"),
            ("/users/1?expand=", "/v2/people/1?expand="), ("/users/1?id=2", "/v2/people/1?expand=none&id=2"),
            ("/users/a:b;c", "/v2/people/a%3Ab%3Bc?expand=none"),
        ]
    )
    func filling(_ rest: String, _ target: String) throws {
        let made = try shape("/users/:id", to: Self.people, [("expand", .string("none"))])
        #expect(try made.fill(rest).rest == target)
        #expect(try made.fill(rest).members == [])
    }

    @Test(
        "what would leave its segment is refused, and so is what is missing or given twice",
        arguments: [
            ("/users/..", RequestFault.unfit(parameter: "id")), ("/users/%2e%2E", .unfit(parameter: "id")),
            ("/users/.", .unfit(parameter: "id")), ("/users/..%2Fadmin", .unfit(parameter: "id")),
            ("/users/%252e%252e", .unfit(parameter: "id")), ("/users/a%5C..%5Cb", .unfit(parameter: "id")),
            ("/users/..;x", .unfit(parameter: "id")), ("/users/7?expand=a&expand=b", .repeated(parameter: "expand")),
            ("/users/7", .missing(parameter: "expand")), ("/users/7?expandx=1", .missing(parameter: "expand")),
            ("/users/7?expand=1&expand", .repeated(parameter: "expand")),
        ]
    )
    func refusing(_ rest: String, _ fault: RequestFault) throws {
        let made = try shape("/users/:id", to: Self.people)
        #expect(throws: fault) { try made.fill(rest) }
    }

    @Test(
        "templates",
        arguments: [
            ("/files/*", "/static/*", "/files/a/b%20c?x=1", "/static/a/b%20c?x=1"),
            ("/files/*", "/s/*", "/files", "/s"),
            ("/files/*", "/s/*", "/files/", "/s/"), ("/a/:id", #"/p-:id\.json"#, "/a/7", "/p-7.json"),
            ("/a/:id", #"/t\:x/:id"#, "/a/7", "/t:x/7"), ("/a", "/b?x=:y&z=1", "/a?y=2&z=3&x=4&w=5", "/b?x=2&z=1&w=5"),
            ("/a/:x/:y", "/:y/:x/:y", "/a/1/2", "/2/1/2"), ("/a", "/b", "/a?q", "/b?q"), ("/a", "/", "/a", "/"),
            ("/a", "/p/:user.id", "/a?user.id=3", "/p/3"),
        ]
    )
    func templates(_ path: String, _ to: String, _ rest: String, _ target: String) throws {
        #expect(try shape(path, to: to).fill(rest).rest == target)
    }

    @Test(
        "what is no template",
        arguments: [
            "people", "/a/:", "/a/:b:c", "/a#b", "/a b", "/a/*/b", "/a*", "/../b", "/a/./b", "/a/%2E%2e", "/é",
            #"/a\b"#,
            "/:a..b", "/a/..;x",
        ]
    )
    func malformed(_ text: String) {
        #expect(throws: TargetTemplate.Malformed.self) { try TargetTemplate(text) }
    }

    @Test func keyPathsLeadIntoTheContent() throws {
        let made = try shape("/users", to: "/v2/people/:user.id/:kind", [("kind", .string("any"))])
        let content = try JSONReader.read(Array(#"{"user":{"id":7,"list":[1]},"kind":true}"#.utf8))
        #expect(try made.fill("/users", content: content).rest == "/v2/people/7/true")
        #expect(throws: RequestFault.missing(parameter: "user.id")) { try made.fill("/users") }
        #expect(throws: RequestFault.missing(parameter: "user.id")) { try made.fill("/users", content: .empty) }
        let list = try shape("/users", to: "/:user.list")
        #expect(throws: RequestFault.structured(parameter: "user.list")) { try list.fill("/users", content: content) }
        #expect(made.looksIntoContent(for: "/users") && !made.looksIntoContent(for: "/users?user.id=1&kind=2"))
    }

    @Test func parametersThatAreLeftGoWhereTheyAreSent() throws {
        let nested = ContentTree.object([.init("b", .number("1"))])
        let parameters: [(String, ContentTree)] = [
            ("page", .number("2")), ("tags", .array([.string("x y"), .bool(true)])), ("a", nested),
        ]
        #expect(try shape("/u", parameters).fill("/u").rest == "/u?page=2&tags%5B%5D=x%20y&tags%5B%5D=true&a%5Bb%5D=1")
        #expect(
            try shape("/u", parameters).fill("/u?tags[]=z&q&a[c]=3").rest == "/u?tags[]=z&q&a[c]=3&page=2"
        )
        let style = FormStyle(arrays: .repeated, booleans: .digits, order: .sorted)
        #expect(
            try shape("/u", parameters, style: style).fill("/u?z=1&b=2").rest
                == "/u?a%5Bb%5D=1&b=2&page=2&tags=x%20y&tags=1&z=1"
        )
        let filled = try shape("/u/:a", to: "/v", parameters, in: .body).fill("/u/p?page=3&tags=1&tags=2&q=4")
        #expect(filled.rest == "/v?q=4")
        #expect(
            filled.members == [
                .init("page", .string("3")), .init("tags", .array([.string("1"), .string("2")])),
                .init("a", .string("p")),
            ]
        )
    }

    @Test func aTargetHasABound() throws {
        let long = String(repeating: "x", count: FilledTarget.limit)
        #expect(throws: RequestFault.tooLong(limit: FilledTarget.limit)) {
            try shape("/a/:b", to: "/:b").fill("/a/" + long)
        }
    }

    @Test(
        "what a client asks for so that a target is asked for",
        arguments: [
            ("/users/:id", people, "/v2/people/7?expand=none", "/users/7"),
            ("/users/:id", people, "/v2/people/7?expand=all&x=1", "/users/7?expand=all&x=1"),
            ("/users/:id", people, "/v2/people/a%2Fb?expand=none", "/users/a%2Fb"),
            ("/users/:id", people, "/v2/other/7?expand=none", nil), ("/users/:id", people, "/v2/people/7", nil),
            ("/files/*", "/static/*", "/static/a/b?q", "/files/a/b?q"), ("/a/:x", "/b", "/b", nil),
            ("/a/:id", #"/p-:id\.json"#, "/p-7.json", "/a/7"),
        ]
    )
    func foundBack(_ path: String, _ to: String, _ target: String, _ rest: String?) throws {
        let made = try shape(path, to: to, to == Self.people ? [("expand", .string("none"))] : [])
        #expect(made.rest(leadingTo: target) == rest)
    }
}
