// The kernel's figures about a shortage of memory, and gauges that tell from one reading to the next whether memory is
// short, and whether the process rests.

import Glibc

/// The files of a control group (cgroup v2), or of the whole machine if there is none.
package struct MemoryPressure: Sendable {
    /// The content of the files at one moment.
    package struct Reading: Sendable, Equatable {
        /// The time for which some task has waited for memory, in microseconds since the beginning.
        package var stalled: UInt64?
        /// The number of times that the group was throttled at `memory.high`.
        package var highEvents: UInt64?
        /// `memory.high` in bytes; nil if there is no limit.
        package var high: Int?
        /// The bytes of the group that no file on a disk backs, which evictions can reduce.
        package var anonymous: Int?

        package init(stalled: UInt64? = nil, highEvents: UInt64? = nil, high: Int? = nil, anonymous: Int? = nil) {
            self.stalled = stalled
            self.highEvents = highEvents
            self.high = high
            self.anonymous = anonymous
        }
    }

    /// The share of memory that is given back at a time; if that is not enough, another share follows at the next
    /// reading.
    package static let share = 0.25
    /// The nanoseconds between two readings.
    package static let interval: UInt64 = 1_000_000_000

    /// The share of the time for which tasks may wait before memory is given back.
    static let stalledShare = 0.1
    /// The share of `memory.high` below which the page cache hits the limit, which the kernel reduces by itself.
    static let anonymousShare = 0.5

    /// The folder of the group; nil if there is none.
    let group: String?

    /// Finds the files of the control group and of the machine.
    /// - Parameter environment: the environment, in which `DRYDOCK_CGROUP` names the folder of the group if it is
    ///   another one than `/proc/self/cgroup` says.
    package init(environment: [String: String]) {
        if let folder = environment["DRYDOCK_CGROUP"], !folder.isEmpty {
            group = folder
            return
        }
        let line = Self.text("/proc/self/cgroup").split(separator: "\n").first { $0.hasPrefix("0::") }
        let folder = line.map { "/sys/fs/cgroup" + $0.dropFirst(3) }
        group = folder.flatMap { access($0 + "/memory.pressure", R_OK) == 0 ? $0 : nil }
    }

    /// Reads the files, which the kernel generates without a disk; on an I/O thread, because the kernel may take its
    /// time.
    package func read() -> Reading {
        var reading = Reading()
        reading.stalled = Self.stalled(Self.text(group.map { $0 + "/memory.pressure" } ?? "/proc/pressure/memory"))
        guard let group else { return reading }
        reading.highEvents = Self.number("high", in: Self.text(group + "/memory.events"))
        reading.high = Int(Self.text(group + "/memory.high").prefix { $0 != "\n" })
        let statistics = Self.text(group + "/memory.stat")
        // Large bodies are in memory files, which the kernel counts separately.
        reading.anonymous = Self.number("anon", in: statistics).map { anonymous in
            Int(clamping: anonymous) + Int(clamping: Self.number("shmem", in: statistics) ?? 0)
        }
        return reading
    }

    /// The reason why memory should be given back, from two readings; nil for none.
    /// - Parameter elapsed: the nanoseconds between them.
    package static func reason(from old: Reading, to new: Reading, elapsed: UInt64) -> String? {
        if let before = old.stalled, let now = new.stalled, now > before, elapsed > 0 {
            let share = Double(now - before) * 1000 / Double(elapsed)
            if share >= stalledShare {
                return "tasks stood still for want of memory \(Int((min(share, 1) * 100).rounded())) % of the time"
            }
        }
        if let before = old.highEvents, let now = new.highEvents, now > before, let high = new.high,
            Double(new.anonymous ?? high) >= anonymousShare * Double(high)
        {
            return "the group was held back at memory.high"
        }
        return nil
    }

    /// The number `total` in the line `some avg10=… avg60=… avg300=… total=…`.
    private static func stalled(_ text: String) -> UInt64? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("some ") }) else { return nil }
        return line.split(separator: " ").last { $0.hasPrefix("total=") }.flatMap { UInt64($0.dropFirst(6)) }
    }

    /// The number in a line `NAME NUMBER`.
    private static func number(_ name: String, in text: String) -> UInt64? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name + " ") }) else { return nil }
        return UInt64(line.dropFirst(name.count + 1))
    }

    /// The text of a file; empty if it cannot be read.
    private static func text(_ path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = Glibc.read(file, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : ""
    }
}

/// A sequence of readings of the kernel's files; a value.
package struct PressureGauge: Sendable {
    private var last: (reading: MemoryPressure.Reading, time: UInt64)?

    package init() {}

    /// Adds a reading.
    /// - Parameter now: the monotonic time in nanoseconds.
    /// - Returns: the reason why memory should be given back since the previous reading; nil for none, and for the
    ///   first reading.
    package mutating func reason(for reading: MemoryPressure.Reading, now: UInt64) -> String? {
        defer { last = (reading, now) }
        guard let last else { return nil }
        return MemoryPressure.reason(from: last.reading, to: reading, elapsed: now &- last.time)
    }
}

/// A sequence of readings of the CPU time; a value.
package struct RestGauge: Sendable {
    /// The readings in a row without work after which the process rests: a pause between requests may be as long.
    static let looks = 10
    /// The percentage of one CPU below which a process does not work.
    static let least: UInt64 = 3

    private var last: (cpu: UInt64, time: UInt64)?
    private var hasWorked = false
    private var restful = 0

    package init() {}

    /// Adds a reading.
    /// - Parameters:
    ///   - cpu: the CPU time of the process so far in nanoseconds.
    ///   - now: the monotonic time in nanoseconds.
    /// - Returns: true once after each period of work, when the process has rested for ten readings.
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
