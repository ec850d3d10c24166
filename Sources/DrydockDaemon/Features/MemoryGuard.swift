// Gives memory of the memory tier back as long as the kernel says that there is too little.

import CacheStore
import Configuration
import DownloadCore
import EventLoop
import Logging
import ProxyServer
import Synchronization

/// Sendable: what it remembers is under a mutex.
final class MemoryGuard: DaemonFeature {
    private struct State {
        var last: (reading: MemoryPressure.Reading, time: UInt64)?
        var schedule: Schedule?
        var bytes = 0
        var times = 0
    }

    /// The share of the held bytes that is given back at a time; if that was not enough, the next share goes a second
    /// later.
    static let share = 0.25
    private static let interval: UInt64 = 1_000_000_000
    private let state = Mutex(State())

    /// Bytes given back so far.
    var bytes: Int { state.withLock { $0.bytes } }
    /// How often memory was found to be short.
    var times: Int { state.withLock { $0.times } }

    /// Reads the kernel's files once a second, on the pool.
    /// - Parameter isOn: whether memory may be given back; asked each time.
    func start(
        _ core: DownloadCore,
        pressure: MemoryPressure,
        pool: IOPool,
        on loop: EventLoop,
        logger: Logger,
        isOn: @escaping @Sendable () -> Bool
    ) {
        let schedule = Schedule(every: Self.interval, on: loop) { [weak self] _ in
            guard let self else { return }
            _ = try? await pool.run { self.look(core, pressure: pressure, logger: logger, isOn: isOn()) }
        }
        state.withLock { $0.schedule = schedule }
    }

    func stop() { state.withLock { $0.schedule }?.cancel() }

    private func look(_ core: DownloadCore, pressure: MemoryPressure, logger: Logger, isOn: Bool) {
        let (reading, now) = (pressure.read(), Monotonic.now())
        let last = state.withLock { state in
            defer { state.last = (reading, now) }
            return state.last
        }
        guard let last,
            let reason = MemoryPressure.reason(from: last.reading, to: reading, elapsed: now &- last.time)
        else { return }
        state.withLock { $0.times += 1 }
        guard isOn, core.statistics.memory.bytes > 0 else { return }
        let before = ProcessMemory.anonymous
        let shed = core.shedMemory(Self.share)
        state.withLock { $0.bytes += shed }
        logger.notice(
            "memory given back, \(reason)",
            metadata: [
                "evicted": "\(shed)", "left": "\(core.statistics.memory.bytes)",
                "resident": "\(ProcessMemory.anonymous)", "resident_before": "\(before)",
            ]
        )
    }

    var gauges: [Gauge] {
        [
            Gauge("drydock_memory_shed_bytes_total", "Bytes given back under memory pressure.", isCounter: true) {
                self.bytes
            },
            Gauge("drydock_memory_pressure_total", "How often memory was found to be short.", isCounter: true) {
                self.times
            },
        ]
    }
}
