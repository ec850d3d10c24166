// Which endpoints come the closest to a request that none of them names.

import HTTPWire
import Testing

@testable import ServiceCore

@Suite struct NearestEndpointTests {
    private static let route: ServiceRoute = {
        func endpoint(_ name: String, _ method: HTTPWire.Method, _ segments: [PathPattern.Segment]) -> EndpointPlan {
            EndpointPlan(
                name: name,
                method: method,
                pattern: PathPattern(segments: segments),
                request: RequestPlan()
            )
        }
        func literal(_ text: String) -> PathPattern.Segment { .literal(Array(text.utf8)) }
        let endpoints = [
            endpoint("list", .get, [literal("users")]), endpoint("user", .get, [literal("users"), .parameter("id")]),
            endpoint("save", .put, [literal("users"), .parameter("id")]),
            endpoint("files", .get, [literal("files"), .rest]),
            endpoint("root", .get, []),
        ]
        return ServiceRoute(
            plan: ServicePlan(name: "api", origin: nil, endpoints: endpoints),
            runtime: ServiceRuntime(name: "api", limits: AdmissionLimits()),
            listedOnly: true,
            via: "1.1 x"
        )
    }()

    @Test(
        arguments: [
            ("POST", "/users/7", ["user takes GET, not POST", "save takes PUT, not POST"]),
            ("POST", "/users/7?a=/b", ["user takes GET, not POST", "save takes PUT, not POST"]),
            ("GET", "/usres", ["list is GET /users"]),
            ("GET", "/user/7", ["user is GET /users/:id", "save is PUT /users/:id"]),
            ("GET", "/fiels/a/b/c", ["files is GET /files/*"]), ("PUT", "/", ["root takes GET, not PUT"]),
            ("PUT", "", ["root takes GET, not PUT"]), ("GET", "/x/y/z", []),
        ] as [(String, String, [String])]
    )
    func nearest(method: String, rest: String, told: [String]) {
        #expect(Self.route.nearestEndpoints(to: HTTPWire.Method(method), rest) == told)
    }
}
