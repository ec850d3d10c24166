// The histogram of latencies: what it says of what was measured, in bounded memory.

import DemoMode
import Policies
import Testing

private let ms: UInt64 = 1_000_000

@Suite struct LatencyHistogramTests {
    /// A generator that is the same in every run.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64 = 1
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    @Test func nothingIsKnownOfNothing() {
        let histogram = LatencyHistogram()
        #expect(histogram.count == 0 && histogram.points().isEmpty && histogram.quantile(0.5) == nil)
    }

    /// Each percentile of what is drawn from it is within 2 % of what was measured.
    @Test func percentilesAreThoseOfWhatWasMeasured() throws {
        let curve = LatencyPolicy(.lognormal(median: 80 * ms, p99: 900 * ms))
        var numbers = Numbers()
        var histogram = LatencyHistogram()
        var measured = (0..<60_000).map { _ in curve.quantile(Double.random(in: 0..<1, using: &numbers)) }
        for latency in measured { histogram.record(latency) }
        measured.sort()
        let learned = LatencyPolicy(.percentiles(histogram.points()))
        for share in [0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999] {
            let expected = Double(measured[Int(share * Double(measured.count))])
            #expect(abs(Double(learned.quantile(share)) / expected - 1) < 0.02, "\(share)")
        }
        let slower = LatencyPolicy(.percentiles(histogram.points(times: 1.5)))
        #expect(abs(Double(slower.quantile(0.9)) / Double(learned.quantile(0.9)) - 1.5) < 0.001)
    }

    /// An origin that is fast or slow, and never in between, is not drawn in between.
    @Test func thereIsNothingBetweenTwoPeaks() throws {
        var histogram = LatencyHistogram()
        for _ in 0..<700 { histogram.record(10 * ms) }
        for _ in 0..<300 { histogram.record(1000 * ms) }
        let learned = LatencyPolicy(.percentiles(histogram.points()))
        for step in 0..<1000 where step != 700 {
            let latency = learned.quantile(Double(step) / 1000)
            let isNear = (9_800_000...10_200_000).contains(latency) || (980 * ms...1020 * ms).contains(latency)
            #expect(isNear, "\(step): \(latency)")
            #expect((latency < 500 * ms) == (step < 700), "\(step)")
        }
    }

    /// One answer is a distribution, too.
    @Test func oneLatencyIsDrawnAgain() throws {
        var histogram = LatencyHistogram()
        histogram.record(123 * ms)
        for share in [0.0, 0.5, 0.999] {
            let latency = Double(try #require(histogram.quantile(share)))
            #expect(abs(latency / Double(123 * ms) - 1) < 0.016)
        }
    }

    @Test(arguments: [0, 1, 1023, 1024, 1 << 40, UInt64.max])
    func latenciesBeyondItsEndsCountAsTheNearest(latency: UInt64) throws {
        var histogram = LatencyHistogram()
        histogram.record(latency)
        let found = try #require(histogram.quantile(0.5))
        #expect((1 << 10...1 << 40).contains(found))
    }

    /// What is older counts less and less, and the memory stays the same.
    @Test func whatIsNewCountsMore() throws {
        var histogram = LatencyHistogram()
        for _ in 0..<200_000 { histogram.record(10 * ms) }
        #expect(histogram.count <= LatencyHistogram.most)
        for _ in 0..<200_000 { histogram.record(50 * ms) }
        #expect(histogram.count <= LatencyHistogram.most)
        let median = Double(try #require(histogram.quantile(0.5)))
        #expect(abs(median / Double(50 * ms) - 1) < 0.016)
    }

    @Test func whatIsKeptReadsBack() throws {
        var numbers = Numbers()
        var histogram = LatencyHistogram()
        for _ in 0..<5000 { histogram.record(UInt64.random(in: 0...(1 << 41), using: &numbers)) }
        for _ in 0..<9 { histogram.record(7 * ms) }
        #expect(LatencyHistogram(histogram.buckets) == histogram)
        // Numbers that no histogram has are brought into its bounds.
        let odd = LatencyHistogram([(start: 5 * ms + 1, count: 3), (start: .max, count: .max)])
        #expect(odd.count <= LatencyHistogram.most)
    }
}
