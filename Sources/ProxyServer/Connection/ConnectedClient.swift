// The client at the other end of a connection: whom, where it came in, and its slot in the limits.

package import EventLoop
package import HTTPWire
package import ServiceCore

/// The client at the other end of a connection, as its exchanges know it. Loop-bound.
package final class ConnectedClient {
    package let peer: SocketAddress
    package let listener: ListenerInfo
    /// What the connection says about each request.
    // Unchecked: no code outside runs while this variable changes, which is before the first request.
    @exclusivity(unchecked) package private(set) var connection: ConnectionContext
    /// The address as logs write it.
    let name: String
    /// It holds a slot in the limits and in the loop's load.
    private let isCounted: Bool
    /// It was not admitted, and is only told why.
    private let isTurnedAway: Bool
    /// The outgoing fields of the last forwarded request, reused if the next request has the same fields.
    var lastOutgoing: OutgoingFields?
    /// The carrier may give the same fields in the same memory again, so that they are worth keeping.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var repeatsFields = false

    /// - Parameters:
    ///   - authority: whom the client believes to be connected to, if that is not this daemon.
    ///   - isCounted: it holds a slot in the limits, which ``leave(_:_:)`` gives back.
    ///   - isTurnedAway: it holds a slot among those that are only told why they were not admitted.
    package init(
        _ peer: SocketAddress,
        at listener: ListenerInfo,
        to authority: Authority? = nil,
        isCounted: Bool,
        isTurnedAway: Bool = false
    ) {
        self.peer = peer
        self.listener = listener
        connection = ConnectionContext(
            security: listener.security,
            authority: authority,
            listener: listener.address
        )
        name = peer.isUnix ? "unix" : peer.host
        self.isCounted = isCounted
        self.isTurnedAway = isTurnedAway
    }

    /// The handshake has shown what carries exchanges.
    func isServed(by carriage: ConnectionContext.Carriage) { connection.carriage = carriage }

    /// The handshake has shown whether others can read along.
    func isServed(securely isSecure: Bool) { connection.security = isSecure ? .secure : .plain }

    /// Gives back its slots in the limits, and in the load of its loop. The last call.
    func leave(_ limits: ConnectionLimits, _ loop: EventLoop) {
        if isTurnedAway { limits.leaveRefused() }
        guard isCounted else { return }
        loop.connections.add(-1)
        limits.leave(peer)
    }
}

@available(*, unavailable) extension ConnectedClient: Sendable {}
