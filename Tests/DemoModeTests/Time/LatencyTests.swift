// Latencies: what is drawn has the distribution that the configuration says.

import DemoMode
import Policies
import TestSupport
import Testing

private let ms: UInt64 = 1_000_000

@Suite struct LatencyTests {
    /// So many draws of a rule, in rising order.
    private static func sorted(_ latency: LatencyPolicy, count: Int) throws -> [UInt64] {
        let rule = FaultPolicy(name: "slow", seed: 7, latency: latency)
        let plan = try #require(FaultPlan([FaultPlan.Rule(rule)]))
        let ordinals = DrawOrdinals()
        let request = Array("GET /x".utf8)
        return (0..<count).compactMap { _ in plan.draw(at: .hit, request: request, ordinals)?.latency }.sorted()
    }

    /// Within 2 % of what the table says.
    private static func expect(_ drawn: [UInt64], at percentile: Double, _ expected: UInt64) {
        let found = Double(drawn[min(drawn.count - 1, Int(Double(drawn.count) * percentile / 100))])
        #expect(abs(found / Double(expected) - 1) < 0.02, "\(percentile): \(found) instead of \(expected)")
    }

    @Test(.timeLimit(.minutes(5))) func aTableOfPercentilesIsDrawnFrom() throws {
        let points = [(50.0, 80 * ms), (90, 200 * ms), (99, 1000 * ms)]
        let table = LatencyPolicy(.percentiles(points.map { .init(percentile: $0.0, latency: $0.1) }))
        let count = Thoroughness.attempts(1_000_000)
        let drawn = try Self.sorted(table, count: count)
        #expect(drawn.count == count)
        for (percentile, latency) in points { Self.expect(drawn, at: percentile, latency) }
        // Half of the first one at 0, twice the last one at 100.
        Self.expect(drawn, at: 25, 60 * ms)
        Self.expect(drawn, at: 99.5, 1500 * ms)
        #expect(drawn.allSatisfy { (40 * ms...2000 * ms).contains($0) })
    }

    @Test(.timeLimit(.minutes(5))) func curvesHaveTheirPercentiles() throws {
        let normal = try Self.sorted(LatencyPolicy(.normal(mean: 250 * ms, deviation: 50 * ms)), count: 200_000)
        Self.expect(normal, at: 50, 250 * ms)
        Self.expect(normal, at: 84.134, 300 * ms)
        Self.expect(normal, at: 15.866, 200 * ms)
        Self.expect(normal, at: 97.725, 350 * ms)
        Self.expect(normal, at: 99.865, 400 * ms)
        let lognormal = try Self.sorted(
            LatencyPolicy(.lognormal(median: 80 * ms, p99: 900 * ms)),
            count: Thoroughness.attempts(1_000_000)
        )
        Self.expect(lognormal, at: 50, 80 * ms)
        Self.expect(lognormal, at: 99, 900 * ms)
        // One and two deviations of its logarithm, ln(900/80) / 2.326.
        Self.expect(lognormal, at: 84.134, UInt64(226.43 * Double(ms)))
        Self.expect(lognormal, at: 97.725, UInt64(640.9 * Double(ms)))
    }

    /// A range by its percentiles, and with it the words `latency: 250ms`.
    @Test(.timeLimit(.minutes(5))) func fixedAndEvenLatenciesAreThoseOfTheConfiguration() throws {
        let even = try Self.sorted(LatencyPolicy(.uniform(200 * ms...900 * ms)), count: 200_000)
        for percentile in [1.0, 10, 50, 90, 99] {
            Self.expect(even, at: percentile, 200 * ms + UInt64(percentile * 7) * ms)
        }
        #expect(even.allSatisfy { (200 * ms...900 * ms).contains($0) })
        let fixed = try Self.sorted(LatencyPolicy(.uniform(250 * ms...250 * ms)), count: 1000)
        #expect(fixed.count == 1000 && fixed.allSatisfy { $0 == 250 * ms })
    }

    /// The table is that of any book of statistics.
    @Test(arguments: [
        (0.5, 0.0), (0.841344746, 1.0), (0.975, 1.959963985), (0.99, 2.326347874), (0.999999, 4.753424309),
    ])
    func quantilesAreThoseOfTheNormalDistribution(share: Double, deviations: Double) {
        let policy = LatencyPolicy(.normal(mean: 1_000_000_000, deviation: 100_000_000))
        for (share, deviations) in [(share, deviations), (1 - share, -deviations)] {
            let expected = 1e9 + deviations * 1e8
            #expect(abs(Double(policy.quantile(share)) - expected) < 10, "\(share)")
        }
    }

    @Test func aLongestLatencyCutsTheTail() throws {
        for shape in [
            LatencyPolicy.Shape.lognormal(median: 80 * ms, p99: 900 * ms), .uniform(10 * ms...500 * ms),
            .normal(mean: 90 * ms, deviation: 50 * ms),
        ] {
            let drawn = try Self.sorted(LatencyPolicy(shape, max: 100 * ms), count: 10_000)
            #expect(drawn.last == 100 * ms)
            #expect((drawn.first ?? 0) < 100 * ms)
        }
    }

    @Test func theEndsOfACurveAreLatencies() {
        let policy = LatencyPolicy(.normal(mean: 10 * ms, deviation: 50 * ms))
        #expect(policy.quantile(0) == 0)
        #expect(policy.quantile(1) > 400 * ms)
        #expect(LatencyPolicy(.lognormal(median: 5 * ms, p99: 5 * ms)).quantile(0.3) == 5 * ms)
        #expect(LatencyPolicy(.percentiles([.init(percentile: 100, latency: 4 * ms)])).quantile(1) == 4 * ms)
    }
}
