// The state that the features of a daemon share: its parts, the plan in force, and the running server.

import CacheStore
import Configuration
import DownloadCore
import EventLoop
import Logging
import Plans
import Policies
import ProxyServer
import ServiceCore
import Synchronization

/// The parts of a daemon that are made before it listens; they stay the same until it has ended.
struct DaemonParts: Sendable {
    let source: ConfigurationSource
    let environment: [String: String]
    /// The log of the module `daemon`.
    let logger: Logger
    let logSettings: LogSettings
    let runtime: CacheRuntime
    let compiler: DaemonCompiler
    let security: DaemonSecurity
    let sink: AccessLogSink
    let journal: Journal
    /// The spans that wait to be sent.
    let spans: SpanQueue

    var loops: LoopGroup { runtime.threads.loops }
    var files: IOPool { runtime.threads.files }
    var names: IOPool { runtime.threads.names }
    var core: DownloadCore { runtime.core }

    /// The log of a module of the daemon.
    func log(_ module: LogModule) -> Logger { logger.of(module) }
}

/// Makes plans from configurations, at the start and at each reload.
struct DaemonCompiler: Sendable {
    let registry: PlanRegistry
    let latencyFile: LatencyFile
    private let seeds: SeedOpener
    private let logger: Logger

    /// - Parameter files: reads the seed folders; files that are left out of them are logged as warnings.
    init(files: IOPool, logger: Logger) {
        registry = PlanRegistry()
        latencyFile = LatencyFile(registry.latencies, logger: logger.of(.demo))
        let store = logger.of(.store)
        seeds = SeedOpener(pool: files) { store.warning("\($0)") }
        self.logger = logger
    }

    /// Marks the folder of the disk tier before recordings are made in it: recordings may lie in that folder.
    func prepareFolders(with core: DownloadCore) { seeds.folders.prepare { try? core.store.makeFoldersWhole() } }

    /// Makes the plan of a configuration. Blocks: it reads files and lists seed folders.
    /// - Parameters:
    ///   - keepsLastFiles: a file that cannot be read keeps its last content, and the log says so.
    ///   - kept: routes of services that are unchanged, and taken over as they are.
    /// - Throws: `DaemonError.configuration` with what the configuration asks for and cannot have.
    func compile(
        _ configuration: Configuration,
        keepsLastFiles: Bool = false,
        keeping kept: [ServiceRoute] = []
    ) throws(DaemonError) -> RoutePlan {
        latencyFile.prepare(configuration.learnedLatencies)
        let files = AnswerFiles(last: keepsLastFiles ? registry.files : nil)
        do {
            let plan = try RoutePlan.compile(
                configuration,
                registry: registry,
                files: files,
                keeping: kept,
                seeds: seeds
            )
            for trouble in files.troubles { logger.warning("\(trouble); it stays what it was") }
            if !kept.isEmpty { files.keep(registry.files) }
            registry.files = files
            tellNewLabels(configuration)
            return plan
        } catch {
            throw .configuration("\(error)")
        }
    }

    /// Logs once for each origin with learned latencies that nothing is known of its latency yet.
    private func tellNewLabels(_ configuration: Configuration) {
        for label in configuration.learnedLabels.sorted() where registry.latencies.isNew(label) {
            logger.of(.demo).notice("learning how long the origin of \(label) takes; nothing is known of it yet")
        }
    }
}

/// The context that every feature holds; no feature holds the daemon, so the daemon alone decides what starts and ends
/// when.
///
/// Sendable: the mutable state is under a mutex.
final class DaemonContext: Sendable {
    struct State {
        var configuration: Configuration
        /// The plan in force: that of the configuration, with the changes of demo mode.
        var plan: RoutePlan
        /// The changes that an operator has made to demo answers.
        var demo = DemoOverlay()
        var isStopping = false
        /// How clients speak at the daemon's addresses; plain where there is nothing.
        var schemes: [SocketAddress: ListenScheme] = [:]
    }

    let parts: DaemonParts
    let state: Mutex<State>
    private let running = Mutex<Server<ProxyHandler>?>(nil)

    init(parts: DaemonParts, configuration: Configuration, plan: RoutePlan) {
        self.parts = parts
        state = Mutex(State(configuration: configuration, plan: plan))
    }

    var configuration: Configuration { state.withLock { $0.configuration } }
    var plan: RoutePlan { state.withLock { $0.plan } }
    /// True once the daemon is ending; it takes no commands then.
    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Waits until every answer whose last byte has been sent is in the journal: it is recorded in the same turn of its
    /// loop.
    func untilRecorded() async { await untilLoopsTurned() }

    /// Waits until each loop has done the jobs that it had: a loop takes its jobs in their order.
    func untilLoopsTurned() async { _ = await server?.counters() }

    /// The server that runs; nil before the daemon listens, and after it has ended.
    var server: Server<ProxyHandler>? { running.withLock { $0 } }

    /// Replaces the running server by another one; nil ends it.
    func replaceServer(with server: Server<ProxyHandler>?) { running.exchange(server) }

    /// The addresses that clients connect to, after `https://` or `any://` where they do not speak plain.
    var addresses: [String] {
        let schemes = state.withLock { $0.schemes }
        return (server?.addresses(.proxy) ?? []).map { address in
            guard let scheme = schemes[address], scheme != .http else { return "\(address)" }
            return "\(scheme.rawValue)://\(address)"
        }
    }

    /// Explains how a request would be answered, without sending or changing anything.
    /// - Throws: the refusal of the request, or a 503 if the daemon is ending.
    func explain(_ question: RequestQuestion) async throws(Problem) -> RequestExplanation {
        guard let answer = await server?.explain(question) else {
            throw Problem(status: 503, title: "Ending", detail: "the daemon is ending, and explains nothing any more")
        }
        return try answer.get()
    }

    /// One line for the log and the service manager: addresses, number of services, configuration.
    var statusLine: String {
        let (count, configuration) = state.withLock { ($0.plan.services.count, $0.configuration) }
        let listening = addresses.joined(separator: ", ")
        guard let file = parts.source.name(configuration) else {
            let origin = if case .origin(let url)? = configuration.services.first?.baseURL { " \(url)" } else { "" }
            return "serving\(origin) on \(listening), without a configuration file"
        }
        return "serving on \(listening) with \(BatchProgress.count(count, "service")), configuration \(file)"
    }

    /// The most warnings about a configuration that the log has; a made file may have thousands.
    private static let mostWarnings = 50

    /// Logs warnings about settings that are allowed, and probably not meant.
    func logWarnings(of configuration: Configuration) {
        let speaksTLS = state.withLock { $0.schemes.values.contains { $0 != .http } }
        let warnings = parts.source.warnings(configuration, speaksTLS: speaksTLS)
        for warning in warnings.prefix(Self.mostWarnings) { parts.logger.warning("\(warning)") }
        if warnings.count > Self.mostWarnings {
            let more = warnings.count - Self.mostWarnings
            parts.logger.warning("\(more) more warnings about the configuration; 'drydock check' prints all of them")
        }
        let (wanted, files) = (configuration.limits.connections, DescriptorLimit.current)
        guard wanted > files.connections else { return }
        parts.logger.warning(
            """
            limits.connections is \(wanted), and \(files.count) open files are enough for \(files.connections), which is the \
            limit now; raise the limit of open files to \(DescriptorLimit.needed(for: wanted)) (LimitNOFILE of the unit, ulimit -n), \
            or lower limits.connections
            """
        )
    }
}
