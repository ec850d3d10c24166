// What an endpoint says of its requests: targets, parameters, contents, and credentials of its own.

import Policies
import Testing
import Trees

@testable import Configuration

@Suite struct RequestKeyTests {
    private static func endpoint(_ text: String) throws -> EndpointConfiguration {
        let configuration = try load("services:\n" + service("s", "endpoints: [{ name: e, path: /e/:id, \(text) }]"))
        return try #require(configuration.services.first?.endpoints.first)
    }

    @Test func anEndpointThatSaysNothingMakesNothing() throws {
        let endpoint = try Self.endpoint("method: POST")
        #expect(endpoint.request == nil && endpoint.auth == nil)
    }

    @Test func valuesOfAnyShapeKeepTheirTypesAndTheirOrder() throws {
        let request = try #require(
            try Self.endpoint(#"params: { b: "1", a: 1.50, c: [true, x, ~], d: { z: -1, y: 08 } }"#).request
        )
        #expect(
            request.params == [
                .init("b", .string("1")), .init("a", .number("1.50")),
                .init("c", .array([.bool(true), .string("x"), .null])),
                .init("d", .object([.init("z", .number("-1")), .init("y", .string("08"))])),
            ]
        )
    }

    @Test(arguments: [
        ("GET", ParameterPlacement.query), ("DELETE", .query), ("POST", .body), ("PUT", .body), ("PATCH", .body),
    ])
    func theMethodSaysWhereParametersGo(_ method: String, _ placement: ParameterPlacement) throws {
        #expect(try Self.endpoint("method: \(method), params: { a: 1 }").request?.placement == placement)
    }

    @Test func whatIsShownReadsBack() throws {
        let text = #"to: '/p\:/:id.x', params: { a: [1, "two"], b: "$${X}" }, params_as: { order: sorted }"#
        let endpoint = try Self.endpoint(text)
        let configuration = try load("services:\n" + service("s", "endpoints: [{ name: e, path: /e/:id, \(text) }]"))
        let again = try load(configuration.text(hidingSecrets: false))
        #expect(again.services.first?.endpoints.first == endpoint)
        #expect(endpoint.request?.params.last?.value == .string("${X}"))
    }

    @Test func secretsOfContentsAndEndpointsAreHidden() throws {
        let text =
            "method: POST, auth: { basic: { user: u, password: hush } }, body: { defaults: { client: { secret: quiet }, a: 1 } }"
        let configuration = try load("services:\n" + service("s", "endpoints: [{ name: e, path: /e, \(text) }]"))
        let shown = configuration.shown()
        #expect(!shown.contains("hush") && !shown.contains("quiet"))
        #expect(configuration.services.first?.endpoints.first?.auth == .basic(user: "u", password: "hush"))
    }

    @Test func anEndpointInheritsNoneOfIt() throws {
        let configuration = try load(
            "services:\n" + service("s", "auth: { bearer: x }", "endpoints: [{ name: e, path: /e }]")
        )
        #expect(configuration.services.first?.endpoints.first?.auth == nil)
        #expect(configuration.services.first?.auth == .bearer("x"))
    }
}
