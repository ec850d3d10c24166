// A server on loopback with the real handler, made from the text of a configuration: what the tests of routing talk to.

import CacheStore
import Configuration
import DiskStore
import DownloadCore
import DrydockDaemon
import EventLoop
import Glibc
import HTTPWire
import Plans
import TestSupport
import Upstream

@testable import ProxyServer
@testable import ServiceCore

/// Reads a configuration and compiles it; a daemon without a name is called `drydock`.
/// - Parameter seeds: opens the folders of seeds and recordings; nil: there are none.
func compile(
    _ text: String,
    _ registry: PlanRegistry = PlanRegistry(),
    seeds: SeedOpener? = nil
) throws -> RoutePlan {
    var configuration = try Configuration.load(text: text, file: "/nowhere/drydock.yaml", environment: [:])
    configuration.givenName = configuration.givenName ?? "drydock"
    return try RoutePlan.compile(configuration, registry: registry, seeds: seeds)
}

/// One loop with the real handler on it; ended by `stop`.
final class HandlerHarness: Sendable {
    let port: Int
    let clock = WallClock()
    let core: DownloadCore
    let server: Server<ProxyHandler>
    let resolver: Resolver
    private let sink: AccessLogSink?
    private let loops: LoopGroup
    private let pool: IOPool
    let registry = PlanRegistry()

    /// - Parameters:
    ///   - adminPort: a port that the daemon's own admin API is said to listen on.
    ///   - disk: the folder of a disk tier, beside which memory takes bodies of up to 64 KiB.
    ///   - log: where answers are logged.
    ///   - daemonLog: told what clients do wrong, and what becomes of requests.
    ///   - journal: told of each request, where it is on.
    ///   - spans: gets the spans of requests, where it has a collector.
    ///   - lookup: what the name servers say.
    ///   - remembered: for how long that holds, in nanoseconds.
    ///   - connections: what its clients' connections are made of.
    ///   - interception: makes the sessions in tunnels that are read.
    ///   - settings: of the server.
    init(
        _ text: String,
        adminPort: Int? = nil,
        disk path: String? = nil,
        log: LogConfiguration? = nil,
        daemonLog: ServerLog = .nowhere,
        journal: Journal = Journal(),
        spans: SpanQueue = SpanQueue(),
        lookup: @escaping Resolver.Lookup = { SystemResolver.lookup($0, port: $1) },
        remembered: UInt64 = 60_000_000_000,
        connections: ConnectionFactory = .plain,
        interception: (any Interception)? = nil,
        settings: ServerSettings = ServerSettings()
    ) async throws {
        let loops = try LoopGroup.start(count: 1)
        let pool = try IOPool(threads: 2)
        let plan = try compile(text, registry, seeds: SeedOpener(pool: pool) { _ in })
        plan.takeEffect()
        guard let any = SocketAddress(numericHost: "127.0.0.1", port: 0) else {
            throw TestSupportError.failed("127.0.0.1 is no address")
        }
        let socket = try ListeningSocket.bind(any)
        let admin = adminPort.flatMap { SocketAddress(numericHost: "127.0.0.1", port: UInt16($0)) }
        var disk: DiskTier?
        if let path {
            disk = try await DiskTier.open(path: path, limits: DiskLimits(size: 1 << 30, minFree: 0), pool: pool)
        }
        core = DownloadCore(
            cacheName: plan.name,
            memory: MemoryTier(size: 1 << 24),
            memoryMaxObject: disk == nil ? 1 << 20 : 64 << 10,
            behind: disk.map { [$0] } ?? [],
            diskMaxObject: disk == nil ? 0 : 64 << 20,
            budget: BodyBudget(),
            clock: clock
        )
        resolver = Resolver(pool: pool, lifetime: remembered, lookup: lookup)
        let parts = ProxyParts(
            plan: plan,
            core: core,
            resolver: resolver,
            listeners: [socket.address],
            adminListeners: admin.map { [$0] } ?? [],
            journal: journal,
            spans: spans,
            interception: interception
        )
        sink = try log.map { try AccessLogSink(AccessLogSettings($0), pool: pool) }
        server = await Server(
            parts,
            loops: loops,
            settings: settings,
            sink: sink,
            daemonLog: daemonLog
        )
        await server.listen(on: socket, role: .proxy, connections: connections)
        self.loops = loops
        self.pool = pool
        port = Int(socket.address.port)
    }

    /// Takes over another configuration; blocks until the loop has it.
    func reload(_ text: String) throws { try take(try compile(text, registry)) }

    /// As above, with the folders of seeds and recordings that it names.
    func reload(_ configuration: Configuration) throws {
        try take(try RoutePlan.compile(configuration, registry: registry, seeds: SeedOpener(pool: pool) { _ in }))
    }

    private func take(_ plan: RoutePlan) throws {
        plan.takeEffect()
        let isDone = Monitor(false)
        server.forEachHandler { handler, _ in
            handler.update(plan)
            isDone.update { $0 = true }
        }
        guard isDone.wait(120, until: { $0 }) else { throw TestSupportError.timedOut("the reload") }
    }

    /// What has been counted so far; blocks until the loop has told.
    func counters() throws -> CounterValues { try ask { $0.context.counters.snapshot } }

    /// What the handler says on its loop; blocks until it has.
    func ask<Value: Sendable>(_ question: @escaping @Sendable (ProxyHandler) -> Value) throws -> Value {
        let values = Monitor(Value?.none)
        server.forEachHandler { handler, _ in
            let value = question(handler)
            values.update { $0 = value }
        }
        guard values.wait(120, until: { $0 != nil }), let value = values.read({ $0 }) else {
            throw TestSupportError.timedOut("the handler")
        }
        return value
    }

    func client() throws -> RawClient { try RawClient(port: port) }

    /// A client whose connection is as one inside of a tunnel to an authority, but that others can read along.
    func client(inside authority: Authority) throws -> RawClient {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0, fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0,
            let address = SocketAddress(numericHost: "127.0.0.1", port: 1)
        else { throw TestSupportError.system(call: "socketpair", code: errno) }
        server.contexts[0].submit { [ours = ends[1]] context, loop in
            context.connect(PlainTransport(ours, isLocal: true), from: address, to: authority, on: loop)
        }
        return RawClient(taking: ends[0])
    }

    /// One request over a connection of its own.
    func exchange(
        _ method: String,
        _ target: String,
        host: String = "localhost",
        fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) throws -> RawResponse {
        try client().exchange(method, target, host: host, fields: fields, body: body)
    }

    /// Puts a purge in force; blocks until it is.
    func purge(_ rule: PurgeRule) throws {
        let isDone = Monitor(false)
        Task(executorPreference: BlockingExecutor.shared) { [core, pool] in
            _ = try await core.housekeeping.purge([rule], on: pool)
            isDone.update { $0 = true }
        }
        guard isDone.wait(120, until: { $0 }) else { throw TestSupportError.timedOut("the purge") }
    }

    /// What is said of a request, as text, or the refusal; blocks until it is.
    /// - Parameter isProxied: asks as a client with a proxy setting does, and gets the text that a command prints.
    func explanation(_ url: String, fields: [(String, String)] = [], isProxied: Bool = false) throws -> String {
        var question = RequestQuestion(url: url, fields: fields.map { .init(name: $0.0, value: $0.1) })
        question.isProxied = isProxied
        let text = Monitor(String?.none)
        Task(executorPreference: BlockingExecutor.shared) { [server] in
            let result = await server.explain(question)
            let document = result?.map { AdminExplanation($0) }
            if isProxied, case .success(let document)? = document { return text.update { $0 = document.text } }
            text.update { $0 = "\(document.map { "\($0)" } ?? "no handler")" }
        }
        guard text.wait(120, until: { $0 != nil }), let text = text.read({ $0 }) else {
            throw TestSupportError.timedOut("the explanation")
        }
        return text
    }

    /// What is stored, as a listing names it; blocks until it is known.
    func listed() throws -> [String] {
        let text = Monitor([String]?.none)
        Task(executorPreference: BlockingExecutor.shared) { [core, pool] in
            let page = try await core.store.listing(on: pool).page(ListQuery())
            text.update { $0 = page.responses.map { "\($0.key) \($0.key.extras ?? "")" } }
        }
        guard text.wait(120, until: { $0 != nil }), let text = text.read({ $0 }) else {
            throw TestSupportError.timedOut("the listing")
        }
        return text
    }

    /// The key that an item of a batch is asked for under, or the refusal; blocks until it is known.
    func batchKey(_ item: BatchItem) throws -> String {
        let text = Monitor(String?.none)
        server.forEachHandler { handler, loop in
            do throws(BatchRefusal) {
                switch try handler.unsent.batchRoute(item, on: loop) {
                case .store(let ask, _): text.update { $0 = "\(ask.key) \(ask.path)" }
                case .other(let key, _): text.update { $0 = "\(key)" }
                }
            } catch {
                text.update { $0 = "\(error)" }
            }
        }
        guard text.wait(120, until: { $0 != nil }), let text = text.read({ $0 }) else {
            throw TestSupportError.timedOut("the batch")
        }
        return text
    }

    /// Blocks until everything that has arrived is stored, or will not be.
    func settle() throws {
        let isSettled = blockUntil { core.fillCount == 0 }
        guard isSettled else { throw TestSupportError.timedOut("the store") }
    }

    /// Blocks until the loop has turned twice: it has seen what had come to its sockets before.
    func turn() throws {
        for _ in 0..<2 { _ = try counters() }
    }

    /// Runs `body` on a thread that may block, and ends the server after it.
    static func run(
        _ text: String,
        adminPort: Int? = nil,
        disk: String? = nil,
        log: LogConfiguration? = nil,
        daemonLog: ServerLog = .nowhere,
        journal: Journal = Journal(),
        spans: SpanQueue = SpanQueue(),
        lookup: @escaping Resolver.Lookup = { SystemResolver.lookup($0, port: $1) },
        remembered: UInt64 = 60_000_000_000,
        connections: ConnectionFactory = .plain,
        interception: (any Interception)? = nil,
        settings: ServerSettings = ServerSettings(),
        _ body: @escaping @Sendable (HandlerHarness) throws -> Void
    ) async throws {
        let harness = try await HandlerHarness(
            text,
            adminPort: adminPort,
            disk: disk,
            log: log,
            daemonLog: daemonLog,
            journal: journal,
            spans: spans,
            lookup: lookup,
            remembered: remembered,
            connections: connections,
            interception: interception,
            settings: settings
        )
        let result = await withTaskExecutorPreference(BlockingExecutor.shared) { Result { try body(harness) } }
        await harness.server.drain(grace: 100_000_000)
        await harness.sink?.drain()
        // A prober ends a pause after the last parked call; a loop that stops before it would keep its task for ever.
        _ = await eventually { !harness.registry.services.all.contains { $0.parked.hasProber } }
        harness.loops.stop()
        harness.core.store.close()
        harness.pool.stop()
        try result.get()
    }
}

extension AnswerTotals {
    /// The kinds of answers that there were, in a fixed order, as `ROW OUTCOME TIER CLASS COUNT`.
    var kinds: [String] { kinds(since: AnswerTotals()) }

    /// Those that there were not before.
    func kinds(since before: AnswerTotals) -> [String] {
        var counts: [String: UInt64] = [:]
        forEachKind { row, outcome, tier, status, count in counts["\(row) \(outcome) \(tier) \(status)xx"] = count }
        before.forEachKind { row, outcome, tier, status, count in
            counts["\(row) \(outcome) \(tier) \(status)xx"]? -= count
        }
        return counts.filter { $0.value > 0 }.map { "\($0.key) \($0.value)" }.sorted()
    }
}
