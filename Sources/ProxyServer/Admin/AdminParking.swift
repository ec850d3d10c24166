// `/v1/parked`: the calls that wait for an origin that is away.

package import AdminAPI
import HTTPWire

/// Which parked calls are meant.
package enum ParkedTarget: Sendable, Equatable {
    case call(UInt64)
    case service(String)
    case all

    /// - Throws: a 400 unless the query is just one of `id=`, `service=` and `all`.
    init(members: [(name: String, value: String)]) throws(Problem) {
        guard members.count == 1, let (name, value) = members.first else { throw Self.misunderstood }
        switch name {
        case "id":
            guard let id = UInt64(value) else { throw Self.misunderstood }
            self = .call(id)
        case "service" where !value.isEmpty: self = .service(value)
        case "all" where value.isEmpty: self = .all
        default: throw Self.misunderstood
        }
    }

    private static var misunderstood: Problem { .badQuery("give one of id=NUMBER, service=NAME and all") }
}

/// Implemented where the daemon is put together.
package protocol ParkingActions: Sendable {
    func parked() -> AdminParked
    /// Tries calls again, whatever is known of their origin.
    /// - Throws: a problem if there is no such service or call.
    func replay(_ target: ParkedTarget) throws(Problem) -> AdminParkedOrder
    /// Ends calls that are held: their clients get a 503.
    /// - Throws: a problem if there is no such service or call.
    func cancel(_ target: ParkedTarget) throws(Problem) -> AdminParkedOrder
}

extension ParkingActions {
    package var parkingRoutes: [AdminRoute] {
        [
            AdminRoute(.get, .parked) { _ async throws(Problem) in try await .jsonBehind(self.parked()) },
            AdminRoute(.post, .replayParked) { request async throws(Problem) in
                try .json(try self.replay(try ParkedTarget(members: request.queryItems)))
            },
            AdminRoute(.post, .cancelParked) { request async throws(Problem) in
                try .json(try self.cancel(try ParkedTarget(members: request.queryItems)))
            },
        ]
    }
}
