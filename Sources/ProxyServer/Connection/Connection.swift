// One client connection: its state, its socket's readiness, its requests as they are read, and its end.

package import EventLoop
import HTTPWire
import ServiceCore

/// Loop-bound. HTTP/1.1 and 1.0: one request after the other, answers in order. What it does when something happens,
/// its ``ConnectionState`` says.
package final class Connection: ClientConnection, IOHandler {
    /// An answer that was written in part on the hot path.
    struct PendingHot {
        let entry: AccessEntry
        let kind: AnswerKind
        let bodyBytes: Int
        let owner: AnyObject
    }

    /// Whether the transport ever holds bytes that raise no readiness.
    private let readsAhead: Bool
    /// What the transport watches, here so that a look at it needs no reference.
    private var watched: IOReadiness = []

    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var state = ConnectionState()
    // Ours alone, freed in deinit. A value in this object would pay for a check of exclusive access with every use.
    let parser: UnsafeMutablePointer<RequestParser>
    let input: ReadBuffer
    let output: OutputQueue
    var current: Exchange?
    /// The framing of the answer of `current`.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var framing = HTTP1Framing()
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var pendingHot: PendingHot?
    /// The content of the request under way, or of one whose early answer left it unread.
    var content: HTTP1Content?
    /// What of it may still be read away.
    var leftoverBudget = 0
    /// Bytes written since the connection began.
    var sent: UInt64 = 0
    /// The version of the request under way.
    var version = HTTPVersion.http11
    var isProcessing = false
    /// More than the request under way has been read.
    var isFollowed = false
    /// Answers of this callback wait in the loop's ``JoinedAnswers``.
    var hasJoined = false
    /// When the head was complete, monotonic nanoseconds; for the duration in log and metrics.
    var requestBegan: UInt64 = 0
    /// When the present wait began, monotonic nanoseconds.
    var waitingSince: UInt64

    /// Begins the transport, and owns it.
    init(on loop: isolated EventLoop, _ parts: ConnectionParts) {
        let (context, transport) = (parts.context, parts.transport)
        readsAhead = transport.readsAhead
        output = OutputQueue(copiesMemory: transport.copiesMemory)
        parser = .allocate(capacity: 1)
        parser.initialize(to: RequestParser(limits: context.settings.head))
        input = ReadBuffer(pool: context.blocks)
        waitingSince = Monotonic.coarse()
        super.init(on: loop, parts, carriage: .http1)
        transport.begin(on: loop, self)
        joinLoop()
        updateInterest()
    }

    deinit {
        parser.deinitialize(count: 1)
        parser.deallocate()
    }

    package func ready(_ readiness: IOReadiness) {
        if readiness == .write { flush() } else { read() }
    }

    override func runAgain() {
        if !output.isEmpty, !state.isBlocked { flush() }
        if readsAhead, watched.contains(.read), transport.hasPending { read() }
        process()
    }

    /// Watches for what the state needs, and gives an empty buffer back.
    func updateInterest() {
        if input.isEmpty { input.release() }
        let wanted = IOReadiness(read: !state.sawEnd && !input.isFull, write: state.isBlocked)
        // What waits inside the transport raises no readiness.
        if readsAhead, wanted.contains(.read), !state.isOver, transport.hasPending { context.runSoon(self) }
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
        leaveLoop()
    }

    /// Nothing is read or written here any more.
    func letGo() {
        transport.stop()
        input.release()
        content = nil
        let exchange = current
        current = nil
        exchange?.connectionEnded()
    }

    override func turnAway(_ problem: Problem) { refuse(problem) }

    // MARK: - Draining the daemon

    override func drainBegan() {
        current?.drainBegan()
        guard state.phase == .waiting, context.isImpatient(since: waitingSince) else { return }
        // A request that has come already is answered.
        if !state.sawEnd { read() }
        perform(state.drainBegan(hasInput: !input.isEmpty))
    }

    override var waitedFor: WaitedFor? {
        guard state.isAwaited(hasInput: !input.isEmpty) else { return nil }
        var result = WaitedFor(
            kind: client.listener.role == .proxy ? .request : .command,
            client: client.name,
            since: requestBegan
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

    override var mayChangeStore: Bool {
        current.map { !$0.request.method.isSafe } ?? (state.phase == .waiting)
    }

    override func cut() {
        finishRecord(isAborted: true)
        close()
    }

    // MARK: - Deadlines

    /// Checked by one sweep per loop: nothing is paid per request.
    override func sweep(now: UInt64, elapsed: UInt64) {
        let settings = context.settings
        let late = state.late(
            // The coarse clock, which `waitingSince` is read from, may be ahead by nothing and behind by a tick.
            waited: now > waitingSince ? now - waitingSince : 0,
            ConnectionState.Deadlines(
                head: settings.headTimeout,
                idle: settings.idle,
                drain: settings.bodyGrace,
                linger: settings.linger
            ),
            hasHeadBytes: input.count > 2,
            isHungUp: transport.isHungUp,
            isBodyLate: current?.knownBody?.isLate(elapsed: elapsed, settings) ?? false
        )
        switch late {
        case .nothing: break
        case .head: headIsLate()
        case .request, .end: close()
        case .client: clientLeft()
        case .drain: linger()
        case .reading:
            context.counters.add(.errorTimeout)
            cutAnswer(resets: true)
        case .body:
            // The handler learns of it as a failed body and may still answer.
            context.counters.add(.errorTimeout)
            state.keepAlive = false
            current?.knownBody?.fail(.tooSlow)
        }
    }

    // MARK: - What an answer leaves behind

    /// The answer under way is over, completely written or not.
    func finishRecord(isAborted: Bool) {
        if let pending = pendingHot {
            pendingHot = nil
            let extent = AnswerExtent(bytes: pending.bodyBytes, unsent: output.count, began: requestBegan)
            records.record(pending.entry, pending.kind, extent, isAborted: isAborted)
        } else if let exchange = current {
            let extent = AnswerExtent(bytes: framing.contentBytes, unsent: output.count, began: requestBegan)
            records.record(exchange, extent, isAborted: isAborted)
        }
    }
}

// MARK: - Reading

extension Connection {
    /// The number of pipelined requests that one connection may have served in a turn of the loop.
    private static let requestsPerTurn = 32

    func read() {
        guard state.phase != .lingering else { return discard() }
        guard !input.isFull else { return updateInterest() }
        switch input.read(from: transport) {
        case .bytes(let count):
            context.counters.add(.bytesIn, UInt64(count))
            process()
        case .wouldBlock: updateInterest()
        case .end: ended()
        case .truncated, .failed: clientLeft()
        }
    }

    /// The client has ended its side.
    private func ended() {
        let action = state.clientEnded(
            hasInput: !input.isEmpty,
            isQueued: isQueued,
            endsWithClient: current.map {
                $0.endsWithClient || $0.knownBody?.isAwaited == true || transport.isHungUp
            } ?? true
        )
        perform(action)
        updateInterest()
    }

    /// Reads and drops the bytes that a client sends after the last answer.
    private func discard() {
        switch input.read(from: transport) {
        case .bytes:
            input.release()
            updateInterest()
        case .wouldBlock: updateInterest()
        case .end, .truncated, .failed: close()
        }
    }

    /// Processes the bytes in the read buffer.
    func process() {
        guard !isProcessing else { return }
        isProcessing = true
        var requests = 0
        let sentBefore = sent
        while state.phase == .waiting, !input.isEmpty {
            if requests == Self.requestsPerTurn || sent &- sentBefore >= UInt64(OutputQueue.callLimit) {
                context.runSoon(self)
                break
            }
            requests += 1
            guard serveNext() else { break }
        }
        isProcessing = false
        flushJoined()
        let action = state.processed(
            hasOutput: !output.isEmpty,
            isQueued: isQueued,
            endsWithClient: current.map { $0.endsWithClient || $0.knownBody?.failure == .clientGone } ?? false
        )
        if action != .none { perform(action) }
        updateInterest()
    }

    /// Serves the request at the front of the buffer; false if its head is incomplete.
    private func serveNext() -> Bool {
        do throws(WireError) {
            let bytes = input.bytes
            guard case .complete(let length) = try parser.pointee.parse(bytes) else {
                if !state.hasHeadBegun {
                    state.hasHeadBegun = true
                    waitingSince = Monotonic.now()
                }
                return false
            }
            state.hasHeadBegun = false
            requestBegan = Monotonic.now()
            if try answeredAtOnce(bytes, length) { return true }
            try begin(length)
        } catch {
            refuse(error)
        }
        return true
    }

    // MARK: - The hot path

    private func answeredAtOnce(_ bytes: UnsafeRawBufferPointer, _ length: Int) throws(WireError) -> Bool {
        let request = HotRequest(parser, buffer: bytes, of: client)
        guard request.isBare else { return false }
        version = request.version
        state.keepAlive = request.keepAlive && !context.isDraining
        isFollowed = bytes.count > length
        let answer = handler.answerSynchronously(request, through: self)
        switch answer {
        case .notMine: return false
        case .refused, .broken: break
        case .sent, .queued:
            input.consume(length)
            parser.pointee.reset()
            // The record of one that is sent has set it.
            if answer == .queued { waitingSince = Monotonic.coarse() }
        }
        let action = state.answered(answer)
        if action != .none { perform(action) }
        return true
    }

    // MARK: - The waiting path

    private func begin(_ length: Int) throws(WireError) {
        flushJoined()
        let bytes = input.bytes
        let head = parser.pointee.makeHead(bytes)
        let target = try parser.pointee.makeTarget(head)
        let framing = parser.pointee.framing
        let expectsContinue = parser.pointee.expectsContinue
        let isForTunnel =
            head.method == .connect
            || parser.pointee.requestsUpgrade && UpgradeTunnel.wantedProtocols(head, framing) != nil
        state.keepAlive = parser.pointee.keepAlive && !context.isDraining
        input.consume(length)
        parser.pointee.reset()
        if state.sawEnd, isForTunnel { return clientLeft() }
        var body: RequestBody?
        if framing != .none {
            let content = HTTP1Content(framing, of: self)
            self.content = content
            body = RequestBody(content, framing, expectsContinue: expectsContinue)
        }
        let exchange = Exchange(
            id: context.nextExchange(),
            request: head,
            target: target,
            framing: framing,
            body: body,
            carrier: self,
            of: client,
            startedAt: requestBegan,
            in: context
        )
        current = exchange
        client.repeatsFields = parser.pointee.keepsFields
        self.framing = HTTP1Framing()
        if isForTunnel { exchange.endsWithClient = true }
        perform(state.requestBegan())
        waitingSince = Monotonic.coarse()
        if handler.passThrough(exchange) { return }
        // This callback runs on the loop, but outside any task: its isolation is entered once, by address.
        let address = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        loop.assumeIsolated { loop in
            guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
            // The caller's frame holds the connection.
            Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue().launch(on: loop)
        }
    }

    private func launch(on loop: isolated EventLoop) {
        current?.launch(by: handler, on: loop)
    }

    // MARK: - Refusals

    /// Answers bytes that are no acceptable request, and ends the connection.
    func refuse(_ error: WireError) {
        context.counters.add(.errorWire)
        var problem = Problem(error)
        // The buffer still begins with the refused request.
        let foreign = ClientTrouble(firstBytes: input.bytes)
        if let foreign { problem.detail = "\(foreign.text)" }
        tell(foreign ?? .malformed, error)
        refuse(problem)
    }

    /// Reports a client's malformed request to the daemon's log.
    func tell(_ trouble: ClientTrouble, _ error: WireError) {
        let reason = trouble == .malformed ? error.detail : ""
        context.daemonLog.tell(
            trouble,
            [("client", client.name), ("listener", "\(client.listener.address)"), ("error", reason)]
        )
    }

    /// Answers without an exchange, and ends the connection.
    func refuse(_ problem: Problem) {
        flushJoined()
        state.refused()
        input.release()
        let body = problem.body
        var head = problem.head(name: context.settings.name)
        head.fields.set(.contentLength, String(body.count))
        head.fields.set(.connection, "close")
        head.fields.set(.date, context.dateText())
        var entry = AccessEntry(client: client.name, method: "-", target: .string("-"), status: problem.status)
        entry.error = problem.detail
        if context.log?.needsID == true {
            let id = context.nextRequestID()
            entry.id = .digits(id)
            head.fields.set(RequestID.fieldName, RequestID.made(id).text)
        }
        var bytes: [UInt8] = []
        Serializer.write(head, into: &bytes)
        output.append(bytes + body)
        requestBegan = Monotonic.now()
        let kind = AnswerKind(number: .none, outcome: .error, tier: .none, status: problem.status)
        pendingHot = PendingHot(entry: entry, kind: kind, bodyBytes: body.count, owner: context)
        waitingSince = Monotonic.coarse()
        flush()
    }

    // MARK: - An unread body after an early answer (RFC 9112 section 9.3)

    func drainLeftover() {
        guard state.phase == .draining, let content else { return }
        do throws(WireError) {
            leftoverBudget -= try content.discard(limit: leftoverBudget)
        } catch {
            context.counters.add(.errorWire)
            tell(.malformed, error)
            return linger()
        }
        let action = state.drained(
            isComplete: content.isComplete,
            isTooLong: leftoverBudget <= 0,
            hasInput: !input.isEmpty,
            isDraining: context.endsIdle
        )
        if content.isComplete { self.content = nil }
        perform(action)
    }

    // MARK: - Deadlines

    fileprivate func headIsLate() {
        context.counters.add(.errorTimeout)
        refuse(
            Problem(
                status: 408,
                title: "Request timeout",
                detail: "the head did not come within \(context.settings.headTimeout / 1_000_000) ms; send it at once",
                proxyError: "http_request_error"
            )
        )
    }
}
