// What the admin API asks of the daemon: its state, its stored responses, a reload, its counters.

package import AdminAPI
internal import CacheStore
internal import Configuration
internal import DownloadCore
internal import EventLoop
internal import Glibc
internal import HTTPCaching
internal import HTTPWire
package import ProxyServer
internal import ServiceCore
internal import Synchronization

extension Daemon {
    /// All that the admin API answers; each feature adds the line of its own routes.
    var adminRoutes: [AdminRoute] {
        daemonRoutes + cancelRoutes + seedRoutes + jobRoutes + keepingRoutes
    }
}

extension Daemon: AdminActions {
    package var isReady: Bool { state.withLock { !$0.isStopping } && running != nil }

    package func status() async -> AdminStatus {
        let counters = await running?.counters() ?? CounterValues()
        let (plan, configuration) = state.withLock { ($0.plan, $0.configuration) }
        let stored = parts.core.statistics
        let (memory, disk) = (stored.memory, stored[.disk])
        var status = AdminStatus(
            version: DrydockVersion.current,
            pid: Int(getpid()),
            uptime: Int((Monotonic.now() - startedAt) / 1_000_000_000),
            configuration: parts.source.name(configuration),
            loops: parts.loops.loops.count,
            listen: addresses,
            services: configuration.services.map { Self.describe($0, plan) },
            isOffline: parts.core.isOffline,
            clock: clock(isMovable: configuration.clock.movable),
            memory: AdminStatus.Tier(entries: memory.objects, bytes: memory.bytes, limit: memory.limit),
            disk: disk.map {
                AdminStatus.Tier(entries: $0.objects, bytes: Int(clamping: $0.bytes), limit: Int(clamping: $0.limit))
            }
        )
        status.count(counters)
        return status
    }

    private static func describe(_ service: ServiceConfiguration, _ plan: RoutePlan) -> AdminStatus.Service {
        let base: String =
            switch service.baseURL {
            case .origin(let url)?: url.description
            case .service(let name)?: "service:\(name)"
            case nil: "none"
            }
        let route = plan.service(named: service.name)
        var result = AdminStatus.Service(
            name: service.name,
            target: base,
            match: service.match.description,
            isDemo: route?.playsDemo ?? false,
            isPartlyDemo: route.map { $0.playsDemo && $0.asksOrigin } ?? false
        )
        if let route {
            result.fetches = route.runtime.admission.running
            result.waiting = route.runtime.admission.waiting
            if route.plan.breaker != nil, let origin = route.plan.origin {
                result.breaker = route.runtime.resilience.breaker(of: origin.root).name
            }
        }
        return result
    }

    package func reload() async -> ReloadResult {
        do throws(DaemonError) {
            try await reloadConfiguration()
            return ReloadResult(isReloaded: true, summary: state.withLock { $0.configuration.summary })
        } catch {
            let errors = error.description.split(separator: "\n").map(String.init)
            return ReloadResult(isReloaded: false, summary: "the old configuration stays in force", errors: errors)
        }
    }

    package func explain(_ question: ExplainQuestion) async throws(Problem) -> AdminExplanation {
        guard let answer = await running?.explain(question) else {
            throw Problem(status: 503, title: "Ending", detail: "the daemon is ending, and explains nothing any more")
        }
        return try answer.get()
    }

    // MARK: - Metrics

    package func metricsText() async -> String {
        // A loop that stands still would never say what it has counted.
        let counters = guardian.watch.hasStillLoop ? nil : await running?.counters() ?? CounterValues()
        let (core, sink) = (parts.core, parts.sink)
        let stored = core.statistics
        let (memory, disk) = (stored.memory, stored[.disk])
        var gauges = [
            Gauge("drydock_memory_entries", "Keys in the memory tier.") { memory.objects },
            Gauge("drydock_memory_bytes", "Bytes that the memory tier holds.") { memory.bytes },
            Gauge(
                "drydock_memory_evictions_total",
                "Responses that were evicted from the memory tier.",
                isCounter: true
            ) {
                memory.evictions
            },
            Gauge(
                "drydock_memory_lent_bytes",
                "Bytes of large bodies that were evicted while they are still being sent."
            ) {
                memory.lentBytes
            },
            Gauge("drydock_arriving_bytes", "Bytes of bodies in transfer, outside the memory tier.") {
                core.budget.used
            },
            Gauge("drydock_arriving_limit_bytes", "The limit of drydock_arriving_bytes.") { core.budget.limit },
            Gauge("drydock_arriving_refused_total", "Bodies that memory did not keep for want of it.", isCounter: true)
            {
                core.budget.refusals
            },
            Gauge("drydock_partial_entries", "Responses of which only parts are stored.") {
                core.partialStatistics.objects
            },
            Gauge("drydock_partial_memory_bytes", "Bytes of such parts in memory.") {
                core.partialStatistics.heldBytes
            },
            Gauge("drydock_partial_disk_bytes", "Bytes of such parts on the disk.") {
                core.partialStatistics.filedBytes
            },
            Gauge("drydock_fills", "Fetches for the store that are under way.") { core.fillCount },
            Gauge("drydock_unexpected_bodies_total", "Bodies that did not match response.expect.", isCounter: true) {
                core.counts.unexpected
            },
            Gauge(
                "drydock_abandoned_fetches_total",
                "Fetches that ended because all clients had left.",
                isCounter: true
            ) {
                core.counts.abandoned
            },
            Gauge(
                "drydock_unstored_total",
                "Responses that were not stored, though their heads said that they would be.",
                isCounter: true
            ) {
                core.counts.unstored
            },
            Gauge("drydock_cancelled_fetches_total", "Fetches that 'drydock cancel' ended.", isCounter: true) {
                core.counts.cancelled
            },
            Gauge("drydock_log_dropped_total", "Buffers of access log lines that were dropped.", isCounter: true) {
                Int(clamping: sink.droppedBuffers)
            },
            Gauge("drydock_offline", "1 while no origin is asked.") { core.isOffline ? 1 : 0 },
            Gauge("drydock_clock_ahead_seconds", "How far the daemon's clock has been moved ahead.") {
                Int(core.clock.ahead)
            },
        ]
        gauges += seedGauges + memoryGuard.gauges + serviceGauges + jobGauges + keepingGauges + guardian.gauges
        if let disk {
            gauges += [
                Gauge("drydock_disk_entries", "Files of the disk tier.") { disk.objects },
                Gauge("drydock_disk_bytes", "Bytes that the disk tier holds.") { Int(clamping: disk.bytes) },
                Gauge("drydock_disk_evictions_total", "Files that were evicted from the disk tier.", isCounter: true) {
                    disk.evictions
                },
                Gauge("drydock_disk_damaged_total", "Files that were damaged, or could not be read.", isCounter: true) {
                    disk.damaged
                },
                Gauge("drydock_disk_troubles_total", "Disk failures that concerned stored responses.", isCounter: true)
                {
                    disk.troubles
                },
                Gauge("drydock_disk_index_bytes", "Memory that the table of files takes.") {
                    disk.indexBytes
                },
                Gauge("drydock_disk_open_files", "Files that stay open for the next answer.") {
                    disk.openFiles
                },
                Gauge("drydock_disk_loading", "1 while the table of files is not complete.") {
                    disk.isRebuilding ? 1 : 0
                },
            ]
        }
        return MetricsText.render(counters, gauges: gauges)
    }
}
