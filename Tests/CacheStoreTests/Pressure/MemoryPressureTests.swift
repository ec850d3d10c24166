// When memory is given back: what the kernel's files say, and what is no reason.

import EventLoop
import TestSupport
import Testing

@testable import CacheStore

@Suite struct MemoryPressureTests {
    private func write(_ folder: TemporaryFolder, stalled: UInt64, high events: Int, limit: String, anon: Int) throws {
        try folder.write(
            "memory.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=\(stalled)\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
        )
        try folder.write("memory.events", "low 0\nhigh \(events)\nmax 0\noom 0\n")
        try folder.write("memory.high", "\(limit)\n")
        try folder.write("memory.stat", "anon \(anon - 1)\nfile 123\nshmem 1\n")
    }

    @Test func theFilesOfAGroup() throws {
        let folder = try TemporaryFolder("drydock-pressure")
        try write(folder, stalled: 12_345, high: 6, limit: "1000", anon: 900)
        let pressure = MemoryPressure(environment: ["DRYDOCK_CGROUP": folder.path])
        #expect(pressure.read() == .init(stalled: 12_345, highEvents: 6, high: 1000, anonymous: 900))
        try write(folder, stalled: 0, high: 0, limit: "max", anon: 1)
        #expect(pressure.read() == .init(stalled: 0, highEvents: 0, high: nil, anonymous: 1))
        try folder.write("memory.stat", "anon 77\nfile 123\n")
        #expect(pressure.read().anonymous == 77)
        for text in ["", "some", "some total=x", "\u{0}"] {
            try folder.write("memory.pressure", text)
            #expect(pressure.read().stalled == nil, "\(text)")
        }
        let nothing = MemoryPressure(environment: ["DRYDOCK_CGROUP": folder.file("nothing")])
        #expect(nothing.read() == .init())
    }

    private typealias Reading = MemoryPressure.Reading

    @Test(arguments: [
        // Microseconds of standing still within a second.
        (Reading(stalled: 0), Reading(stalled: 99_999), nil), (Reading(stalled: 0), Reading(stalled: 100_000), "10 %"),
        (Reading(stalled: 5), Reading(stalled: 5_000_005), "100 %"), (Reading(stalled: 9), Reading(stalled: 3), nil),
        (Reading(), Reading(stalled: 900_000), nil), (Reading(), Reading(), nil),
        (Reading(highEvents: 1), Reading(highEvents: 2, high: 1000, anonymous: 500), "memory.high"),
        (Reading(highEvents: 1), Reading(highEvents: 2, high: 1000), "memory.high"),
        // The page cache fills what is left of the limit.
        (Reading(highEvents: 1), Reading(highEvents: 2, high: 1000, anonymous: 499), nil),
        (Reading(highEvents: 1), Reading(highEvents: 1, high: 1000, anonymous: 999), nil),
        (Reading(highEvents: 1), Reading(highEvents: 2, anonymous: 999), nil),
    ]) private func reasons(_ old: Reading, _ new: Reading, _ part: String?) {
        let reason = MemoryPressure.reason(from: old, to: new, elapsed: 1_000_000_000)
        if let part { #expect(reason?.contains(part) == true) } else { #expect(reason == nil) }
    }

    @Test func aGaugeComparesEachReadingWithTheOneBefore() {
        var gauge = PressureGauge()
        #expect(gauge.reason(for: Reading(stalled: 900_000), now: 0) == nil, "there is nothing to compare it with")
        #expect(gauge.reason(for: Reading(stalled: 1_100_000), now: 1_000_000_000)?.contains("20 %") == true)
        #expect(gauge.reason(for: Reading(stalled: 1_100_000), now: 2_000_000_000) == nil)
        #expect(gauge.reason(for: Reading(stalled: 1_600_000), now: 3_000_000_000)?.contains("50 %") == true)
    }
}
