// What a feature of the daemon shows to the outside: its routes in the admin API, and its figures in the metrics.

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
