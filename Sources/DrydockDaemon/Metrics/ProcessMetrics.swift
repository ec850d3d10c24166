// The metrics of the process: its version, age, time, memory and files, by the names that Prometheus' own clients use.

import EventLoop
import Files
import Glibc
import ProxyServer
import ServiceCore

/// The metrics of the process.
struct ProcessMetrics: DaemonFeature {
    private let startedAt = Monotonic.now()

    var gauges: [Gauge] {
        [
            Gauge(
                "drydock_build_info",
                "1, with the version of the program as its label.",
                label: ("version", DrydockVersion.current)
            ) { 1 },
            Gauge("drydock_uptime_seconds", "The time since the daemon began, in seconds.") { [startedAt] in
                Int((Monotonic.now() - startedAt) / 1_000_000_000)
            },
        ]
    }

    var families: [MetricFamily] {
        var families = [
            MetricFamily(
                "process_cpu_seconds_total",
                "The processor time of the process, in user and kernel mode.",
                .counter,
                .number(Double(Monotonic.cpu()) / 1e9)
            )
        ]
        func add(_ name: String, _ help: String, _ value: MetricFamily.Value?) {
            if let value { families.append(MetricFamily(name, help, .gauge, value)) }
        }
        let pages = Self.numbers("/proc/self/statm")
        add(
            "process_resident_memory_bytes",
            "The memory of the process that is resident.",
            pages.count > 1 ? .integer(pages[1] * Int(getpagesize())) : nil
        )
        add(
            "process_virtual_memory_bytes",
            "The address space of the process.",
            pages.first.map { .integer($0 * Int(getpagesize())) }
        )
        add(
            "process_open_fds",
            "Files and sockets that the process has open.",
            Self.openFiles.map { .integer($0) }
        )
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            add(
                "process_max_fds",
                "The most files and sockets that the process may have open.",
                .integer(Int(clamping: limit.rlim_cur))
            )
        }
        add("process_start_time_seconds", "When the process began, in Unix seconds.", Self.started)
        return families
    }

    /// When the process began, by the wall clock of now.
    private static var started: MetricFamily.Value? {
        // The name of the program, in parentheses, may contain anything; the 20th number after it counts ticks.
        guard let text = text("/proc/self/stat"), let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[end...].split(separator: " ")
        guard fields.count > 20, let ticks = Double(fields[20]) else { return nil }
        var (wall, boot) = (timespec(), timespec())
        clock_gettime(CLOCK_REALTIME, &wall)
        clock_gettime(CLOCK_BOOTTIME, &boot)
        let atBoot = Double(wall.tv_sec - boot.tv_sec) + Double(wall.tv_nsec - boot.tv_nsec) / 1e9
        return .number(((atBoot + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))) * 100).rounded() / 100)
    }

    /// The number of descriptors, without the one that looks.
    private static var openFiles: Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // The folder itself, the one above it, and the descriptor that looks.
        return max(0, count - 3)
    }

    private static func text(_ path: String) -> String? {
        do throws(SystemError) {
            return String(decoding: try WholeFile.read(path), as: UTF8.self)
        } catch {
            return nil
        }
    }

    private static func numbers(_ path: String) -> [Int] {
        (text(path) ?? "").split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
    }
}
