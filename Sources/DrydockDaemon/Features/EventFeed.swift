// Lets an operator listen to what becomes of calls.

import ProxyServer
import ServiceCore

/// Sendable: it has no state of its own.
final class EventFeed: EventActions, DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    var routes: [AdminRoute] { eventRoutes }

    var gauges: [Gauge] {
        let hub = hub
        return [
            Gauge("drydock_event_listeners", "Who listens to events at present.", read: { hub.readerCount }),
            Gauge(
                "drydock_events_lost_total",
                "Events that those who listened missed, since they read too slowly.",
                isCounter: true,
                read: { hub.lostCount }
            ),
        ]
    }

    func events(_ filter: EventFilter) async throws(Problem) -> EventReader {
        let plan = context.plan
        var names = plan.services.map(\.plan.name)
        if plan.forward != nil { names.append("forward") }
        if let name = filter.service {
            guard names.contains(name) else { throw .unknown(service: name, among: names) }
        }
        if let name = filter.endpoint {
            let meant = plan.services.filter { filter.service == nil || filter.service == $0.plan.name }
            let endpoints = meant.flatMap { $0.plan.endpoints.map(\.name) }
            guard endpoints.contains(name) else { throw .unknown(endpoint: name, among: endpoints) }
        }
        if let reader = await hub.listen(filter, services: names) { return reader }
        let isEnding = context.isStopping
        throw Problem(
            status: 503,
            title: isEnding ? "Ending" : "Too many listeners",
            detail: isEnding
                ? "the daemon is ending, and tells of no calls any more"
                : "\(EventHub.maximumReaders) listen to events already; end one of them first"
        )
    }

    private var hub: EventHub { context.parts.compiler.registry.services.events }
}
