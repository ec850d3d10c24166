// What a download manager runs on, made at first use and ended once: loops, tiers, the download core, a client for each
// loop, and the sources that a download asks.

import CacheStore
import Content
import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPCaching
import HTTPWire
import Logging
import Policies
import ServiceCore
import Synchronization
import Upstream

/// Sendable: its members are; clients are in boxes of their loops.
final class DownloadEngine: Sendable {
    let configuration: DownloadConfiguration
    private let runtime: CacheRuntime
    private let watch = TierWatch()
    let telemetry: Telemetry
    /// The folder of seeds as it was last looked at.
    private let seeds: Mutex<SeedFolder?>
    private let clients: [LoopBox<UpstreamClient>]
    let service: ServicePlan
    /// What the requests to all origins have in common: their queue, their breakers, the budget of their retries.
    let admission: ServiceRuntime
    /// What the program has said about origins; nil where it is not asked.
    let decisions: ChallengeDecisions?
    /// Whom questions are asked for: credentials and cookies.
    let identities: StoreIdentities
    /// Gives memory back by itself; nil where it does not, and at the end.
    private let relief: Mutex<MemoryWatcher.Member?>

    private init(
        _ configuration: DownloadConfiguration,
        runtime: CacheRuntime,
        seed: SeedFolder?,
        telemetry: Telemetry,
        clients: [LoopBox<UpstreamClient>],
        identities: StoreIdentities,
        relief: MemoryWatcher.Member?,
        _ logger: Logger
    ) {
        self.configuration = configuration
        self.identities = identities
        self.relief = Mutex(relief)
        self.runtime = runtime
        self.telemetry = telemetry
        seeds = Mutex(seed)
        self.clients = clients
        decisions = configuration.tls.onChallenge.map { ChallengeDecisions($0) }
        service = Self.plan(configuration, configuration.tls.upstream)
        let limits = service.admission
        admission = ServiceRuntime(
            name: configuration.name,
            limits: limits,
            onReport: { [name = configuration.name] report in
                if case .retryRefused = report { telemetry.countRefusedRetry() }
                logger.log(level: report.isWarning ? .warning : .info, "\(report.text(service: name))")
            }
        )
    }

    /// How origins are asked.
    static func plan(_ configuration: DownloadConfiguration, _ tls: TLSOptions) -> ServicePlan {
        ServicePlan(
            name: configuration.name,
            origin: nil,
            request: RequestPlan(timeouts: configuration.timeouts.upstream),
            tls: tls,
            admission: AdmissionLimits(
                concurrent: configuration.maximumFetches.map { max(1, $0) },
                queueLength: 1_000_000,
                wait: .max
            ),
            breaker: configuration.breaker?.bounded
        )
    }

    /// Opens the tiers and starts the threads.
    /// - Parameters:
    ///   - calls: what the disk tier does to its files.
    ///   - interval: nanoseconds between two looks at what the file system has left.
    ///   - telemetry: what downloads are observed with.
    ///   - watcher: says when the system is short of memory.
    /// - Throws: `DownloadError.unavailable`; nothing is left behind then.
    static func open(
        _ configuration: DownloadConfiguration,
        _ logger: Logger,
        calls: FileCalls = .real,
        interval: UInt64 = TierWatch.interval,
        telemetry: Telemetry = .ofProgram,
        watcher: MemoryWatcher = .shared
    ) async throws(DownloadError) -> DownloadEngine {
        do {
            let threads = try CacheThreads.start(loops: max(1, configuration.threads), nameThreads: 2)
            do {
                let table =
                    try configuration.credentials.isEmpty
                    ? nil : CredentialTable(configuration.credentials) { logger.warning("\($0)") }
                return try await open(
                    configuration,
                    logger,
                    telemetry,
                    on: threads,
                    calls: calls,
                    interval: interval,
                    table,
                    watcher
                )
            } catch {
                threads.stop()
                throw error
            }
        } catch {
            throw .unavailable(ProgramWords.told("the download manager cannot be opened: \(error)"))
        }
    }

    /// - Throws: why a part cannot be had; nothing but the threads is left behind then.
    private static func open(
        _ configuration: DownloadConfiguration,
        _ logger: Logger,
        _ telemetry: Telemetry,
        on threads: CacheThreads,
        calls: FileCalls,
        interval: UInt64,
        _ table: CredentialTable?,
        _ watcher: MemoryWatcher
    ) async throws -> DownloadEngine {
        let (runtime, configuration) = try await openCache(configuration, logger, on: threads, calls: calls)
        let memory = configuration.memoryLimits
        let seed: SeedFolder?
        let identities: StoreIdentities
        do {
            let (seeds, files) = (configuration.seeds, threads.files)
            seed = try await files.run { try seeds?.open(files) { logger.warning("\($0)") } }
            identities = try await files.run { [clock = runtime.core.clock] in
                StoreIdentities(
                    configuration,
                    secret: StoreIdentities.secret(ofFolder: try configuration.disk?.path),
                    table,
                    try configuration.cookies.open(files, now: clock.now) { logger.warning("\($0)") }
                )
            }
        } catch {
            runtime.core.store.close()
            throw error
        }
        SignalWatch.ignoreBrokenPipes()
        let resolver = Resolver(pool: threads.names)
        var clients: [LoopBox<UpstreamClient>] = []
        for loop in threads.loops.loops { clients.append(await makeClient(on: loop, resolver)) }
        let engine = DownloadEngine(
            configuration,
            runtime: runtime,
            seed: seed,
            telemetry: telemetry,
            clients: clients,
            identities: identities,
            relief: memory.givesWayUnderPressure && memory.size > 0 ? relief(of: runtime.core, watcher, logger) : nil,
            logger
        )
        if runtime.core.store.hasTiersBehind {
            await engine.watch.start(every: interval, on: threads.loops.loops[0]) { [core = runtime.core] in
                core.store.tend()
            }
        }
        return engine
    }

    /// Opens the tiers. Where nobody has named a folder, and the usual one cannot be had, memory has to do: the folder
    /// belongs to another process, there is no home, or the disk cannot be written.
    /// - Returns: with the configuration as it is in force.
    /// - Throws: why the folder that is named cannot be had.
    private static func openCache(
        _ configuration: DownloadConfiguration,
        _ logger: Logger,
        on threads: CacheThreads,
        calls: FileCalls
    ) async throws -> (CacheRuntime, DownloadConfiguration) {
        do {
            let memory = configuration.memoryLimits
            let limits = CacheLimits(
                memorySize: memory.size,
                memoryObjects: memory.count,
                memoryMaxObject: memory.maximumEntrySize,
                disk: try configuration.disk?.limits(calls: calls)
            )
            let runtime = try await CacheRuntime.open(
                name: configuration.name,
                limits,
                on: threads,
                onTrouble: { logger.warning("\($0)") },
                report: { logger.log(level: $0.level, "\($0.text)") }
            )
            return (runtime, configuration)
        } catch  where configuration.disk.map({ $0.folder == nil }) ?? false {
            logger.warning(
                "nothing is kept on disk, and what is kept in memory goes with the process: \(error); to keep it, name a folder that no other process uses in DownloadConfiguration.disk.folder"
            )
            var configuration = configuration
            configuration.disk = nil
            return try await openCache(configuration, logger, on: threads, calls: calls)
        }
    }

    private static func relief(
        of core: DownloadCore,
        _ watcher: MemoryWatcher,
        _ logger: Logger
    ) -> MemoryWatcher.Member {
        watcher.add { [weak core] reason in
            guard let core, core.store.statistics.memory.bytes > 0 else { return }
            let shed = core.memory.shed(MemoryPressure.share)
            logger.notice(
                "memory given back, \(reason)",
                metadata: ["evicted": "\(shed)", "left": "\(core.store.statistics.memory.bytes)"]
            )
        }
    }

    /// A question as it is asked at this moment: with its credentials and cookies.
    func identified(_ question: DownloadRequest) -> DownloadRequest {
        identities.identified(question, now: core.clock.now())
    }

    private static func makeClient(on loop: isolated EventLoop, _ resolver: Resolver) -> LoopBox<UpstreamClient> {
        LoopBox(on: loop) { loop in UpstreamClient(on: loop, resolver: resolver) }
    }

    var seed: SeedFolder? { seeds.withLock { $0 } }

    /// Takes another look at the folder of seeds for the one in use.
    func use(_ folder: SeedFolder) { seeds.withLock { $0 = folder } }

    var core: DownloadCore { runtime.core }
    var files: IOPool { runtime.threads.files }
    private var loops: LoopGroup { runtime.threads.loops }

    /// Nanoseconds that the engine's end waits for what is being written.
    private static let timeout: UInt64 = 30_000_000_000

    /// Ends the transfers under way, stores the bodies that have come whole, and ends every thread. Called when no task
    /// waits for the engine any more, and from a task that cannot be cancelled: a cancelled one would not wait for what
    /// is being written.
    func stop() async {
        let relief = relief.exchange(nil)
        withExtendedLifetime(relief) {}
        loops.loops[0].submit { [watch] loop in watch.stop(on: loop) }
        for client in clients {
            client.loop.submit { loop in client.take(on: loop)?.shutdown() }
        }
        // Those that wait for a further attempt, or for the program.
        _ = core.housekeeping.cancel { _ in true }
        // Bodies that are whole are being written now; all others have just failed.
        await core.settle(timeout: Self.timeout, on: loops.leastBusy)
        await DetachedThread.wait { [self] in runtime.stop() }
    }

    /// The loop with the fewest downloads.
    func chooseLoop() -> EventLoop { loops.leastBusy }

    /// What carries requests on a loop; nil where the engine has ended.
    func client(on loop: isolated EventLoop) -> UpstreamClient? {
        clients.first { $0.loop === loop }?.value(on: loop)
    }

    /// Asks the core what a question is about, on one of the engine's loops; nil where the engine has ended.
    /// - Parameters:
    ///   - upload: the content of a question that is passed on; nil where it has none.
    ///   - meter: told what of the content is sent; nil: nobody is.
    ///   - onRefusal: told where the budget of retries had none left for it.
    func answer(
        _ ask: CacheRequest,
        to question: DownloadRequest,
        _ upload: Upload? = nil,
        _ meter: UploadMeter? = nil,
        onRefusal: @escaping () -> Void,
        on loop: isolated EventLoop
    ) async -> Answer? {
        guard let source = source(of: question, ask.policy, meter, onRefusal, on: loop) else { return nil }
        guard question.isPassed else { return await core.answer(ask, from: source, on: loop) }
        return await pass(question, ask, upload, from: source, on: loop)
    }

    /// Not inlined, as the next one, so that a call that waits elsewhere has no frame of it.
    @inline(never)
    private func pass(
        _ question: DownloadRequest,
        _ ask: CacheRequest,
        _ upload: Upload?,
        from source: any FetchSource,
        on loop: isolated EventLoop
    ) async -> Answer {
        await core.pass(question.passed(ask, upload, on: loop), from: source, on: loop)
    }
}
