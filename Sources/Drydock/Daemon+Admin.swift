// What the admin API asks of the daemon: its state, its stored responses, a reload, its counters.

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

extension Daemon: AdminActions {
    package var isReady: Bool { state.withLock { !$0.isStopping } && running != nil }

    package func status() async -> AdminStatus {
        let counters = await running?.counters() ?? CounterValues()
        let (plan, configuration) = state.withLock { ($0.plan, $0.configuration) }
        let memory = parts.core.memory.statistics
        let disk = parts.disk?.statistics
        var path: String?
        if case .file(let file) = parts.source { path = file }
        return AdminStatus(
            version: DrydockVersion.current,
            pid: Int(getpid()),
            uptime: Int((Monotonic.now() - startedAt) / 1_000_000_000),
            configuration: path,
            loops: parts.loops.loops.count,
            listen: addresses,
            services: configuration.services.map { Self.describe($0, plan) },
            counters: counters,
            isOffline: parts.core.isOffline,
            clock: clock(isMovable: configuration.clock.movable),
            memory: AdminStatus.Tier(entries: memory.objects, bytes: memory.bytes, limit: memory.limit),
            disk: disk.map {
                AdminStatus.Tier(entries: $0.objects, bytes: Int(clamping: $0.bytes), limit: Int(clamping: $0.limit))
            }
        )
    }

    private static func describe(_ service: ServiceConfiguration, _ plan: RoutePlan) -> AdminStatus.Service {
        let base: String =
            switch service.baseURL {
            case .origin(let url)?: url.description
            case .service(let name)?: "service:\(name)"
            case nil: "none"
            }
        let match: String =
            switch service.match {
            case .prefix(let prefix): prefix
            case .host(let host): host
            }
        let route = plan.service(named: service.name)
        let isDemo = route.map { $0.demo != nil || $0.endpointDemos.contains { $0 != nil } } ?? false
        return AdminStatus.Service(name: service.name, target: base, match: match, isDemo: isDemo)
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

    // MARK: - Entries

    package func entries(_ query: AdminEntryQuery) async -> AdminEntries {
        let plan = state.withLock { $0.plan }
        let now = parts.core.clock.now()
        // Many entries mean much text: not on a loop.
        let memory = try? await parts.files.run { [core = parts.core] in
            core.memory.responses { _ in true }.compactMap { response -> AdminEntries.Entry? in
                let url = "\(response.key)"
                guard url.hasPrefix(query.prefix), query.after.map({ url > $0 }) ?? true else { return nil }
                return Self.entry(response, plan, now: now)
            }
        }
        return await EntryPage.make(memory: memory ?? [], limit: query.limit) {
            [disk = parts.disk] limit in
            // A listing that fails shows what is in memory.
            let pattern = EntryPage.pattern(query.prefix)
            let listed = try? await disk?.entries(matching: pattern, limit: limit, after: query.after)
            return (listed ?? []).map { Self.entry($0, now: now) }
        }
    }

    private static func entry(_ item: DiskListing, now: Int64) -> AdminEntries.Entry {
        AdminEntries.Entry(
            url: item.url,
            service: item.service,
            status: item.status,
            size: Int(clamping: item.bodyLength),
            tiers: [StoreTier.disk.rawValue],
            age: Int(clamping: max(0, now - item.storedAt)),
            ttl: nil
        )
    }

    private static func entry(_ response: StoredResponse, _ plan: RoutePlan, now: Int64) -> AdminEntries.Entry {
        let service = response.key.service
        let policy =
            service.isEmpty
            ? plan.forward?.request.policy : plan.service(named: service)?.policy(storedAt: "\(response.key)")
        let age = Caching.age(response.head, now: now)
        let lifetime = policy.map { Caching.freshnessLifetime(response.head, policy: $0).seconds }
        return AdminEntries.Entry(
            url: "\(response.key)",
            service: service,
            status: response.head.status,
            size: response.body.knownLength.map { Int(clamping: $0) },
            tiers: [StoreTier.memory.rawValue],
            age: Int(clamping: age),
            ttl: lifetime.map { Int(clamping: $0 - age) },
            variant: Dictionary(response.head.varyFields.lines.map { ($0.name, $0.value) }) { "\($0), \($1)" }
        )
    }

    package func explain(_ question: ExplainQuestion) async throws(Problem) -> AdminExplanation {
        guard let answer = await running?.explain(question) else {
            throw Problem(status: 503, title: "Ending", detail: "the daemon is ending, and explains nothing any more")
        }
        return try answer.get()
    }

    // MARK: - Metrics

    package func metricsText() async -> String {
        let counters = await running?.counters() ?? CounterValues()
        let (core, disk, sink) = (parts.core, parts.disk, parts.sink)
        var gauges = [
            Gauge("drydock_memory_entries", "Keys in the memory tier.") { core.memory.statistics.objects },
            Gauge("drydock_memory_bytes", "Bytes that the memory tier holds.") { core.memory.statistics.bytes },
            Gauge("drydock_memory_evictions_total", "Responses that made room for others.", isCounter: true) {
                core.memory.statistics.evictions
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
            Gauge("drydock_log_dropped_total", "Buffers of access log lines that nobody took.", isCounter: true) {
                Int(clamping: sink.droppedBuffers)
            },
            Gauge("drydock_offline", "1 while nobody is asked.") { core.isOffline ? 1 : 0 },
            Gauge("drydock_clock_ahead_seconds", "How far the daemon's clock has been moved ahead.") {
                Int(core.clock.ahead)
            },
        ]
        if let disk {
            gauges += [
                Gauge("drydock_disk_entries", "Files of the disk tier.") { disk.statistics.objects },
                Gauge("drydock_disk_bytes", "Bytes that the disk tier holds.") { Int(clamping: disk.statistics.bytes) },
                Gauge("drydock_disk_evictions_total", "Files that made room for others.", isCounter: true) {
                    disk.statistics.evictions
                },
                Gauge("drydock_disk_damaged_total", "Files that did not match their checksums.", isCounter: true) {
                    disk.statistics.damaged
                },
            ]
        }
        return MetricsText.render(counters, gauges: gauges)
    }
}
