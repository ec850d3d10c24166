// A reload: it reads the configuration again, and puts it in force in every part of a running daemon, or in none.

import Configuration
import DownloadCore
import EventLoop
import Files
import Logging
import Plans
import ProxyServer
import ServiceCore
import Synchronization

/// What a reload has changed.
struct ReloadOutcome: Sendable {
    /// The number of changes of demo mode that ended by it.
    let endedDemoChanges: Int
    /// What differs from the configuration before, a line each.
    let changes: [String]
}

/// Reloads the configuration of a running daemon.
///
/// Sendable: one reload at a time has the mutex; the parts that it changes protect themselves.
final class Reloader: Sendable {
    private let context: DaemonContext
    private let notifier: ServiceManagerNotifier
    private let record: ReloadRecord
    private let seeds: SeedService
    private let switches: OperatorSwitches
    private let schedules: DaemonSchedules
    private let spans: SpanSender
    private let watcher: FileWatcher
    /// True if the files of the configuration are watched, and not only the files that answers are made of.
    private let watchesConfiguration: Bool
    /// True after a changed file of the configuration was refused.
    private let wasRefused = Mutex(false)
    /// Lets one reload run at a time, as a whole and on I/O threads: the configuration that was read last is the one in
    /// force.
    private let reloading = Mutex(())

    init(
        _ context: DaemonContext,
        notifier: ServiceManagerNotifier,
        record: ReloadRecord,
        seeds: SeedService,
        switches: OperatorSwitches,
        schedules: DaemonSchedules,
        spans: SpanSender,
        watcher: FileWatcher,
        watchesConfiguration: Bool
    ) {
        self.context = context
        self.notifier = notifier
        self.record = record
        self.seeds = seeds
        self.switches = switches
        self.schedules = schedules
        self.spans = spans
        self.watcher = watcher
        self.watchesConfiguration = watchesConfiguration
    }

    /// Reads the configuration again and puts it in force for every request that begins from now on; requests under way
    /// finish on the old one.
    /// The log, the service manager's status and the metrics tell what became of it.
    /// - Throws: `DaemonError`; the old configuration stays in force, and nothing has changed.
    @discardableResult func reload() async throws(DaemonError) -> ReloadOutcome {
        if context.isStopping { throw .start("the daemon is ending, and takes no configuration any more") }
        notifier.reloading()
        defer { if !context.isStopping { notifier.ready(record.status(context.statusLine)) } }
        let parts = context.parts
        do throws(DaemonError) {
            // The admin API calls this on a loop, which must not read files or wait for another reload.
            let result = await withUnsafeContinuation {
                (waiter: UnsafeContinuation<Result<ReloadOutcome, DaemonError>, Never>) in
                parts.files.submit { [self] in
                    waiter.resume(returning: Result { () throws(DaemonError) in try readAgain() })
                }
            }
            let outcome = try result.get()
            // A loop takes its jobs in their order: once all loops have counted, all have the new plan.
            await context.untilLoopsTurned()
            letGo()
            record.accept(.configuration)
            parts.logger.info("configuration reloaded", metadata: ["services": "\(context.plan.services.count)"])
            let ended = outcome.endedDemoChanges
            if ended > 0 { parts.logger.notice("\(ended) changes of demo mode ended by the reload") }
            return outcome
        } catch {
            letGo()
            record.refuse(.configuration, error)
            parts.logger.error("reload refused, the old configuration stays in force: \(error)")
            throw error
        }
    }

    /// Releases the runtime state of services that are in no plan in force any more.
    private func letGo() {
        let (plan, keepsLatencies) = context.state.withLock { ($0.plan, $0.configuration.learnedLatencies != nil) }
        context.parts.compiler.registry.keep(only: plan, keepsLatencies: keepsLatencies)
    }

    /// Opens the file of the access log again, on an I/O thread: after a rotation it is another one. It waits for a reload
    /// under way, which may name another file. If the file cannot be opened, lines go on to the one that is open.
    func reopenAccessLog() {
        let parts = context.parts
        parts.files.submit { [self] in
            reloading.withLock { _ in
                let log = context.state.withLock { $0.configuration.log }
                do throws(SystemError) {
                    try parts.sink.update(AccessLogSettings(log))
                    parts.logger.info("access log opened again")
                } catch {
                    parts.logger.error(
                        "access log not opened again, lines go to the old file: \(Remedies.accessLog(error, log.access))"
                    )
                }
            }
        }
    }

    /// Loads the configuration and puts it in force. On an I/O thread.
    private func readAgain() throws(DaemonError) -> ReloadOutcome {
        let (before, outcome) = try reloading.withLock { _ throws(DaemonError) in
            let configuration = try context.parts.source.loadAgain(environment: context.parts.environment)
            let changes = configuration.changes(since: context.configuration)
            let (before, ended) = try putInForce(configuration)
            return (before, ReloadOutcome(endedDemoChanges: ended, changes: changes))
        }
        // The old plan is released without any mutex: its release may run code of any module.
        withExtendedLifetime(before) {}
        return outcome
    }

    /// Puts a configuration in force.
    /// - Returns: the plan that was in force before, and how many changes of demo mode ended.
    private func putInForce(_ configuration: Configuration) throws(DaemonError) -> (before: RoutePlan, ended: Int) {
        let parts = context.parts
        let differences = RestartDifference.all(in: configuration, since: context.configuration)
        guard differences.isEmpty else {
            throw .needsRestart(differences.map(\.description).joined(separator: "\n"))
        }
        let watched = watchedFiles(configuration)
        let signatures = FileSignature.all(of: watched)
        let plan = try parts.compiler.compile(configuration)
        let security = try parts.security.prepare(configuration)
        do throws(SystemError) {
            try parts.sink.update(AccessLogSettings(parts.logSettings.changed(configuration.log)))
        } catch {
            throw .configuration(Remedies.accessLog(error, configuration.log.access))
        }
        plan.takeEffect()
        parts.security.use(security)
        parts.security.tunnels.forget()
        parts.security.listeners.use(plan)
        parts.compiler.latencyFile.follow()
        let names = Set(plan.services.map(\.plan.name))
        parts.compiler.registry.services.endParkedCalls(but: names, why: "a reload has removed its service")
        let (wasAhead, before, demo) = context.state.withLock { state in
            let (before, demo) = (state.plan, state.demo)
            state.configuration = configuration
            state.plan = plan
            state.demo = DemoOverlay()
            defer { if !configuration.clock.movable { parts.core.clock.reset() } }
            return (!configuration.clock.movable && parts.core.clock.ahead != 0, before, demo)
        }
        if wasAhead { parts.logger.notice("clock set back, the configuration does not allow to move it any more") }
        switches.switchOffline(configuration.offline)
        // The settings come before the handlers, which look only once whether requests are logged, recorded and traced.
        parts.logSettings.set(configuration.log)
        parts.journal.update(JournalSettings(configuration.journal), now: EventHub.wallTime())
        spans.update(TracingSettings(configuration.tracing))
        context.server?.forEachHandler { handler, _ in handler.update(plan) }
        seeds.use(plan)
        context.server?.update(ServerSettings(configuration))
        schedules.update(configuration)
        watcher.follow(watched, signatures)
        context.logWarnings(of: configuration)
        return (before, demo.changes.count)
    }

    // MARK: - Changes of the log

    /// Lets every loop look again whether requests are traced, and returns when all have.
    func renewTraces() async {
        if context.isStopping { return }
        await withUnsafeContinuation { (waiter: UnsafeContinuation<Void, Never>) in
            context.parts.files.submit { [self] in
                reloading.withLock { _ in
                    let (parts, plan) = (context.parts, context.plan)
                    parts.sink.pass(ids: AccessLogSettings(parts.logSettings.inForce).passesIDs)
                    context.server?.forEachHandler { handler, _ in handler.update(plan) }
                }
                waiter.resume()
            }
        }
        await context.untilLoopsTurned()
    }

    // MARK: - Changes of demo mode

    /// Puts the configuration in force again with other changes of demo mode; returns when every loop answers by it.
    /// - Parameters:
    ///   - renews: services that stay as they were are made anew, too.
    ///   - change: changes the overlay, or refuses to; called on an I/O thread, while no reload is under way.
    /// - Throws: the refusal, or an error if a demo file cannot be read; nothing has changed then.
    func change(
        renews: Bool = false,
        _ change: @escaping @Sendable (inout DemoOverlay, Configuration) -> Problem?
    ) async throws(Problem) {
        if context.isStopping {
            throw Problem(status: 503, title: "Ending", detail: "the daemon is ending, and changes nothing any more")
        }
        let result = await withUnsafeContinuation { (waiter: UnsafeContinuation<Result<Void, Problem>, Never>) in
            context.parts.files.submit { [self] in
                waiter.resume(returning: Result { () throws(Problem) in try changeDemo(renews, change) })
            }
        }
        try result.get()
        // A loop takes its jobs in their order: once all loops have counted, all have the new plan.
        await context.untilLoopsTurned()
    }

    /// Makes the plan with changed demo answers, and puts it in force. On an I/O thread.
    private func changeDemo(
        _ renews: Bool,
        _ change: (inout DemoOverlay, Configuration) -> Problem?
    ) throws(Problem) {
        let before = try reloading.withLock { _ throws(Problem) in
            let parts = context.parts
            let (configuration, old, overlay) = context.state.withLock { ($0.configuration, $0.plan, $0.demo) }
            var changed = overlay
            if let problem = change(&changed, configuration) { throw problem }
            let now = overlay.applied(to: configuration)
            let next = changed.applied(to: configuration)
            // A service that stays as it is keeps its route, so that its demo files and seeds are not read again.
            let same = Set(zip(now.services, next.services).filter { $0 == $1 }.map(\.0.name))
            let plan: RoutePlan
            do throws(DaemonError) {
                plan = try parts.compiler.compile(
                    next,
                    keepsLastFiles: true,
                    keeping: renews ? [] : old.services.filter { same.contains($0.plan.name) }
                )
            } catch {
                throw Problem(status: 409, title: "Demo answers not readable", detail: error.description)
            }
            plan.takeEffect()
            context.state.withLock { state in
                state.plan = plan
                state.demo = changed
            }
            context.server?.forEachHandler { handler, _ in handler.update(plan) }
            seeds.use(plan)
            return old
        }
        // The old plan is released without any mutex: its release may run code of any module.
        withExtendedLifetime(before) {}
    }

    // MARK: - Files that change

    /// The files that are watched for changes.
    func watchedFiles(_ configuration: Configuration) -> [String] {
        watchesConfiguration ? configuration.files : configuration.answerFiles
    }

    /// Reads changed files again: the whole configuration if one of its own files is among them, else only the files
    /// that answers are made of. On an I/O thread.
    func filesChanged(_ paths: [String]) {
        let answers = Set(context.configuration.answerFiles)
        // A configuration that was refused may be valid together with this change.
        guard paths.allSatisfy(answers.contains), !wasRefused.withLock({ $0 }) else {
            Task { await reloadChanged() }
            return
        }
        if context.isStopping { return }
        let logger = context.parts.logger
        do throws(DaemonError) {
            let before = try reloading.withLock { _ throws(DaemonError) in try putAnswersInForce() }
            withExtendedLifetime(before) {}
            record.accept(.answers)
            logger.info("answers read again", metadata: ["files": "\(paths.joined(separator: ", "))"])
        } catch {
            record.refuse(.answers, error)
            logger.error("changed files refused, answers stay as they were: \(error)")
        }
        if !context.isStopping { notifier.status(record.status(context.statusLine)) }
    }

    private func reloadChanged() async {
        do throws(DaemonError) {
            try await reload()
            wasRefused.withLock { $0 = false }
        } catch {
            // The error is dropped here: the reload has logged it.
            wasRefused.withLock { $0 = true }
        }
    }

    /// Reads the files again that answers are made of, and puts the plan with them in force.
    /// - Returns: the plan that was in force before.
    private func putAnswersInForce() throws(DaemonError) -> RoutePlan {
        let (configuration, overlay) = context.state.withLock { ($0.configuration, $0.demo) }
        let plan = try context.parts.compiler.compile(overlay.applied(to: configuration), keepsLastFiles: true)
        context.parts.security.use(try context.parts.security.prepare(configuration))
        plan.takeEffect()
        let before = context.state.withLock { state in
            let before = state.plan
            state.plan = plan
            return before
        }
        context.server?.forEachHandler { handler, _ in handler.update(plan) }
        seeds.use(plan)
        return before
    }
}
