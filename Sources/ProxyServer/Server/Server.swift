// The server as one thing to start and stop: its bound sockets on loop 0, and the connections on all loops.

package import EventLoop
import Glibc
import HTTPWire
import Synchronization

/// Listens, and hands connections to the loops. Its handler answers in reverse and forward mode: whoever has a server has
/// the handlers of its loops by their type.
///
/// Sendable: loop-bound parts are in boxes; the rest is under a mutex or never changes.
package final class Server<Handler: ExchangeHandler>: Sendable {
    /// Makes the handler of one loop.
    package typealias MakeHandler = @Sendable (LoopContext, isolated EventLoop) -> Handler

    private struct State {
        var settings: ServerSettings
        var facts: [ListenerInfo] = []
        var isDraining = false
    }

    package let loops: LoopGroup
    package let limits: ConnectionLimits
    /// Tells the answers of all loops to those who watch.
    package let traffic = TrafficHub()
    let contexts: [LoopBox<LoopContext>]
    /// One for each loop, in their order.
    let handlers: [LoopBox<Handler>]
    private let listeners: LoopBox<Listeners>
    private let state: Mutex<State>
    private let copiesOverLoopback = Atomic<Bool>(false)
    private let daemonLog: ServerLog

    /// Makes the parts on every loop; listening begins later.
    ///
    /// - Parameters:
    ///   - sink: the destination of access log lines; nil for none.
    ///   - daemonLog: gets the errors of clients and, at debug level, the decisions about each request.
    ///   - journal: records each request, if it is on.
    ///   - clock: the clock for the field Date.
    ///   - makeHandler: makes the handler of a loop; called once on each loop.
    package init(
        loops: LoopGroup,
        settings: ServerSettings,
        sink: AccessLogSink?,
        daemonLog: ServerLog = .nowhere,
        journal: Journal = Journal(),
        clock: WallClock,
        makeHandler: @escaping MakeHandler
    ) async {
        self.loops = loops
        self.daemonLog = daemonLog
        state = Mutex(State(settings: settings))
        let limits = ConnectionLimits(
            total: settings.connections,
            perClient: settings.perClient,
            files: .current
        )
        self.limits = limits
        var contexts: [LoopBox<LoopContext>] = []
        for loop in loops.loops {
            contexts.append(
                await Self.makeContext(on: loop, settings, limits, sink, (daemonLog, journal, traffic), clock)
            )
        }
        self.contexts = contexts
        var handlers: [LoopBox<Handler>] = []
        for context in contexts { handlers += await Self.makeHandler(on: context.loop, context, makeHandler) }
        self.handlers = handlers
        listeners = await Self.makeListeners(on: loops.loops[0])
    }

    private static func makeContext(
        on loop: isolated EventLoop,
        _ settings: ServerSettings,
        _ limits: ConnectionLimits,
        _ sink: AccessLogSink?,
        _ told: (daemonLog: ServerLog, journal: Journal, traffic: TrafficHub),
        _ clock: WallClock
    ) -> LoopBox<LoopContext> {
        LoopBox(on: loop) { loop in
            LoopContext(
                on: loop,
                settings: settings,
                limits: limits,
                sink: sink,
                daemonLog: told.daemonLog,
                journal: told.journal,
                traffic: told.traffic,
                clock: clock
            )
        }
    }

    private static func makeHandler(
        on loop: isolated EventLoop,
        _ box: LoopBox<LoopContext>,
        _ make: MakeHandler
    ) -> [LoopBox<Handler>] {
        guard let context = box.value(on: loop) else { return [] }
        let handler = make(context, loop)
        context.setHandler(handler, for: .proxy)
        return [LoopBox(handler, on: loop)]
    }

    private static func makeListeners(on loop: isolated EventLoop) -> LoopBox<Listeners> {
        LoopBox(on: loop) { _ in Listeners() }
    }

    // MARK: - Listening

    /// Begins to accept on a socket, and takes it over.
    /// - Parameter connections: what the connections are made of.
    package func listen(
        on socket: ListeningSocket,
        role: ListenerRole,
        connections: ConnectionFactory = .plain
    ) async {
        let facts = ListenerInfo(role: role, address: socket.address, security: connections.security)
        state.withLock { $0.facts.append(facts) }
        _ = await listeners.run { [self] listeners, loop in
            listeners.all.append((role, listener(on: loop, socket, facts, connections)))
        }
    }

    /// Accepts on a new socket in place of one with the same address whose file is gone; both are taken over. If the
    /// server has ended, the new one is discarded.
    package func listen(on socket: ListeningSocket, insteadOf lost: ListeningSocket, role: ListenerRole) async {
        let isTaken = await listeners.run { [self] listeners, loop in
            guard let index = listeners.all.firstIndex(where: { $0.listener.socket.descriptor == lost.descriptor })
            else {
                return false
            }
            // The file is not removed: it belongs to the new socket by now.
            listeners.all[index].listener.close(keepsFile: true)
            // A file is that of a unix socket, and those are plain.
            let facts = ListenerInfo(role: role, address: socket.address)
            listeners.all[index].listener = listener(on: loop, socket, facts, .plain)
            return true
        }
        if isTaken != true { socket.discard() }
    }

    private func listener(
        on loop: isolated EventLoop,
        _ socket: ListeningSocket,
        _ facts: ListenerInfo,
        _ connections: ConnectionFactory
    ) -> Listener {
        Listener(
            on: loop,
            socket: socket,
            accepted: { descriptor, peer in self.accepted(descriptor, peer, facts, connections) },
            failed: { [daemonLog] in daemonLog.tell(.accept, [("error", "\($0)")]) }
        )
    }

    /// Sets the handler of a role on every loop; open connections keep theirs.
    package func setHandler(
        for role: ListenerRole,
        _ makeHandler: @escaping @Sendable (LoopContext, isolated EventLoop) -> any ExchangeHandler
    ) async {
        for context in contexts {
            _ = await context.run { context, loop in context.setHandler(makeHandler(context, loop), for: role) }
        }
    }

    /// Runs `body` with the handler of reverse and forward mode, on every loop that has not ended.
    package func forEachHandler(_ body: @escaping @Sendable (Handler, isolated EventLoop) -> Void) {
        for handler in handlers { handler.submit(body) }
    }

    /// The addresses that the server listens on in a role.
    package func addresses(_ role: ListenerRole) -> [SocketAddress] {
        state.withLock { $0.facts.filter { $0.role == role }.map(\.address) }
    }

    /// Takes over new settings; open connections keep their head limits.
    package func update(_ settings: ServerSettings) {
        state.withLock { $0.settings = settings }
        limits.update(total: settings.connections, perClient: settings.perClient)
        for context in contexts { context.submit { context, _ in context.update(settings) } }
    }

    /// Decides whether large bodies in memory are copied to clients on this machine from now on, or sent by `sendfile`.
    package func send(by costs: LoopbackSending) {
        copiesOverLoopback.store(costs.prefersCopies, ordering: .relaxed)
    }

    /// Admits or refuses an accepted socket, and hands it to a loop. On loop 0.
    private func accepted(
        _ descriptor: Int32,
        _ peer: SocketAddress,
        _ facts: ListenerInfo,
        _ connections: ConnectionFactory
    ) {
        var refusal: Problem?
        if facts.role == .proxy {
            let clients = state.withLock { $0.settings.clients }
            if !peer.isUnix, !clients.contains(where: { $0.contains(peer.ipBytes) }) {
                refusal = Self.notAClient(peer)
            } else {
                refusal = limits.enter(peer)?.problem
            }
        }
        if facts.role == .metrics, !limits.enterMonitors() {
            let detail =
                "all \(ConnectionLimits.mostMonitors) connections for metrics are taken; ask over fewer of them"
            daemonLog.tell(.refusedClient, [("client", "\(peer.host)"), ("error", detail)])
            return Socket.close(descriptor)
        }
        if let refusal, !limits.enterRefused() {
            daemonLog.tell(.refusedClient, [("client", "\(peer.host)"), ("error", refusal.detail)])
            return Socket.close(descriptor)
        }
        let isCounted = facts.role == .proxy && refusal == nil
        let loop = loops.leastBusy
        if isCounted { loop.connections.add(1) }
        guard let context = contexts.first(where: { $0.loop === loop }) else { return Socket.close(descriptor) }
        let copiesMemory = !peer.isUnix && peer.isLoopback && copiesOverLoopback.load(ordering: .relaxed)
        context.submit { [refusal] context, loop in
            let socket = AcceptedSocket(descriptor: descriptor, isLocal: peer.isUnix, copiesMemory: copiesMemory)
            let client = ConnectedClient(peer, at: facts, isCounted: isCounted, isTurnedAway: refusal != nil)
            Self.adopt(connections.transport(socket, loop), client, connections, refusal, context, on: loop)
        }
    }

    private static func adopt(
        _ transport: any ByteTransport,
        _ client: ConnectedClient,
        _ connections: ConnectionFactory,
        _ refusal: Problem?,
        _ context: LoopContext,
        on loop: isolated EventLoop
    ) {
        guard let handler = context.handler(for: client.listener.role), !context.endsIdle else {
            transport.close(resets: false)
            return client.leave(context.limits, loop, context.daemonLog)
        }
        let parts = ConnectionParts(context: context, handler: handler, transport: transport, client: client)
        ClientHandshake.begin(parts, by: connections.carrier, refusal: refusal, on: loop)
    }

    private static func notAClient(_ peer: SocketAddress) -> Problem {
        Problem(
            status: 403,
            title: "Client not allowed",
            detail: "\(peer.host) may not use this proxy; add it to clients",
            proxyError: "http_request_denied"
        )
    }

    // MARK: - Numbers

    /// The sums of the counters of all loops.
    package func counters() async -> CounterValues {
        var sum = CounterValues()
        for context in contexts {
            if let values = await context.run({ context, _ in context.counters.snapshot }) { sum.add(values) }
        }
        return sum
    }

    // MARK: - The end

    /// The sockets that the server listens on, each with its role.
    package func sockets() async -> [(role: ListenerRole, socket: ListeningSocket)] {
        await listeners.run { listeners, _ in listeners.all.map { ($0.role, $0.listener.socket) } } ?? []
    }

    /// Prepares the end for clients whose next connection finds another process: stops accepting, and answers the requests
    /// that come on open connections within `patience`, each as the last of its connection. What was not accepted waits in
    /// the sockets, if another process has them.
    /// - Parameters:
    ///   - patience: nanoseconds.
    ///   - keepsFiles: whether the files of unix sockets stay, because another process has the sockets.
    package func quiesce(patience: UInt64, keepsFiles: Bool) async {
        _ = await listeners.run { listeners, _ in listeners.close(keepsFiles: keepsFiles) }
        for context in contexts {
            await context.run { context, loop in context.quiesce(patience: patience, on: loop) }
        }
    }

    /// Waits after ``quiesce(patience:keepsFiles:)`` until the requests are over that may change what is stored. When it
    /// returns, none is under way, and none begins any more; what did not end in time is cut.
    /// - Parameter grace: nanoseconds for these requests.
    package func settle(grace: UInt64) async {
        let end = Monotonic.now().addingReportingOverflow(grace)
        await settle(until: end.overflow ? .max : end.partialValue)
        // While one loop waits, an answer of another may end, and be followed by such a request; without patience none is.
        for context in contexts { await context.run { context, _ in context.endPatience() } }
        await settle(until: end.overflow ? .max : end.partialValue)
        for context in contexts { await context.run { context, _ in context.cutChanging() } }
    }

    private func settle(until end: UInt64) async {
        await withTaskGroup(of: Void.self) { group in
            for context in contexts {
                group.addTask { await context.run { context, loop in await context.settle(until: end, on: loop) } }
            }
        }
    }

    /// Stops accepting, lets current answers finish for at most `grace` nanoseconds, and closes everything; the loops
    /// can be stopped afterwards.
    /// - Parameter waiting: called on one of the loops with the exchanges that are waited for.
    /// - Returns: the exchanges that were cut off after that time, or by ``settle(grace:)``.
    @discardableResult
    package func drain(
        grace: UInt64,
        waiting: @escaping @Sendable ([WaitedFor]) -> Void = { _ in }
    ) async -> [WaitedFor] {
        let isFirst = state.withLock { state in
            defer { state.isDraining = true }
            return !state.isDraining
        }
        guard isFirst else { return [] }
        _ = await listeners.run { listeners, _ in listeners.close() }
        let tally = WaitedForTally(loops: contexts.count, told: waiting)
        let cut = await withTaskGroup(of: [WaitedFor].self) { group in
            for context in contexts {
                group.addTask {
                    await context.run { context, loop in
                        await context.drain(grace: grace, on: loop) { tally.add($0) }
                    } ?? []
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        for context in contexts {
            await Self.end(context, handlers.first { $0.loop === context.loop }, on: context.loop)
        }
        return cut
    }

    private static func end(_ box: LoopBox<LoopContext>, _ handler: LoopBox<Handler>?, on loop: isolated EventLoop) {
        box.take(on: loop)?.shutdown(on: loop)
        _ = handler?.take(on: loop)
    }
}

/// The listeners of a server. Loop-bound, on loop 0.
final class Listeners {
    var all: [(role: ListenerRole, listener: Listener)] = []

    func close(keepsFiles: Bool = false) {
        for (_, listener) in all { listener.close(keepsFile: keepsFiles) }
        all = []
    }
}

@available(*, unavailable) extension Listeners: Sendable {}
