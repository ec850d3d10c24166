// The metrics and the tracer of a program, as a manager or a queue found them when it was opened: for whichever
// backends it has.

package import CoreMetrics
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

// MARK: - Metrics of downloads

/// Sendable: what it holds is.
final class DownloadMetrics: Sendable {
    private let downloads: [DownloadOutcome: Counter]
    private let bytes: Counter
    private let duration: Timer

    init(_ factory: any MetricsFactory) {
        let counters = DownloadOutcome.allCases.map { outcome in
            let dimensions = [("outcome", outcome.rawValue)]
            return (outcome, Counter(label: "drydock_downloads_total", dimensions: dimensions, factory: factory))
        }
        downloads = Dictionary(uniqueKeysWithValues: counters)
        bytes = Counter(label: "drydock_download_bytes_total", factory: factory)
        duration = Timer(label: "drydock_download_seconds", factory: factory)
    }

    /// Counts a download that has ended.
    /// - Parameters:
    ///   - received: bytes of its body.
    ///   - nanoseconds: from its beginning to its end.
    func note(_ outcome: DownloadOutcome, received: Int64, nanoseconds: UInt64) {
        downloads[outcome]?.increment()
        if received > 0 { bytes.increment(by: received) }
        duration.recordNanoseconds(Int64(clamping: nanoseconds))
    }
}

// MARK: - Metrics of refused retries

/// Sendable: what it holds is.
package struct RefusedRetries: Sendable {
    /// Who would have made them.
    package enum Face: String {
        case downloads, calls, tasks
    }

    /// The counter; nil if the program has set up no metrics.
    private let counter: Counter?

    package init(of face: Face, _ factory: any MetricsFactory = MetricsSystem.factory) {
        let dimensions = [("of", face.rawValue)]
        counter =
            factory is NOOPMetricsHandler
            ? nil : Counter(label: "drydock_retries_refused_total", dimensions: dimensions, factory: factory)
    }

    package func count() { counter?.increment() }
}
