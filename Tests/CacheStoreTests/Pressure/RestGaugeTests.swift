// When freed memory returns to the kernel: once after each time of work.

import Testing

@testable import CacheStore

@Suite struct RestGaugeTests {
    private static let second: UInt64 = 1_000_000_000

    /// The looks, a second apart, at which the process rests.
    /// - Parameter loads: parts of a hundred of one CPU, in each second.
    private func rests(_ loads: [UInt64]) -> [Int] {
        var gauge = RestGauge()
        var (cpu, now): (UInt64, UInt64) = (5 * Self.second, 7 * Self.second)
        let isFirst = gauge.rests(cpu: cpu, now: now)
        #expect(!isFirst)
        return loads.enumerated().compactMap { look, load in
            cpu += load * Self.second / 100
            now += Self.second
            return gauge.rests(cpu: cpu, now: now) ? look : nil
        }
    }

    @Test("a process that rests for ten looks after work does so once")
    func once() {
        let rest = [UInt64](repeating: 1, count: 10)
        #expect(rests([80] + rest + rest) == [10])
        #expect(rests([80, 150] + rest + [4] + rest + rest) == [11, 22])
    }

    @Test("one that has not worked, or works now and then, does not")
    func never() {
        #expect(rests([UInt64](repeating: 0, count: 100)).isEmpty)
        #expect(rests((0..<100).map { $0 % 10 == 0 ? 20 : 0 }).isEmpty)
    }
}
