// What origins took to answer, by service and endpoint, for demo answers and faults that are to be as slow as they are.

package import DemoMode
import EventLoop
package import Policies
import Synchronization

/// What the origin of one service or endpoint took.
///
/// Sendable: the histogram is under a mutex. Two are equal if they are one.
package final class LearnedLatency: Sendable, Equatable {
    /// A service, `SERVICE/ENDPOINT`, or `forward`.
    package let name: String
    private let histogram: Mutex<LatencyHistogram>

    init(_ name: String, _ histogram: LatencyHistogram = LatencyHistogram()) {
        self.name = name
        self.histogram = Mutex(histogram)
    }

    package static func == (left: LearnedLatency, right: LearnedLatency) -> Bool { left === right }

    /// A copy of what it is now.
    package var current: LatencyHistogram { histogram.withLock { $0 } }

    /// Counts one latency, in nanoseconds: from the request to the head of its final answer. Any thread.
    package func record(_ nanoseconds: UInt64) { histogram.withLock { $0.record(nanoseconds) } }

    fileprivate func forget() -> UInt32 { histogram.exchange(LatencyHistogram()).count }

    /// - Returns: whether nothing had been measured.
    fileprivate func fill(_ known: LatencyHistogram) -> Bool {
        histogram.withLock { histogram in
            guard histogram.count == 0 else { return false }
            histogram = known
            return true
        }
    }
}

/// Those of all services and endpoints that some latency is learned of; they outlive reloads.
///
/// Sendable: the table is under a mutex.
package final class LearnedLatencies: Sendable {
    private let table = Mutex<[String: LearnedLatency]>([:])
    /// Names that ``isNew(_:)`` was asked of.
    private let asked = Mutex<Set<String>>([])

    package init() {}

    /// Whether nothing is known of a name, and nobody has asked before.
    package func isNew(_ name: String) -> Bool {
        asked.withLock { $0.insert(name).inserted } && latency(of: name).current.count == 0
    }

    /// Made at first sight.
    package func latency(of name: String) -> LearnedLatency {
        table.withLock { table in
            if let known = table[name] { return known }
            let new = LearnedLatency(name)
            table[name] = new
            return new
        }
    }

    /// Forgets what services took that are none of these, and their endpoints.
    package func keep(only services: Set<String>) {
        func isKept(_ name: String) -> Bool { services.contains(String(name.prefix { $0 != "/" })) }
        let forgotten = table.withLock { table in
            let forgotten = table.filter { !isKept($0.key) }
            for name in forgotten.keys { table[name] = nil }
            return forgotten
        }
        withExtendedLifetime(forgotten) {}
        asked.withLock { $0 = $0.filter(isKept) }
    }

    /// In the order of their names.
    package var all: [LearnedLatency] { table.withLock { $0.values.sorted { $0.name < $1.name } } }

    /// How many latencies they are made of.
    package var count: Int { all.reduce(0) { $0 + Int($1.current.count) } }

    /// Takes what was learned before; names that have learned something since keep that.
    package func fill(_ known: [(name: String, histogram: LatencyHistogram)]) {
        for (name, histogram) in known { _ = latency(of: name).fill(histogram) }
    }

    /// Forgets what a service and its endpoints took, or all of them.
    /// - Returns: how many latencies are forgotten.
    package func forget(service: String?) -> Int {
        all.filter { latency in
            guard let service else { return true }
            return latency.name == service || latency.name.hasPrefix("\(service)/")
        }.reduce(0) { $0 + Int($1.forget()) }
    }

    /// What a latency that is learned is by now; another one is what it was.
    ///
    /// A plan is made of the result, so that its draws stay the same however many latencies are learned since.
    /// - Parameter label: the name of the service or endpoint that the policy stands in.
    package func known(_ policy: LatencyPolicy, at label: String) -> LatencyPolicy {
        guard case .learned(let learned) = policy.shape else { return policy }
        let points = latency(of: learned.source ?? label).current.points(times: learned.times)
        return points.isEmpty ? policy : LatencyPolicy(.percentiles(points), max: policy.max)
    }
}
