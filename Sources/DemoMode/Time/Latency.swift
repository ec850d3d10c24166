// From one uniform number to one latency, for every distribution of a configuration.

import Glibc
package import Policies

extension LatencyPolicy {
    /// The latency of a draw, in nanoseconds.
    func drawn(_ numbers: DrawNumbers) -> UInt64 {
        switch shape {
        case .uniform(let range): min(numbers.uniform(in: range, .latency), max ?? .max)
        default: quantile(numbers.unit(.latency))
        }
    }

    /// Whether no latency of it is longer than nothing.
    package var isNone: Bool {
        switch shape {
        case .uniform(let range): min(range.upperBound, max ?? .max) == 0
        case .learned(let policy): min(policy.otherwise, max ?? .max) == 0
        default: max == 0
        }
    }

    /// The latency that this share of all latencies is at most, in nanoseconds: the inverse of the distribution function.
    /// - Parameter share: 0 ..< 1.
    package func quantile(_ share: Double) -> UInt64 {
        // Half a step of the numbers that are drawn, so that it is neither 0 nor 1, where a curve has no end.
        let share = min(share + 0x1p-54, 1 - 0x1p-53)
        let value: Double =
            switch shape {
            case .uniform(let range):
                Double(range.lowerBound) + share * Double(range.upperBound - range.lowerBound)
            case .normal(let mean, let deviation): Double(mean) + normalQuantile(share) * Double(deviation)
            case .lognormal(let median, let p99):
                Double(median) * exp(normalQuantile(share) * log(Double(p99) / Double(median)) / Self.z99)
            case .percentiles(let points): Self.interpolated(points, share * 100)
            case .learned(let policy): Double(policy.otherwise)
            }
        // A hundred years, the longest duration of a configuration, fit.
        let longest = Double(max ?? Self.longest)
        return UInt64(min(Swift.max(value, 0), longest))
    }

    /// How many deviations above its middle a bell curve has its 99th percentile.
    private static let z99 = normalQuantile(0.99)
    private static let longest: UInt64 = 36_500 * 86_400_000_000_000

    /// On the straight line between two points. What a table leaves out is half of its first latency at 0, and twice its
    /// last one at 100.
    private static func interpolated(_ points: [Point], _ percentile: Double) -> Double {
        guard let first = points.first, let last = points.last else { return 0 }
        // A table that was learned has hundreds of points.
        var (low, high) = (0, points.count)
        while low < high {
            let middle = (low + high) / 2
            if percentile <= points[middle].percentile { high = middle } else { low = middle + 1 }
        }
        let below =
            low > 0
            ? (at: points[low - 1].percentile, latency: Double(points[low - 1].latency))
            : (at: 0.0, latency: Double(first.latency) / 2)
        let above =
            low < points.count
            ? (at: points[low].percentile, latency: Double(points[low].latency))
            : (at: 100.0, latency: Double(last.latency) * 2)
        return line(below, above, percentile)
    }

    private static func line(
        _ low: (at: Double, latency: Double),
        _ high: (at: Double, latency: Double),
        _ percentile: Double
    ) -> Double {
        guard high.at > low.at else { return high.latency }
        return low.latency + (high.latency - low.latency) * (percentile - low.at) / (high.at - low.at)
    }
}
