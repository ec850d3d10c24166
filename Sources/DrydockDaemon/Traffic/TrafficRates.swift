// What has happened between two looks at a daemon's sums, by service.

import ProxyServer
import ServiceCore

/// The traffic of an interval.
package struct TrafficRates: Sendable, Equatable {
    /// The traffic of one service, or of all.
    package struct Row: Sendable, Equatable {
        package var name: String
        /// Answers, bytes and the like of each second.
        package var answers = 0.0
        package var saved = 0.0
        package var sent = 0.0
        package var originRequests = 0.0
        package var originErrors = 0.0
        package var retries = 0.0
        package var refused = 0.0
        /// The part of the answers that needed no origin, of those that have to do with one; nil if there were none.
        package var hitRatio: Double?
        /// The part of the answers that are failures of the origin or the daemon (status 5xx); nil if there were none.
        package var failureRatio: Double?
        /// The seconds within which the heads of 50, 95 and 99 of 100 answers came; nil if there were none.
        package var percentiles: [Double]?
        package var fetches = 0
        package var waiting = 0
        package var parked = 0
        package var breaker: String?

        init(name: String) { self.name = name }
    }

    package var all: Row
    package var services: [Row]
    /// Seconds.
    package var interval: Double

    /// Compares two looks. If the daemon has begun anew between them, the earlier one counts as nothing.
    package init(from earlier: AdminTraffic, to later: AdminTraffic) {
        let isSame = later.uptime > earlier.uptime
        let interval = max(0.001, isSame ? later.uptime - earlier.uptime : later.uptime)
        self.interval = interval
        let before = Dictionary(isSame ? earlier.services.map { ($0.name, $0) } : []) { $1 }
        var sum = AdminTraffic.Service(name: "")
        services = later.services.map { service in
            var change = service
            if let before = before[service.name] { change.subtract(before) }
            sum.add(change)
            return Row(change, interval, bounds: later.bounds)
        }
        all = Row(sum, interval, bounds: later.bounds)
        all.name = "all"
    }
}

extension TrafficRates.Row {
    init(_ change: AdminTraffic.Service, _ interval: Double, bounds: [Double]) {
        self.init(name: change.name)
        func rate(_ count: Int) -> Double { Double(max(0, count)) / interval }
        answers = rate(change.answers)
        sent = rate(change.bytes)
        saved = rate(change.bytes - change.originBytes)
        originRequests = rate(change.originRequests)
        originErrors = rate(change.originErrors)
        retries = rate(change.retries)
        refused = rate(change.refused)
        hitRatio = CacheOutcome.hitRatio { change.outcomes[$0.label] ?? 0 }
        if change.answers > 0 { failureRatio = Double(change.statuses["5xx"] ?? 0) / Double(change.answers) }
        let quantiles = [0.5, 0.95, 0.99].compactMap { Self.quantile($0, change.firstByte, bounds) }
        if quantiles.count == 3 { percentiles = quantiles }
        (fetches, waiting, parked, breaker) = (change.fetches, change.waiting, change.parked, change.breaker)
    }

    private static func quantile(_ part: Double, _ counts: [Int], _ bounds: [Double]) -> Double? {
        var histogram = TimeHistogram()
        guard counts.count == bounds.count + 1, bounds.count == TimeHistogram.bounds.count else { return nil }
        histogram.add(words: (counts.map { UInt64(clamping: $0) } + [0])[...])
        return histogram.quantile(part)
    }
}

extension AdminTraffic.Service {
    /// Takes away what there was before; what is a state and no sum stays.
    fileprivate mutating func subtract(_ other: Self) {
        answers -= other.answers
        outcomes.merge(other.outcomes) { $0 - $1 }
        statuses.merge(other.statuses) { $0 - $1 }
        bytes -= other.bytes
        firstByte = zip(firstByte, other.firstByte).map { $0 - $1 }
        whole = zip(whole, other.whole).map { $0 - $1 }
        originRequests -= other.originRequests
        originErrors -= other.originErrors
        originBytes -= other.originBytes
        retries -= other.retries
        refused -= other.refused
    }

    fileprivate mutating func add(_ other: Self) {
        answers += other.answers
        outcomes.merge(other.outcomes, uniquingKeysWith: +)
        statuses.merge(other.statuses, uniquingKeysWith: +)
        bytes += other.bytes
        firstByte = zip(firstByte, other.firstByte).map { $0 + $1 }
        whole = zip(whole, other.whole).map { $0 + $1 }
        originRequests += other.originRequests
        originErrors += other.originErrors
        originBytes += other.originBytes
        fetches += other.fetches
        waiting += other.waiting
        parked += other.parked
        retries += other.retries
        refused += other.refused
    }
}
