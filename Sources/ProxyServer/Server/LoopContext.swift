// What the connections of one loop share: settings, handlers, counters, buffers, the sweep for deadlines.

import Content
package import EventLoop
import HTTPWire
import ServiceCore

/// Loop-bound, one per loop.
package final class LoopContext {
    package nonisolated let loop: EventLoop
    /// Replaced as a whole by a reload; a connection keeps the head limits it began with.
    package private(set) var settings: ServerSettings
    package let counters = LoopCounters()
    package let limits: ConnectionLimits
    private(set) var blocks: BlockPool
    let joined = JoinedAnswers()
    private var ownPipe: SocketPipe?
    let log: AccessLogBuffer?
    /// The daemon's own log, for the errors of clients and the decisions about requests.
    let daemonLog: ServerLog
    /// Of all loops.
    let journal: Journal
    /// Answers are logged.
    var isLogging: Bool { log?.isOn ?? false }
    /// Requests go to origins with their ids.
    var passesIDs: Bool { log?.passesIDs ?? false }
    /// The query items that services add in secret: no log line has them.
    var secrets = SecretQuery()
    /// What of contents no line and no entry of the journal has.
    var contents = SecretContent()
    private var requestIDs = RequestIDs()
    private(set) var isDraining = false
    private var handlers: [ListenerRole: any ExchangeHandler] = [:]
    private var members: [any LoopMember] = []
    private var soon: [Connection] = []
    private var soonTimer: LoopTimer?
    private var sweepTimer: LoopTimer?
    private var drained: UnsafeContinuation<Void, Never>?
    private var drainTimer: LoopTimer?
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
        clock: WallClock
    ) {
        self.loop = loop
        self.daemonLog = daemonLog
        self.journal = journal
        self.clock = clock
        self.settings = settings
        self.limits = limits
        blocks = BlockPool(blockSize: Self.blockSize(settings))
        log = sink.map { AccessLogBuffer(on: loop, sink: $0) }
        // Unowned: the timers are this object's own and end with it. A weak reference would slow down every use of it.
        soonTimer = LoopTimer(on: loop) { [unowned self] in runQueued() }
        let sweep = LoopTimer(on: loop) { [unowned self] in self.sweep() }
        sweep.start(every: settings.sweepInterval)
        sweepTimer = sweep
    }

    /// The pipe for splicing from an origin's socket to a client's; nil while the kernel has no descriptors for it.
    /// The next use tries again.
    var pipe: SocketPipe? {
        if ownPipe == nil { ownPipe = SocketPipe() }
        return ownPipe
    }

    /// Drops the pipe with the bytes in it, which no other exchange may get.
    func dropPipe() { ownPipe = nil }

    /// As ``JoinedAnswers/write(_:_:_:_:to:)``, without a reference that a connection would have to count.
    func writeJoined(
        _ prepared: UnsafeRawBufferPointer,
        _ dynamic: UnsafeRawBufferPointer,
        _ end: UnsafeRawBufferPointer,
        _ body: UnsafeRawBufferPointer,
        to transport: any Transport
    ) -> IOResult? {
        joined.write(prepared, dynamic, end, body, to: transport)
    }

    func setHandler(_ handler: any ExchangeHandler, for role: ListenerRole) { handlers[role] = handler }

    func handler(for role: ListenerRole) -> (any ExchangeHandler)? { handlers[role] }

    package func update(_ settings: ServerSettings) {
        self.settings = settings
        // A block must hold a whole head; connections that are open keep the blocks that fit their own limits.
        let size = Self.blockSize(settings)
        if size != blocks.blockSize { blocks = BlockPool(blockSize: size) }
        sweepTimer?.start(every: settings.sweepInterval)
    }

    private static func blockSize(_ settings: ServerSettings) -> Int { max(65536, settings.head.head + 4096) }

    func nextExchange() -> UInt64 {
        lastExchange += 1
        return UInt64(loop.index) << 48 | lastExchange
    }

    /// The number for the id of a request that has none.
    func nextRequestID() -> UInt64 { requestIDs.next() }

    /// The value of Date for now, by the daemon's clock (RFC 9110 section 6.6.1).
    func dateText() -> String {
        let now = clock.now()
        if now != date.second { date = (now, HTTPDate.format(now)) }
        return date.text
    }

    // MARK: - Members

    /// Holds a connection or a tunnel until it is removed.
    func add(_ member: any LoopMember) {
        member.position = members.count
        members.append(member)
    }

    /// What connections keep for the next request holds the plan that it was worked out by, and
    /// another one is in force now.
    func forgetOutgoing() {
        for connection in connections { connection.lastOutgoing = nil }
    }

    /// Those of clients that are open.
    var connections: [Connection] { members.compactMap { $0 as? Connection } }

    func remove(_ member: any LoopMember) {
        guard let position = member.position, position < members.count, members[position] === member else { return }
        member.position = nil
        let last = members.removeLast()
        if last !== member {
            members[position] = last
            last.position = position
        }
        if members.isEmpty { finishDraining() }
    }

    private func sweep() {
        let now = Monotonic.now()
        let elapsed = settings.sweepInterval
        if loop.index == 0 { daemonLog.tellLeftOut(now: now) }
        // From the end, so that one that removes itself does not move those still to come.
        for position in members.indices.reversed() where position < members.count {
            members[position].sweep(now: now, elapsed: elapsed)
        }
    }

    /// Calls the connection back in the loop's next turn, after those sockets that are ready now.
    func runSoon(_ connection: Connection) {
        if queue(connection), soon.count == 1 { soonTimer?.start(after: 0) }
    }

    /// Calls the connection back at the end of this turn, so that all output of the turn is written with one call.
    func flushSoon(_ connection: Connection) {
        if queue(connection) { soonTimer?.startInThisTurn() }
    }

    private func queue(_ connection: Connection) -> Bool {
        guard !connection.isQueued else { return false }
        connection.isQueued = true
        soon.append(connection)
        return true
    }

    private func runQueued() {
        var queued: [Connection] = []
        swap(&queued, &soon)
        for connection in queued {
            connection.isQueued = false
            connection.runAgain()
        }
        queued.removeAll(keepingCapacity: true)
        // The capacity goes back, unless somebody queued in the meantime.
        if soon.isEmpty { swap(&queued, &soon) }
    }

    // MARK: - The end

    /// Lets every answer under way finish, for at most `grace` nanoseconds, and closes every connection.
    /// - Parameter began: called at once with those that are waited for.
    /// - Returns: those that were cut off.
    func drain(
        grace: UInt64,
        on loop: isolated EventLoop,
        began: ([WaitedFor]) -> Void
    ) async -> [WaitedFor] {
        isDraining = true
        for member in members { member.drainBegan() }
        began(members.compactMap(\.waitedFor))
        guard !members.isEmpty else { return [] }
        let timer = LoopTimer(on: loop) { [unowned self] in cutMembers() }
        timer.start(after: grace)
        drainTimer = timer
        await withUnsafeContinuation { drained = $0 }
        return cutOff
    }

    /// Closes the remaining members and stops the timers; no member can be added afterwards.
    func shutdown(on loop: isolated EventLoop) {
        isDraining = true
        cutMembers()
        soonTimer = nil
        sweepTimer = nil
        for handler in handlers.values { handler.shutdown() }
        handlers = [:]
    }

    private func cutMembers() {
        cutOff = members.compactMap(\.waitedFor)
        for member in members { member.cut() }
        finishDraining()
    }

    private func finishDraining() {
        drainTimer?.cancel()
        drainTimer = nil
        drained?.resume()
        drained = nil
    }
}

@available(*, unavailable) extension LoopContext: Sendable {}

/// A connection or tunnel of a loop, which checks its deadlines and drains it.
protocol LoopMember: AnyObject {
    /// Its place in the loop's list; the list's own.
    var position: Int? { get set }
    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - elapsed: nanoseconds since the sweep before.
    func sweep(now: UInt64, elapsed: UInt64)
    /// The daemon is ending: end after the current exchange.
    func drainBegan()
    /// The exchange that the daemon waits for at its end; nil if none is under way.
    var waitedFor: WaitedFor? { get }
    /// End now.
    func cut()
}
