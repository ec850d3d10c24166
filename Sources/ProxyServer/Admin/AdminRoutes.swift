// The routes of the daemon itself: its status, its stored responses, and an operator's switches.

import AdminAPI
import HTTPWire

extension AdminActions {
    /// What every daemon answers.
    package var daemonRoutes: [AdminRoute] {
        [
            AdminRoute(.get, .status) { _ async throws(Problem) in try .json(await self.status()) },
            AdminRoute(.get, .entries) { request async throws(Problem) in
                try await .jsonBehind(await self.entries(try AdminEntryQuery(query: request.query)))
            },
            AdminRoute(.get, .explain) { request async throws(Problem) in
                let explanation = try await self.explain(try ExplainQuery(members: request.queryItems))
                guard request.query["as"] == "text" else { return try .json(explanation) }
                return .text(explanation.text, type: "text/plain; charset=utf-8")
            },
            AdminRoute(.post, .reload) { _ async throws(Problem) in
                let result = await self.reload()
                return try .json(result, status: result.isReloaded ? 200 : 422)
            },
            AdminRoute(.post, .offline) { request async throws(Problem) in
                try .json(await self.setOffline(try request.isOffline))
            },
            AdminRoute(.post, .clock) { request async throws(Problem) in
                try .json(await self.moveClock(try ClockMove(query: request.query)))
            },
            AdminRoute(.get, .metrics) { _ async throws(Problem) in
                .text(await self.metricsText(), type: "text/plain; version=0.0.4; charset=utf-8")
            },
            AdminRoute(.get, .health) { _ async throws(Problem) in .text("ok\n") },
            AdminRoute(.get, .readiness) { _ async throws(Problem) in
                self.isReady ? .text("ready\n") : .text("not ready\n", status: 503)
            },
        ]
    }
}

extension AdminRequest {
    /// `on` or `off`.
    fileprivate var isOffline: Bool {
        get throws(Problem) {
            guard query.count == 1, let word = query.first, word.value.isEmpty, ["on", "off"].contains(word.key) else {
                throw .badQuery("give either on or off")
            }
            return word.key == "on"
        }
    }
}
