// The interface of a feature of the daemon: its routes in the admin API, and its gauges in the metrics text.

import ProxyServer

/// One feature of the daemon. The daemon starts and ends it, and asks it for nothing else.
protocol DaemonFeature: Sendable {
    /// The routes of the feature, in the order in which the admin API lists them; none by default.
    var routes: [AdminRoute] { get }
    /// The gauges of the feature, in the order of the metrics text; read at each request for it; none by default.
    var gauges: [Gauge] { get }
}

extension DaemonFeature {
    var routes: [AdminRoute] { [] }
    var gauges: [Gauge] { [] }
}

/// The metrics text of a daemon.
///
/// swift-metrics is not used: its counters are shared and atomic, while a counter here is a plain integer of one loop;
/// its gauges are pushed at each change, while these are read when the text is requested.
///
/// Sendable: it has no mutable state of its own.
final class DaemonMetrics: Sendable {
    private let context: DaemonContext
    private let watch: StallDetector
    private let features: [any DaemonFeature]

    /// - Parameter features: the features whose gauges are shown, in the order of the text.
    init(_ context: DaemonContext, watch: StallDetector, features: [any DaemonFeature]) {
        self.context = context
        self.watch = watch
        self.features = features
    }

    /// The gauges of all features: every figure that is not a counter of a loop.
    var gauges: [Gauge] { features.flatMap(\.gauges) }

    /// All counters and gauges in the Prometheus text format; the counters are left out while a loop is stalled.
    func text() async -> String {
        // A stalled loop would never report its counters, and would hold up the gauges with them.
        let counters = watch.hasStillLoop ? nil : await context.server?.counters() ?? CounterValues()
        return MetricsText.render(counters, gauges: gauges)
    }
}
