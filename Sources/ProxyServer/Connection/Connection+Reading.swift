// From readable bytes to requests: one read a callback, heads parsed in place, at most 32 requests a turn.

import EventLoop
import HTTPWire

extension Connection {
    /// Requests served in one turn of the loop before others get theirs.
    private static let requestsPerTurn = 32

    func read() {
        guard phase != .lingering else { return discard() }
        guard !input.isFull else { return updateInterest() }
        switch input.read(from: transport) {
        case .bytes(let count):
            context.counters.add(.bytesIn, UInt64(count))
            process()
        case .wouldBlock: updateInterest()
        case .end: ended()
        case .failed: clientLeft()
        }
    }

    /// The client has ended its side.
    private func ended() {
        sawEnd = true
        switch phase {
        case .flushing: updateInterest()
        case .waiting where !input.isEmpty && isQueued:
            // Whole requests wait for their turn: they came before the end.
            updateInterest()
        case .answering: endedWhileAnswered()
        default: close()
        }
    }

    /// Behind a whole request a client may end its side and read on. Whether it does, or has left, cannot be seen before it
    /// refuses what is sent to it; where leaving ends a fetch, this counts as leaving.
    private func endedWhileAnswered() {
        guard let exchange = current, !exchange.endsWithClient, exchange.knownBody?.isAwaited != true,
            !transport.isHungUp
        else {
            return clientLeft()
        }
        transport.askWhetherAnybodyIsThere()
        updateInterest()
    }

    /// Reads away what a client still sends after the last answer.
    private func discard() {
        switch input.read(from: transport) {
        case .bytes: input.release()
        case .wouldBlock: updateInterest()
        case .end, .failed: close()
        }
    }

    /// Uses what has been read.
    func process() {
        guard !isProcessing else { return }
        isProcessing = true
        var requests = 0
        let sentBefore = sent
        while phase == .waiting, !input.isEmpty {
            if requests == Self.requestsPerTurn || sent &- sentBefore >= UInt64(OutputQueue.callLimit) {
                context.runSoon(self)
                break
            }
            requests += 1
            guard serveNext() else { break }
        }
        isProcessing = false
        flushJoined()
        switch phase {
        case .waiting where !output.isEmpty: phase = .flushing
        case .waiting:
            if sawEnd, !isQueued { return close() }
        case .answering:
            if sawEnd, let current, current.endsWithClient || current.knownBody?.failure == .clientGone {
                clientLeft()
            } else {
                current?.knownBody?.inputArrived()
            }
        case .draining: drainLeftover()
        case .flushing, .lingering, .taken, .closed: break
        }
        updateInterest()
    }

    /// Serves the request at the front of the buffer; false where it is not whole yet.
    private func serveNext() -> Bool {
        do throws(WireError) {
            let bytes = input.bytes
            guard case .complete(let length) = try parser.pointee.parse(bytes) else {
                if !hasHeadBegun {
                    hasHeadBegun = true
                    waitingSince = Monotonic.now()
                }
                return false
            }
            hasHeadBegun = false
            requestBegan = context.isLogging ? Monotonic.now() : 0
            if try answeredAtOnce(bytes, length) { return true }
            try begin(length)
        } catch {
            refuse(error)
        }
        return true
    }

    // MARK: - The hot path

    private func answeredAtOnce(_ bytes: UnsafeRawBufferPointer, _ length: Int) throws(WireError) -> Bool {
        let request = HotRequest(parser, buffer: bytes)
        guard request.isBare else { return false }
        version = request.version
        keepAlive = request.keepAlive && !context.isDraining
        isFollowed = bytes.count > length
        let answer = handler.answerAtOnce(request, through: self)
        switch answer {
        case .notMine: return false
        case .refused: close()
        case .broken: clientLeft()
        case .sent, .queued:
            input.consume(length)
            parser.pointee.reset()
            waitingSince = Monotonic.coarse()
            if answer == .queued {
                phase = .flushing
            } else if !keepAlive {
                linger()
            }
        }
        return true
    }

    // MARK: - The waiting path

    private func begin(_ length: Int) throws(WireError) {
        flushJoined()
        if requestBegan == 0 { requestBegan = Monotonic.now() }
        let bytes = input.bytes
        let head = parser.pointee.makeHead(bytes)
        let target = try parser.pointee.makeTarget(head)
        let framing = parser.pointee.framing
        let expectsContinue = parser.pointee.expectsContinue
        let isForTunnel =
            head.method == .connect
            || parser.pointee.requestsUpgrade && UpgradeTunnel.wantedProtocols(head, framing) != nil
        keepAlive = parser.pointee.keepAlive && !context.isDraining
        input.consume(length)
        parser.pointee.reset()
        if sawEnd, isForTunnel { return clientLeft() }
        let exchange = Exchange(
            id: context.nextExchange(),
            request: head,
            target: target,
            framing: framing,
            carrier: self,
            expectsContinue: expectsContinue,
            from: peer,
            over: listener,
            startedAt: requestBegan,
            in: context
        )
        current = exchange
        self.framing = HTTP1Framing()
        if isForTunnel { exchange.endsWithClient = true }
        // Its end came while another answer was written.
        if sawEnd { transport.askWhetherAnybodyIsThere() }
        phase = .answering
        waitingSince = Monotonic.coarse()
        if handler.passOn(exchange) { return }
        // This callback runs on the loop, but outside any task: its isolation is entered once, by address.
        let address = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        loop.assumeIsolated { loop in
            guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
            // The caller's frame holds the connection.
            Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue().launch(on: loop)
        }
    }

    private func launch(on loop: isolated EventLoop) {
        guard let exchange = current else { return }
        let handler = self.handler
        loop.holdNextTask()
        exchange.task = Task.immediate(executorPreference: loop.taskExecutor) {
            // Naming the loop makes it the task's isolation.
            _ = loop
            await handler.answer(exchange, on: loop)
            exchange.handlerReturned()
        }
        loop.runHeldTask()
    }

    // MARK: - Refusals

    /// Answers bytes that are no acceptable request, and ends the connection.
    func refuse(_ error: WireError) {
        context.counters.add(.errorWire)
        var problem = Problem(error)
        // The buffer still begins with what was refused.
        let foreign = ClientTrouble(firstBytes: input.bytes)
        if let foreign { problem.detail = "\(foreign.text)" }
        tell(foreign ?? .malformed, error)
        refuse(problem)
    }

    /// Tells the daemon's log what is wrong with what the client sent.
    func tell(_ trouble: ClientTrouble, _ error: WireError) {
        let reason = trouble == .malformed ? error.detail : ""
        context.daemonLog.tell(trouble, [("client", client), ("listener", "\(listener.address)"), ("error", reason)])
    }

    /// Answers without an exchange, and ends the connection.
    func refuse(_ problem: Problem) {
        flushJoined()
        keepAlive = false
        input.release()
        let body = problem.body
        var head = problem.head(name: context.settings.name)
        head.fields.set(.contentLength, String(body.count))
        head.fields.set(.connection, "close")
        head.fields.set(.date, context.dateText())
        var entry = AccessEntry(client: client, method: "-", target: .string("-"), status: problem.status)
        entry.error = problem.detail
        if context.log?.needsID == true {
            let id = context.nextRequestID()
            entry.id = .digits(id)
            head.fields.set(RequestID.fieldName, RequestID.made(id).text)
        }
        var bytes: [UInt8] = []
        Serializer.write(head, into: &bytes)
        output.append(bytes + body)
        if requestBegan == 0 { requestBegan = Monotonic.now() }
        pendingHot = PendingHot(entry: entry, cache: .none, bodyBytes: body.count, owner: context)
        phase = .flushing
        waitingSince = Monotonic.coarse()
        flush()
    }

    // MARK: - An unread body after an early answer (RFC 9112 section 9.3)

    func drainLeftover() {
        guard phase == .draining, let leftover else { return }
        do throws(WireError) {
            leftoverBudget -= try leftover.discard(limit: leftoverBudget)
        } catch {
            context.counters.add(.errorWire)
            tell(.malformed, error)
            return linger()
        }
        if leftover.isComplete {
            self.leftover = nil
            nextRequest()
        } else if leftoverBudget <= 0 || sawEnd {
            linger()
        }
    }
}
