// Gives memory back to the kernel: free memory when the daemon rests after work, and a part of the memory tier while
// the kernel reports a shortage.

import CacheStore
import Configuration
import DownloadCore
import EventLoop
import Logging
import ProxyServer
import Synchronization

/// Looks at the kernel's memory pressure and at the daemon's rest, and gives memory back.
///
/// Sendable: the mutable state is under a mutex.
final class MemoryGuard: DaemonFeature {
    private struct State {
        var gauge = PressureGauge()
        var rest = RestGauge()
        var schedule: Schedule?
        var bytes = 0
        var times = 0
    }

    private let state = Mutex(State())

    /// The number of bytes given back so far.
    var bytes: Int { state.withLock { $0.bytes } }
    /// The number of times that memory was found to be short.
    var times: Int { state.withLock { $0.times } }

    /// Starts to read the kernel's files once a second, on the pool.
    /// - Parameters:
    ///   - givesFreed: freed memory goes back to the kernel when the process rests; true for the daemon's own process.
    ///   - isOn: returns whether the memory tier may be shrunk; called each time.
    func start(
        _ core: DownloadCore,
        pressure: MemoryPressure,
        pool: IOPool,
        on loop: EventLoop,
        logger: Logger,
        givesFreed: Bool,
        isOn: @escaping @Sendable () -> Bool
    ) {
        let schedule = Schedule(every: MemoryPressure.interval, on: loop) { [weak self] _ in
            guard let self else { return }
            _ = try? await pool.run {
                self.look(core, pressure: pressure, logger: logger, isOn: isOn())
                if givesFreed { self.rest(logger) }
            }
        }
        state.withLock { $0.schedule = schedule }
    }

    /// Gives freed memory back if the process rests: memory of ended transfers and requests would stay with the process
    /// otherwise, in pages between those in use.
    private func rest(_ logger: Logger) {
        guard state.withLock({ $0.rest.rests(cpu: Monotonic.cpu(), now: Monotonic.now()) }) else { return }
        let before = ProcessMemory.anonymous
        ProcessMemory.giveBack()
        logger.debug(
            "freed memory given back at rest",
            metadata: ["resident": "\(ProcessMemory.anonymous)", "resident_before": "\(before)"]
        )
    }

    func stop() { state.withLock { $0.schedule }?.cancel() }

    private func look(_ core: DownloadCore, pressure: MemoryPressure, logger: Logger, isOn: Bool) {
        let (reading, now) = (pressure.read(), Monotonic.now())
        guard let reason = state.withLock({ $0.gauge.reason(for: reading, now: now) }) else { return }
        state.withLock { $0.times += 1 }
        guard isOn, core.store.statistics.memory.bytes > 0 else { return }
        let before = ProcessMemory.anonymous
        let shed = core.memory.shed(MemoryPressure.share)
        state.withLock { $0.bytes += shed }
        logger.notice(
            "memory given back, \(reason)",
            metadata: [
                "evicted": "\(shed)", "left": "\(core.store.statistics.memory.bytes)",
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
