// A tunnel after CONNECT or Upgrade: two transports, between which bytes are copied both ways with bounded buffers; and
// the transfer by which an upgrade asks the origin for one.

package import EventLoop
package import HTTPWire
package import Upstream

/// The number of bytes that went through a tunnel.
package struct TunnelTraffic: Sendable, Equatable {
    /// Bytes from the client to the other side.
    package var sent = 0
    /// Bytes from the other side to the client.
    package var received = 0
}

/// A tunnel, which owns both transports from its creation to its end. Loop-bound.
///
/// The end of one direction is passed on, and the other goes on; the tunnel ends with both, on an error of either of
/// them, which is a reset for the other, or when nothing has moved for the configured time.
package final class Tunnel: LoopMember {
    private let client: DetachedTransport
    private let context: LoopContext
    private let timeout: UInt64?
    private let near: TunnelSide
    private let far: TunnelSide
    private var traffic = TunnelTraffic()
    private var lastActive = Monotonic.coarse()
    private var waiter: UnsafeContinuation<Void, Never>?
    private var hasEnded = false
    var position: Int?

    /// - Parameters:
    ///   - context: the context of the client's loop.
    ///   - remote: the transport to the other side, which is taken over.
    ///   - timeout: nanoseconds without any movement after which the tunnel ends; nil for no limit.
    ///   - received: bytes of the other side that have been read already.
    package init(
        on loop: isolated EventLoop,
        in context: LoopContext,
        client: DetachedTransport,
        remote: any ByteTransport,
        timeout: UInt64?,
        received: [UInt8] = []
    ) {
        self.client = client
        self.context = context
        self.timeout = timeout
        near = TunnelSide(client.transport, pool: context.blocks, first: client.unsent + received)
        far = TunnelSide(remote, pool: context.blocks, first: client.received)
        traffic = TunnelTraffic(sent: client.received.count, received: received.count)
        near.begin(on: loop, tunnel: self)
        far.begin(on: loop, tunnel: self)
        context.counters.add(.tunnelsOpened)
        context.add(self)
    }

    /// Copies bytes both ways until the tunnel ends.
    /// - Returns: the number of bytes that went through.
    package func run() async -> TunnelTraffic {
        for side in [near, far] { write(side) }
        readPending()
        if !hasEnded { await withUnsafeContinuation { waiter = $0 } }
        return traffic
    }

    // MARK: - Copying

    func ready(_ side: TunnelSide, _ readiness: IOReadiness) {
        guard !hasEnded else { return }
        lastActive = Monotonic.coarse()
        if readiness == .write { write(side) } else { read(side) }
        readPending()
    }

    /// Reads what waits inside the transports, which raises no readiness, as far as there is room for it.
    private func readPending() {
        while !hasEnded, near.hasPending, far.hasRoom { read(near) }
        while !hasEnded, far.hasPending, near.hasRoom { read(far) }
    }

    private func peer(of side: TunnelSide) -> TunnelSide { side === near ? far : near }

    private func read(_ side: TunnelSide) {
        let peer = peer(of: side)
        guard peer.hasRoom else { return updateInterest() }
        switch peer.pending.read(from: side.transport) {
        case .bytes(let count):
            if side === near {
                traffic.sent += count
                context.counters.add(.bytesIn, UInt64(count))
            } else {
                traffic.received += count
                context.counters.add(.bytesOut, UInt64(count))
            }
            write(peer)
        case .end:
            side.sawEnd = true
            write(peer)
        case .wouldBlock: updateInterest()
        // What the other side has got must not pass as complete.
        case .truncated, .failed: end(resets: true)
        }
    }

    private func write(_ side: TunnelSide) {
        guard !hasEnded else { return }
        guard side.write() else { return end(resets: true) }
        if side.isDrained, peer(of: side).sawEnd { side.finishWriting() }
        if near.hasFinished, far.hasFinished { return end() }
        updateInterest()
    }

    private func updateInterest() {
        near.updateInterest(mayRead: far.hasRoom)
        far.updateInterest(mayRead: near.hasRoom)
    }

    // MARK: - The end

    func sweep(now: UInt64, elapsed: UInt64) {
        guard let timeout, now > lastActive, now - lastActive > timeout else { return }
        end("the tunnel was idle for longer than timeout.tunnel")
    }

    func drainBegan() {}

    var waitedFor: WaitedFor? {
        var result = client.waitedFor
        result.sent = traffic.received
        return result
    }

    func cut() { end() }

    /// Ends the tunnel.
    /// - Parameters:
    ///   - error: the reason for the log; nil if one of the sides has ended it.
    ///   - resets: both sides see that the tunnel broke off.
    private func end(_ error: String? = nil, resets: Bool = false) {
        guard !hasEnded else { return }
        hasEnded = true
        near.stop()
        far.stop()
        far.transport.close(resets: resets)
        context.counters.add(.tunnelsClosed)
        context.remove(self)
        client.end(sent: traffic.received, error: error, resets: resets)
        waiter?.resume()
        waiter = nil
    }
}

@available(*, unavailable) extension Tunnel: Sendable {}

/// One end of a tunnel, and the bytes that wait to be written to it.
final class TunnelSide: IOHandler {
    let transport: any ByteTransport
    /// Bytes from the other side that are not written yet.
    let pending: ReadBuffer
    /// Whether the transport ever holds bytes that raise no readiness.
    private let readsAhead: Bool
    /// True if this side has ended: no more bytes come from it.
    var sawEnd = false
    /// True if the end of the other side has been passed on to this one.
    private(set) var hasFinished = false
    /// Bytes that are written before `pending`.
    private var first: [UInt8]
    private var firstSent = 0
    private var isBlocked = false
    // The reference is unowned: the tunnel owns the side, and stops it before it goes.
    private unowned var tunnel: Tunnel?

    init(_ transport: any ByteTransport, pool: BlockPool, first: [UInt8]) {
        self.transport = transport
        readsAhead = transport.readsAhead
        self.first = first
        pending = ReadBuffer(pool: pool)
    }

    func begin(on loop: isolated EventLoop, tunnel: Tunnel) {
        self.tunnel = tunnel
        transport.begin(on: loop, self)
    }

    func ready(_ readiness: IOReadiness) { tunnel?.ready(self, readiness) }

    var hasRoom: Bool { first.isEmpty && !pending.isFull }
    /// Whether a read gives bytes that no readiness tells of.
    var hasPending: Bool { readsAhead && !sawEnd && transport.hasPending }
    var isDrained: Bool { first.isEmpty && pending.isEmpty }

    /// Writes as many waiting bytes as the side takes.
    /// - Returns: false if the side has failed.
    func write() -> Bool {
        isBlocked = false
        while !isDrained {
            let result =
                first.isEmpty
                ? transport.write(pending.bytes)
                : first.withUnsafeBytes { transport.write($0.part(firstSent..<$0.count)) }
            switch result {
            case .bytes(let count): wrote(count)
            case .wouldBlock:
                isBlocked = true
                return true
            case .end, .truncated, .failed: return false
            }
        }
        pending.release()
        return true
    }

    private func wrote(_ count: Int) {
        guard !first.isEmpty else { return pending.consume(count) }
        firstSent += count
        if firstSent == first.count { first = [] }
    }

    func finishWriting() {
        guard !hasFinished else { return }
        hasFinished = true
        transport.finishWriting()
    }

    func updateInterest(mayRead: Bool) {
        var wanted: IOReadiness = []
        if !sawEnd, mayRead { wanted.insert(.read) }
        if isBlocked { wanted.insert(.write) }
        transport.watch(wanted)
    }

    func stop() {
        transport.stop()
        pending.release()
    }
}

@available(*, unavailable) extension TunnelSide: Sendable {}

// MARK: - Upgrades

/// One Upgrade request (RFC 9110 section 7.8). Loop-bound; the transfer holds it, and the exchange does until its end.
///
/// States: asking → switched (a 101) → ended; asking → flowing (the head of another answer is sent) → ended; from each
/// to ended.
package final class UpgradeTunnel: TransferDelegate, SynchronousResponder {
    private enum State {
        case asking
        case switched(ResponseHead, SwitchedConnection)
        case flowing
        case failed(UpstreamError)
        case ended
    }

    private let exchange: Exchange
    private let timeout: UInt64?
    /// Adapts the head of an answer for the client, such as by adding Via; hop-by-hop fields are handled here.
    private let prepare: (inout ResponseHead) -> Void
    /// The time at which the request was sent, in monotonic nanoseconds.
    private let began = Monotonic.now()
    private var state = State.asking
    /// The transfer to the origin; nil once it has ended.
    private var transfer: Transfer?
    /// True while the transfer is paused until the client has taken more.
    private var isHeld = false
    /// The task of the exchange, which waits for the 101 or for the end of the transfer.
    private var waiter: UnsafeContinuation<Void, Never>?

    /// - Parameters:
    ///   - timeout: nanoseconds that the tunnel may be idle; nil for no limit.
    ///   - prepare: adapts the heads of the final answer and of interim ones.
    package init(_ exchange: Exchange, timeout: UInt64?, prepare: @escaping (inout ResponseHead) -> Void) {
        self.exchange = exchange
        self.timeout = timeout
        self.prepare = prepare
    }

    /// Sends the request and relays the answer: a tunnel after a 101, else an ordinary answer. Ends the exchange.
    /// - Parameter request: an upgrade with the fields of ``requestFields(_:)``.
    /// - Throws: a problem document if the origin gave no answer.
    package func run(
        _ request: UpstreamRequest,
        through client: UpstreamClient,
        on loop: isolated EventLoop
    ) async throws(Problem) {
        guard !exchange.isClientGone else { return }
        exchange.context.counters.add(.upstreamRequests)
        // The exchange calls this object until its end, so that the transfer ends if the client leaves.
        exchange.responder = self
        transfer = client.start(request, body: nil, delegate: self)
        await withUnsafeContinuation { waiter = $0 }
        // The outcome is moved out of `state`, so that this object does not hold the connection after its end.
        let outcome = state
        state = .ended
        switch outcome {
        case .switched(let head, let connection): await becomeTunnel(head, connection, on: loop)
        case .failed(let error):
            exchange.context.counters.add(.errorUpstream)
            exchange.outcome.error = error.detail
            throw Problem(error)
        case .asking, .flowing, .ended: break
        }
    }

    private func becomeTunnel(
        _ head: ResponseHead,
        _ connection: SwitchedConnection,
        on loop: isolated EventLoop
    ) async {
        answered(head)
        var answer = adapted(head)
        answer.fields.set(.connection, "upgrade")
        if let upgrade = head.fields.combined(.upgrade) { answer.fields.set(.upgrade, upgrade) }
        exchange.sendHead(answer, body: .none)
        // If the client has left, the connection to the origin is closed at the end of this call.
        guard let client = exchange.detach() else { return exchange.fail() }
        let tunnel = Tunnel(
            on: loop,
            in: exchange.context,
            client: client,
            remote: connection.take(),
            timeout: timeout,
            received: connection.takeReceived()
        )
        _ = await tunnel.run()
    }

    private func answered(_ head: ResponseHead) {
        exchange.outcome.upstreamStatus = head.status
        exchange.outcome.upstreamTime = Monotonic.now() &- began
    }

    private func adapted(_ head: ResponseHead) -> ResponseHead {
        var head = head
        head.fields = HopByHop.forwardable(head.fields, isRequest: false)
        prepare(&head)
        return head
    }

    /// Called when the transfer has ended: resumes the task.
    private func end(_ last: State) {
        state = last
        transfer = nil
        waiter?.resume()
        waiter = nil
    }

    // MARK: - From the origin

    /// Bytes may arrive within a call of this object: they are written to the client or queued, which can end only the
    /// client's connection.
    package var acceptsReentrantBytes: Bool { true }

    package func transfer(_ transfer: Transfer, received interim: ResponseHead) {
        exchange.sendInterim(adapted(interim))
    }

    package func transfer(_ transfer: Transfer, switched head: ResponseHead, to connection: SwitchedConnection) {
        end(.switched(head, connection))
    }

    package func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming) {
        answered(head)
        exchange.tell(.failedUpgrade, "the origin answered \(head.status) to it, not 101")
        // The state is set before the head is sent: if the client has left, sending ends this object.
        state = .flowing
        let length: AnswerLength =
            switch framing {
            case .none: .none
            case .length(let length): .known(Int64(clamping: length))
            case .chunked, .untilClose: .unknown
            }
        exchange.sendHead(adapted(head), body: length)
    }

    package func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow {
        // If the client has left, the transfer has ended already.
        guard let hasRoom = try? exchange.pass(bytes) else { return .continue }
        isHeld = !hasRoom
        return hasRoom ? .continue : .pause
    }

    package func transferFinished(_ transfer: Transfer, trailers: Fields) {
        end(.ended)
        exchange.finish(trailers: trailers)
    }

    package func transfer(_ transfer: Transfer, failed error: UpstreamError) {
        guard case .flowing = state else { return end(.failed(error)) }
        end(.ended)
        // The body is incomplete, malformed or late, so the client's connection is closed: it must not take the answer
        // for complete.
        exchange.outcome.error = error.detail
        exchange.fail()
    }

    // MARK: - From the client

    package func roomMade() {
        guard isHeld else { return }
        isHeld = false
        transfer?.resume()
    }

    package func clientLeft() {
        // Without a transfer there was a 101: the task of the exchange finds that the client is gone.
        guard let transfer else { return }
        transfer.cancel()
        end(.ended)
    }
}

@available(*, unavailable) extension UpgradeTunnel: Sendable {}

// MARK: - Fields and protocols

extension UpgradeTunnel {
    /// The fields of the request to the origin: the end-to-end fields, and the client's Upgrade.
    package static func requestFields(_ fields: Fields) -> Fields {
        var result = HopByHop.forwardable(fields, isRequest: true)
        if let upgrade = fields.combined(.upgrade) {
            result.set(.upgrade, upgrade)
            result.set(.connection, "upgrade")
        }
        return result
    }

    /// The protocols in Upgrade that a tunnel can carry; nil if there are none, or if the method is not GET, so that
    /// Upgrade is ignored (RFC 9110 section 7.8). HTTP/2 and TLS concern the next hop only, and curl asks for h2c by
    /// itself. With other methods the request itself matters: it may change state, or its response may be stored.
    package static func wantedProtocols(_ request: RequestHead, _ framing: BodyFraming) -> String? {
        guard request.method == .get, request.version == .http11, framing == .none || framing == .length(0),
            let text = request.fields.combined(.upgrade),
            HopByHop.connectionOptions(request.fields).contains(where: {
                String(decoding: $0, as: UTF8.self).lowercased() == "upgrade"
            })
        else { return nil }
        let wanted = text.split(separator: ",").filter { member in
            let name = member.lowercased().filter { $0 != " " && $0 != "\t" }
            return !name.isEmpty && name != "h2c" && name != "h2" && !name.hasPrefix("http/") && !name.hasPrefix("tls/")
        }
        return wanted.isEmpty ? nil : wanted.joined(separator: ",")
    }
}
