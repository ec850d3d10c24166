// The routes of the daemon as such: what it does, what it stores, and the switches of an operator.

internal import AdminAPI
import HTTPWire

extension AdminRoute {
    /// What every daemon answers.
    package static func daemon(_ actions: any AdminActions) -> [AdminRoute] {
        [
            AdminRoute(.get, .status) { _ async throws(Problem) in try .json(await actions.status()) },
            AdminRoute(.get, .entries) { request async throws(Problem) in
                try await .jsonBehind(await actions.entries(try AdminEntryQuery(query: request.query)))
            },
            AdminRoute(.get, .explain) { request async throws(Problem) in
                let explanation = try await actions.explain(try ExplainQuestion(members: request.members))
                guard request.query["as"] == "text" else { return try .json(explanation) }
                return .text(explanation.text, type: "text/plain; charset=utf-8")
            },
            AdminRoute(.post, .reload) { _ async throws(Problem) in
                let result = await actions.reload()
                return try .json(result, status: result.isReloaded ? 200 : 422)
            },
            AdminRoute(.post, .offline) { request async throws(Problem) in
                try .json(await actions.setOffline(try isOffline(request.query)))
            },
            AdminRoute(.post, .clock) { request async throws(Problem) in
                try .json(await actions.moveClock(try ClockMove(query: request.query)))
            },
            AdminRoute(.get, .metrics) { _ async throws(Problem) in
                .text(await actions.metricsText(), type: "text/plain; version=0.0.4; charset=utf-8")
            },
            AdminRoute(.get, .health) { _ async throws(Problem) in .text("ok\n") },
            AdminRoute(.get, .readiness) { _ async throws(Problem) in
                actions.isReady ? .text("ready\n") : .text("not ready\n", status: 503)
            },
        ]
    }

    /// `on` or `off`.
    private static func isOffline(_ query: [String: String]) throws(Problem) -> Bool {
        guard query.count == 1, let word = query.first, word.value.isEmpty, word.key == "on" || word.key == "off" else {
            throw .badQuery("give either on or off")
        }
        return word.key == "on"
    }
}
