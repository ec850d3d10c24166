// The daemon as a whole: the order in which its parts start and end.

import CacheStore
import Configuration
import DownloadCore
import EventLoop
import Glibc
import Logging
import Plans
import Policies
import ProxyServer
import ServiceCore
import Synchronization

/// A running daemon: its context, its features, and their order at the start and at the end.
///
/// Sendable: its members are; loop-bound parts are in boxes.
package final class Daemon: Sendable {
    let context: DaemonContext
    let notifier: ServiceManagerNotifier
    let ended = EndRequest()
    let descriptors: DescriptorStore
    let handovers: HandoverService
    let tierWatch = TierWatch()
    let memoryGuard = MemoryGuard()
    let adminSockets: AdminSocketKeeper
    let jobCenter: JobCenter
    let seeds: SeedService
    let switches: OperatorSwitches
    let schedules: DaemonSchedules
    let demo: DemoControl
    let latencies: LatencyKeeper
    let watchdog: Watchdog
    let watcher: FileWatcher
    let spans: SpanSender
    let reloader: Reloader
    private let logControl: LogControl
    let metrics: DaemonMetrics
    /// The features in the order in which the admin API lists their paths.
    private let features: [any DaemonFeature]
    /// True if the process exists for this daemon only, and ends with it.
    let ownsProcess: Bool

    /// - Parameter watchesConfiguration: a changed file of the configuration is read again by itself.
    init(_ context: DaemonContext, ownsProcess: Bool, watchesConfiguration: Bool) {
        let parts = context.parts
        self.context = context
        self.ownsProcess = ownsProcess
        notifier = ServiceManagerNotifier(environment: parts.environment)
        descriptors = DescriptorStore(
            environment: parts.environment,
            notifier: notifier,
            tickets: parts.security.listeners.tickets
        )
        handovers = HandoverService(
            context,
            ended: ended,
            obstacle: Self.obstacle(parts.source, ownsProcess: ownsProcess, isStored: descriptors.isThere)
        )
        adminSockets = AdminSocketKeeper(parts)
        jobCenter = JobCenter(
            loops: parts.loops,
            core: parts.core,
            files: parts.files,
            logger: parts.log(.batch),
            tier: context.configuration.cache.disk?.path
        )
        let stored = StoredEntries(context)
        let purges = PurgeService(context, stored: stored)
        seeds = SeedService(context, stored: stored)
        switches = OperatorSwitches(context)
        let groups = GroupService(context, jobs: jobCenter)
        latencies = LatencyKeeper(parts)
        schedules = DaemonSchedules(
            on: parts.loops.loops[0],
            purges: purges,
            jobs: jobCenter,
            groups: groups,
            latencies: latencies
        )
        watchdog = Watchdog(parts, notifier: notifier, ownsProcess: ownsProcess)
        watcher = FileWatcher(pool: parts.files, logger: parts.logger)
        spans = SpanSender(parts.spans, instance: context.configuration.name, logger: parts.logger)
        let record = ReloadRecord()
        reloader = Reloader(
            context,
            notifier: notifier,
            record: record,
            seeds: seeds,
            switches: switches,
            schedules: schedules,
            spans: spans,
            watcher: watcher,
            watchesConfiguration: watchesConfiguration
        )
        let parking = ParkingControl(context)
        let events = EventFeed(context)
        let journal = JournalFeed(context)
        let traffic = TrafficFeed(context)
        demo = DemoControl(context, reloader: reloader)
        logControl = LogControl(context, reloader: reloader)
        var measured: [any DaemonFeature] = [
            ProcessMetrics(), record, StoreGauges(core: parts.core, sink: parts.sink), seeds, memoryGuard,
            ServiceGauges(context), parts.security.listeners, parts.security.tunnels, parking,
            events, traffic, journal, demo, latencies, jobCenter, purges, spans,
            watchdog,
        ]
        if parts.core.store.statistics[.disk] != nil { measured.append(DiskGauges(core: parts.core)) }
        metrics = DaemonMetrics(context, watch: watchdog.watch, features: measured)
        let control = DaemonControl(
            context,
            stored: stored,
            switches: switches,
            reloader: reloader,
            record: record,
            metrics: metrics,
            watch: watchdog.watch
        )
        features = [
            control, handovers, logControl, FetchCanceller(context), events, traffic, journal, demo, parking, seeds,
            RecordingService(context),
            jobCenter, groups, purges,
        ]
    }

    /// Why a daemon is never handed over; nil if it may be.
    private static func obstacle(_ source: ConfigurationSource, ownsProcess: Bool, isStored: Bool) -> String? {
        if !ownsProcess { return "it is a part of another program, which has to end it" }
        if isStored { return "systemd runs it: 'systemctl restart' refuses no connection either" }
        // It begins again if the next daemon dies.
        return source.isStandardInput ? "its configuration came from standard input, and cannot be read again" : nil
    }

    /// The routes of the admin API, of all features.
    var adminRoutes: [AdminRoute] { features.flatMap(\.routes) }
    /// The routes for monitors, which change nothing.
    var monitorRoutes: [AdminRoute] {
        adminRoutes.filter { [.metrics, .health, .readiness].contains($0.path) }
    }

    /// The addresses that clients connect to.
    package var addresses: [String] { context.addresses }

    /// Reads the configuration again and puts it in force for every request that begins from now on; requests under way
    /// finish on the old one.
    /// - Throws: `DaemonError`; the old configuration stays in force, and nothing has changed.
    package func reloadConfiguration() async throws(DaemonError) { try await reloader.reload() }

    /// Serves until SIGTERM or SIGINT, or until another daemon takes over, then drains; returns when everything has ended.
    /// - Returns: what begins the daemon again; nil unless one that was taking over has ended before it served.
    package func runUntilStopped() async -> ProcessAgain? {
        let reason = await withUnsafeContinuation { ended.wait($0) }
        let signal: Int32? = if case .signal(let signal) = reason { signal } else { nil }
        // A signal may come in the middle of a take-over: one that the next daemon has agreed to goes on.
        guard let handover = handovers.close() else {
            if let signal { await stop(signal) }
            return nil
        }
        await stop(signal, for: handover)
        if ended.isSignalled { return nil }
        if await handover.outcome() { return nil }
        context.parts.logger.error("the daemon that was taking over has ended before it served: this one begins again")
        return ProcessAgain(sockets: handover.sockets, ticketKeys: handover.ticketKeys)
    }

    /// Stops accepting, finishes the answers under way within the configured time, writes the jobs and the access log,
    /// and ends all threads. Later calls do nothing.
    package func stop() async { await stop(nil) }

    /// Nanoseconds for which connections may bring one more request, where the next process has the sockets.
    private static let patience: UInt64 = 250_000_000

    /// Waits until no request is under way that may change what is stored; those whose clients have left end by themselves.
    private func untilUnchanging() async {
        let core = context.parts.core
        for _ in 0..<200 where core.housekeeping.isChanging {
            try? await context.parts.loops.loops[0].sleep(nanoseconds: 5_000_000)
        }
    }

    /// - Parameters:
    ///   - signal: the signal that asked for it, nil for none; a second signal ends the process at once, and the log says
    ///     so.
    ///   - handover: the daemon that takes over; nil if none does.
    private func stop(_ signal: Int32?, for handover: Handover? = nil) async {
        let grace: UInt64? = context.state.withLock { state in
            if state.isStopping { return nil }
            state.isStopping = true
            return state.configuration.shutdown
        }
        guard let grace else { return }
        let parts = context.parts
        // The next process has the sockets: who connects waits for it.
        let isSucceeded = handover != nil || descriptors.isThere
        notifier.stopping()
        parts.logger.info("stopping")
        if ownsProcess { watchdog.expectEnd(within: grace.addingReportingOverflow(Self.patience).partialValue) }
        memoryGuard.stop()
        adminSockets.stop()
        descriptors.leaveKeys()
        // Jobs are written before transfers are cut, so that unfinished ones go on after the next start. They are
        // written on a thread of their own, so that a stalled I/O pool delays no client's answer.
        await DetachedThread.wait { [jobCenter, latencies] in
            jobCenter.stop()
            latencies.stop()
        }
        schedules.stop()
        demo.stop()
        logControl.stop()
        parts.compiler.registry.services.endParkedCalls(why: "the daemon ends")
        // Event streams end now, so that the drain does not wait for their clients.
        parts.compiler.registry.services.events.end()
        parts.journal.stop()
        context.server?.traffic.end()
        let began = Monotonic.now()
        if isSucceeded {
            await context.server?.quiesce(patience: Self.patience, keepsFiles: true)
        }
        if let handover {
            await context.server?.settle(grace: grace)
            await untilUnchanging()
            await DetachedThread.wait { parts.core.store.close() }
            handover.letGo()
        }
        let report = EndReport(logger: parts.logger)
        let spent = handover == nil ? 0 : min(grace, Monotonic.now() - began)
        let left = grace - spent
        let cut =
            await context.server?.drain(grace: left) { report.waiting(for: $0, grace: left, signal: signal) } ?? []
        report.cut(cut)
        watchdog.clientsAreServed()
        await parts.sink.drain()
        await spans.stop()
        if ownsProcess { ended.unwatchSignals() }
        context.replaceServer(with: nil)
        await tierWatch.stop(on: parts.loops.loops[0])
        await watcher.stop(on: parts.loops.loops[0])
        watchdog.leaveOutLoops()
        await DetachedThread.wait { parts.runtime.stop() }
        watchdog.stop()
        parts.logger.info("stopped")
    }
}

struct EndReport: Sendable {
    let logger: Logger

    /// Logs which answers the end waits for, and how long it waits.
    /// - Parameters:
    ///   - grace: nanoseconds until they are cut off.
    ///   - signal: the signal that asked for the end; nil if none did.
    func waiting(for waited: [WaitedFor], grace: UInt64, signal: Int32?) {
        guard !waited.isEmpty else { return }
        let seconds = Int64(clamping: grace / 1_000_000_000)
        let (end, isLate) = Int64(time(nil)).addingReportingOverflow(seconds)
        let until = isLate ? "" : ", until \(Timestamp.text(end)) at the latest ('shutdown' sets how long)"
        let again =
            signal.map { "; \($0 == SIGINT ? "a second Ctrl-C" : "a second signal") ends the daemon at once" } ?? ""
        logger.notice("waiting for \(WaitedFor.summary(waited))\(until)\(again)")
        for one in waited.prefix(Self.mostLines) { logger.info("waiting for \(one)") }
    }

    /// Logs which clients did not get the whole of their answer.
    func cut(_ cut: [WaitedFor]) {
        for one in cut.prefix(Self.mostLines) { logger.warning("cut off: \(one)") }
        if cut.count > Self.mostLines { logger.warning("cut off: \(cut.count - Self.mostLines) more") }
    }

    /// The number of lines about single clients that ``waiting(for:grace:signal:)`` and ``cut(_:)`` each log at most.
    private static let mostLines = 20
}
