// `POST /v1/cancel`: which fetches are meant, and what is refused.

import AdminAPI
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct CancelRouteTests {
    private final class Actions: CancelActions {
        let asked = Monitor([CancelTarget]())

        func cancel(_ target: CancelTarget) async throws(Problem) -> AdminCancelled {
            asked.update { $0.append(target) }
            return AdminCancelled(fetches: 2, waiters: 5)
        }
    }

    @Test(
        arguments: [
            ([("url", "/a?b=c")], CancelTarget.url("/a?b=c")), ([("service", "api")], .service("api")),
            ([("all", "")], .all),
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
    }

    @Test(
        arguments: [
            [], [("url", "")], [("service", "")], [("all", "yes")], [("url", "/a"), ("all", "")], [("everything", "")],
        ]
    )
    func refused(_ members: [(String, String)]) async throws {
        let actions = Actions()
        let route = try #require(actions.cancelRoutes.first)
        do {
            _ = try await route.perform(AdminRequest(queryItems: members.map { (name: $0.0, value: $0.1) }))
            Issue.record("\(members) was understood")
        } catch {
            #expect(error.status == 400 && error.detail == "give one of url=URL, service=NAME and all")
        }
        #expect(actions.asked.read { $0 }.isEmpty)
    }
}
