// The state that the connections of one loop share: settings, handlers, counters, buffers, deadlines.

import Content
package import EventLoop
import HTTPWire
import ServiceCore

/// The context of one loop for its connections. Loop-bound.
package final class LoopContext {
    package nonisolated let loop: EventLoop
    /// The settings in force, replaced as a whole by a reload; a connection keeps the head limits it began with.
    package private(set) var settings: ServerSettings
    package let counters = LoopCounters()
    package let limits: ConnectionLimits
    private(set) var blocks: BlockPool
    let joined = JoinedAnswers()
    private var ownPipe: SocketPipe?
    let log: AccessLogBuffer?
    /// The daemon's own log, for the errors of clients and the decisions about requests.
    let daemonLog: ServerLog
    /// The journal of the daemon, which all loops share.
    let journal: Journal
    /// The hub for those who watch the traffic, which all loops share.
    let traffic: TrafficHub
    /// True if answers are logged, or told to somebody who watches.
    var isTelling: Bool { log?.isOn ?? false || traffic.isListening }
    /// True if whoever is told of answers wants the request id and the host.
    var tellsID: Bool { log?.needsID == true || traffic.isListening }
    /// True if request ids are forwarded to origins.
    var passesIDs: Bool { log?.passesIDs ?? false }
    /// The query items that services add in secret: they are left out of log lines.
    var secrets = SecretQuery()
    /// The secret parts of contents: they are left out of log lines and journal entries.
    var contents = SecretContent()
    private var requestIDs = RequestIDs()
    /// True if the daemon ends: each answer is the last of its connection, and says so.
    private(set) var isDraining = false
    /// True if a connection without a request ends, even if its client was not told so.
    var endsIdle: Bool { isDraining && patience == 0 }
    private var handlers: [ListenerRole: any ExchangeHandler] = [:]
    private var members: [any LoopMember] = []
    private var soon: [ClientConnection] = []
    private var soonTimer: LoopTimer?
    private var sweepTimer: LoopTimer?
    private var drained: UnsafeContinuation<Void, Never>?
    private var isCut = false
    /// Nanoseconds for which an idle connection is left open while the daemon ends; only if the next process has its sockets.
    private(set) var patience: UInt64 = 0
    private var patienceTimer: LoopTimer?
    private var drainSince: UInt64 = 0
    /// The wait of ``settle(until:on:)`` for its next look.
    private var settled: UnsafeContinuation<Void, Never>?
    private var cutOff: [WaitedFor] = []
    private var lastExchange: UInt64 = 0
    private let clock: WallClock
    private var date = (second: Int64(0), text: "")

    init(
        on loop: isolated EventLoop,
        settings: ServerSettings,
        limits: ConnectionLimits,
        sink: AccessLogSink?,
        daemonLog: ServerLog,
        journal: Journal = Journal(),
        traffic: TrafficHub = TrafficHub(),
        clock: WallClock
    ) {
        self.loop = loop
        self.daemonLog = daemonLog
        self.journal = journal
        self.traffic = traffic
        self.clock = clock
        self.settings = settings
        self.limits = limits
        blocks = BlockPool(blockSize: Self.blockSize(settings))
        log = sink.map { AccessLogBuffer(on: loop, sink: $0) }
        // The timers are this object's own and end with it, so the references are unowned; weak ones would slow down
        // every use.
        soonTimer = LoopTimer(on: loop) { [unowned self] in runQueued() }
        let sweep = LoopTimer(on: loop) { [unowned self] in self.sweep() }
        sweep.start(every: settings.sweepInterval)
        sweepTimer = sweep
    }

    /// The pipe for splicing from an origin's socket to a client's; nil while no descriptors can be had for it. The
    /// next use tries again.
    var pipe: SocketPipe? {
        if ownPipe == nil { ownPipe = SocketPipe() }
        return ownPipe
    }

    /// Drops the pipe with the bytes in it, which no other exchange may get.
    func dropPipe() { ownPipe = nil }

    /// Writes as ``JoinedAnswers/write(_:_:_:_:to:)`` does, without a reference that a connection would have to count.
    func writeJoined(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: UnsafeRawBufferPointer,
        to transport: any ByteTransport
    ) -> IOResult? {
        joined.write(prepared, dynamic, end, body, to: transport)
    }

    func setHandler(_ handler: any ExchangeHandler, for role: ListenerRole) { handlers[role] = handler }

    func handler(for role: ListenerRole) -> (any ExchangeHandler)? { handlers[role] }

    package func update(_ settings: ServerSettings) {
        self.settings = settings
        // A block must hold a whole head; open connections keep the blocks that fit their own limits.
        let size = Self.blockSize(settings)
        if size != blocks.blockSize { blocks = BlockPool(blockSize: size) }
        sweepTimer?.start(every: settings.sweepInterval)
    }

    private static func blockSize(_ settings: ServerSettings) -> Int { max(65536, settings.head.head + 4096) }

    func nextExchange() -> UInt64 {
        lastExchange += 1
        return UInt64(loop.index) << 48 | lastExchange
    }

    /// The number for the id of a request without one.
    func nextRequestID() -> UInt64 { requestIDs.next() }

    /// The value of Date now, by the daemon's clock (RFC 9110 section 6.6.1).
    func dateText() -> String {
        let now = clock.now()
        if now != date.second { date = (now, HTTPDate.format(now)) }
        return date.text
    }

    // MARK: - Members

    /// Keeps a connection or a tunnel until it is removed.
    func add(_ member: any LoopMember) {
        member.position = members.count
        members.append(member)
    }

    /// Drops what each connection keeps of its last request for its next one: it was made from a plan that is not in force
    /// any more.
    func forgetRequests() {
        for connection in connections { connection.client.forgetRequests() }
    }

    /// The open connections of clients.
    var connections: [ClientConnection] { members.compactMap { $0 as? ClientConnection } }

    func remove(_ member: any LoopMember) {
        guard let position = member.position, position < members.count, members[position] === member else { return }
        member.position = nil
        let last = members.removeLast()
        if last !== member {
            members[position] = last
            last.position = position
        }
        if members.isEmpty { resumeDrain() }
    }

    private func sweep() {
        let now = Monotonic.now()
        let elapsed = settings.sweepInterval
        if loop.index == 0 { daemonLog.tellLeftOut(now: now) }
        // The members are visited from the end: one that removes itself does not move those still to come.
        for position in members.indices.reversed() where position < members.count {
            members[position].sweep(now: now, elapsed: elapsed)
        }
    }

    /// Calls the connection back in the loop's next turn, after the sockets that are ready now.
    func runSoon(_ connection: ClientConnection) {
        if queue(connection), soon.count == 1 { soonTimer?.start(after: 0) }
    }

    /// Calls the connection back at the end of this turn, so that all output of the turn is written with one call.
    func flushSoon(_ connection: ClientConnection) {
        if queue(connection) { soonTimer?.startInThisTurn() }
    }

    private func queue(_ connection: ClientConnection) -> Bool {
        guard !connection.isQueued else { return false }
        connection.isQueued = true
        soon.append(connection)
        return true
    }

    private func runQueued() {
        var queued: [ClientConnection] = []
        swap(&queued, &soon)
        for connection in queued {
            connection.isQueued = false
            connection.runAgain()
        }
        queued.removeAll(keepingCapacity: true)
        // The emptied array gives its capacity back, unless a connection was queued in the meantime.
        if soon.isEmpty { swap(&queued, &soon) }
    }

    // MARK: - The end

    /// Nanoseconds between two looks at the members of a loop that comes to rest.
    private static let pause: UInt64 = 5_000_000

    /// Prepares the end so that no client is cut off by it: from now on each answer says that it is the last of its
    /// connection, and a connection whose client has not been told so may bring one more request within `patience`.
    /// - Parameter patience: nanoseconds. Each connection that becomes idle later has them, too, until ``endPatience()``.
    func quiesce(patience: UInt64, on loop: isolated EventLoop) {
        isDraining = true
        drainSince = Monotonic.now()
        self.patience = patience
        let timer = LoopTimer(on: loop) { [unowned self] in tellMembers() }
        timer.start(every: Self.pause)
        patienceTimer = timer
    }

    /// Waits after ``quiesce(patience:on:)`` until no request is under way, and none may come on a connection that is open, that
    /// changes what is stored. While patience lasts, an answer under way may still be followed by one.
    /// - Parameter end: monotonic nanoseconds at which it returns in any case.
    func settle(until end: UInt64, on loop: isolated EventLoop) async {
        while Monotonic.now() < end, members.contains(where: \.mayChangeStore) {
            await withUnsafeContinuation { settled = $0 }
        }
    }

    /// Whether the patience with a client is over that has been waited for since then, in monotonic nanoseconds.
    func isImpatient(since time: UInt64) -> Bool {
        let (now, begin) = (Monotonic.now(), max(time, drainSince))
        return patience == 0 || now >= begin && now - begin >= patience
    }

    /// Closes idle connections at once from now on, and those that become idle: no request begins but those whose first bytes
    /// have come.
    func endPatience() {
        patience = 0
        tellMembers()
    }

    /// Cuts what may still change what is stored, after ``settle(until:on:)``.
    func cutChanging() {
        patienceTimer = nil
        for member in members where member.mayChangeStore {
            if let waited = member.waitedFor { cutOff.append(waited) }
            member.cut()
        }
    }

    private func tellMembers() {
        for member in members { member.drainBegan() }
        settle()
    }

    private func settle() {
        settled?.resume()
        settled = nil
    }

    /// Lets every answer under way finish, for at most `grace` nanoseconds, and closes every connection.
    /// - Parameter began: called at once with the exchanges that are waited for.
    /// - Returns: the exchanges that were cut off, by ``cutChanging()``, too.
    func drain(
        grace: UInt64,
        on loop: isolated EventLoop,
        began: ([WaitedFor]) -> Void
    ) async -> [WaitedFor] {
        isDraining = true
        for member in members { member.drainBegan() }
        began(members.compactMap(\.waitedFor))
        guard !members.isEmpty else { return cutOff }
        let timer = LoopTimer(on: loop) { [unowned self] in cutMembers() }
        timer.start(after: grace)
        defer { timer.cancel() }
        // One that is gone may be followed by another, as a handshake is by its connection.
        while !members.isEmpty, !isCut { await withUnsafeContinuation { drained = $0 } }
        return cutOff
    }

    /// Closes the remaining members and stops the timers; no member can be added afterwards.
    func shutdown(on loop: isolated EventLoop) {
        isDraining = true
        cutMembers()
        soonTimer = nil
        sweepTimer = nil
        patienceTimer = nil
        for handler in handlers.values { handler.shutdown() }
        handlers = [:]
    }

    private func cutMembers() {
        cutOff += members.compactMap(\.waitedFor)
        for member in members { member.cut() }
        isCut = true
        resumeDrain()
    }

    private func resumeDrain() {
        drained?.resume()
        drained = nil
    }
}

@available(*, unavailable) extension LoopContext: Sendable {}

/// A connection or tunnel of a loop; the loop lets it check its deadlines, and drains it.
protocol LoopMember: AnyObject {
    /// The index of the member in the loop's list; only the list sets it.
    var position: Int? { get set }
    /// Checks the deadlines of the member.
    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - elapsed: nanoseconds since the previous sweep.
    func sweep(now: UInt64, elapsed: UInt64)
    /// Called when the daemon begins to end, and with patience for clients again and again: the member ends after its current
    /// exchange, or when it has been idle for longer than ``LoopContext/patience``.
    func drainBegan()
    /// The exchange that the daemon waits for at its end; nil if none is under way.
    var waitedFor: WaitedFor? { get }
    /// Whether a request is under way, or may come, that invalidates what is stored, by its method or as far as it is not known
    /// yet.
    var mayChangeStore: Bool { get }
    /// Ends the member now.
    func cut()
}

extension LoopMember {
    var mayChangeStore: Bool { false }
}
