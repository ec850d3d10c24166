// The two statistics that demo mode is held to.

import Foundation

enum Statistics {
    /// The number of successes that lies in the middle 99.9 % of a binomial distribution (normal approximation).
    static func binomialInterval(_ count: Int, chance: Double) -> ClosedRange<Int> {
        let mean = Double(count) * chance
        let reach = 3.2905 * (mean * (1 - chance)).squareRoot()
        return Int((mean - reach).rounded(.up))...Int((mean + reach).rounded(.down))
    }

    /// The one-sample Kolmogorov-Smirnov distance of `values` from the uniform distribution over `range`.
    static func distanceFromUniform(_ values: [Double], over range: ClosedRange<Double>) -> Double {
        let sorted = values.sorted()
        let count = Double(sorted.count)
        return sorted.enumerated().reduce(0) { largest, element in
            let expected = (element.element - range.lowerBound) / (range.upperBound - range.lowerBound)
            let above = Double(element.offset + 1) / count - expected
            let below = expected - Double(element.offset) / count
            return max(largest, above, below)
        }
    }

    /// The distance that a uniform sample of this size exceeds once in a thousand times.
    static func criticalDistance(_ count: Int) -> Double { 1.9495 / Double(count).squareRoot() }
}
