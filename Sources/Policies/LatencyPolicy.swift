// How long answers take: the distributions that a configuration chooses from.

/// A distribution of latencies. Times are nanoseconds.
package struct LatencyPolicy: Sendable, Hashable {
    package enum Shape: Sendable, Hashable {
        /// Each latency of the range as often as any other; both ends included.
        case uniform(ClosedRange<UInt64>)
        /// The bell curve; what would be less than nothing is nothing.
        case normal(mean: UInt64, deviation: UInt64)
        /// The long tail of a network: half of the latencies are below `median`, and one of a hundred is above `p99`.
        case lognormal(median: UInt64, p99: UInt64)
        /// What was measured: points of the distribution with rising percentiles and latencies; at least one.
        case percentiles([Point])
        /// What an origin took, as far as it is known when a plan is made.
        case learned(LearnedLatencyPolicy)
    }

    /// So many percent of the latencies are at most this one.
    package struct Point: Sendable, Hashable {
        /// 0...100.
        package var percentile: Double
        package var latency: UInt64

        package init(percentile: Double, latency: UInt64) {
            self.percentile = percentile
            self.latency = latency
        }
    }

    package var shape: Shape
    /// Longer ones are this long; nil: as they are.
    package var max: UInt64?

    package init(_ shape: Shape, max: UInt64? = nil) {
        self.shape = shape
        self.max = max
    }

    /// No wait.
    package static let none = LatencyPolicy(.uniform(0...0))
}

/// The latencies that an origin had before.
package struct LearnedLatencyPolicy: Sendable, Hashable {
    /// Whose: a service, or `SERVICE/ENDPOINT`; nil: of the place where the policy stands.
    package var source: String?
    /// Each of them is so many times as long. Default: 1.
    package var times: Double
    /// What stands in for them while there are none, in nanoseconds. Default: nothing.
    package var otherwise: UInt64

    package init(of source: String? = nil, times: Double = 1, otherwise: UInt64 = 0) {
        self.source = source
        self.times = times
        self.otherwise = otherwise
    }
}
