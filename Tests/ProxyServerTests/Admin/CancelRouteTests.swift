// `POST /v1/cancel`: which fetches are meant, and what is refused.

import AdminAPI
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct CancelRouteTests {
    private final class Actions: CancelActions {
        let asked = Monitor([CancelTarget]())
        let scopes = Monitor([CancelScope]())

        func cancel(_ target: CancelTarget, _ scope: CancelScope) async throws(Problem) -> AdminCancelled {
            asked.update { $0.append(target) }
            scopes.update { $0.append(scope) }
            return AdminCancelled(fetches: 2, waiters: 5)
        }
    }

    @Test(
        arguments: [
            ([("url", "/a?b=c")], CancelTarget.url("/a?b=c")), ([("service", "api")], .service("api")),
            ([("all", "")], .all), ([("waiters", ""), ("all", "")], .all),
            ([("url", "/a"), ("waiters", "")], .url("/a")),
        ]
    )
    func understood(_ members: [(String, String)], _ target: CancelTarget) async throws {
        let actions = Actions()
        let route = try #require(actions.cancelRoutes.first)
        #expect(route.method == .post && route.path == .cancel)
        let answer = try await route.perform(AdminRequest(queryItems: members.map { (name: $0.0, value: $0.1) }))
        #expect(
            answer.status == 200 && String(decoding: answer.body, as: UTF8.self) == "{\"fetches\":2,\"waiters\":5}\n"
        )
        #expect(actions.asked.read { $0 } == [target])
        let isOfWaiters = members.contains { $0.0 == "waiters" }
        #expect(actions.scopes.read { $0 } == [isOfWaiters ? .waiters : .fetches])
    }

    @Test(
        arguments: [
            [], [("url", "")], [("service", "")], [("all", "yes")], [("url", "/a"), ("all", "")], [("everything", "")],
            [("waiters", "")], [("waiters", "yes"), ("all", "")],
        ]
    )
    func refused(_ members: [(String, String)]) async throws {
        let actions = Actions()
        let route = try #require(actions.cancelRoutes.first)
        do {
            _ = try await route.perform(AdminRequest(queryItems: members.map { (name: $0.0, value: $0.1) }))
            Issue.record("\(members) was understood")
        } catch {
            #expect(
                error.status == 400
                    && error.detail
                        == "give one of url=URL, service=NAME and all, and waiters besides to keep the fetch"
            )
        }
        #expect(actions.asked.read { $0 }.isEmpty)
    }
}
