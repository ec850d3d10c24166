// Batches in the admin API: what is asked of whoever runs them, and the routes.

package import AdminAPI
import HTTPWire

/// What the admin API asks of whoever runs batches.
package protocol JobActions: Sendable {
    /// Begins what the body asks for: a new batch, or the download of what a job has queued.
    /// - Parameter request: its body is an ``AdminJobRequest``, which may be long.
    /// - Throws: what is wrong with the body, that there are too many jobs, or that the daemon is ending.
    func submit(_ request: AdminRequest, _ kind: AdminJob.Kind) async throws(Problem) -> AdminJob
    /// Downloads what has failed or was cancelled.
    func retry(job id: String) async throws(Problem) -> AdminJob
    func cancel(job id: String) async throws(Problem) -> AdminJob
    /// Forgets a job that is not under way.
    func remove(job id: String) async throws(Problem) -> AdminJob
    func job(_ id: String, withItems: Bool) async throws(Problem) -> AdminJob
    /// The oldest first, without their items.
    func jobs() async -> AdminJobs
}

extension AdminRoute {
    /// Bytes of a list of items at most.
    private static let listLimit = 64 << 20

    package static func jobs(_ actions: any JobActions) -> [AdminRoute] {
        [
            AdminRoute(.post, .size, bodyLimit: listLimit) { request async throws(Problem) in
                try .json(await actions.submit(request, .size), status: 202)
            },
            AdminRoute(.post, .prefetch, bodyLimit: listLimit) { request async throws(Problem) in
                try .json(await actions.submit(request, .prefetch), status: 202)
            },
            AdminRoute(.get, .jobs) { _ async throws(Problem) in try .json(await actions.jobs()) },
            AdminRoute(.get, .job) { request async throws(Problem) in
                let query = request.query
                for (name, value) in query where name != "items" || value != "true" && value != "false" {
                    throw .badQuery("\(name)=\(value) is not known; there is items=true|false")
                }
                return try .json(await actions.job(request.places[0], withItems: query["items"] != "false"))
            },
            AdminRoute(.post, .cancelJob) { request async throws(Problem) in
                try .json(await actions.cancel(job: request.places[0]))
            },
            AdminRoute(.post, .retryJob) { request async throws(Problem) in
                try .json(await actions.retry(job: request.places[0]), status: 202)
            },
            AdminRoute(.delete, .job) { request async throws(Problem) in
                try .json(await actions.remove(job: request.places[0]))
            },
        ]
    }
}
