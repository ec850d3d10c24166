// Latencies: one latency from one uniform number for every distribution of a configuration, and measured ones, in
// bounded memory.

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

    /// Whether every latency of the policy is 0.
    package var isNone: Bool {
        switch shape {
        case .uniform(let range): min(range.upperBound, max ?? .max) == 0
        case .learned(let policy): min(policy.otherwise, max ?? .max) == 0
        default: max == 0
        }
    }

    /// The latency in nanoseconds that this share of all latencies does not exceed: the inverse of the distribution
    /// function.
    /// - Parameter share: 0 ..< 1.
    package func quantile(_ share: Double) -> UInt64 {
        // Half a step of the drawn numbers is added, so that the share is neither 0 nor 1, at which a curve is
        // infinite.
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
        // A hundred years, the longest duration of a configuration, fits.
        let longest = Double(max ?? Self.longest)
        return UInt64(min(Swift.max(value, 0), longest))
    }

    /// The number of standard deviations between the median and the 99th percentile of a normal distribution.
    private static let z99 = normalQuantile(0.99)
    private static let longest: UInt64 = 36_500 * 86_400_000_000_000

    /// The latency on the straight line between two points. If a table lacks these, the latency at 0 is half of its
    /// first one, and at 100 twice its last one.
    private static func interpolated(_ points: [Point], _ percentile: Double) -> Double {
        guard let first = points.first, let last = points.last else { return 0 }
        // A table that was learned has hundreds of points, so the search is binary.
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

// MARK: - The normal distribution

/// The quantile of the standard normal distribution, by Wichura's algorithm AS241 (PPND16), which is exact to about one
/// part in 10^16.
/// - Parameter share: more than 0, less than 1.
func normalQuantile(_ share: Double) -> Double {
    let distance = share - 0.5
    if abs(distance) <= 0.425 {
        let r = 0.180625 - distance * distance
        return distance * polynomial(r, middle.above) / polynomial(r, middle.below)
    }
    let r = sqrt(-log(distance < 0 ? share : 1 - share))
    let value =
        r <= 5
        ? polynomial(r - 1.6, side.above) / polynomial(r - 1.6, side.below)
        : polynomial(r - 5, tail.above) / polynomial(r - 5, tail.below)
    return distance < 0 ? -value : value
}

/// The value of a polynomial.
/// - Parameter coefficients: that of the highest power first.
private func polynomial(_ x: Double, _ coefficients: [Double]) -> Double {
    coefficients.reduce(0) { $0 * x + $1 }
}

/// The coefficients of numerator and denominator for each of the three pieces.
private let middle: (above: [Double], below: [Double]) = (
    [
        2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
        1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e+0,
    ],
    [
        5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
        5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0,
    ]
)
private let side: (above: [Double], below: [Double]) = (
    [
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e+0,
        3.64784832476320460504e+0, 5.76949722146069140550e+0, 4.63033784615654529590e+0, 1.42343711074968357734e+0,
    ],
    [
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
        6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0,
    ]
)
private let tail: (above: [Double], below: [Double]) = (
    [
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
        2.96560571828504891230e-1, 1.78482653991729133580e+0, 5.46378491116411436990e+0, 6.65790464350110377720e+0,
    ],
    [
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
    ]
)

// MARK: - Measured latencies

/// A histogram whose buckets are as wide as a 64th of the latencies in them, so that its errors are less than 1.6 %. It
/// counts latencies from 1 µs to 18 minutes, and others as the nearest of these. Its size is 8 KiB.
package struct LatencyHistogram: Sendable, Equatable {
    /// The most latencies. When there are more, all counts are halved, so that later measurements count more.
    package static let most: UInt32 = 1 << 16

    /// The number of buckets for each power of two, which have equal widths.
    private static let steps = 64
    private static let lowest = 10
    private static let octaves = 30

    /// The counts of the buckets; empty until the first latency.
    private var counts: [UInt32] = []
    /// The number of latencies in all buckets.
    package private(set) var count: UInt32 = 0

    package init() {}

    /// Counts one latency, in nanoseconds.
    package mutating func record(_ nanoseconds: UInt64) { add(1, at: Self.bucket(of: nanoseconds)) }

    private mutating func add(_ number: UInt32, at bucket: Int) {
        if counts.isEmpty { counts = [UInt32](repeating: 0, count: Self.steps * Self.octaves) }
        counts[bucket] += number
        count += number
        while count > Self.most {
            for index in counts.indices { counts[index] /= 2 }
            count = counts.reduce(0, +)
        }
    }

    private static func bucket(of nanoseconds: UInt64) -> Int {
        let value = min(max(nanoseconds, 1 << lowest), 1 << (lowest + octaves) - 1)
        let octave = 63 - value.leadingZeroBitCount
        let step = Int((value >> (octave - 6)) & 63)
        return (octave - lowest) * steps + step
    }

    /// The latency at which a bucket begins, and the previous one ends.
    private static func start(of bucket: Int) -> UInt64 {
        let (octave, step) = bucket.quotientAndRemainder(dividingBy: steps)
        return UInt64(steps + step) << (octave + lowest - 6)
    }

    /// The distribution as a table for ``LatencyPolicy``; empty if nothing was measured.
    ///
    /// A bucket's latencies are spread evenly over it, and there are none between two buckets that have some.
    /// - Parameter times: the factor for each latency.
    package func points(times: Double = 1) -> [LatencyPolicy.Point] {
        var points: [LatencyPolicy.Point] = []
        var before: UInt64 = 0
        func point(_ latency: UInt64) -> LatencyPolicy.Point {
            // The latency stays within the longest possible one.
            let scaled = min(Double(latency) * times, 0x1p62)
            return LatencyPolicy.Point(percentile: Double(before) * 100 / Double(count), latency: UInt64(scaled))
        }
        for (bucket, number) in counts.enumerated() where number > 0 {
            let first = point(Self.start(of: bucket))
            if points.last != first { points.append(first) }
            before += UInt64(number)
            points.append(point(Self.start(of: bucket + 1)))
        }
        return points
    }

    /// The latency in nanoseconds that this share of all does not exceed; nil if nothing was measured.
    /// - Parameter share: 0...1.
    package func quantile(_ share: Double) -> UInt64? {
        count == 0 ? nil : LatencyPolicy(.percentiles(points())).quantile(share)
    }

    // MARK: - Kept

    /// The buckets that have latencies: the start of each in nanoseconds, and its count.
    package var buckets: [(start: UInt64, count: UInt32)] {
        counts.enumerated().compactMap { $0.element > 0 ? (Self.start(of: $0.offset), $0.element) : nil }
    }

    /// - Parameter buckets: the buckets as they were saved. A start that is not that of a bucket counts for the bucket
    ///   around it.
    package init(_ buckets: [(start: UInt64, count: UInt32)]) {
        for bucket in buckets { add(min(bucket.count, Self.most), at: Self.bucket(of: bucket.start)) }
    }
}
