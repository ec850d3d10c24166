// The gauges and log lines of services: slots, redirects, retries, quotas and circuit breakers.

import Logging
import Plans
import Policies
import ProxyServer
import ServiceCore

/// The gauges of all services together.
struct ServiceGauges: DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    var gauges: [Gauge] {
        let services = context.parts.compiler.registry.services
        func sum(_ value: @escaping @Sendable (ServiceRuntime) -> Int) -> @Sendable () -> Int {
            { services.all.reduce(0) { $0 + value($1) } }
        }
        func total(_ figure: ServiceFigure) -> @Sendable () -> Int { { services.total(of: figure) } }
        return [
            Gauge("drydock_service_fetches", "Fetches of services that are under way.", read: sum(\.admission.running)),
            Gauge(
                "drydock_service_waiting",
                "Fetches of services that wait for max_concurrent.",
                read: sum(\.admission.waiting)
            ),
            Gauge(
                "drydock_service_waiting_limit",
                "The places in the queues of all services with max_concurrent.",
                read: sum { $0.admission.limits.concurrent == nil ? 0 : $0.admission.limits.queueLength }
            ),
            Gauge(
                "drydock_queue_refused_total",
                "Fetches that were refused because their service's queue was full, or their wait too long.",
                isCounter: true,
                read: total(.queueRefusals)
            ),
            Gauge(
                "drydock_redirects_followed_total",
                "Redirects that services followed.",
                isCounter: true,
                read: total(.redirects)
            ),
        ]
            + OrderedSource.allCases.map { source in
                Gauge(
                    "drydock_rung_answers_total",
                    "Answers of routes with 'from', by the rung that gave them.",
                    isCounter: true,
                    label: ("rung", source.rawValue),
                    read: total(.answers(source))
                )
            }
            + FetchPriority.allCases.map { priority in
                Gauge(
                    "drydock_service_waiting_by_class",
                    "Fetches of services that wait for max_concurrent, by the class that decides which is next.",
                    label: ("class", priority.name),
                    read: sum { $0.admission.waiting(of: priority) }
                )
            } + [
                Gauge(
                    "drydock_retries_total",
                    "Attempts after the first one.",
                    isCounter: true,
                    read: total(.retries)
                ),
                Gauge(
                    "drydock_retries_refused_total",
                    "Retries that did not happen because retry.budget was used up.",
                    isCounter: true,
                    read: total(.refusedRetries)
                ),
                Gauge(
                    "drydock_breakers_open",
                    "Circuit breakers that are not closed.",
                    read: { [self] in openBreakers }
                ),
                Gauge(
                    "drydock_breaker_openings_total",
                    "How often a circuit breaker opened.",
                    isCounter: true,
                    read: total(.breakerOpenings)
                ),
                Gauge(
                    "drydock_breaker_refused_total",
                    "Fetches that an open circuit breaker refused.",
                    isCounter: true,
                    read: total(.breakerRefusals)
                ),
                Gauge(
                    "drydock_rate_limited_total",
                    "Requests that a quota of the configuration refused.",
                    isCounter: true,
                    read: total(.limited)
                ),
                Gauge(
                    "drydock_rate_limited_early_total",
                    "Requests over a quota that came before Retry-After had passed.",
                    isCounter: true,
                    read: total(.limitedEarly)
                ),
            ]
    }

    /// The number of breakers that are not closed: of services of the plan in force, and of origins of forward mode.
    private var openBreakers: Int {
        let forwarded = context.plan.forward.flatMap { forward -> Int? in
            let route = forward.route
            return route.plan.breaker == nil ? nil : route.runtime.resilience.openBreakerCount
        }
        return (forwarded ?? 0)
            + context.plan.services.count { ($0.breakerState ?? .closed) != .closed }
    }

    /// Lets the reports of services go to the log.
    static func log(_ services: ServiceRegistry, to logger: Logger) {
        services.tell { name, report in
            logger.log(level: report.isWarning ? .warning : .info, "\(report.text(service: name))")
        }
    }
}

extension ServiceRoute {
    /// The state of the circuit breaker of its origin; nil of a service without one.
    var breakerState: Resilience.BreakerState? {
        guard plan.breaker != nil, let origin = plan.origin else { return nil }
        return runtime.resilience.breaker(of: origin.root)
    }
}

extension ServiceRuntime {
    /// The name in metrics and documents: that of forward mode is `forward`.
    var label: String { name.isEmpty ? "forward" : name }
}
