// What a download manager runs on: loops, tiers, the download core, a client for each loop; made at first use, ended once.

internal import CacheStore
internal import DownloadCore
internal import EventLoop
internal import Logging
internal import ServiceCore
internal import Upstream

/// Sendable: its members are; clients are in boxes of their loops.
final class DownloadEngine: Sendable {
    let configuration: DownloadManager.Configuration
    let core: DownloadCore
    let files: IOPool
    private let names: IOPool
    private let loops: LoopGroup
    private let watch = TierWatch()
    let seed: SeedFolder?
    private let clients: [LoopBox<UpstreamClient>]
    private let service: ServicePlan
    private let runtime: ServiceRuntime

    private init(
        _ configuration: DownloadManager.Configuration,
        core: DownloadCore,
        files: IOPool,
        names: IOPool,
        loops: LoopGroup,
        seed: SeedFolder?,
        clients: [LoopBox<UpstreamClient>]
    ) {
        self.configuration = configuration
        self.core = core
        self.files = files
        self.names = names
        self.loops = loops
        self.seed = seed
        self.clients = clients
        let limits = AdmissionLimits(concurrent: configuration.maximumFetches, queueLength: 1_000_000, wait: .max)
        service = ServicePlan(
            name: configuration.name,
            origin: nil,
            request: RequestPlan(timeouts: configuration.timeouts.upstream),
            tls: configuration.tls.upstream,
            admission: limits
        )
        runtime = ServiceRuntime(name: configuration.name, limits: limits)
    }

    /// Opens the tiers and starts the threads.
    /// - Parameters:
    ///   - calls: what the disk tier does to its files.
    ///   - interval: nanoseconds between two looks at what the file system has left.
    /// - Throws: `DownloadError.unavailable`; nothing is left behind then.
    static func open(
        _ configuration: DownloadManager.Configuration,
        _ logger: Logger,
        calls: FileCalls = .real,
        interval: UInt64 = TierWatch.interval
    ) async throws(DownloadError) -> DownloadEngine {
        // What has been started, to be ended where the rest fails; the last first.
        var undo: [() -> Void] = []
        do {
            let files = try IOPool(threads: 4, name: "files")
            undo.append { files.stop() }
            let names = try IOPool(threads: 2, name: "names")
            undo.append { names.stop() }
            let disk = try await configuration.disk?.open(files, calls: calls) { logger.warning("\($0)") }
            undo.append { [disk] in disk?.close() }
            let seeds = configuration.seeds
            let seed = try await files.run { try seeds?.open(files) { logger.warning("\($0)") } }
            let memory = configuration.memory ?? DownloadManager.MemoryLimits(size: 0, count: 0, largest: 0)
            let core = DownloadCore(
                cacheName: configuration.name,
                memory: MemoryTier(size: memory.size, objects: memory.count, maxObject: memory.largest),
                memoryMaxObject: memory.largest,
                behind: disk.map { [$0] } ?? [],
                diskMaxObject: Int(clamping: configuration.disk.map { $0.largest ?? $0.size } ?? 0),
                budget: FillBudget(maxObject: memory.largest),
                clock: WallClock(),
                report: { logger.log(level: $0.level, "\($0.text)") }
            )
            let loops = try LoopGroup.start(count: max(1, configuration.threads))
            undo.append { loops.stop() }
            SignalWatch.ignoreBrokenPipes()
            let resolver = Resolver(pool: names)
            var clients: [LoopBox<UpstreamClient>] = []
            for loop in loops.loops { clients.append(await makeClient(on: loop, resolver)) }
            let engine = DownloadEngine(
                configuration,
                core: core,
                files: files,
                names: names,
                loops: loops,
                seed: seed,
                clients: clients
            )
            if core.hasTiersBehind {
                await engine.watch.start(every: interval, on: loops.loops[0]) { core.tend() }
            }
            return engine
        } catch {
            for step in undo.reversed() { step() }
            throw .unavailable("the download manager cannot be opened: \(error)")
        }
    }

    private static func makeClient(on loop: isolated EventLoop, _ resolver: Resolver) -> LoopBox<UpstreamClient> {
        LoopBox(on: loop) { loop in UpstreamClient(on: loop, resolver: resolver) }
    }

    /// Nanoseconds that the engine's end waits for what is being written.
    private static let patience: UInt64 = 30_000_000_000

    /// Ends the transfers under way, writes what has come whole, and ends every thread. Nobody may wait for the engine any more,
    /// and the task may not be cancelled.
    func stop() async {
        loops.loops[0].submit { [watch] loop in watch.stop(on: loop) }
        for client in clients {
            client.loop.submit { loop in client.take(on: loop)?.shutdown() }
        }
        // What is whole is being written; what is not has just failed.
        await core.settle(patience: Self.patience, on: loops.leastBusy)
        await DetachedThread.wait { [self] in
            loops.stop()
            core.closeStore()
            files.stop()
            names.stop()
        }
    }

    /// The loop with the fewest downloads.
    func chooseLoop() -> EventLoop { loops.leastBusy }

    /// Requests that were sent to origins, checks among them.
    var fetchCount: Int { runtime.fetchCount }

    /// Asks the core what a question is about, on one of the engine's loops; nil where the engine has ended.
    func answer(_ ask: CacheAsk, to question: DownloadQuestion, on loop: isolated EventLoop) async -> Answer? {
        guard let source = source(for: question, on: loop) else { return nil }
        return await core.answer(ask, from: source, on: loop)
    }

    /// Nil where the engine has ended.
    func source(for question: DownloadQuestion, on loop: isolated EventLoop) -> (any FetchSource)? {
        guard let box = clients.first(where: { $0.loop === loop }), let client = box.value(on: loop) else { return nil }
        if question.options.onlyStored { return UnaskedSource() }
        let (service, runtime) = (service, runtime)
        return RedirectSource(
            question.origin,
            limit: configuration.maximumRedirects,
            isStandard: configuration.mode == .standard
        ) { origin in
            OriginSource(service: service, origin: origin, plan: service.request, runtime: runtime, client: client)
        }
    }
}
