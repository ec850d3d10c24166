// A server on loopback with a scripted handler: what the tests of connections talk to.

import Configuration
import EventLoop
import Glibc
import Plans
import TestSupport

@testable import ProxyServer

/// What the handler saw; shared by all loops.
final class Observations: Sendable {
    struct Seen {
        var targets: [String] = []
        var bodies: [Int] = []
        var bodyErrors: [RequestBodyError] = []
        var cancelled = 0
        var waiting = 0
        var mostQueued = 0
        var delivered = 0
    }

    let seen = Monitor(Seen())
}

extension ServerSettings {
    /// Those of a daemon that configures nothing but its name, `drydock`.
    init() {
        var configuration = Configuration()
        configuration.givenName = "drydock"
        self.init(configuration)
    }
}

/// A server with its loops, ended by `stop`.
final class ServerHarness: Sendable {
    let server: Server<ScriptedHandler>
    let loops: LoopGroup
    let pool: IOPool
    let sink: AccessLogSink?
    let port: Int
    let observations = Observations()
    let gate = Gate()

    init(
        loops count: Int = 1,
        settings: ServerSettings = ServerSettings(),
        log: LogConfiguration? = nil,
        daemonLog: ServerLog = .nowhere,
        connections: ConnectionFactory = .plain
    ) async throws {
        SignalWatch.ignoreBrokenPipes()
        let loops = try LoopGroup.start(count: count)
        let pool = try IOPool(threads: 2)
        var sink: AccessLogSink?
        if let log { sink = try AccessLogSink(AccessLogSettings(log), pool: pool) }
        let observations = self.observations
        let gate = self.gate
        server = await Server(
            loops: loops,
            settings: settings,
            sink: sink,
            daemonLog: daemonLog,
            clock: WallClock()
        ) { _, loop in
            ScriptedHandler(on: loop, observations: observations, gate: gate, pool: pool)
        }
        let socket = try ListeningSocket.bind(Self.anyPort())
        await server.listen(on: socket, role: .proxy, connections: connections)
        self.loops = loops
        self.sink = sink
        self.pool = pool
        port = Int(socket.address.port)
    }

    private static func anyPort() throws -> SocketAddress {
        guard let address = SocketAddress(numericHost: "127.0.0.1", port: 0) else {
            throw TestSupportError.failed("127.0.0.1 is no address")
        }
        return address
    }

    func client(receiveBuffer: Int? = nil) throws -> RawClient {
        try RawClient(port: port, receiveBuffer: receiveBuffer)
    }

    /// One request over a connection of its own.
    func exchange(_ target: String, method: String = "GET") throws -> RawResponse {
        let client = try client()
        return try client.exchange(method, target)
    }

    /// Bytes read from clients so far; the counters are asked on their loops, so not on a loop.
    var received: UInt64 { counters[.bytesIn] }

    /// Blocks until every loop has turned twice: it has seen what had come to its sockets before.
    func turn() {
        for _ in 0..<2 { _ = counters }
    }

    /// Blocks until a number has stood still for some time, in which the loops have turned; says whether it has.
    func comesToRest(_ number: () -> UInt64) -> Bool {
        TestSupport.comesToRest {
            turn()
            return number()
        }
    }

    /// The counters of all loops; blocks, so not on a loop.
    var counters: CounterValues {
        let result = Monitor(CounterValues?.none)
        let server = self.server
        Task(executorPreference: BlockingExecutor.shared) { [result] in
            let values = await server.counters()
            result.update { $0 = values }
        }
        result.wait(120) { $0 != nil }
        return result.read { $0 } ?? CounterValues()
    }

    func stop(grace: UInt64 = 100_000_000) async {
        await server.drain(grace: grace)
        await sink?.drain()
        loops.stop()
        pool.stop()
    }

    /// Runs `body` on a thread that may block, and ends the server after it.
    static func run(
        loops: Int = 1,
        settings: ServerSettings = ServerSettings(),
        log: LogConfiguration? = nil,
        daemonLog: ServerLog = .nowhere,
        connections: ConnectionFactory = .plain,
        _ body: @escaping @Sendable (ServerHarness) throws -> Void
    ) async throws {
        let harness = try await ServerHarness(
            loops: loops,
            settings: settings,
            log: log,
            daemonLog: daemonLog,
            connections: connections
        )
        let result = await withTaskExecutorPreference(BlockingExecutor.shared) { Result { try body(harness) } }
        await harness.stop()
        try result.get()
    }
}
