// One client connection: its state, its socket's readiness, and its end.

package import EventLoop
import HTTPWire

/// Loop-bound. HTTP/1.1 and 1.0: one request after the other, answers in order. What it does when something happens,
/// its ``ConnectionState`` says.
package final class Connection: IOHandler, LoopMember {
    /// An answer that was written in part on the hot path.
    struct PendingHot {
        let entry: AccessEntry
        let cache: CacheOutcome
        let bodyBytes: Int
        let owner: AnyObject
    }

    package nonisolated let loop: EventLoop
    package let context: LoopContext
    package let peer: SocketAddress
    package let listener: ListenerInfo
    let handler: any ExchangeHandler
    let records: AnswerRecords
    let transport: any Transport
    /// What the transport watches, here so that a look at it needs no reference.
    private var watched: IOReadiness = []

    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var state = ConnectionState()
    // Ours alone, freed in deinit. A value in this object would pay for a check of exclusive access with every use.
    let parser: UnsafeMutablePointer<RequestParser>
    let input: ReadBuffer
    let output: OutputQueue
    var current: Exchange?
    /// Of the answer of `current`.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var framing = HTTP1Framing()
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var pendingHot: PendingHot?
    /// A body that an early answer left unread.
    var leftover: RequestBody?
    /// What of it may still be read.
    var leftoverBudget = 0
    /// The outgoing fields of the last forwarded request, reused if the next request has the same fields.
    var lastOutgoing: OutgoingFields?
    /// Bytes written since the connection began.
    var sent: UInt64 = 0
    /// The version of the request under way.
    var version = HTTPVersion.http11
    var isProcessing = false
    var isQueued = false
    /// More than the request under way has been read.
    var isFollowed = false
    /// Answers of this callback wait in the loop's ``JoinedAnswers``.
    var hasJoined = false
    /// When the head was complete, monotonic nanoseconds; for the duration in the log. 0 for a request that is answered
    /// at once while nothing is logged.
    var requestBegan: UInt64 = 0
    /// When the present wait began, monotonic nanoseconds.
    var waitingSince: UInt64
    var position: Int?
    private let isCounted: Bool
    /// It was not admitted, and is only told why.
    private var isTurnedAway = false

    /// Begins the transport, and owns it.
    /// - Parameter isCounted: the connection holds a place in the limits and in the loop's load.
    init(
        on loop: isolated EventLoop,
        context: LoopContext,
        handler: any ExchangeHandler,
        transport: any Transport,
        peer: SocketAddress,
        listener: ListenerInfo,
        isCounted: Bool
    ) {
        self.loop = loop
        self.context = context
        self.handler = handler
        self.transport = transport
        self.peer = peer
        self.listener = listener
        self.isCounted = isCounted
        output = OutputQueue(copiesMemory: transport.copiesMemory)
        records = AnswerRecords(
            client: peer.isUnix ? "unix" : peer.host,
            isRecorded: listener.role == .proxy,
            context: context
        )
        parser = .allocate(capacity: 1)
        parser.initialize(to: RequestParser(limits: context.settings.head))
        input = ReadBuffer(pool: context.blocks)
        waitingSince = Monotonic.coarse()
        transport.begin(on: loop, self)
        context.add(self)
        context.counters.add(.connectionsAccepted)
        updateInterest()
    }

    deinit {
        parser.deinitialize(count: 1)
        parser.deallocate()
    }

    package func ready(_ readiness: IOReadiness) {
        if readiness == .write { flush() } else { read() }
    }

    /// Called by the loop for work that the connection has deferred.
    func runAgain() {
        if !output.isEmpty, !state.isBlocked { flush() }
        process()
    }

    /// Watches for what the state needs, and gives an empty buffer back.
    func updateInterest() {
        if input.isEmpty { input.release() }
        let wanted = IOReadiness(read: !state.sawEnd && !input.isFull, write: state.isBlocked)
        guard wanted.rawValue != watched.rawValue, !state.isOver else { return }
        watched = wanted
        transport.watch(wanted)
    }

    /// Does what follows from an event.
    func perform(_ action: ConnectionState.Action) {
        switch action {
        case .none: break
        case .close: close()
        case .leave: clientLeft()
        case .linger: linger()
        case .watchOver: transport.askWhetherAnybodyIsThere()
        case .serve:
            waitingSince = Monotonic.coarse()
            if !input.isEmpty, !isProcessing { context.runSoon(self) }
        case .offerInput: current?.knownBody?.inputArrived()
        case .drain: drainLeftover()
        }
    }

    // MARK: - The end

    /// Ends the sending side and keeps reading, so that the client gets all that was sent: closing a socket with unread
    /// bytes resets the connection.
    func linger() {
        input.release()
        guard state.linger() else { return close() }
        transport.finishWriting()
        waitingSince = Monotonic.coarse()
        updateInterest()
    }

    /// The client has left, or cannot be written to any more.
    func clientLeft() {
        guard !state.isOver else { return }
        finishRecord(isAborted: true)
        close()
    }

    /// Ends the connection in the middle of the answer, so that the client cannot take it for complete.
    /// - Parameter resets: resets the connection, because a plain close would look like the proper end of this answer.
    func cutAnswer(resets: Bool) {
        guard !state.isOver else { return }
        if !state.isBlocked, !resets {
            let before = output.written
            _ = output.write(to: transport, limit: OutputQueue.callLimit)
            noteWritten(since: before)
        }
        finishRecord(isAborted: true)
        close(resets: resets)
    }

    /// - Parameter resets: the client sees that the connection broke off.
    func close(resets: Bool = false) {
        guard state.end(.closed) else { return }
        letGo()
        transport.close(resets: resets)
        releasePlace()
    }

    /// Nothing is read or written here any more.
    func letGo() {
        transport.stop()
        input.release()
        leftover = nil
        let exchange = current
        current = nil
        exchange?.connectionEnded()
    }

    /// Tells a connection that has no place in the limits why, and ends it.
    func turnAway(_ problem: Problem) {
        isTurnedAway = true
        refuse(problem)
    }

    /// Gives back the connection's place in the limits.
    func releasePlace() {
        context.counters.add(.connectionsClosed)
        context.remove(self)
        if isTurnedAway { context.limits.leaveRefused() }
        guard isCounted else { return }
        loop.connections.add(-1)
        context.limits.leave(peer)
    }

    // MARK: - Draining the daemon

    func drainBegan() {
        perform(state.drainBegan(hasInput: !input.isEmpty))
        current?.drainBegan()
    }

    var waitedFor: WaitedFor? {
        guard state.isAwaited(hasInput: !input.isEmpty) else { return nil }
        var result = WaitedFor(
            kind: listener.role == .admin ? .command : .request,
            client: records.client,
            since: requestBegan == 0 ? waitingSince : requestBegan
        )
        if let pendingHot {
            result.request = WaitedFor.text(pendingHot.entry.method, pendingHot.entry.target)
            result.sent = max(0, pendingHot.bodyBytes - output.count)
        } else if let current {
            result.request = WaitedFor.text(current.request.method.name, .string(current.request.target))
            result.sent = max(0, framing.contentBytes - output.count)
        } else {
            result.since = waitingSince
        }
        return result
    }

    func cut() {
        finishRecord(isAborted: true)
        close()
    }

    // MARK: - What an answer leaves behind

    /// The answer under way is over, completely written or not.
    func finishRecord(isAborted: Bool) {
        if let pending = pendingHot {
            pendingHot = nil
            let extent = AnswerExtent(bytes: pending.bodyBytes, unsent: output.count, began: requestBegan)
            records.record(pending.entry, cache: pending.cache, extent, isAborted: isAborted)
        } else if let exchange = current {
            let extent = AnswerExtent(bytes: framing.contentBytes, unsent: output.count, began: requestBegan)
            records.record(exchange, extent, isAborted: isAborted)
        }
    }
}

@available(*, unavailable) extension Connection: Sendable {}
