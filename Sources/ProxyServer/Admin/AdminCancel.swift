// `POST /v1/cancel`: ends fetches that are under way.

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

    private static var misunderstood: Problem { .badQuery("give one of url=URL, service=NAME and all") }
}

/// Implemented where the daemon is put together.
package protocol CancelActions: Sendable {
    /// Ends fetches; stored responses stay.
    /// - Throws: a problem if there is no such service.
    func cancel(_ target: CancelTarget) async throws(Problem) -> AdminCancelled
}

extension CancelActions {
    /// The route that ends fetches.
    package var cancelRoutes: [AdminRoute] {
        [
            AdminRoute(.post, .cancel) { request async throws(Problem) in
                try .json(await self.cancel(try CancelTarget(members: request.queryItems)))
            }
        ]
    }
}
