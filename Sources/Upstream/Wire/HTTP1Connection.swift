// A connection that speaks HTTP/1.1 to an origin over TCP: its socket, its events, and its way from
// one transfer to the next.

import EventLoop
import Glibc
import HTTPWire

/// Carries plain HTTP/1.1; loop-bound. Held by its transfer, or by the pool while it lies idle.
///
/// States: closed → waiting (for one of the limited connections) → connecting → open; closed → connecting; open →
/// idle → open; from each to closed. A closed one may connect again for the same transfer. One that is handed over
/// after a 101 counts as closed.
///
/// Its event stays on between transfers, so that a transfer needs no system call for it; only a paused consumer turns
/// it off when bytes come. While idle, any input closes the connection.
final class HTTP1Connection: TransferCarrier, IOHandler, DialOwner {
    enum State { case closed, waiting, connecting, open, idle }

    let slot: CarrierSlot
    /// The slot's, held here as well: a member of a member is retained with each use.
    let reader: ResponseReader
    let pool: HTTP1Pool
    let place: OriginConnections
    private(set) var state = State.closed
    /// The peer's address; nil before the connection is open.
    private(set) var remote: SocketAddress?
    /// Another transfer had it before this one.
    private(set) var isReused = false
    /// Since when it is idle, and until when it may be reused: coarse monotonic nanoseconds.
    private(set) var idleSince: UInt64 = 0
    private(set) var idleUntil: UInt64 = 0
    // Open in the states open and idle.
    private(set) var descriptor: Int32 = -1
    private var event: IOEvent?
    private var watched: IOReadiness = []
    private var dial: Dial?

    /// How far the request has gone; see `HTTP1Connection+Request.swift`.
    var progress = RequestProgress.sent
    /// Bytes of the request that the socket has not taken.
    var outgoing: SendBuffer?
    var continueTimer: LoopTimer?

    init(_ pool: HTTP1Pool, _ place: OriginConnections) {
        self.pool = pool
        self.place = place
        slot = CarrierSlot(on: pool.loop)
        reader = slot.reader
    }

    deinit {
        event?.cancel()
        if descriptor >= 0 { Socket.close(descriptor) }
    }

    // MARK: - To the origin

    /// The transfer has to wait until another one has ended.
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
        // Bytes before the request are no response to it (RFC 9112 section 9.2).
        if WireSocket.peek(descriptor) == .bytes { return transfer.concludeAtOnce(.failure(transfer.unaskedError)) }
        carry(transfer, isReused: false)
    }

    func dialFailed(_ failure: Dial.Failure) {
        dial = nil
        state = .closed
        // Told later: nothing of this connection is left by then.
        if let transfer {
            transfer.conclude(.failure(failure.error(transfer.place, isProxied: transfer.destination?.proxy != nil)))
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

    /// Closes the socket; the place has room again.
    func end() {
        close()
        pool.left(self)
    }

    /// Closes the socket; the caller has told the pool.
    func close() {
        let descriptor = letGo()
        if descriptor >= 0 { Socket.close(descriptor) }
    }

    /// Gives the socket away; the place has room again.
    func detach() -> Int32 {
        defer { pool.left(self) }
        return letGo()
    }

    /// - Returns: the open socket, which is no longer watched; negative if there is none.
    private func letGo() -> Int32 {
        state = .closed
        event?.cancel()
        event = nil
        watched = []
        // It may connect again: until then the source is not read.
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
