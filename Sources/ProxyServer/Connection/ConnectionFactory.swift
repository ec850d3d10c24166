// How an accepted socket becomes a connection: what a listener says its connections are made of, and the handshake before
// there is one.

package import EventLoop
package import ServiceCore

/// A socket that a listener has accepted; its transport takes it over.
package struct AcceptedSocket: Sendable {
    /// Non-blocking.
    package let descriptor: Int32
    package let isLocal: Bool
    /// Bytes in memory had better be copied to the client.
    package let copiesMemory: Bool

    /// The socket as it is.
    package var plain: PlainTransport { PlainTransport(descriptor, isLocal: isLocal, copiesMemory: copiesMemory) }
}

/// Makes the connections of a listener out of accepted sockets, on the loop that each of them is for: first the transport,
/// and when that has shaken hands, what carries exchanges over it.
package struct ConnectionFactory: Sendable {
    /// Begins what carries exchanges over a transport that has shaken hands; it keeps itself with its loop. `agreed` is the
    /// protocol that the handshake has agreed on, nil if there was none.
    package typealias Carrier = @Sendable (ConnectionParts, _ agreed: String?, isolated EventLoop) -> ClientConnection

    /// HTTP/1.1.
    static let http1: Carrier = { Connection(on: $2, $0) }

    let security: ConnectionContext.Security
    let transport: @Sendable (AcceptedSocket, isolated EventLoop) -> any ByteTransport
    let carrier: Carrier

    /// - Parameters:
    ///   - security: of the transports; the handshake of a connection may say otherwise.
    ///   - transport: takes the socket over.
    ///   - carrier: begins the connection; by default HTTP/1.1.
    package init(
        security: ConnectionContext.Security,
        transport: @escaping @Sendable (AcceptedSocket, isolated EventLoop) -> any ByteTransport,
        carrier: @escaping Carrier = ConnectionFactory.http1
    ) {
        self.security = security
        self.transport = transport
        self.carrier = carrier
    }

    /// HTTP/1.1 over sockets as they are.
    package static let plain = ConnectionFactory(security: .plain) { socket, _ in socket.plain }
}

// MARK: - The handshake

/// The handshake of a transport, which decides what carries exchanges over it. Loop-bound, and kept by the loop until the
/// connection takes its place.
///
/// It is a phase of its own, and no state of a connection: what is agreed on chooses the connection's class.
final class ClientHandshake: IOHandler, LoopMember {
    private let parts: ConnectionParts
    private let carrier: ConnectionFactory.Carrier
    private let handshake: any TransportHandshake
    private let loop: EventLoop
    /// The client was not admitted, and is told so as soon as it can be.
    private let refusal: Problem?
    private let began = Monotonic.now()
    private var isOver = false
    var position: Int?

    private init(
        _ parts: ConnectionParts,
        _ carrier: @escaping ConnectionFactory.Carrier,
        _ handshake: any TransportHandshake,
        _ refusal: Problem?,
        on loop: isolated EventLoop
    ) {
        self.parts = parts
        self.carrier = carrier
        self.handshake = handshake
        self.refusal = refusal
        self.loop = loop
    }

    /// Begins a connection: at once if nothing has to be agreed on, as over a plain socket.
    /// - Parameter refusal: why the client is not admitted; nil if it is.
    static func begin(
        _ parts: ConnectionParts,
        by carrier: @escaping ConnectionFactory.Carrier,
        refusal: Problem?,
        on loop: isolated EventLoop
    ) {
        guard let handshake = parts.transport.handshake else {
            return finish(parts, carrier, agreed: nil, refusal, on: loop)
        }
        let phase = ClientHandshake(parts, carrier, handshake, refusal, on: loop)
        parts.context.add(phase)
        parts.transport.begin(on: loop, phase)
        phase.step()
    }

    private static func finish(
        _ parts: ConnectionParts,
        _ carrier: ConnectionFactory.Carrier,
        agreed: String?,
        _ refusal: Problem?,
        on loop: isolated EventLoop
    ) {
        let connection = carrier(parts, agreed, loop)
        guard let refusal else { return }
        let context = parts.context
        context.counters.add(.errorRefused)
        context.daemonLog.tell(.refusedClient, [("client", parts.client.name), ("error", refusal.detail)])
        connection.turnAway(refusal)
    }

    func ready(_ readiness: IOReadiness) { step() }

    private func step() {
        guard !isOver else { return }
        switch handshake.step() {
        case .waits(let readiness): parts.transport.watch(readiness)
        case .failed(let reason): fail(reason)
        case .done(let agreed):
            isOver = true
            parts.client.isServed(by: handshake)
            parts.context.remove(self)
            // A callback of the loop, outside any task: its isolation is entered once, by address.
            let address = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
            loop.assumeIsolated { loop in
                guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
                // The caller's frame holds it until the carrier has begun the transport, which calls this no more from then on.
                let phase = Unmanaged<ClientHandshake>.fromOpaque(pointer).takeUnretainedValue()
                Self.finish(phase.parts, phase.carrier, agreed: agreed, phase.refusal, on: loop)
            }
        }
    }

    private func fail(_ reason: String) {
        parts.context.counters.add(.errorWire)
        if !parts.client.tellDistrust(parts.context.daemonLog) {
            parts.context.daemonLog.tell(.refusedClient, [("client", parts.client.name), ("error", reason)])
        }
        cut()
    }

    // MARK: - For the loop

    func sweep(now: UInt64, elapsed: UInt64) {
        guard now > began, now - began > parts.context.settings.headTimeout else { return }
        parts.context.counters.add(.errorTimeout)
        cut()
    }

    /// Nothing was asked yet: the client is not waited for, if there is no patience.
    func drainBegan() { if parts.context.isImpatient(since: began) { cut() } }

    var waitedFor: WaitedFor? { nil }

    /// What the client will ask is not known.
    var mayChangeStore: Bool { true }

    func cut() {
        guard !isOver else { return }
        isOver = true
        parts.transport.close(resets: false)
        parts.context.remove(self)
        parts.client.leave(parts.context.limits, loop, parts.context.daemonLog)
    }
}

@available(*, unavailable) extension ClientHandshake: Sendable {}
