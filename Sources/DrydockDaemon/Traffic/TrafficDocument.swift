// The document of `GET /v1/traffic`: what has been counted since the start, for whoever asks again and again.

import Contracts
import ProxyServer
import ServiceCore

/// Sums since the start of the daemon. Sizes are bytes, times are seconds.
package struct AdminTraffic: Codable, Sendable, Equatable {
    /// The sums of one service. Members that are 0 are left out.
    package struct Service: Codable, Sendable, Equatable {
        /// The name; empty for what no service answers.
        package var name: String
        package var answers = 0
        /// Answers by outcome, by the words of the metrics.
        package var outcomes: [String: Int] = [:]
        /// Answers by class of status, such as `2xx`.
        package var statuses: [String: Int] = [:]
        /// Bytes of content that clients were sent.
        package var bytes = 0
        /// The numbers of answers whose head came within each of ``AdminTraffic/bounds``; the last is without a bound.
        package var firstByte = [Int](repeating: 0, count: TimeHistogram.buckets)
        /// The same of whole answers.
        package var whole = [Int](repeating: 0, count: TimeHistogram.buckets)
        package var originRequests = 0
        package var originErrors = 0
        package var originBytes = 0
        package var fetches = 0
        package var waiting = 0
        package var parked = 0
        package var retries = 0
        /// Fetches and requests that a full queue, an open breaker or a quota refused.
        package var refused = 0
        /// `open` or `half-open`; nil while there is nothing to tell.
        package var breaker: String?

        init(name: String) { self.name = name }

        mutating func count(_ outcome: CacheOutcome, _ status: Int, _ count: Int) {
            answers += count
            outcomes[outcome.label, default: 0] += count
            statuses["\(status)xx", default: 0] += count
        }

        mutating func add(firstByte first: TimeHistogram, whole all: TimeHistogram) {
            for index in firstByte.indices {
                firstByte[index] += Int(clamping: first.counts[index])
                whole[index] += Int(clamping: all.counts[index])
            }
        }

        mutating func add(_ runtime: ServiceRuntime) {
            let values = runtime.origins.values
            originRequests += Int(clamping: values.began)
            originErrors += Int(clamping: values.results.reduce(0) { $0 + ($1.key.isError ? $1.value : 0) })
            originBytes += Int(clamping: values.bytes)
            fetches += runtime.admission.running
            waiting += runtime.admission.waiting
            parked += runtime.parked.callCount
            retries += runtime.count(of: .retries)
            refused +=
                runtime.count(of: .queueRefusals) + runtime.count(of: .breakerRefusals) + runtime.count(of: .limited)
        }
    }

    /// Seconds since the daemon began.
    package var uptime: Double
    /// The upper bounds of the buckets of all histograms.
    package var bounds: [Double]
    package var services: [Service]
    package var connections: Int
    /// Fetches for the store that are under way.
    package var fills: Int
    package var memory: Int
    package var memoryLimit: Int
    package var disk: Int?
    package var diskLimit: Int?
    package var isOffline: Bool
}
