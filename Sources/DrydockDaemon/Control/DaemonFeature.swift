// The interface of a feature of the daemon: its routes in the admin API, and its metrics.

import ProxyServer

/// One feature of the daemon. The daemon starts and ends it, and asks it for nothing else.
protocol DaemonFeature: Sendable {
    /// The routes of the feature, in the order in which the admin API lists them; none by default.
    var routes: [AdminRoute] { get }
    /// The gauges of the feature, in the order of the metrics text; read at each request for it; none by default.
    var gauges: [Gauge] { get }
    /// The other metrics of the feature, with the values that they have now; none by default.
    var families: [MetricFamily] { get }
}

extension DaemonFeature {
    var routes: [AdminRoute] { [] }
    var gauges: [Gauge] { [] }
    var families: [MetricFamily] { [] }
}
