// From readable bytes to requests: one read a callback, heads parsed in place, at most 32 requests a turn.

import EventLoop
import HTTPWire

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
        case .failed: clientLeft()
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
        case .bytes: input.release()
        case .wouldBlock: updateInterest()
        case .end, .failed: close()
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
        state.keepAlive = request.keepAlive && !context.isDraining
        isFollowed = bytes.count > length
        let answer = handler.answerSynchronously(request, through: self)
        switch answer {
        case .notMine: return false
        case .refused, .broken: break
        case .sent, .queued:
            input.consume(length)
            parser.pointee.reset()
            waitingSince = Monotonic.coarse()
        }
        let action = state.answered(answer)
        if action != .none { perform(action) }
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
        state.keepAlive = parser.pointee.keepAlive && !context.isDraining
        input.consume(length)
        parser.pointee.reset()
        if state.sawEnd, isForTunnel { return clientLeft() }
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
            [("client", records.client), ("listener", "\(listener.address)"), ("error", reason)]
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
        var entry = AccessEntry(client: records.client, method: "-", target: .string("-"), status: problem.status)
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
        waitingSince = Monotonic.coarse()
        flush()
    }

    // MARK: - An unread body after an early answer (RFC 9112 section 9.3)

    func drainLeftover() {
        guard state.phase == .draining, let leftover else { return }
        do throws(WireError) {
            leftoverBudget -= try leftover.discard(limit: leftoverBudget)
        } catch {
            context.counters.add(.errorWire)
            tell(.malformed, error)
            return linger()
        }
        let action = state.drained(
            isComplete: leftover.isComplete,
            isTooLong: leftoverBudget <= 0,
            hasInput: !input.isEmpty,
            isDraining: context.isDraining
        )
        if leftover.isComplete { self.leftover = nil }
        perform(action)
    }

    // MARK: - Deadlines

    /// Checked by one sweep per loop: nothing is paid per request.
    func sweep(now: UInt64, elapsed: UInt64) {
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

    private func headIsLate() {
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
