// Latencies that were measured, in bounded memory: how many fell into each of many narrow ranges.

package import Policies

/// A histogram whose buckets are as wide as a 64th of the latencies in them, so that what it says of one is wrong by
/// less than 1.6 %. It takes latencies from 1 µs to 18 minutes; others count as the nearest of these. 8 KiB.
package struct LatencyHistogram: Sendable, Equatable {
    /// Latencies that it has room for. Then all counts are halved, so that what was measured later counts more.
    package static let most: UInt32 = 1 << 16

    /// A power of two has so many buckets, of equal width.
    private static let steps = 64
    private static let lowest = 10
    private static let octaves = 30

    /// Empty until the first latency.
    private var counts: [UInt32] = []
    /// Of all buckets.
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

    /// The latency that a bucket begins with, and the one before begins its end.
    private static func start(of bucket: Int) -> UInt64 {
        let (octave, step) = bucket.quotientAndRemainder(dividingBy: steps)
        return UInt64(steps + step) << (octave + lowest - 6)
    }

    /// The distribution as a table for ``LatencyPolicy``; empty where nothing was measured.
    ///
    /// A bucket's latencies are spread evenly over it, and there are none between two buckets that have some.
    /// - Parameter times: each latency is so many times as long.
    package func points(times: Double = 1) -> [LatencyPolicy.Point] {
        var points: [LatencyPolicy.Point] = []
        var before: UInt64 = 0
        func point(_ latency: UInt64) -> LatencyPolicy.Point {
            // No longer than a latency may be.
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

    /// The latency that this share of all is at most, in nanoseconds; nil where nothing was measured.
    /// - Parameter share: 0...1.
    package func quantile(_ share: Double) -> UInt64? {
        count == 0 ? nil : LatencyPolicy(.percentiles(points())).quantile(share)
    }

    // MARK: - Kept

    /// The buckets that have latencies: where each begins, in nanoseconds, and how many it has.
    package var buckets: [(start: UInt64, count: UInt32)] {
        counts.enumerated().compactMap { $0.element > 0 ? (Self.start(of: $0.offset), $0.element) : nil }
    }

    /// - Parameter buckets: as they were kept. A start that is none counts for the bucket around it.
    package init(_ buckets: [(start: UInt64, count: UInt32)]) {
        for bucket in buckets { add(min(bucket.count, Self.most), at: Self.bucket(of: bucket.start)) }
    }
}
