// Builds a daemon from its configuration, in an order in which nothing is visible before all of it works.

internal import CacheStore
internal import Configuration
internal import DownloadCore
internal import EventLoop
internal import Files
internal import Glibc
package import Logging
internal import ProxyServer
internal import ServiceCore
internal import Synchronization
internal import Upstream

/// What a daemon is made of before it listens, and keeps as long as it lives.
struct DaemonParts: Sendable {
    let source: ConfigurationSource
    let environment: [String: String]
    let logger: Logger
    let logSettings: LogSettings
    let loops: LoopGroup
    let files: IOPool
    let names: IOPool
    let core: DownloadCore
    let registry: PlanRegistry
    let sink: AccessLogSink
}

extension Daemon {
    /// Reads the configuration, opens the tiers, binds the sockets, and serves.
    /// - Parameters:
    ///   - watchesSignals: SIGTERM and SIGINT end ``runUntilStopped()``, SIGHUP reloads; for the process that is the daemon.
    ///   - makeLogger: makes the daemon's log, by settings that reloads change.
    /// - Throws: `DaemonError`; nothing is left behind then.
    package static func start(
        _ source: ConfigurationSource,
        environment: [String: String],
        watchesSignals: Bool = false,
        makeLogger: (LogSettings) -> Logger = { settings in
            Logger(label: "drydock") { StandardErrorLog(label: $0, settings: settings) }
        }
    ) async throws(DaemonError) -> Daemon {
        if watchesSignals { ProcessMemory.keepSome() }
        let configuration = try source.load(environment: environment)
        let logSettings = LogSettings(configuration.log)
        let logger = makeLogger(logSettings)
        let registry = PlanRegistry()
        log(registry.services, to: logger)
        let files: IOPool
        do { files = try IOPool(threads: 4, name: "files") } catch { throw .start("\(error)") }
        var isStarted = false
        var group: LoopGroup?
        defer {
            if !isStarted {
                group?.stop()
                files.stop()
            }
        }
        let plan = try compile(configuration, registry, seedOpener(files, logger))
        SignalWatch.ignoreBrokenPipes()
        // Before the sockets, which may lie in the folder, too.
        if let tier = configuration.cache.disk {
            do {
                let remark = try await files.run { try DiskTier.claim(path: tier.path, kind: .shared) }
                if let remark { logger.notice("\(remark)") }
            } catch {
                throw .start(told(error, configuration) + source.storeAdvice)
            }
        }
        let loops: LoopGroup
        do { loops = try LoopGroup.start(count: configuration.loops) } catch { throw .start("\(error)") }
        group = loops
        let reloads = ReloadRequests()
        if watchesSignals { await reloads.watch(on: loops.loops[0]) }
        let sockets = try bind(configuration, environment: environment, ownsProcess: watchesSignals)
        let parts: DaemonParts
        do throws(DaemonError) {
            parts = try await makeParts(source, environment, logger, logSettings, configuration, registry, files, loops)
        } catch {
            sockets.discard()
            throw error
        }
        isStarted = true
        plan.takeEffect()
        let daemon = Daemon(parts: parts, configuration: configuration, plan: plan, ownsProcess: watchesSignals)
        // Before anybody is told that the daemon is there: who knows may send a signal.
        if watchesSignals { await daemon.watchSignals(on: parts.loops.loops[0]) }
        await daemon.serve(sockets)
        daemon.hear(reloads)
        return daemon
    }

    private static func makeParts(
        _ source: ConfigurationSource,
        _ environment: [String: String],
        _ logger: Logger,
        _ logSettings: LogSettings,
        _ configuration: Configuration,
        _ registry: PlanRegistry,
        _ files: IOPool,
        _ loops: LoopGroup
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
                disk = try await DiskTier.open(path: tier.path, limits: limits, kind: .shared, pool: files) { trouble in
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
                behind: disk.map { [$0] } ?? [],
                diskMaxObject: diskMaxObject,
                budget: FillBudget(maxObject: memory.maxObject),
                clock: WallClock()
            ) { report in
                logger.log(level: report.level, "\(report.text)")
            }
            return DaemonParts(
                source: source,
                environment: environment,
                logger: logger,
                logSettings: logSettings,
                loops: loops,
                files: files,
                names: names,
                core: core,
                registry: registry,
                sink: try AccessLogSink(configuration.log, pool: files)
            )
        } catch {
            for step in undo.reversed() { step() }
            let advice = error is DiskTierError ? source.storeAdvice : ""
            throw .start(told(error, configuration) + advice)
        }
    }

    /// Why a part could not be made.
    private static func told(_ error: any Error, _ configuration: Configuration) -> String {
        switch (error, configuration.cache.disk) {
        case (DiskTierError.folder(let failure), let tier?): Remedies.cacheFolder(failure, tier.path)
        case (let failure as SystemError, _) where failure.operation.hasPrefix("open the access log"):
            Remedies.accessLog(failure, configuration.log.access)
        default: "\(error)"
        }
    }

    private func serve(_ sockets: DaemonSockets) async {
        let (proxy, admin) = (sockets.proxy, sockets.admin)
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
        let server = await Server(
            proxyParts,
            loops: parts.loops,
            settings: settings,
            sink: parts.sink,
            daemonLog: ServerLog(logger)
        ) {
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
        if parts.core.hasTiersBehind {
            await tierWatch.start(on: parts.loops.loops[0]) { [core = parts.core] in core.tend() }
        }
        memoryGuard.start(
            parts.core,
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
        tellPlaces(sockets)
        tellSeeds(plan)
        schedules.update(schedulePlans(configuration))
        guardian.start()
        notifier.ready(statusLine)
    }
}
