// The gauges of the memory tier, the disk tier, the download core and the access log.

import CacheStore
import DownloadCore
import EventLoop
import ProxyServer

/// The gauges of the store and of the fetches for it.
struct StoreGauges: DaemonFeature {
    let core: DownloadCore
    let sink: AccessLogSink

    var gauges: [Gauge] {
        let (core, sink, memory) = (core, sink, core.store.statistics.memory)
        return [
            Gauge("drydock_memory_entries", "Keys in the memory tier.") { memory.objects },
            Gauge("drydock_memory_bytes", "Bytes that the memory tier holds.") { memory.bytes },
            Gauge("drydock_memory_limit_bytes", "The limit of drydock_memory_bytes.") { memory.limit },
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
            Gauge(
                "drydock_arriving_refused_total",
                "Bodies that memory did not keep because the budget was used up.",
                isCounter: true
            ) {
                core.budget.refusals
            },
            Gauge("drydock_partial_entries", "Responses of which only parts are stored.") {
                core.partialStatistics.objects
            },
            Gauge("drydock_partial_memory_bytes", "Bytes of parts of incomplete responses in memory.") {
                core.partialStatistics.heldBytes
            },
            Gauge("drydock_partial_disk_bytes", "Bytes of parts of incomplete responses on the disk.") {
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
    }
}

/// The gauges of the disk tier; none if there is no disk tier.
struct DiskGauges: DaemonFeature {
    let core: DownloadCore

    var gauges: [Gauge] {
        guard let disk = core.store.statistics[.disk] else { return [] }
        return [
            Gauge("drydock_disk_entries", "Files of the disk tier.") { disk.objects },
            Gauge("drydock_disk_bytes", "Bytes that the disk tier holds.") { Int(clamping: disk.bytes) },
            Gauge("drydock_disk_limit_bytes", "The limit of drydock_disk_bytes.") { Int(clamping: disk.limit) },
            Gauge("drydock_disk_evictions_total", "Files that were evicted from the disk tier.", isCounter: true) {
                disk.evictions
            },
            Gauge("drydock_disk_damaged_total", "Files that were damaged, or could not be read.", isCounter: true) {
                disk.damaged
            },
            Gauge("drydock_disk_troubles_total", "Disk failures that concerned stored responses.", isCounter: true) {
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
}
