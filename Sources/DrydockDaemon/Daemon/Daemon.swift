// The daemon as one thing: built from a configuration, reloaded, drained.

internal import CacheStore
internal import Configuration
internal import DownloadCore
internal import EventLoop
internal import Glibc
internal import Logging
internal import ProxyServer
internal import ServiceCore
internal import Synchronization
internal import Upstream

/// A running daemon.
///
/// Sendable: what changes is under a mutex, loop-bound parts are in boxes.
package final class Daemon: Sendable {
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
    let tierWatch = TierWatch()
    let memoryGuard = MemoryGuard()
    let jobCenter: JobCenter
    let schedules: Schedules
    let guardian: Guardian
    /// The process is this daemon's, and ends with it.
    private let ownsProcess: Bool
    private let reloading = Mutex(())
    private let server = Mutex<Server?>(nil)

    init(parts: DaemonParts, configuration: Configuration, plan: RoutePlan, ownsProcess: Bool) {
        self.parts = parts
        self.ownsProcess = ownsProcess
        notifier = ServiceManagerNotifier(environment: parts.environment)
        jobCenter = JobCenter(
            loops: parts.loops,
            core: parts.core,
            files: parts.files,
            logger: parts.logger,
            folder: configuration.cache.disk.map { "\($0.path)/jobs" }
        )
        schedules = Schedules(on: parts.loops.loops[0])
        guardian = Self.makeGuardian(parts, notifier, ownsProcess: ownsProcess)
        state = Mutex(State(configuration: configuration, plan: plan))
    }

    var running: Server? { server.withLock { $0 } }

    func adopt(_ server: Server) { self.server.exchange(server) }

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
            try takeOver(try parts.source.loadAgain(environment: parts.environment))
        }
    }

    private func takeOver(_ configuration: Configuration) throws(DaemonError) {
        let old = state.withLock { $0.configuration }
        let differences = RestartDifference.all(in: configuration, since: old)
        guard differences.isEmpty else {
            throw .needsRestart(differences.map(\.description).joined(separator: "\n"))
        }
        let plan = try Self.compile(configuration, parts.registry, Self.seedOpener(parts.files, parts.logger))
        do throws(SystemError) {
            try parts.sink.update(configuration.log)
        } catch {
            throw .configuration(Remedies.accessLog(error, configuration.log.access))
        }
        plan.takeEffect()
        // The old plan is let go of without the mutex: nobody knows what all it holds.
        let (wasAhead, before) = state.withLock { state in
            let before = (state.configuration, state.plan)
            state.configuration = configuration
            state.plan = plan
            defer { if !configuration.clock.movable { parts.core.clock.reset() } }
            return (!configuration.clock.movable && parts.core.clock.ahead != 0, before)
        }
        defer { withExtendedLifetime(before) {} }
        if wasAhead { parts.logger.notice("clock set back, the configuration does not allow to move it any more") }
        switchOffline(configuration.offline)
        // Before the handlers: they ask once whether requests are told of.
        parts.logSettings.set(configuration.log)
        running?.forEachHandler(of: .proxy) { handler, _ in (handler as? ProxyHandler)?.update(plan) }
        tellSeeds(plan)
        running?.update(ServerSettings(configuration))
        schedules.update(schedulePlans(configuration))
        tellWarnings(configuration)
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
        let (count, configuration) = state.withLock { ($0.plan.services.count, $0.configuration) }
        let places = addresses.joined(separator: ", ")
        guard let file = parts.source.name(configuration) else {
            let origin = if case .origin(let url)? = configuration.services.first?.baseURL { " \(url)" } else { "" }
            return "serving\(origin) on \(places), without a configuration file"
        }
        return "serving on \(places) with \(count) service\(count == 1 ? "" : "s"), configuration \(file)"
    }

    // MARK: - The end

    /// Stops accepting, finishes the answers under way within the configured time, writes what is to be written, and
    /// ends all threads. Later calls do nothing.
    /// - Parameter signal: what has asked for it; a second one ends the process at once, and the log says so.
    package func stop(_ signal: Int32? = nil) async {
        let grace: UInt64? = state.withLock { state in
            if state.isStopping { return nil }
            state.isStopping = true
            return state.configuration.shutdown
        }
        guard let grace else { return }
        notifier.stopping()
        parts.logger.info("stopping")
        if ownsProcess { guardian.expectEnd(within: grace) }
        memoryGuard.stop()
        // Before the transfers are cut: what is under way goes on after the next start. On a thread of its own, so that a pool
        // that stands still keeps no client from its answer.
        await DetachedThread.wait { [jobCenter] in jobCenter.stop() }
        schedules.update([])
        let cut = await running?.drain(grace: grace) { [self] in tellWaiting($0, grace: grace, signal) } ?? []
        tellCut(cut)
        guardian.clientsAreServed()
        await parts.sink.drain()
        server.exchange(nil)
        await tierWatch.stop(on: parts.loops.loops[0])
        // Whatever still runs on a loop ends with its loop; file work that is queued is finished.
        let parts = parts
        guardian.leaveOutLoops()
        await DetachedThread.wait {
            parts.loops.stop()
            parts.core.closeStore()
            parts.files.stop()
            parts.names.stop()
        }
        guardian.stop()
        parts.logger.info("stopped")
    }
}
