// The routes of the daemon as such: what it does, what it stores, and the switches of an operator.

import HTTPWire

extension AdminRoute {
    /// What every daemon answers.
    package static func daemon(_ actions: any AdminActions) -> [AdminRoute] {
        [
            AdminRoute(.get, "/v1/status") { _ async throws(Problem) in try .json(await actions.status()) },
            AdminRoute(.get, "/v1/entries") { request async throws(Problem) in
                try await .jsonBehind(await actions.entries(try AdminEntryQuery(query: request.query)))
            },
            AdminRoute(.get, "/v1/explain") { request async throws(Problem) in
                let explanation = try await actions.explain(try ExplainQuestion(members: request.members))
                guard request.query["as"] == "text" else { return try .json(explanation) }
                return .text(explanation.text, type: "text/plain; charset=utf-8")
            },
            AdminRoute(.post, "/v1/reload") { _ async throws(Problem) in
                let result = await actions.reload()
                return try .json(result, status: result.isReloaded ? 200 : 422)
            },
            AdminRoute(.post, "/v1/offline") { request async throws(Problem) in
                try .json(await actions.setOffline(try AdminQuery.offline(request.query)))
            },
            AdminRoute(.post, "/v1/clock") { request async throws(Problem) in
                try .json(await actions.moveClock(try ClockMove(query: request.query)))
            },
            AdminRoute(.get, "/metrics") { _ async throws(Problem) in
                .text(await actions.metricsText(), type: "text/plain; version=0.0.4; charset=utf-8")
            },
            AdminRoute(.get, "/healthz") { _ async throws(Problem) in .text("ok\n") },
            AdminRoute(.get, "/readyz") { _ async throws(Problem) in
                actions.isReady ? .text("ready\n") : .text("not ready\n", status: 503)
            },
        ]
    }
}
