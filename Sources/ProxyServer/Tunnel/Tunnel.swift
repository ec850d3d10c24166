// A tunnel after CONNECT or Upgrade: two transports, between which bytes are copied both ways with bounded buffers.

package import EventLoop
import HTTPWire

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
/// them, or when nothing has moved for the configured time.
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
    ///   - remote: the descriptor of the other side, which is taken over.
    ///   - timeout: nanoseconds without any movement after which the tunnel ends; nil for no limit.
    ///   - received: bytes of the other side that have been read already.
    package init(
        on loop: isolated EventLoop,
        in context: LoopContext,
        client: DetachedTransport,
        remote: Int32,
        timeout: UInt64?,
        received: [UInt8] = []
    ) {
        self.client = client
        self.context = context
        self.timeout = timeout
        near = TunnelSide(client.transport, pool: context.blocks, first: client.unsent + received)
        far = TunnelSide(PlainTransport(remote), pool: context.blocks, first: client.received)
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
    /// - Parameter error: the reason for the log; nil if one of the sides has ended it.
    private func end(_ error: String? = nil) {
        guard !hasEnded else { return }
        hasEnded = true
        near.stop()
        far.stop()
        far.transport.close(resets: false)
        context.counters.add(.tunnelsClosed)
        context.remove(self)
        client.end(sent: traffic.received, error: error)
        waiter?.resume()
        waiter = nil
    }
}

@available(*, unavailable) extension Tunnel: Sendable {}

/// One end of a tunnel, and the bytes that wait to be written to it.
final class TunnelSide: IOHandler {
    let transport: any Transport
    /// Bytes from the other side that are not written yet.
    let pending: ReadBuffer
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

    init(_ transport: any Transport, pool: BlockPool, first: [UInt8]) {
        self.transport = transport
        self.first = first
        pending = ReadBuffer(pool: pool)
    }

    func begin(on loop: isolated EventLoop, tunnel: Tunnel) {
        self.tunnel = tunnel
        transport.begin(on: loop, self)
    }

    func ready(_ readiness: IOReadiness) { tunnel?.ready(self, readiness) }

    var hasRoom: Bool { first.isEmpty && !pending.isFull }
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
