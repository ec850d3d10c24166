// The metrics and the tracer of the program, as a manager found them when it opened.

import CoreMetrics
import Tracing

/// Where a program has set up neither, nothing is made and nothing is counted.
///
/// Sendable: nothing in it changes.
struct Telemetry: Sendable {
    private let metrics: DownloadMetrics?
    private let tracer: (any Tracer)?
    private let refused: RefusedRetries

    /// What the program has set up by now.
    static var ofProgram: Telemetry { Telemetry(MetricsSystem.factory, InstrumentationSystem.tracer) }

    init(_ factory: any MetricsFactory, _ tracer: any Tracer) {
        metrics = factory is NOOPMetricsHandler ? nil : DownloadMetrics(factory)
        refused = RefusedRetries(of: .downloads, factory)
        self.tracer = tracer is NoOpTracer ? nil : tracer
    }

    /// A retry was due, and the budget had none left.
    func countRefusedRetry() { refused.count() }

    /// Begins to observe a download; its span is a child of the one that the task is in.
    /// - Returns: nil where nobody wants to know.
    func begin(_ question: DownloadRequest) -> DownloadObservation? {
        guard metrics != nil || tracer != nil else { return nil }
        return DownloadObservation(question, metrics, tracer)
    }
}
