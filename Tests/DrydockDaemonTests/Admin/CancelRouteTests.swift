// `POST /v1/cancel`: which fetches are meant, and what is refused.

import HTTPWire
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct CancelRouteTests {
    @Test(
        arguments: [
            ("url", "/a?b=c", CancelTarget.url("/a?b=c")), ("service", "api", .service("api")), ("all", "", .all),
        ]
    )
    func understood(name: String, value: String, target: CancelTarget) throws {
        #expect(try CancelTarget(members: [(name, value)]) == target)
    }

    @Test func `nothing is under way, so nothing ends`() async throws {
        try await DaemonHarness.run(
            "services: [{ name: api, match: { prefix: /a }, base_url: \"http://127.0.0.1:9\" }]"
        ) {
            harness throws in
            for query in ["all", "waiters&all", "url=%2Fa", "url=%2Fa&waiters", "service=api"] {
                let answer = try harness.ask("POST", "/v1/cancel?\(query)")
                #expect(answer.status == 200 && answer.text == "{\"fetches\":0,\"waiters\":0}\n", "\(query)")
            }
            let unknown = try harness.ask("POST", "/v1/cancel?service=shop")
            #expect(unknown.status == 404 && unknown.text.contains("shop"))
            for query in [
                "", "url=", "service=", "all=yes", "url=%2Fa&all", "everything", "waiters", "waiters=yes&all",
            ] {
                let answer = try harness.ask("POST", "/v1/cancel?\(query)")
                let said = "give one of url=URL, service=NAME and all, and waiters besides to keep the fetch"
                #expect(answer.status == 400 && answer.text.contains(said), "\(query)")
            }
        }
    }
}
