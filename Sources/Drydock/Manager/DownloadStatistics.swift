// What a download manager is doing, and what it has asked for so far, in numbers.

import ServiceCore

/// What a manager is doing, and what it has asked for since it was opened.
public struct DownloadStatistics: Sendable, Hashable {
    /// Downloads and batches that have begun and have not ended.
    public internal(set) var downloads = 0
    /// Requests to origins that are under way, checks among them.
    public internal(set) var running = 0
    /// Requests that wait, since ``DownloadConfiguration/maximumFetches`` are under way.
    public internal(set) var waiting = 0
    /// Requests that were sent to origins, checks, retries and redirects among them.
    public internal(set) var requests = 0
    /// Requests that were made again after a failure.
    public internal(set) var retries = 0
    /// Retries that were due, and for which the budget had nothing left.
    public internal(set) var refusedRetries = 0
    /// Origins that are left alone at the moment.
    public internal(set) var openBreakers = 0
    /// Requests that were not sent, since their origin is left alone.
    public internal(set) var refusedByBreakers = 0

    /// - Parameter engine: nil before the first download, and after the end.
    init(downloads: Int, _ engine: DownloadEngine?) {
        self.downloads = downloads
        guard let runtime = engine?.admission else { return }
        running = runtime.admission.running
        waiting = runtime.admission.waiting
        requests = runtime.fetchCount
        retries = runtime.resilience.retryCount
        refusedRetries = runtime.resilience.unaffordableCount
        openBreakers = runtime.resilience.openBreakerCount
        refusedByBreakers = runtime.resilience.refusalCount
    }
}
