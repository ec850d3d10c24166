// The start of a daemon: its parts are made in an order in which nothing is visible before all of it works.

import CacheStore
import Configuration
import DiskStore
import DownloadCore
import EventLoop
import Files
import Glibc
package import Logging
import Plans
import Policies
import ProxyServer
import ServiceCore
import Synchronization
import TLS
import Upstream

/// The values that are known at the start before the first thread runs.
private struct Beginning {
    let source: ConfigurationSource
    let environment: [String: String]
    let configuration: Configuration
    let logger: Logger
    let logSettings: LogSettings
    /// True if the process exists for this daemon only; its signals are the daemon's then.
    let ownsProcess: Bool
    let watchesConfiguration: Bool
    /// Whether the sockets and the store of a running daemon are taken over.
    let takesOver: Bool
    /// The signatures of the configuration's files, taken before the files that answers are made of are read: a change
    /// after that is noticed.
    let signatures: [String: FileSignature]
}

extension Daemon {
    /// Reads the configuration, opens the tiers, binds the sockets, and serves.
    /// - Parameters:
    ///   - watchesSignals: SIGTERM and SIGINT end ``runUntilStopped()``, SIGHUP reloads, and SIGUSR1 opens the access log
    ///     again; true for the process that is the daemon.
    ///   - watchesConfiguration: a changed file of the configuration is read again by itself; the files that answers
    ///     are made of always are.
    ///   - takesOver: takes over from the daemon that runs at the admin address of the configuration, if there is one; see
    ///     ``TakeOver``.
    ///   - makeLogger: makes the daemon's log, with settings that reloads change.
    /// - Throws: `DaemonError`; nothing is left behind then.
    package static func start(
        _ source: ConfigurationSource,
        environment: [String: String],
        watchesSignals: Bool = false,
        watchesConfiguration: Bool = false,
        takesOver: Bool = false,
        makeLogger: (LogSettings) -> Logger = { settings in
            Logger(label: "drydock") { StandardErrorLog(label: $0, settings: settings) }
        }
    ) async throws(DaemonError) -> Daemon {
        if watchesSignals {
            ProcessMemory.keepSome()
            DescriptorLimit.raise()
        }
        let configuration = try source.load(environment: environment)
        let logSettings = LogSettings(
            configuration.log,
            hasPriorities: StandardErrorLog.isRead(byJournalOf: environment)
        )
        let beginning = Beginning(
            source: source,
            environment: environment,
            configuration: configuration,
            logger: makeLogger(logSettings),
            logSettings: logSettings,
            ownsProcess: watchesSignals,
            watchesConfiguration: watchesConfiguration,
            takesOver: takesOver,
            signatures: FileSignature.all(of: configuration.files)
        )
        let threads: CacheThreads
        do { threads = try .start(loops: configuration.loops, nameThreads: 4) } catch { throw .start("\(error)") }
        do throws(DaemonError) {
            return try await start(beginning, on: threads)
        } catch {
            threads.stop()
            throw error
        }
    }

    /// Starts everything but the threads.
    /// - Throws: `DaemonError`; nothing but the threads is left behind then.
    private static func start(_ beginning: Beginning, on threads: CacheThreads) async throws(DaemonError) -> Daemon {
        let (configuration, logger) = (beginning.configuration, beginning.logger)
        let compiler = DaemonCompiler(files: threads.files, logger: logger)
        ServiceGauges.log(compiler.registry.services, to: logger.of(.service))
        let plan = try compiler.compile(configuration)
        let security = DaemonSecurity(
            environment: beginning.environment,
            made: beginning.source.makesAuthority ? logger.of(.tls) : nil
        )
        security.use(try security.prepare(configuration))
        SignalWatch.ignoreBrokenPipes()
        // The folder of the disk tier is claimed before the sockets are bound, which may lie in it.
        if let tier = configuration.cache.disk {
            do {
                let remark = try await threads.files.run { try DiskTier.claim(path: tier.path, kind: .shared) }
                if let remark { logger.of(.store).notice("\(remark)") }
            } catch {
                throw .start(reason(error, configuration) + beginning.source.storeAdvice)
            }
        }
        let (reloads, reopenings) = (SignalRequests(SIGHUP), SignalRequests(SIGUSR1))
        if beginning.ownsProcess {
            for requests in [reloads, reopenings] { await requests.watch(on: threads.loops.loops[0]) }
        }
        let predecessor = try await predecessor(beginning)
        let sockets: DaemonSockets
        do throws(DaemonError) {
            sockets = try DaemonSockets.bind(
                configuration,
                environment: beginning.environment,
                ownsProcess: beginning.ownsProcess,
                inherited: predecessor?.sockets ?? []
            )
        } catch {
            predecessor?.giveUp()
            throw error
        }
        let parts: DaemonParts
        do throws(DaemonError) {
            if !security.listeners.isReady, sockets.schemes.values.contains(where: { $0 != .http }) {
                throw .start(
                    "systemd passed a socket at which clients speak TLS, and 'tls' says with which certificate; write tls: local, or tls: { certificate: ./server.pem, key: ./server.key }"
                )
            }
            if let predecessor {
                // All that can be known before is right: from here on the old daemon ends.
                security.listeners.tickets.adopt(predecessor.ticketKeys)
                logger.info(
                    "taking over from process \(predecessor.pid), version \(predecessor.version): it finishes what may change its store"
                )
                try await blocking { () throws(DaemonError) in try predecessor.letGo() }
            }
            parts = try await makeParts(beginning, compiler, security, on: threads)
        } catch {
            sockets.discard()
            predecessor?.giveUp()
            throw error
        }
        plan.takeEffect()
        compiler.latencyFile.follow()
        let context = DaemonContext(parts: parts, configuration: configuration, plan: plan)
        let daemon = Daemon(
            context,
            ownsProcess: beginning.ownsProcess,
            watchesConfiguration: beginning.watchesConfiguration
        )
        daemon.watcher.follow(daemon.reloader.watchedFiles(configuration), beginning.signatures)
        // The signals are watched before a log line or a port shows that the daemon is there: a signal may follow at
        // once.
        if beginning.ownsProcess { await daemon.ended.watchSignals(on: threads.loops.loops[0]) }
        daemon.descriptors.takeKeys(beginning.environment)
        await daemon.serve(sockets.succeeding())
        predecessor?.succeeded()
        reloads.hear { [weak daemon] in
            guard let daemon else { return }
            // The error is dropped here: the reload logs why it was refused.
            Task { try? await daemon.reloadConfiguration() }
        }
        reopenings.hear { [weak daemon] in daemon?.reloader.reopenAccessLog() }
        return daemon
    }

    /// The daemon to take over from; nil if none is meant, or none runs.
    private static func predecessor(_ beginning: Beginning) async throws(DaemonError) -> Predecessor? {
        guard beginning.takesOver else { return nil }
        let (configuration, environment) = (beginning.configuration, beginning.environment)
        let found = try await blocking { () throws(DaemonError) in
            try Predecessor.find(configuration, environment: environment)
        }
        if found == nil { beginning.logger.notice("no daemon to take over from: this one starts as the first") }
        return found
    }

    /// Runs what blocks on a thread of its own.
    private static func blocking<Value: Sendable>(
        _ work: @escaping @Sendable () throws(DaemonError) -> Value
    ) async throws(DaemonError) -> Value {
        do { return try await DetachedThread.result(of: work) } catch {
            throw error as? DaemonError ?? .start("\(error)")
        }
    }

    private static func makeParts(
        _ beginning: Beginning,
        _ compiler: DaemonCompiler,
        _ security: DaemonSecurity,
        on threads: CacheThreads
    ) async throws(DaemonError) -> DaemonParts {
        let (configuration, logger) = (beginning.configuration, beginning.logger)
        let storeLog = logger.of(.store)
        do {
            let runtime = try await CacheRuntime.open(
                name: configuration.name,
                CacheLimits(configuration),
                on: threads,
                onTrouble: { storeLog.warning("\($0)") },
                report: { storeLog.log(level: $0.level, "\($0.text)") }
            )
            compiler.prepareFolders(with: runtime.core)
            do {
                return DaemonParts(
                    source: beginning.source,
                    environment: beginning.environment,
                    logger: logger,
                    logSettings: beginning.logSettings,
                    runtime: runtime,
                    compiler: compiler,
                    security: security,
                    sink: try AccessLogSink(AccessLogSettings(configuration.log), pool: threads.files),
                    journal: Journal(JournalSettings(configuration.journal)),
                    spans: SpanQueue(TracingSettings(configuration.tracing))
                )
            } catch {
                runtime.core.store.close()
                throw error
            }
        } catch {
            let advice = error is DiskTierError ? beginning.source.storeAdvice : ""
            throw .start(reason(error, configuration) + advice)
        }
    }

    /// An error text for a part that could not be made, with advice.
    private static func reason(_ error: any Error, _ configuration: Configuration) -> String {
        switch (error, configuration.cache.disk) {
        case (DiskTierError.folder(let failure), let tier?): Remedies.cacheFolder(failure, tier.path)
        case (let failure as SystemError, _) where failure.operation.hasPrefix("open the access log"):
            Remedies.accessLog(failure, configuration.log.access)
        default: "\(error)"
        }
    }

    /// Starts the server and the features, and opens the sockets to clients when all of them run.
    private func serve(_ sockets: DaemonSockets) async {
        let (parts, loop) = (context.parts, context.parts.loops.loops[0])
        let (configuration, plan) = context.state.withLock { ($0.configuration, $0.plan) }
        let logger = parts.logger
        let resolver = Resolver(pool: parts.names)
        await spans.start(on: loop, resolver)
        let proxyParts = ProxyParts(
            plan: plan,
            core: parts.core,
            resolver: resolver,
            listeners: sockets.proxy.map(\.address),
            adminListeners: (sockets.admin + sockets.metrics).map(\.address),
            events: parts.compiler.registry.services.events,
            journal: parts.journal,
            spans: parts.spans,
            interception: parts.security.tunnels
        )
        let server = await Server(
            proxyParts,
            loops: parts.loops,
            settings: ServerSettings(configuration),
            sink: parts.sink,
            daemonLog: ServerLog(logger)
        )
        let storeLog = parts.log(.store)
        parts.core.store.troubles.listen { storeLog.warning("\($0)") }
        switches.switchOffline(configuration.offline)
        context.replaceServer(with: server)
        await jobCenter.start(server.batchResolver, server.batchFollower)
        if !sockets.admin.isEmpty {
            await server.setHandler(for: .admin) { [self] _, _ in AdminHandler(routes: adminRoutes) }
        }
        if !sockets.metrics.isEmpty {
            await server.setHandler(for: .metrics) { [self] _, _ in AdminHandler(routes: monitorRoutes) }
        }
        if parts.core.store.hasTiersBehind {
            await tierWatch.start(on: loop) { [core = parts.core] in core.store.tend() }
        }
        memoryGuard.start(
            parts.core,
            pressure: MemoryPressure(environment: parts.environment),
            pool: parts.files,
            on: loop,
            logger: storeLog,
            givesFreed: ownsProcess
        ) { [weak context] in
            context?.state.withLock { !$0.isStopping && $0.configuration.cache.memory.pressure == .shed } ?? false
        }
        // Plans and schedules are set before an admin request can ask for a reload, which would replace them.
        seeds.use(plan)
        schedules.update(configuration)
        await watcher.start(on: loop) { [weak reloader] in reloader?.filesChanged($0) }
        for socket in sockets.admin { await server.listen(on: socket, role: .admin) }
        for socket in sockets.metrics { await server.listen(on: socket, role: .metrics) }
        adminSockets.start(sockets, of: server, on: loop) { [descriptors] new, lost in
            descriptors.keep(new, insteadOf: lost, .admin)
        }
        parts.security.listeners.use(plan)
        context.state.withLock { state in
            for socket in sockets.proxy { state.schemes[socket.address] = sockets.schemes[socket.descriptor] }
        }
        for socket in sockets.proxy {
            let connections = parts.security.listeners.connections(sockets.schemes[socket.descriptor] ?? .http)
            await server.listen(on: socket, role: .proxy, connections: connections)
        }
        handovers.open()
        logger.info("\(context.statusLine)")
        sockets.log(for: configuration, to: logger)
        context.logWarnings(of: configuration)
        watchdog.start()
        descriptors.keep(sockets)
        notifier.ready(context.statusLine)
        Self.learnSending(server, logger)
    }

    /// Measures in the background whether sendfile or copies are cheaper; it takes some milliseconds, so the first
    /// requests do not wait for it.
    private static func learnSending(_ server: Server<ProxyHandler>, _ logger: Logger) {
        DetachedThread.run {
            do throws(SystemError) {
                let costs = try LoopbackSending.measure()
                server.send(by: costs)
                logger.debug(
                    """
                    large bodies in memory go to clients on this machine \(costs.prefersCopies ? "by copying" : "by sendfile"): \
                    \(LoopbackSending.length >> 10) KiB take \(costs.copied / 1000) µs of CPU copied, \
                    \(costs.sentAsFile / 1000) µs by sendfile
                    """
                )
            } catch {
                logger.debug("large bodies in memory go to clients on this machine by sendfile: \(error)")
            }
        }
    }
}

extension CacheLimits {
    fileprivate init(_ configuration: Configuration) {
        let memory = configuration.cache.memory
        let disk = configuration.cache.disk.map { tier in
            let limits = DiskLimits(
                size: Int64(tier.size),
                maxObject: Int64(tier.maxObject),
                minFree: Int64(tier.minFree)
            )
            return CacheLimits.Disk(path: tier.path, limits: limits, kind: .shared)
        }
        self.init(
            memorySize: memory.size,
            memoryObjects: memory.objects,
            memoryMaxObject: memory.maxObject,
            disk: disk
        )
    }
}
