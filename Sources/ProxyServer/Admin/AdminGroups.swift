// Groups of calls in the admin API: `POST /v1/groups/NAME` begins one, which is a job from then on.

package import AdminAPI
import HTTPWire

/// Implemented where the daemon is put together.
package protocol GroupActions: Sendable {
    /// Begins a run of the group of that name.
    /// - Throws: that there is no such group, that there are too many jobs, or that the daemon is ending.
    func run(group name: String) async throws(Problem) -> AdminJob
}

extension GroupActions {
    /// The route that begins groups.
    package var groupRoutes: [AdminRoute] {
        [
            AdminRoute(.post, .group) { request async throws(Problem) in
                try .json(await self.run(group: request.pathParameters[0]), status: 202)
            }
        ]
    }
}
