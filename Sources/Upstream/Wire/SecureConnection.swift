// A connection over TLS on which an https origin is asked for another protocol: its handshake, the request, and what
// answers it.

import EventLoop
import Glibc
import HTTPWire
import TLS

/// Carries one upgrade to an `https` origin (RFC 9110 section 7.8); loop-bound, held by its transfer. libcurl carries all
/// else to such origins, but would deliver what follows a 101 as content.
///
/// States: closed → connecting → greeting (the handshake) → open → closed; from each to closed. One that is handed over
/// after a 101 counts as closed.
final class SecureConnection: TransferCarrier, IOHandler, DialOwner {
    private enum State { case closed, connecting, greeting, open }

    /// How often a connection reads in one turn of the loop.
    private static let readsAtOnce = 32

    let slot: CarrierSlot
    private let pool: HTTP1Pool
    private let context: TLSContext
    private let host: HostName
    private var state = State.closed
    private var remote: SocketAddress?
    private var dial: Dial?
    /// Open in the states greeting and open.
    private var transport: TLSTransport?
    private var watched: IOReadiness = []
    /// The bytes of the request that the transport has not accepted yet.
    private var outgoing: SendBuffer?
    /// Reads on in the next turn of the loop: bytes inside the session raise no readiness.
    private var again: LoopTimer?

    private init(_ pool: HTTP1Pool, _ context: TLSContext, _ host: HostName) {
        (self.pool, self.context, self.host) = (pool, context, host)
        slot = CarrierSlot(on: pool.loop)
    }

    deinit { transport?.close(resets: false) }

    /// Makes a connection for a transfer, before the addresses of its origin are known.
    /// - Throws: `.request` if the terms have no session, or no certificate can be for the host.
    static func take(_ transfer: Transfer, to origin: Origin, _ pool: HTTP1Pool) throws(UpstreamError) {
        guard let context = transfer.request.terms.session, let host = HostName(origin.connectName) else {
            let detail = "an upgrade to \(origin.name) is not possible: no certificate can be for such a host"
            throw UpstreamError(.request, detail: detail)
        }
        transfer.attach(to: SecureConnection(pool, context, host))
        transfer.armTimer()
    }

    // MARK: - To the origin

    /// Connects to the first of the addresses that answers, through a tunnel of the proxy if there is one.
    func open(_ addresses: [SocketAddress], _ transfer: Transfer) {
        state = .connecting
        transfer.deadlines.enter(.connecting, now: Monotonic.now())
        transfer.armTimer()
        let dial = Dial(addresses, transfer.dialRules, tunnel: transfer.tunnel, for: self, on: pool.loop)
        self.dial = dial
        dial.next()
    }

    var remoteAddress: String? { remote.map { "\($0.host):\($0.port)" } }

    func dialEvent(_ body: () -> Void) { pool.event(body) }

    func dialCounts(_ sockets: Int) { pool.socketCount += sockets }

    func dialFailed(_ failure: Dial.Failure) {
        dial = nil
        state = .closed
        guard let transfer else { return }
        transfer.conclude(
            .failure(failure.error(transfer.destinationName, isProxied: transfer.destination?.proxy != nil))
        )
    }

    func connected(_ descriptor: Int32, to address: SocketAddress) {
        dial = nil
        remote = address
        let plain = PlainTransport(descriptor)
        guard let transfer else { return }
        do throws(CertificateError) {
            transport = try TLSTransport(asking: context, for: host, over: plain, in: pool.room)
        } catch {
            plain.close(resets: false)
            pool.socketCount -= 1
            state = .closed
            return transfer.concludeAtOnce(.failure(words(transfer).file(error.description)))
        }
        state = .greeting
        begin()
        greet(transfer)
    }

    /// Has the transport call this object.
    private func begin() {
        // A callback of the loop, outside any task: its isolation is entered once, by address.
        let address = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        pool.loop.assumeIsolated { loop in
            guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
            // The caller's frame holds it.
            let connection = Unmanaged<SecureConnection>.fromOpaque(pointer).takeUnretainedValue()
            connection.transport?.begin(on: loop, connection)
        }
    }

    // MARK: - The handshake

    private func greet(_ transfer: Transfer) {
        guard let transport else { return }
        switch transport.handshake?.step() ?? .done(protocol: nil) {
        case .waits(let readiness): watch(readiness)
        case .failed(let text): transfer.concludeAtOnce(.failure(refusal(transport, text, transfer)))
        case .done:
            state = .open
            // Bytes before the request are not a response to it (RFC 9112 section 9.2).
            switch transport.read(into: pool.buffer) {
            case .bytes: return transfer.concludeAtOnce(.failure(transfer.unaskedError))
            case .wouldBlock: send(transfer)
            case .end, .truncated, .failed: ended(transfer, isSaid: false)
            }
        }
    }

    private func words(_ transfer: Transfer) -> HandshakeFailure {
        HandshakeFailure(name: transfer.destinationName, tls: transfer.request.terms.tls)
    }

    /// Why there is no session.
    private func refusal(_ transport: TLSTransport, _ text: String, _ transfer: Transfer) -> UpstreamError {
        let words = words(transfer)
        guard transport.failure?.kind == .untrusted else { return words.session(text) }
        guard let fault = transport.session.fault else { return words.pin }
        let bad = BadCertificate(
            code: fault.code,
            depth: fault.depth,
            notBefore: fault.certificate?.notBefore,
            notAfter: fault.certificate?.notAfter
        )
        guard fault.isOtherName else { return words.certificate(bad, isOtherName: false, text: fault.text) }
        // What a certificate says is told only if it can be a name.
        let names = (fault.certificate?.names ?? []).compactMap { HostName($0)?.text }
        let told = names.isEmpty ? "" : "it is for \(names.prefix(3).joined(separator: ", ")), "
        return words.certificate(nil, isOtherName: true, text: "\(told)not for \(host.text)")
    }

    // MARK: - Events

    func ready(_ readiness: IOReadiness) {
        guard let transfer else { return }
        pool.event {
            switch state {
            case .greeting: greet(transfer)
            case .open where readiness == .read: receive(transfer)
            case .open: send(transfer)
            case .closed, .connecting: break
            }
        }
    }

    private func watch(_ wanted: IOReadiness) {
        guard wanted != watched else { return }
        watched = wanted
        transport?.watch(wanted)
    }

    func resume(receive: Bool, send: Bool) {
        guard receive, state == .open, let transfer else { return }
        watch(watched.union(.read))
        self.receive(transfer)
    }

    // MARK: - The request

    private func send(_ transfer: Transfer) {
        guard let transport, let origin = transfer.destination else { return }
        if transfer.timesSent == 0 {
            reader.reset(for: transfer.request)
            transfer.goesOut()
            let buffer = pool.takeBuffer()
            buffer.append(head: transfer.request, transfer.target, origin)
            outgoing = buffer
        }
        while let buffer = outgoing {
            guard !buffer.isEmpty else {
                outgoing = nil
                pool.giveBack(buffer)
                break
            }
            switch transport.write(buffer.bytes) {
            case .bytes(let count): buffer.consume(count)
            case .wouldBlock: return watch([.read, .write])
            case .end, .truncated, .failed: return ended(transfer, isSaid: false)
            }
        }
        watch(.read)
    }

    // MARK: - The answer

    private func mayReceive(_ transfer: Transfer) -> Bool {
        state == .open && self.transfer === transfer && transfer.state == .running && !transfer.isConcluded
    }

    private func receive(_ transfer: Transfer) {
        for _ in 0..<Self.readsAtOnce {
            guard mayReceive(transfer), let transport else { return }
            if transfer.mustPause(buffered: reader.bytes.count) { return watch(watched.subtracting(.read)) }
            switch transport.read(into: pool.buffer) {
            case .bytes(let count): take(UnsafeRawBufferPointer(rebasing: pool.buffer[..<count]), transfer)
            case .wouldBlock: return
            case .end: return ended(transfer, isSaid: true)
            case .truncated, .failed: return ended(transfer, isSaid: false)
            }
            guard mayReceive(transfer), transport.hasPending else { return }
        }
        readLater()
    }

    private func readLater() {
        // Unowned: this object owns the timer, which ends with it.
        let timer =
            again
            ?? LoopTimer(onThreadOf: pool.loop) { [unowned self] in
                pool.event {
                    if let transfer { receive(transfer) }
                }
            }
        again = timer
        timer.start(after: 0)
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ transfer: Transfer) {
        var rest = bytes
        while !reader.isHeadComplete {
            guard !rest.isEmpty else { return }
            switch reader.take(head: rest) {
            case .needMore: return
            case .refused: return refuse(transfer)
            case .interim(_, let length): rest = rest.part(length..<rest.count)
            case .final(101, let length): return handOver(rest.part(length..<rest.count), transfer)
            case .final(_, let length):
                rest = rest.part(length..<rest.count)
                transfer.headReceived()
            }
            transfer.handOn()
            guard mayReceive(transfer) else { return }
        }
        let isFine = reader.take(body: rest) { content in
            mayReceive(transfer) && reader.isHandedOn && transfer.handOn(content)
        }
        guard mayReceive(transfer) else { return }
        guard isFine else { return refuse(transfer) }
        transfer.handOn()
        guard mayReceive(transfer) else { return }
        if !rest.isEmpty { transfer.bodyReceived() }
        if reader.isComplete { transfer.concludeAtOnce(.success(reader.trailers)) }
    }

    /// Hands the connection over after a switch of protocols. The whole request must have been sent first, or its rest
    /// would be taken for bytes of the new protocol.
    private func handOver(_ rest: UnsafeRawBufferPointer, _ transfer: Transfer) {
        guard outgoing == nil, let head = reader.takeHead(), let transport else { return refuse(transfer) }
        transport.stop()
        self.transport = nil
        state = .closed
        pool.socketCount -= 1
        transfer.switched(head, to: SwitchedConnection(transport, received: Array(rest)))
    }

    private func refuse(_ transfer: Transfer) {
        watch([])
        transfer.concludeAtOnce(.failure(transfer.refusal(reader.failure)))
    }

    // MARK: - The end

    /// Handles the end of the connection.
    /// - Parameter isSaid: whether the origin has said it (close_notify).
    private func ended(_ transfer: Transfer, isSaid: Bool) {
        watch([])
        // In TLS 1.3 the alert about a client certificate comes only after the handshake.
        if let failure = transport?.failure {
            return transfer.concludeAtOnce(.failure(words(transfer).session(failure.message)))
        }
        if outgoing == nil, reader.end() {
            transfer.provesEnd = isSaid
            return transfer.concludeAtOnce(.success(reader.trailers))
        }
        let text = reader.isHeadComplete ? "its end was still to come" : "its answer was still to come"
        let error = ConnectionFailure.closed(
            transfer.destinationName,
            remoteAddress,
            isHeadComplete: reader.isHeadComplete,
            text: text
        )
        transfer.concludeAtOnce(.failure(error))
    }

    func release() {
        dial?.cancel()
        dial = nil
        again?.cancel()
        state = .closed
        if let outgoing { pool.giveBack(outgoing) }
        outgoing = nil
        guard let transport else { return }
        self.transport = nil
        transport.close(resets: false)
        pool.socketCount -= 1
    }
}

@available(*, unavailable) extension SecureConnection: Sendable {}
