// Says from look to look whether memory is short.

/// Readings of the kernel's files, one after the other; a value.
package struct PressureGauge: Sendable {
    private var last: (reading: MemoryPressure.Reading, time: UInt64)?

    package init() {}

    /// - Parameter now: nanoseconds of the monotonic clock.
    /// - Returns: why memory should be given back since the look before; nil where all is well, and at the first look.
    package mutating func reason(for reading: MemoryPressure.Reading, now: UInt64) -> String? {
        defer { last = (reading, now) }
        guard let last else { return nil }
        return MemoryPressure.reason(from: last.reading, to: reading, elapsed: now &- last.time)
    }
}
