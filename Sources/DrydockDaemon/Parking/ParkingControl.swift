// The commands about parked calls, which wait for an origin that is unreachable: list, replay and end them.

import EventLoop
import HTTPWire
import Logging
import Plans
import Policies
import ProxyServer
import ServiceCore

/// Answers the commands about parked calls.
///
/// Sendable: it has no mutable state of its own.
final class ParkingControl: DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    var gauges: [Gauge] {
        let services = context.parts.compiler.registry.services
        func sum(_ value: @escaping @Sendable (ParkedCalls) -> Int) -> @Sendable () -> Int {
            { services.all.reduce(0) { $0 + value($1.parked) } }
        }
        func counter(_ name: String, _ help: String, _ figure: ServiceFigure) -> Gauge {
            Gauge(name, help, isCounter: true) { services.total(of: figure) }
        }
        return [
            Gauge("drydock_parked_calls", "Calls that wait for an origin that is away.", read: sum(\.callCount)),
            Gauge("drydock_parked_bytes", "Bytes that parked calls take.", read: sum(\.size)),
            counter("drydock_parked_total", "Calls that were parked.", .parked),
            counter("drydock_parked_replayed_total", "Parked calls that got an answer by a replay.", .replayed),
            counter("drydock_parked_expired_total", "Parked calls that waited in vain.", .parkExpired),
            counter(
                "drydock_parked_dropped_total",
                "Parked calls that ended in another way: their client left, or an operator, a reload or the end of the daemon ended them.",
                .parkDropped
            ),
            counter(
                "drydock_parked_refused_total",
                "Calls that were not parked, since park.calls or park.size was reached.",
                .parkRefused
            ),
        ]
    }

    func parked() -> AdminParked {
        let now = Monotonic.now()
        var calls: [AdminParked.Call] = []
        for runtime in runtimes {
            for call in runtime.parked.all {
                calls.append(
                    AdminParked.Call(
                        id: call.id,
                        service: runtime.name,
                        method: call.method,
                        path: call.path,
                        state: call.phase.rawValue,
                        size: call.size,
                        waited: Int((max(now, call.since) - call.since) / 1_000_000_000),
                        left: Int((max(now, call.until) - now) / 1_000_000_000),
                        replays: call.replays,
                        reason: call.reason
                    )
                )
            }
        }
        return AdminParked(calls: calls.sorted { $0.id < $1.id })
    }

    func replay(_ target: ParkedTarget) throws(Problem) -> AdminParkedOrder {
        try order("replayed", target) { $0.replay($1) }
    }

    func cancel(_ target: ParkedTarget) throws(Problem) -> AdminParkedOrder {
        try order("cancelled", target) { $0.cancel($1) }
    }

    private var runtimes: [ServiceRuntime] { context.parts.compiler.registry.services.all }

    private func order(
        _ what: String,
        _ target: ParkedTarget,
        _ perform: (ParkedCalls, UInt64?) -> Int
    ) throws(Problem) -> AdminParkedOrder {
        var number = 0
        switch target {
        case .all: for runtime in runtimes { number += perform(runtime.parked, nil) }
        case .service(let name):
            let names = context.plan.services.map(\.plan.name)
            guard names.contains(name) else { throw .unknown(service: name, among: names) }
            for runtime in runtimes where runtime.name == name { number += perform(runtime.parked, nil) }
        case .call(let id):
            for runtime in runtimes { number += perform(runtime.parked, id) }
            guard number > 0 else {
                throw Problem(
                    status: 404,
                    title: "No such call",
                    detail: "no call \(id) is parked; 'drydock parked' lists those that are"
                )
            }
        }
        context.parts.log(.service).notice("\(what) \(BatchProgress.count(number, "parked call"))")
        return AdminParkedOrder(calls: number)
    }
}

/// The parked calls that a command is for.
enum ParkedTarget: Sendable, Equatable {
    case call(UInt64)
    case service(String)
    case all

    /// Parses the query of a command.
    /// - Throws: a 400 unless the query is exactly one of `id=`, `service=` and `all`.
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

extension ParkingControl {
    var routes: [AdminRoute] {
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

// MARK: - Documents

/// The document of `GET /v1/parked`. Times are whole seconds, sizes bytes.
package struct AdminParked: Codable, Sendable, Equatable {
    package struct Call: Codable, Sendable, Equatable {
        package var id: UInt64
        package var service: String
        package var method: String
        /// The path as the client sent it, without its query.
        package var path: String
        /// The state of the call: `parked` or `replaying`.
        package var state: String
        /// The number of bytes that the call counts for: its head, its content, and 36 KiB.
        package var size: Int
        /// Seconds since the call was parked first.
        package var waited: Int
        /// Seconds until the call gets its 504.
        package var left: Int
        /// The number of times that the call was replayed.
        package var replays: Int
        /// The reason why the call could not be answered the last time.
        package var reason: String
    }

    /// The parked calls in the order in which they came.
    package var calls: [Call]
}

/// The answer of `POST /v1/parked/replay` and `POST /v1/parked/cancel`.
package struct AdminParkedOrder: Codable, Sendable, Equatable {
    /// The number of calls that are replayed, or that have ended.
    package var calls: Int
}
