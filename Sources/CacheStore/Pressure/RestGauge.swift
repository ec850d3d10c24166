// Says from look to look whether the process rests after work, so that freed memory can return to the kernel.

/// Readings of the CPU time, one after the other; a value.
package struct RestGauge: Sendable {
    /// Looks in a row without work: so long may a pause between requests be.
    static let looks = 10
    /// Parts of a hundred of one CPU: a process that takes less does not work.
    static let least: UInt64 = 3

    private var last: (cpu: UInt64, time: UInt64)?
    private var hasWorked = false
    private var restful = 0

    package init() {}

    /// - Parameters:
    ///   - cpu: nanoseconds of CPU time that the process has taken so far.
    ///   - now: nanoseconds of the monotonic clock.
    /// - Returns: true once after each time of work, when the process has rested for ten looks.
    package mutating func rests(cpu: UInt64, now: UInt64) -> Bool {
        defer { last = (cpu, now) }
        guard let last, now > last.time else { return false }
        let isAtWork = (cpu &- last.cpu) > (now - last.time) / 100 * Self.least
        restful = isAtWork ? 0 : restful + 1
        if isAtWork { hasWorked = true }
        guard hasWorked, restful >= Self.looks else { return false }
        hasWorked = false
        return true
    }
}
