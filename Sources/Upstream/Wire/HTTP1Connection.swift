// A connection that speaks HTTP/1.1 to an origin over TCP: its socket, its events, and its reuse by one transfer after
// another.

import EventLoop
import Glibc
import HTTPWire

/// Carries plain HTTP/1.1; loop-bound. Held by its transfer, or by the pool while it is idle.
///
/// States: closed → waiting (for one of the limited connections) → connecting → open; closed → connecting; open → idle
/// → open; from each to closed. A closed one may connect again for the same transfer. One that is handed over after a
/// 101 counts as closed.
///
/// Its event stays on between transfers, so that a transfer needs no system call for it; only a paused consumer turns
/// it off when bytes come. While idle, any input closes the connection.
final class HTTP1Connection: TransferCarrier, IOHandler, DialOwner {
    enum State { case closed, waiting, connecting, open, idle }

    let slot: CarrierSlot
    /// The reader of the slot, held here as well: a member of a member is retained with each use.
    let reader: ResponseReader
    let pool: HTTP1Pool
    let group: OriginConnections
    private(set) var state = State.closed
    /// The peer's address; nil before the connection is open.
    private(set) var remote: SocketAddress?
    /// Whether another transfer used the connection before this one.
    private(set) var isReused = false
    /// The time since when it is idle, and the time until which it may be reused, in coarse monotonic nanoseconds.
    private(set) var idleSince: UInt64 = 0
    private(set) var idleUntil: UInt64 = 0
    // The socket is open in the states open and idle.
    private(set) var descriptor: Int32 = -1
    private var event: IOEvent?
    private var watched: IOReadiness = []
    private var dial: Dial?

    /// The progress of sending the request.
    var progress = RequestProgress.sent
    /// The bytes of the request that the socket has not accepted yet.
    var outgoing: SendBuffer?
    var continueTimer: LoopTimer?

    init(_ pool: HTTP1Pool, _ group: OriginConnections) {
        self.pool = pool
        self.group = group
        slot = CarrierSlot(on: pool.loop)
        reader = slot.reader
    }

    deinit {
        event?.cancel()
        if descriptor >= 0 { Socket.close(descriptor) }
    }

    // MARK: - To the origin

    /// Marks that the transfer has to wait until another one has ended.
    func wait() { state = .waiting }

    /// Connects to the first of the addresses that answers.
    func open(_ addresses: [SocketAddress], _ transfer: Transfer) {
        state = .connecting
        let dial = Dial(addresses, transfer.dialRules, tunnel: transfer.tunnel, for: self, on: pool.loop)
        self.dial = dial
        dial.next()
    }

    var remoteAddress: String? { remote.map { "\($0.host):\($0.port)" } }

    func dialEvent(_ body: () -> Void) { pool.event(body) }

    func dialCounts(_ sockets: Int) { pool.socketCount += sockets }

    func connected(_ descriptor: Int32, to address: SocketAddress) {
        dial = nil
        state = .open
        self.descriptor = descriptor
        remote = address
        event = IOEvent(onThreadOf: pool.loop, descriptor: descriptor, handler: self)
        guard let transfer else { return }
        // Bytes before the request are not a response to it (RFC 9112 section 9.2).
        if WireSocket.peek(descriptor) == .bytes { return transfer.concludeAtOnce(.failure(transfer.unaskedError)) }
        carry(transfer, isReused: false)
    }

    func dialFailed(_ failure: Dial.Failure) {
        dial = nil
        state = .closed
        // The delegate is told later, when this connection is closed.
        if let transfer {
            transfer.conclude(
                .failure(failure.error(transfer.destinationName, isProxied: transfer.destination?.proxy != nil))
            )
        }
        pool.left(self)
    }

    /// Sends the request of a transfer. It calls neither its source nor its delegate within this call.
    func carry(_ transfer: Transfer, isReused: Bool) {
        state = .open
        transfer.attach(to: self)
        self.isReused = isReused
        reader.reset(for: transfer.request, isProxied: transfer.asksProxy)
        transfer.goesOut()
        watch(.read)
        sendRequest(transfer)
    }

    // MARK: - Events

    func ready(_ readiness: IOReadiness) {
        guard let transfer else { return pool.dropIdle(self) }
        pool.event {
            if readiness == .read { receive(transfer) } else { send(transfer) }
        }
    }

    func watch(_ wanted: IOReadiness) {
        guard wanted != watched else { return }
        watched = wanted
        event?.watch(wanted)
    }

    func watchReading(_ isWanted: Bool) {
        watch(isWanted ? watched.union(.read) : watched.subtracting(.read))
    }

    func watchWriting(_ isWanted: Bool) {
        watch(isWanted ? watched.union(.write) : watched.subtracting(.write))
    }

    func resume(receive: Bool, send: Bool) {
        guard let transfer, state == .open else { return }
        if receive { watchReading(true) }
        if send { self.send(transfer) }
    }

    // MARK: - From one transfer to the next

    /// Whether there is nothing to read: the peer has sent neither bytes nor its end since the last response.
    var hasNoPendingInput: Bool { WireSocket.peek(descriptor) == .nothing }

    func release() {
        continueTimer?.cancel()
        switch state {
        case .open where reader.isComplete && !reader.mustClose && isRequestSent: rest()
        case .open: end()
        case .connecting:
            dial?.cancel()
            dial = nil
            state = .closed
            pool.left(self)
        case .waiting:
            state = .closed
            pool.stopWaiting(self)
        case .closed, .idle: break
        }
    }

    private func rest() {
        state = .idle
        idleSince = Monotonic.coarse()
        idleUntil = idleSince &+ min(reader.longestIdle ?? .max, HTTP1Pool.longestIdle)
        reader.shrink()
        watch(.read)
        if !pool.keep(self) { end() }
    }

    /// Closes the socket and tells the pool, which has room for another one.
    func end() {
        close()
        pool.left(self)
    }

    /// Closes the socket; the caller has told the pool.
    func close() {
        let descriptor = letGo()
        if descriptor >= 0 { Socket.close(descriptor) }
    }

    /// Gives the socket away and tells the pool, which has room for another one.
    func detach() -> Int32 {
        defer { pool.left(self) }
        return letGo()
    }

    /// Ends the events of the socket.
    /// - Returns: the open socket, which is no longer watched; negative if there is none.
    private func letGo() -> Int32 {
        state = .closed
        event?.cancel()
        event = nil
        watched = []
        // The connection may open again; until then the source is not read.
        continueTimer?.cancel()
        progress = .unwanted
        if let outgoing { pool.giveBack(outgoing) }
        outgoing = nil
        guard descriptor >= 0 else { return descriptor }
        defer { descriptor = -1 }
        pool.socketCount -= 1
        return descriptor
    }
}

@available(*, unavailable) extension HTTP1Connection: Sendable {}

// MARK: - The request

/// The progress of sending a request.
///
/// Transitions: awaitingContinue → body → sent; from each to unwanted and broken.
enum RequestProgress {
    case body
    /// The body waits until the origin says that it wants it (RFC 9110 section 10.1.1).
    case awaitingContinue
    /// The whole request is in the send buffer or sent.
    case sent
    /// The rest is not sent: the origin has answered before it, or its source has failed.
    case unwanted
    /// The socket accepts no more of the request. The kernel reports the error only once, so a later end of input must
    /// not be taken for the origin's proper end.
    case broken
}

extension HTTP1Connection {
    /// The longest silence of an origin about `Expect: 100-continue`, in nanoseconds; the same as libcurl's default.
    private static let longestWait: UInt64 = 1_000_000_000

    /// True if the socket has accepted the whole request.
    var isRequestSent: Bool { progress == .sent && outgoing == nil }
    /// True if no more of the request is sent.
    var isRequestOver: Bool { isRequestSent || progress == .unwanted || progress == .broken }

    func sendRequest(_ transfer: Transfer) {
        guard let origin = transfer.destination else { return }
        let buffer = outgoing ?? pool.takeBuffer()
        buffer.removeAll()
        buffer.append(head: transfer.request, transfer.target, origin)
        outgoing = buffer
        guard transfer.request.hasBody else {
            progress = .sent
            return flush()
        }
        progress = transfer.request.expectsContinue ? .awaitingContinue : .body
        transfer.askSourceLater()
        if progress == .awaitingContinue { startWaiting() }
    }

    /// Continues sending the request; called for the source, the loop, or both.
    func send(_ transfer: Transfer) {
        guard state == .open, !transfer.isConcluded else { return }
        fill(transfer)
        guard transfer.state != .ended, !transfer.isConcluded, self.transfer === transfer else { return }
        flush()
        if outgoing == nil { watchWriting(progress == .body && !transfer.isSendPaused) }
        concludeIfComplete(transfer)
    }

    /// Reads from the source as much as it has and as fits into the buffer.
    private func fill(_ transfer: Transfer) {
        let isChunked = transfer.request.bodyFraming == .chunked
        while progress == .body, !transfer.isSendPaused {
            let buffer = outgoing ?? pool.takeBuffer()
            outgoing = buffer
            guard let room = buffer.bodyRoom(isChunked: isChunked) else { return }
            let read = transfer.readBody(into: room)
            // The source may have ended the transfer, and the connection with it.
            guard transfer.state != .ended, self.transfer === transfer else { return }
            switch read {
            case .bytes(let count): buffer.append(body: count, isChunked: isChunked)
            case .wait: return
            case .end:
                if isChunked { buffer.appendLastChunk() }
                progress = .sent
            case .failed:
                // The bytes so far are sent, so that the origin's log shows the truncated request.
                flush()
                giveUpSending(.unwanted)
                return transfer.concludeAtOnce(.failure(transfer.requestBodyError))
            }
        }
    }

    /// Sends as many bytes as the socket accepts.
    private func flush() {
        guard let buffer = outgoing else { return }
        while !buffer.isEmpty {
            switch WireSocket.send(descriptor, buffer.bytes) {
            case .bytes(let count): buffer.consume(count)
            case .wouldBlock, .end, .truncated: return watchWriting(true)
            case .failed:
                // The origin may have answered before it closed: received bytes are read first.
                giveUpSending(.broken)
                return WireSocket.end(descriptor)
            }
        }
        outgoing = nil
        pool.giveBack(buffer)
    }

    /// Ends the sending; the rest of the request is not sent.
    func giveUpSending(_ reason: RequestProgress) {
        progress = reason
        reader.forbidReuse()
        if let outgoing { pool.giveBack(outgoing) }
        outgoing = nil
        watchWriting(false)
        transfer?.stopAsking()
    }

    // MARK: - Expect: 100-continue

    private func startWaiting() {
        // Unowned: this object owns the timer, which ends with it.
        let timer =
            continueTimer
            ?? LoopTimer(onThreadOf: pool.loop) { [unowned self, pool] in
                pool.event {
                    if let transfer { sendBody(transfer) }
                }
            }
        continueTimer = timer
        timer.start(after: Self.longestWait)
    }

    /// Sends the body, because the origin asked for it with a 100, or has not answered.
    func sendBody(_ transfer: Transfer) {
        guard progress == .awaitingContinue else { return }
        continueTimer?.cancel()
        progress = .body
        send(transfer)
    }
}

extension UpstreamRequest {
    fileprivate var expectsContinue: Bool {
        fields.withFirst(.expect) { $0.equalsIgnoringCase("100-continue") } ?? false
    }
}

// MARK: - The response

// Receives a response: bytes are read once, parsed in place, and delivered from there.
extension HTTP1Connection {
    /// Handles readiness of the socket: bytes, its end, or an error.
    func receive(_ transfer: Transfer) {
        if reader.isComplete { return excess(transfer) }
        // A paused consumer gets all pending bytes, and the end, when it resumes.
        if transfer.isConcluded || transfer.mustPause(buffered: reader.bytes.count) { return watchReading(false) }
        if move(transfer) { return }
        guard !reader.isHeadComplete, transfer.supportsSplice else {
            _ = read(transfer, atMost: pool.buffer.count)
            return
        }
        // Content that can be spliced is not to be read with the head before it.
        guard read(transfer, atMost: Self.minimumSpliced), mayReceive(transfer), !move(transfer), mayReceive(transfer)
        else {
            return
        }
        _ = read(transfer, atMost: pool.buffer.count)
    }

    /// Whether the transfer still wants the bytes that wait in the socket.
    private func mayReceive(_ transfer: Transfer) -> Bool {
        self.transfer === transfer && transfer.state == .running && !transfer.isConcluded && !reader.isComplete
            && !transfer.mustPause(buffered: reader.bytes.count)
    }

    /// Reads once.
    /// - Returns: whether the socket had as many bytes as were asked for.
    private func read(_ transfer: Transfer, atMost most: Int) -> Bool {
        // A smaller read is of no use.
        let length = most <= Self.minimumSpliced ? most : min(most, transfer.maximumAtOnce)
        let room = UnsafeMutableRawBufferPointer(rebasing: pool.buffer.prefix(length))
        switch Socket.read(descriptor, into: room) {
        case .bytes(let count):
            take(UnsafeRawBufferPointer(rebasing: room[..<count]), transfer)
            return count == length
        case .wouldBlock: break
        case .end: ended(transfer, osError: 0)
        case .truncated: ended(transfer, osError: ECONNABORTED)
        case .failed(let code): ended(transfer, osError: code)
        }
        return false
    }

    /// Splices long content from socket to socket, if the delegate can do that. False if it must be read.
    private func move(_ transfer: Transfer) -> Bool {
        guard transfer.state == .running, !transfer.isConcluded, self.transfer === transfer,
            let left = reader.lengthLeft, left >= Self.minimumSpliced,
            let result = transfer.splice(Int(clamping: left), from: SpliceSource(descriptor))
        else { return false }
        // The delegate may have ended the transfer.
        guard transfer.state != .ended else { return true }
        switch result {
        case .bytes(let count):
            reader.skip(count)
            transfer.bodyReceived()
            concludeIfComplete(transfer)
        // Nothing can be spliced: urgent data (RFC 9293 section 3.8.5) can only be skipped by reading.
        case .wouldBlock: return false
        case .end: ended(transfer, osError: 0)
        case .truncated: ended(transfer, osError: ECONNABORTED)
        case .failed(let code): ended(transfer, osError: code)
        }
        return true
    }

    /// The least number of bytes to splice: reading fewer costs less.
    private static let minimumSpliced = 32_768

    /// Processes the bytes that were read. Each call of the delegate may end the transfer; then this connection may
    /// carry another one.
    private func take(_ bytes: UnsafeRawBufferPointer, _ transfer: Transfer) {
        var rest = bytes
        if !reader.isHeadComplete {
            guard let body = takeHeads(bytes, transfer) else { return }
            rest = body
        }
        var position = 0
        reading: while true {
            guard let step = reader.next(rest, from: position) else { return refuse(transfer) }
            switch step {
            case .data(let range):
                let content = UnsafeRawBufferPointer(rebasing: rest[range])
                let isPiece = reader.bytes.isEmpty && (range.count >= Self.piece || reader.framing != .chunked)
                if !isPiece || !transfer.handOn(content) { reader.keep(content) }
                guard transfer.state != .ended else { return }
                position = range.upperBound
            case .needMore, .finished: break reading
            }
        }
        if !reader.bytes.isEmpty { transfer.handOn() }
        guard transfer.state != .ended else { return }
        if !rest.isEmpty, !reader.isComplete { transfer.bodyReceived() }
        concludeIfComplete(transfer)
    }

    /// The chunk length in bytes below which chunks that arrive together are handed on together.
    private static let piece = 16_384

    /// Parses interim heads and the final one, and delivers them. Returns the bytes after them, or nil if there is
    /// nothing more to process.
    private func takeHeads(_ bytes: UnsafeRawBufferPointer, _ transfer: Transfer) -> UnsafeRawBufferPointer? {
        var rest = bytes
        while !reader.isHeadComplete {
            guard !rest.isEmpty else { return nil }
            switch reader.take(head: rest) {
            case .needMore: return nil
            case .refused:
                refuse(transfer)
                return nil
            case .interim(let status, let length):
                rest = UnsafeRawBufferPointer(rebasing: rest[length...])
                transfer.handOn()
                if transfer.state != .ended, status == 100 { sendBody(transfer) }
                guard transfer.state != .ended else { return nil }
            case .final(let status, let length):
                rest = UnsafeRawBufferPointer(rebasing: rest[length...])
                if status == 101 {
                    handOver(rest, transfer)
                    return nil
                }
                transfer.headReceived()
                transfer.contentIsNext = !rest.isEmpty && reader.lengthLeft ?? 0 > 0
                if !isRequestOver { answeredEarly(status, transfer) }
                guard transfer.state != .ended else { return nil }
                transfer.handOn()
                guard transfer.state != .ended else { return nil }
            }
        }
        return rest
    }

    /// Handles a final head that came before the end of the request. After a success the rest is still sent, since the
    /// origin expects it.
    private func answeredEarly(_ status: Int, _ transfer: Transfer) {
        if status >= 300 { giveUpSending(.unwanted) } else { sendBody(transfer) }
    }

    /// Hands the connection over after a switch of protocols: the delegate gets the socket and the bytes after the
    /// head. The whole request must have been sent first, or its rest would be taken for bytes of the new protocol.
    private func handOver(_ rest: UnsafeRawBufferPointer, _ transfer: Transfer) {
        guard isRequestSent, let head = reader.takeHead() else { return refuse(transfer) }
        transfer.switched(head, to: SwitchedConnection(PlainTransport(detach()), received: Array(rest)))
    }

    // MARK: - The end

    func concludeIfComplete(_ transfer: Transfer) {
        guard reader.isComplete, isRequestOver, !transfer.isConcluded else { return }
        transfer.concludeAtOnce(.success(reader.trailers))
    }

    private func refuse(_ transfer: Transfer) {
        reader.forbidReuse()
        // The transfer may live on until its consumer resumes.
        if !isRequestOver { giveUpSending(.unwanted) }
        transfer.concludeAtOnce(.failure(transfer.refusal(reader.failure)))
    }

    /// Handles bytes after the response while the transfer is still active: its consumer has paused, or the request is
    /// still being sent.
    private func excess(_ transfer: Transfer) {
        reader.forbidReuse()
        watchReading(false)
        if !isRequestOver { giveUpSending(.unwanted) }
        concludeIfComplete(transfer)
    }

    private func ended(_ transfer: Transfer, osError: Int32) {
        watch([])
        reader.forbidReuse()
        if osError == 0, progress != .broken, reader.end() {
            if !isRequestOver { giveUpSending(.unwanted) }
            return transfer.concludeAtOnce(.success(reader.trailers))
        }
        if isReused, !reader.hasReceived { return transfer.resend { end() } }
        transfer.concludeAtOnce(.failure(closedError(transfer.destinationName, osError)))
    }

    private func closedError(_ name: String, _ osError: Int32) -> UpstreamError {
        let text =
            if osError != 0 {
                String(cString: strerror(osError))
            } else if reader.isHeadComplete {
                "its end was still to come"
            } else {
                reader.hasReceived ? "only a part of one came" : "not a byte came"
            }
        return ConnectionFailure.closed(name, remoteAddress, isHeadComplete: reader.isHeadComplete, text: text)
    }
}
