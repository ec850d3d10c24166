// Batches in the admin API: the actions that the daemon provides, and the routes.

package import AdminAPI
import HTTPWire

/// The actions on batches that the admin API needs; the daemon provides them.
package protocol JobActions: Sendable {
    /// Begins the job of the request's body: a new batch, or the download of items that a job has queued.
    /// - Parameter request: its body is an ``AdminJobRequest``, which may be long.
    /// - Throws: a problem that says what is wrong with the body, that there are too many jobs, or
    ///   that the daemon is ending.
    func submit(_ request: AdminRequest, _ kind: AdminJob.Kind) async throws(Problem) -> AdminJob
    /// Downloads the items that failed or were cancelled.
    func retry(job id: String) async throws(Problem) -> AdminJob
    func cancel(job id: String) async throws(Problem) -> AdminJob
    /// Forgets a job that is not under way.
    func remove(job id: String) async throws(Problem) -> AdminJob
    func job(_ id: String, withItems: Bool) async throws(Problem) -> AdminJob
    /// The oldest first, without their items.
    func jobs() async -> AdminJobs
}

/// Bytes of a list of items at most.
private let longestList = 64 << 20

extension JobActions {
    /// What begins batches, and what follows them.
    package var jobRoutes: [AdminRoute] {
        [
            AdminRoute(.post, .size, bodyLimit: longestList) { request async throws(Problem) in
                try .json(await self.submit(request, .size), status: 202)
            },
            AdminRoute(.post, .prefetch, bodyLimit: longestList) { request async throws(Problem) in
                try .json(await self.submit(request, .prefetch), status: 202)
            },
            AdminRoute(.get, .jobs) { _ async throws(Problem) in try .json(await self.jobs()) },
            AdminRoute(.get, .job) { request async throws(Problem) in
                let query = request.query
                for (name, value) in query where name != "items" || value != "true" && value != "false" {
                    throw .badQuery("\(name)=\(value) is not known; there is items=true|false")
                }
                return try .json(await self.job(request.pathParameters[0], withItems: query["items"] != "false"))
            },
            AdminRoute(.post, .cancelJob) { request async throws(Problem) in
                try .json(await self.cancel(job: request.pathParameters[0]))
            },
            AdminRoute(.post, .retryJob) { request async throws(Problem) in
                try .json(await self.retry(job: request.pathParameters[0]), status: 202)
            },
            AdminRoute(.delete, .job) { request async throws(Problem) in
                try .json(await self.remove(job: request.pathParameters[0]))
            },
        ]
    }
}
