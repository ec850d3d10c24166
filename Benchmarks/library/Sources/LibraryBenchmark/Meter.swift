// What a piece of work costs: the CPU time of this process, by the kernel's own count, and the time that passes.

import Glibc

/// Of one operation, in microseconds.
struct Cost {
    var cpu: Double
    var wall: Double

    /// The middle of some costs, each part by itself.
    static func median(_ costs: [Cost]) -> Cost {
        Cost(cpu: middle(costs.map(\.cpu)), wall: middle(costs.map(\.wall)))
    }
}

/// The middle value; of an even number the upper one.
func middle(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// User and system time of all threads, and monotonic time, both in microseconds.
private func times() -> (cpu: Double, wall: Double) {
    var usage = rusage()
    getrusage(__rusage_who_t(Int32(RUSAGE_SELF.rawValue)), &usage)
    func microseconds(_ time: timeval) -> Double { Double(time.tv_sec) * 1_000_000 + Double(time.tv_usec) }
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return (
        microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
        Double(now.tv_sec) * 1_000_000 + Double(now.tv_nsec) / 1000
    )
}

/// Runs an operation so many times, one after the other, or several at a time.
func measure(_ count: Int, atOnce width: Int, _ operation: @escaping @Sendable () async throws -> Void) async throws -> Cost {
    let before = times()
    if width == 1 {
        for _ in 0..<count { try await operation() }
    } else {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<width {
                group.addTask { for _ in 0..<count / width { try await operation() } }
            }
            try await group.waitForAll()
        }
    }
    let after = times()
    return Cost(cpu: (after.cpu - before.cpu) / Double(count), wall: (after.wall - before.wall) / Double(count))
}
