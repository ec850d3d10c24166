// What a feature of the daemon shows to the outside: its routes in the admin API, and its figures in the metrics text.

import ProxyServer

/// One feature of the daemon. The daemon starts and ends it, and asks it for nothing else.
protocol DaemonFeature: Sendable {
    /// In the order in which the admin API names their paths; none by default.
    var routes: [AdminRoute] { get }
    /// In the order of the metrics text, read whenever somebody asks for it; none by default.
    var gauges: [Gauge] { get }
}

extension DaemonFeature {
    var routes: [AdminRoute] { [] }
    var gauges: [Gauge] { [] }
}

/// Not swift-metrics: its counters are shared and atomic, where a counter here is a plain integer of one loop; and its
/// gauges are pushed at each change, where these are read from the part that has the number when somebody asks.
///
/// Sendable: it has no state of its own.
final class DaemonMetrics: Sendable {
    private let context: DaemonContext
    private let watch: StallDetector
    private let features: [any DaemonFeature]

    /// - Parameter features: in the order of the text.
    init(_ context: DaemonContext, watch: StallDetector, features: [any DaemonFeature]) {
        self.context = context
        self.watch = watch
        self.features = features
    }

    /// Every figure that is no counter of a loop.
    var gauges: [Gauge] { features.flatMap(\.gauges) }

    /// In the Prometheus text format.
    func text() async -> String {
        // A loop that stands still would never answer what it has counted, and hold up the gauges with it.
        let counters = watch.hasStillLoop ? nil : await context.server?.counters() ?? CounterValues()
        return MetricsText.render(counters, gauges: gauges)
    }
}
