// The metric of retries that were due, and for which a budget had none left.

import CoreMetrics

/// Sendable: what it holds is.
struct RefusedRetries: Sendable {
    /// Who would have made them.
    enum Face: String {
        case downloads, calls, tasks
    }

    /// Nil where the program has set up no metrics.
    private let counter: Counter?

    init(of face: Face, _ factory: any MetricsFactory = MetricsSystem.factory) {
        let dimensions = [("of", face.rawValue)]
        counter =
            factory is NOOPMetricsHandler
            ? nil : Counter(label: "drydock_retries_refused_total", dimensions: dimensions, factory: factory)
    }

    func count() { counter?.increment() }
}
