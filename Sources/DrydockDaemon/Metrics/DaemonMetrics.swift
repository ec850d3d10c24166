// The text of all metrics of a daemon.

import Plans
import ProxyServer
import ServiceCore

/// The metrics of a daemon.
///
/// swift-metrics is not used: its counters are shared and atomic, while a counter here is a plain integer of one loop;
/// its gauges are pushed at each change, while these are read when the text is requested.
///
/// Sendable: it has no mutable state but the budget, which has a mutex.
final class DaemonMetrics: Sendable {
    private let context: DaemonContext
    private let watch: StallDetector
    private let features: [any DaemonFeature]
    private let budget = SeriesBudget()

    /// - Parameter features: the features whose metrics are shown, in the order of the text.
    init(_ context: DaemonContext, watch: StallDetector, features: [any DaemonFeature]) {
        self.context = context
        self.watch = watch
        self.features = features
    }

    /// The gauges of all features.
    var gauges: [Gauge] { features.flatMap(\.gauges) }

    /// All metrics; those of the loops are left out while one is stalled.
    func text(_ format: MetricsFormat) async -> String {
        // A stalled loop would never report its counters, and would hold up the others with them.
        let counters = watch.hasStillLoop ? nil : await context.server?.counters() ?? CounterValues()
        // Files are read and many names sorted: that holds no loop.
        return await Task.detached { [self] in
            MetricsText.render(families(counters), format)
        }.value
    }

    private func families(_ counters: CounterValues?) -> [MetricFamily] {
        let services = context.parts.compiler.registry.services
        var families: [MetricFamily] = []
        if let counters {
            families += AnswerFamilies(names: services.numbers.names, budget: budget).families(counters.answers)
        }
        families += OriginFamilies(budget: budget).families(
            services.all.map { ($0.label, $0.origins.values) }
        )
        families += counters?.families ?? []
        if let limits = context.server?.limits {
            families.append(
                MetricFamily(
                    "drydock_connections_limit",
                    "The limit of drydock_connections: limits.connections, or what open files allow.",
                    .gauge,
                    .integer(limits.most)
                )
            )
        }
        for feature in features { families += Gauge.families(feature.gauges) + feature.families }
        families.append(
            MetricFamily(
                "drydock_folded_series",
                "Labels that are counted under 'other', since there are too many.",
                .gauge,
                .integer(budget.foldedCount)
            )
        )
        return families
    }
}
