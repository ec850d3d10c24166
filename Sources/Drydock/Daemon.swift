// The daemon as one thing: built from a configuration, reloaded, drained.

internal import CacheStore
internal import Configuration
internal import DownloadCore
internal import EventLoop
internal import Glibc
internal import Logging
internal import ProxyServer
internal import Synchronization
internal import Upstream

/// A running daemon.
///
/// Sendable: what changes is under a mutex, loop-bound parts are in boxes.
public final class Daemon: Sendable {
    struct State {
        var configuration: Configuration
        var plan: RoutePlan
        var isStopping = false
    }

    let parts: DaemonParts
    let notifier: ServiceManagerNotifier
    let startedAt = Monotonic.now()
    let state: Mutex<State>
    let ended = EndRequest()
    let diskWatch = DiskWatch()
    let memoryGuard = MemoryGuard()
    let jobCenter: JobCenter
    let schedules: Schedules
    private let reloading = Mutex(())
    private let server = Mutex<Server?>(nil)

    init(parts: DaemonParts, configuration: Configuration, plan: RoutePlan) {
        self.parts = parts
        notifier = ServiceManagerNotifier(environment: parts.environment)
        jobCenter = JobCenter(
            loops: parts.loops,
            core: parts.core,
            files: parts.files,
            logger: parts.logger,
            folder: configuration.cache.disk.map { "\($0.path)/jobs" }
        )
        schedules = Schedules(on: parts.loops.loops[0])
        state = Mutex(State(configuration: configuration, plan: plan))
    }

    var running: Server? { server.withLock { $0 } }

    func adopt(_ server: Server) { self.server.withLock { $0 = server } }

    /// The addresses that clients connect to.
    package var addresses: [String] { running?.addresses(.proxy).map(\.description) ?? [] }

    // MARK: - Reload

    /// Reads the configuration again and takes it over, for every request that begins from now on; those under way
    /// finish on the old one.
    /// - Throws: `DaemonError`; the old configuration stays in force, and nothing has changed.
    package func reloadConfiguration() async throws(DaemonError) {
        if state.withLock({ $0.isStopping }) {
            throw .start("the daemon is ending, and takes no configuration any more")
        }
        notifier.reloading()
        defer { if !state.withLock({ $0.isStopping }) { notifier.ready(statusLine) } }
        do throws(DaemonError) {
            // The admin API asks on a loop, where no file may be read and no other reload waited for.
            let result = await withUnsafeContinuation {
                (waiter: UnsafeContinuation<Result<Void, DaemonError>, Never>) in
                parts.files.submit { [self] in
                    waiter.resume(returning: Result { () throws(DaemonError) in try readAnew() })
                }
            }
            try result.get()
            // Each loop takes jobs in their order: once all have counted, all have the new plan.
            _ = await running?.counters()
            parts.logger.info(
                "configuration reloaded",
                metadata: ["services": "\(state.withLock { $0.plan.services.count })"]
            )
        } catch {
            parts.logger.error("reload refused, the old configuration stays in force: \(error)")
            throw error
        }
    }

    /// One reload at a time: the file that was read last is the one in force. On an I/O thread.
    private func readAnew() throws(DaemonError) {
        try reloading.withLock { _ throws(DaemonError) in
            try takeOver(try parts.source.load(environment: parts.environment))
        }
    }

    private func takeOver(_ configuration: Configuration) throws(DaemonError) {
        let old = state.withLock { $0.configuration }
        let differences = configuration.restartOnlyDifferences(from: old)
        guard differences.isEmpty else {
            throw .needsRestart(differences.map(\.description).joined(separator: "\n"))
        }
        let plan = try Self.compile(configuration, parts.registry, Self.seedOpener(parts.files, parts.logger))
        do throws(SystemError) {
            try parts.sink.update(configuration.log)
        } catch {
            throw .configuration(
                "log.access: \(error); name a file in a folder that exists and that the daemon may write"
            )
        }
        plan.takeEffect()
        let wasAhead = state.withLock { state in
            state.configuration = configuration
            state.plan = plan
            defer { if !configuration.clock.movable { parts.core.clock.reset() } }
            return !configuration.clock.movable && parts.core.clock.ahead != 0
        }
        if wasAhead { parts.logger.notice("clock set back, the configuration does not allow to move it any more") }
        switchOffline(configuration.offline)
        running?.forEachHandler(of: .proxy) { handler, _ in (handler as? ProxyHandler)?.update(plan) }
        tellSeeds(plan)
        running?.update(ServerSettings(configuration))
        schedules.update(schedulePlans(configuration))
        parts.level.set(configuration.log.level)
    }

    static func compile(
        _ configuration: Configuration,
        _ registry: PlanRegistry,
        _ seeds: SeedOpener
    ) throws(DaemonError) -> RoutePlan {
        do {
            return try RoutePlan.compile(configuration, registry: registry, seeds: seeds)
        } catch {
            throw .configuration("\(error)")
        }
    }

    var statusLine: String {
        let count = state.withLock { $0.plan.services.count }
        return "serving on \(addresses.joined(separator: ", ")) with \(count) service\(count == 1 ? "" : "s")"
    }

    // MARK: - The end

    /// Stops accepting, finishes the answers under way within the configured time, writes what is to be written, and
    /// ends all threads. Later calls do nothing.
    package func stop() async {
        let grace: UInt64? = state.withLock { state in
            if state.isStopping { return nil }
            state.isStopping = true
            return state.configuration.shutdown
        }
        guard let grace else { return }
        notifier.stopping()
        parts.logger.info("stopping")
        memoryGuard.stop()
        // Before the transfers are cut: what is under way goes on after the next start.
        _ = try? await parts.files.run { [jobCenter] in jobCenter.stop() }
        schedules.update([])
        await running?.drain(grace: grace)
        await parts.sink.drain()
        server.withLock { $0 = nil }
        await diskWatch.stop(on: parts.loops.loops[0])
        // Whatever still runs on a loop ends with its loop; file work that is queued is finished.
        let parts = parts
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            Thread.run {
                parts.loops.stop()
                parts.disk?.close()
                parts.files.stop()
                parts.names.stop()
                done.resume()
            }
        }
        parts.logger.info("stopped")
    }
}
