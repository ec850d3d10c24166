// Builds a daemon from its configuration, in an order in which nothing is visible before all of it works.

internal import CacheStore
internal import Configuration
internal import DownloadCore
internal import EventLoop
internal import Glibc
package import Logging
internal import ProxyServer
internal import Synchronization
internal import Upstream

/// What a daemon is made of before it listens, and keeps as long as it lives.
struct DaemonParts: Sendable {
    let source: ConfigurationSource
    let environment: [String: String]
    let logger: Logger
    let level: LogLevel
    let loops: LoopGroup
    let files: IOPool
    let names: IOPool
    let core: DownloadCore
    let disk: DiskTier?
    let registry: PlanRegistry
    let sink: AccessLogSink
}

extension Daemon {
    /// Reads the configuration, opens the tiers, binds the sockets, and serves.
    /// - Parameters:
    ///   - watchesSignals: SIGTERM and SIGINT end ``runUntilStopped()``, SIGHUP reloads; for the process that is the daemon.
    ///   - makeLogger: makes the daemon's log at a level that reloads change.
    /// - Throws: `DaemonError`; nothing is left behind then.
    package static func start(
        _ source: ConfigurationSource,
        environment: [String: String],
        watchesSignals: Bool = false,
        makeLogger: (LogLevel) -> Logger = { level in
            Logger(label: "drydock") { StandardErrorLog(label: $0, level: level) }
        }
    ) async throws(DaemonError) -> Daemon {
        if watchesSignals { ProcessMemory.keepSome() }
        let configuration = try source.load(environment: environment)
        let level = LogLevel(configuration.log.level)
        let logger = makeLogger(level)
        let registry = PlanRegistry()
        let files: IOPool
        do { files = try IOPool(threads: 4, name: "files") } catch { throw .start("\(error)") }
        var isStarted = false
        defer { if !isStarted { files.stop() } }
        let plan = try compile(configuration, registry, seedOpener(files, logger))
        SignalWatch.ignoreBrokenPipes()
        let sockets = try bind(configuration, environment: environment)
        let parts: DaemonParts
        do throws(DaemonError) {
            parts = try await makeParts(source, environment, logger, level, configuration, registry, files)
        } catch {
            for socket in sockets.proxy + sockets.admin { socket.discard() }
            throw error
        }
        isStarted = true
        plan.takeEffect()
        let daemon = Daemon(parts: parts, configuration: configuration, plan: plan)
        // Before anybody is told that the daemon is there: who knows may send a signal.
        if watchesSignals { await daemon.watchSignals(on: parts.loops.loops[0]) }
        await daemon.serve(sockets.proxy, sockets.admin)
        return daemon
    }

    private static func bind(
        _ configuration: Configuration,
        environment: [String: String]
    ) throws(DaemonError) -> (proxy: [ListeningSocket], admin: [ListeningSocket]) {
        let passed = ServiceManagerNotifier.passedSockets(environment: environment)
        do throws(SystemError) {
            let proxy = passed.isEmpty ? try ListeningSet.bind(configuration.listen) : passed
            do throws(SystemError) {
                guard let admin = configuration.admin else { return (proxy, []) }
                return (proxy, try ListeningSet.bind(admin.listen, mode: admin.mode, group: admin.group))
            } catch {
                for socket in proxy { socket.discard() }
                throw error
            }
        } catch {
            throw .start("\(error); \(advice(error.code))")
        }
    }

    /// What to do about an address that cannot be listened on.
    private static func advice(_ code: Int32) -> String {
        switch code {
        case EADDRINUSE: "something listens there already: end it, or change the address"
        case EADDRNOTAVAIL: "this machine has no such address; change it"
        case EACCES, EPERM: "this user may not; change the address, or the owner or the permissions of its folder"
        default: "change the address"
        }
    }

    private static func makeParts(
        _ source: ConfigurationSource,
        _ environment: [String: String],
        _ logger: Logger,
        _ level: LogLevel,
        _ configuration: Configuration,
        _ registry: PlanRegistry,
        _ files: IOPool
    ) async throws(DaemonError) -> DaemonParts {
        // What has been started, to be ended where the rest fails; the last first.
        var undo: [() -> Void] = []
        do {
            let names = try IOPool(threads: 4, name: "names")
            undo.append { names.stop() }
            let memory = configuration.cache.memory
            var disk: DiskTier?
            var diskMaxObject = 0
            if let tier = configuration.cache.disk {
                let limits = DiskLimits(
                    size: Int64(tier.size),
                    maxObject: Int64(tier.maxObject),
                    minFree: Int64(tier.minFree)
                )
                disk = try await DiskTier.open(path: tier.path, limits: limits, pool: files) { trouble in
                    logger.warning("\(trouble)")
                }
                diskMaxObject = tier.maxObject
                undo.append { [disk] in disk?.close() }
            }
            let core = DownloadCore(
                cacheName: configuration.name,
                memory: MemoryTier(
                    size: memory.size,
                    objects: memory.objects,
                    maxObject: memory.maxObject,
                    pins: disk?.generations.pins ?? Pins()
                ),
                memoryMaxObject: memory.maxObject,
                disk: disk,
                diskMaxObject: diskMaxObject,
                budget: FillBudget(),
                clock: WallClock()
            ) { report in
                switch report {
                case .unexpected: logger.warning("\(report.text)")
                case .abandoned: logger.debug("\(report.text)")
                }
            }
            let loops = try LoopGroup.start(count: configuration.loops)
            undo.append { loops.stop() }
            return DaemonParts(
                source: source,
                environment: environment,
                logger: logger,
                level: level,
                loops: loops,
                files: files,
                names: names,
                core: core,
                disk: disk,
                registry: registry,
                sink: try AccessLogSink(configuration.log, pool: files)
            )
        } catch {
            for step in undo.reversed() { step() }
            throw .start("\(error)")
        }
    }

    private func serve(_ proxy: [ListeningSocket], _ admin: [ListeningSocket]) async {
        let (configuration, plan) = state.withLock { ($0.configuration, $0.plan) }
        let logger = parts.logger
        let proxyParts = ProxyParts(
            plan: plan,
            core: parts.core,
            resolver: Resolver(pool: parts.names),
            listeners: proxy.map(\.address),
            adminListeners: admin.map(\.address)
        )
        let settings = ServerSettings(configuration)
        let server = await Server(proxyParts, loops: parts.loops, settings: settings, sink: parts.sink) {
            logger.warning("\($0); trying again in 100 ms")
        }
        parts.core.storedFileTroubles.listen { logger.warning("\($0)") }
        switchOffline(configuration.offline)
        adopt(server)
        await jobCenter.start(server.batchResolver)
        if !admin.isEmpty {
            await server.setHandler(for: .admin) { [self] context, loop in
                AdminHandler(routes: adminRoutes)
            }
        }
        if let disk = parts.disk { await diskWatch.start(disk, on: parts.loops.loops[0]) }
        memoryGuard.start(
            parts.core.memory,
            MemoryPressure(environment: parts.environment),
            parts.files,
            on: parts.loops.loops[0],
            logger
        ) { [weak self] in
            self?.state.withLock { !$0.isStopping && $0.configuration.cache.memory.pressure == .shed } ?? false
        }
        for socket in admin { await server.listen(on: socket, role: .admin) }
        for socket in proxy { await server.listen(on: socket, role: .proxy) }
        logger.info("\(statusLine)")
        tellSeeds(plan)
        schedules.update(schedulePlans(configuration))
        notifier.ready(statusLine)
    }
}
