// The metrics of downloads, for whichever backend of swift-metrics a program has.

import CoreMetrics

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
