// Durations in buckets, as Prometheus' histograms have them.

/// How many durations fell into each bucket, and their sum.
package struct TimeHistogram: Sendable, Equatable {
    /// The upper bounds of all buckets but the last, in nanoseconds: from a hit in memory to a client that gives up.
    package static let bounds: [UInt64] = [
        500_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000, 100_000_000, 250_000_000, 500_000_000, 1_000_000_000,
        5_000_000_000, 30_000_000_000,
    ]
    /// The number of buckets; the last one has no upper bound.
    package static let buckets = 12

    /// The number of durations in each bucket; one is counted in one bucket.
    package private(set) var counts = [UInt64](repeating: 0, count: buckets)
    /// The sum of all durations in nanoseconds.
    package private(set) var sum: UInt64 = 0

    package init() {}

    /// The bucket of a duration in nanoseconds.
    package static func bucket(of duration: UInt64) -> Int {
        bounds.firstIndex { duration <= $0 } ?? buckets - 1
    }

    package var count: UInt64 { counts.reduce(0, &+) }
    package var isEmpty: Bool { counts.allSatisfy { $0 == 0 } }

    package mutating func add(_ duration: UInt64) {
        counts[Self.bucket(of: duration)] &+= 1
        sum &+= duration
    }

    package mutating func add(_ other: TimeHistogram) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        sum &+= other.sum
    }

    /// Adds what a loop has counted.
    /// - Parameter words: the counts of all buckets, and the sum behind them.
    package mutating func add(words: ArraySlice<UInt64>) {
        for (index, word) in zip(counts.indices, words) { counts[index] &+= word }
        sum &+= words.dropFirst(Self.buckets).first ?? 0
    }

    /// The duration in seconds that a part of all durations does not exceed, as Prometheus' `histogram_quantile`
    /// estimates it; nil if there is none.
    /// - Parameter part: between 0 and 1.
    package func quantile(_ part: Double) -> Double? {
        let count = self.count
        guard count > 0 else { return nil }
        let rank = part * Double(count)
        var below: UInt64 = 0
        for (index, inBucket) in counts.enumerated() {
            guard Double(below &+ inBucket) >= rank, inBucket > 0 else {
                below &+= inBucket
                continue
            }
            let lower = index == 0 ? 0 : Self.bounds[index - 1]
            guard index < Self.bounds.count else { return Double(lower) / 1e9 }
            let share = (rank - Double(below)) / Double(inBucket)
            return (Double(lower) + (Double(Self.bounds[index]) - Double(lower)) * share) / 1e9
        }
        return nil
    }
}
