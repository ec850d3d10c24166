// A tunnel after CONNECT or Upgrade: two sockets, bytes copied both ways with bounded buffers.

package import EventLoop
import HTTPWire

/// The client's socket after ``Exchange/takeOver()``; loop-bound. Whoever has it ends it.
package final class TakenSocket {
    let descriptor: Int32
    /// Bytes that the client sent after its head.
    package let received: [UInt8]
    /// Bytes that the client has not taken yet.
    let unsent: [UInt8]
    private let exchange: Exchange
    private let connection: Connection

    init(descriptor: Int32, received: [UInt8], unsent: [UInt8], exchange: Exchange, connection: Connection) {
        self.descriptor = descriptor
        self.received = received
        self.unsent = unsent
        self.exchange = exchange
        self.connection = connection
    }

    var context: LoopContext { connection.context }

    /// What it is for.
    var waitedFor: WaitedFor {
        var result = WaitedFor(kind: .tunnel, client: connection.client, since: exchange.startedAt)
        result.request = WaitedFor.text(exchange.request.method.name, .string(exchange.request.target))
        return result
    }

    /// Closes the socket, gives the connection's place back and writes its log line.
    /// - Parameter sent: bytes that went to the client.
    func end(sent: Int) {
        Socket.close(descriptor)
        connection.record(exchange, bytes: sent, isAborted: false)
        connection.releasePlace()
    }
}

@available(*, unavailable) extension TakenSocket: Sendable {}

extension Exchange {
    /// Gives the socket away, after the head of a 2xx to CONNECT or of a 101 has been sent; nil where the client is gone.
    package func takeOver() -> TakenSocket? {
        guard state == .body, let connection else { return nil }
        connection.flush()
        guard self.connection != nil, let unsent = connection.output.takeBytes() else { return nil }
        state = .taken
        let received = Array(connection.input.bytes)
        // The tunnel keeps the connection's place and its log line to the end.
        return TakenSocket(
            descriptor: connection.surrender(),
            received: received,
            unsent: unsent,
            exchange: self,
            connection: connection
        )
    }
}

/// How much went through a tunnel.
package struct TunnelTraffic: Sendable, Equatable {
    /// Bytes from the client to the other side.
    package var sent = 0
    /// Bytes from the other side to the client.
    package var received = 0
}

/// Owns both sockets from its creation to its end; loop-bound.
///
/// The end of one direction is passed on, and the other goes on; the tunnel ends with both, on an error of either
/// socket, or when nothing has moved for the configured time.
package final class Tunnel: SweptMember {
    private let client: TakenSocket
    private let context: LoopContext
    private let near: TunnelSide
    private let far: TunnelSide
    private var traffic = TunnelTraffic()
    private var lastActive = Monotonic.coarse()
    private var waiter: UnsafeContinuation<Void, Never>?
    private var hasEnded = false
    var position: Int?

    /// - Parameters:
    ///   - remote: the descriptor of the other side; taken over.
    ///   - received: bytes of the other side that have been read already.
    package init(on loop: isolated EventLoop, client: TakenSocket, remote: Int32, received: [UInt8] = []) {
        self.client = client
        context = client.context
        near = TunnelSide(descriptor: client.descriptor, pool: context.blocks, first: client.unsent + received)
        far = TunnelSide(descriptor: remote, pool: context.blocks, first: client.received)
        traffic = TunnelTraffic(sent: client.received.count, received: received.count)
        near.begin(on: loop, tunnel: self)
        far.begin(on: loop, tunnel: self)
        context.counters.add(.tunnelsOpened)
        context.add(self)
    }

    /// Copies until the end.
    package func run() async -> TunnelTraffic {
        for side in [near, far] { write(side) }
        if !hasEnded { await withUnsafeContinuation { waiter = $0 } }
        return traffic
    }

    // MARK: - Copying

    func ready(_ side: TunnelSide, _ readiness: IOReadiness) {
        guard !hasEnded else { return }
        lastActive = Monotonic.coarse()
        if readiness == .write { write(side) } else { read(side) }
    }

    private func peer(of side: TunnelSide) -> TunnelSide { side === near ? far : near }

    private func read(_ side: TunnelSide) {
        let peer = peer(of: side)
        guard peer.hasRoom else { return updateInterest() }
        switch peer.pending.read(from: side.descriptor) {
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
        case .failed: end()
        }
    }

    private func write(_ side: TunnelSide) {
        guard !hasEnded else { return }
        guard side.write() else { return end() }
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
        if now > lastActive, now - lastActive > context.settings.tunnelIdle { end() }
    }

    func drainBegan() {}

    var waitedFor: WaitedFor? {
        var result = client.waitedFor
        result.sent = traffic.received
        return result
    }

    func cut() { end() }

    private func end() {
        guard !hasEnded else { return }
        hasEnded = true
        near.stop()
        far.stop()
        Socket.close(far.descriptor)
        context.counters.add(.tunnelsClosed)
        context.remove(self)
        client.end(sent: traffic.received)
        waiter?.resume()
        waiter = nil
    }
}

@available(*, unavailable) extension Tunnel: Sendable {}

/// One socket of a tunnel, and what waits to be written to it.
final class TunnelSide: IOHandler {
    let descriptor: Int32
    /// What came from the other side.
    let pending: ReadBuffer
    /// The socket has nothing more to give.
    var sawEnd = false
    /// The end has been passed on to the socket.
    private(set) var hasFinished = false
    /// What goes out before `pending`.
    private var first: [UInt8]
    private var firstSent = 0
    private var isBlocked = false
    private var event: IOEvent?
    // The tunnel owns the side, and stops it before it goes.
    private unowned var tunnel: Tunnel?

    init(descriptor: Int32, pool: BlockPool, first: [UInt8]) {
        self.descriptor = descriptor
        self.first = first
        pending = ReadBuffer(pool: pool)
    }

    func begin(on loop: isolated EventLoop, tunnel: Tunnel) {
        self.tunnel = tunnel
        event = IOEvent(on: loop, descriptor: descriptor, handler: self)
    }

    func ready(_ readiness: IOReadiness) { tunnel?.ready(self, readiness) }

    var hasRoom: Bool { first.isEmpty && !pending.isFull }
    var isDrained: Bool { first.isEmpty && pending.isEmpty }

    /// Writes what the socket takes; false where it is of no more use.
    func write() -> Bool {
        isBlocked = false
        while !isDrained {
            let result =
                first.isEmpty
                ? Socket.write(descriptor, pending.bytes)
                : first.withUnsafeBytes { Socket.write(descriptor, $0.part(firstSent..<$0.count)) }
            switch result {
            case .bytes(let count): wrote(count)
            case .wouldBlock:
                isBlocked = true
                return true
            case .end, .failed: return false
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
        Socket.finishWriting(descriptor)
    }

    func updateInterest(mayRead: Bool) {
        var wanted: IOReadiness = []
        if !sawEnd, mayRead { wanted.insert(.read) }
        if isBlocked { wanted.insert(.write) }
        event?.watch(wanted)
    }

    func stop() {
        event?.cancel()
        event = nil
        pending.release()
    }
}

@available(*, unavailable) extension TunnelSide: Sendable {}
