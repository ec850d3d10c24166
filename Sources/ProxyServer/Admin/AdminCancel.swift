// `POST /v1/cancel`: ends fetches that are under way, or drops the requests that wait for them.

package import AdminAPI
import HTTPWire

/// Which fetches are to end.
package enum CancelTarget: Sendable, Equatable {
    /// The fetches of a URL, written as a client sends it or as the origin receives it.
    case url(String)
    /// Those of a service; `forward` are those of forward mode, where no service has that name.
    case service(String)
    case all

    /// - Throws: a 400 unless the query is just one of `url=`, `service=` and `all`.
    init(members: [(name: String, value: String)]) throws(Problem) {
        guard members.count == 1, let (name, value) = members.first else { throw Self.misunderstood }
        switch name {
        case "url" where !value.isEmpty: self = .url(value)
        case "service" where !value.isEmpty: self = .service(value)
        case "all" where value.isEmpty: self = .all
        default: throw Self.misunderstood
        }
    }

    private static var misunderstood: Problem {
        .badQuery("give one of url=URL, service=NAME and all, and waiters besides to keep the fetch")
    }
}

/// What ends.
package enum CancelScope: Sendable, Equatable {
    /// The fetches, and with them all that waits for them or reads their bodies.
    case fetches
    /// The requests that wait for a head; the fetches go on for the store.
    case waiters
}

/// Implemented where the daemon is put together.
package protocol CancelActions: Sendable {
    /// Ends fetches, or drops who waits for them; stored responses stay.
    /// - Throws: a problem if there is no such service.
    func cancel(_ target: CancelTarget, _ scope: CancelScope) async throws(Problem) -> AdminCancelled
}

extension CancelActions {
    /// The route that ends fetches.
    package var cancelRoutes: [AdminRoute] {
        [
            AdminRoute(.post, .cancel) { request async throws(Problem) in
                var members = request.queryItems
                let isOfWaiters = members.contains { $0.name == "waiters" && $0.value.isEmpty }
                if isOfWaiters { members.removeAll { $0.name == "waiters" && $0.value.isEmpty } }
                let target = try CancelTarget(members: members)
                return try .json(await self.cancel(target, isOfWaiters ? .waiters : .fetches))
            }
        ]
    }
}
