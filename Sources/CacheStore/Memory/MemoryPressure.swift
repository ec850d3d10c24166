// What the kernel says about the want of memory, and gauges that say from look to look whether it is short, and whether
// the process rests.

import Glibc

/// The files of a control group (cgroup v2), or of the whole machine where there is none.
package struct MemoryPressure: Sendable {
    /// The content of the files at one moment.
    package struct Reading: Sendable, Equatable {
        /// How long some task has stood still for want of memory, in microseconds since the beginning.
        package var stalled: UInt64?
        /// How often the group was held back at `memory.high`.
        package var highEvents: UInt64?
        /// `memory.high` in bytes; nil where there is no limit.
        package var high: Int?
        /// Bytes of the group that no file of a disk backs: what evicting can bring down.
        package var anonymous: Int?

        package init(stalled: UInt64? = nil, highEvents: UInt64? = nil, high: Int? = nil, anonymous: Int? = nil) {
            self.stalled = stalled
            self.highEvents = highEvents
            self.high = high
            self.anonymous = anonymous
        }
    }

    /// The share of what is held that is given back at a time; where that was not enough, the next share goes with the
    /// next look.
    package static let share = 0.25
    /// Nanoseconds from look to look.
    package static let interval: UInt64 = 1_000_000_000

    /// The share of the time that tasks may stand still before memory is given back.
    static let stalledShare = 0.1
    /// Below this share of `memory.high` the limit is hit by the page cache, which the kernel takes back by itself.
    static let anonymousShare = 0.5

    /// The folder of the group; nil where there is none.
    let group: String?

    /// - Parameter environment: `DRYDOCK_CGROUP` names the folder of the group where it is another one than
    ///   `/proc/self/cgroup` says.
    package init(environment: [String: String]) {
        if let folder = environment["DRYDOCK_CGROUP"], !folder.isEmpty {
            group = folder
            return
        }
        let line = Self.text("/proc/self/cgroup").split(separator: "\n").first { $0.hasPrefix("0::") }
        let folder = line.map { "/sys/fs/cgroup" + $0.dropFirst(3) }
        group = folder.flatMap { access($0 + "/memory.pressure", R_OK) == 0 ? $0 : nil }
    }

    /// Reads the files, which the kernel makes up without a disk; for an I/O thread, since the kernel may take its
    /// time.
    package func read() -> Reading {
        var reading = Reading()
        reading.stalled = Self.stalled(Self.text(group.map { $0 + "/memory.pressure" } ?? "/proc/pressure/memory"))
        guard let group else { return reading }
        reading.highEvents = Self.number("high", in: Self.text(group + "/memory.events"))
        reading.high = Int(Self.text(group + "/memory.high").prefix { $0 != "\n" })
        let statistics = Self.text(group + "/memory.stat")
        // Large bodies lie in files in memory, which the kernel counts apart.
        reading.anonymous = Self.number("anon", in: statistics).map { anonymous in
            Int(clamping: anonymous) + Int(clamping: Self.number("shmem", in: statistics) ?? 0)
        }
        return reading
    }

    /// Why memory should be given back, given two readings; nil where all is well.
    /// - Parameter elapsed: nanoseconds between them.
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

    /// `total` in the line `some avg10=… avg60=… avg300=… total=…`.
    private static func stalled(_ text: String) -> UInt64? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("some ") }) else { return nil }
        return line.split(separator: " ").last { $0.hasPrefix("total=") }.flatMap { UInt64($0.dropFirst(6)) }
    }

    /// The number in a line `NAME NUMBER`.
    private static func number(_ name: String, in text: String) -> UInt64? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name + " ") }) else { return nil }
        return UInt64(line.dropFirst(name.count + 1))
    }

    /// Empty where the file cannot be read.
    private static func text(_ path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = Glibc.read(file, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : ""
    }
}

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
