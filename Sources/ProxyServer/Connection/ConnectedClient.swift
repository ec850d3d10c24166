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
    /// What was agreed on with it; nil if others can read along.
    private(set) var session: SecureSession?
    /// The session inside of its tunnel that this connection goes over; nil outside of tunnels, and once it is over.
    private var inner: InnerSession?
    /// The outgoing fields of the last forwarded request, reused if the next request has the same fields.
    var lastOutgoing: OutgoingFields?
    /// Inside of a tunnel that the daemon reads, in which it asks somebody else.
    let isInTunnel: Bool
    /// Whom it asks inside of its tunnel, by the plan and the Host of its last request there that the waiting path has routed.
    var knownAuthority: KnownAuthority?
    /// The carrier may give the same fields in the same memory again, so that they are worth keeping.
    // Unchecked: no code outside runs while this variable changes, and each access would pay for the check.
    @exclusivity(unchecked) var repeatsFields = false

    /// - Parameters:
    ///   - authority: whom the client believes to be connected to, if that is not this daemon.
    ///   - isCounted: it holds a slot in the limits, which ``leave(_:_:_:)`` gives back.
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
        isInTunnel = authority != nil
        self.isCounted = isCounted
        self.isTurnedAway = isTurnedAway
    }

    /// The same client inside of its tunnel, in which it asks somebody else. It takes over the slot in the limits.
    /// - Parameters:
    ///   - authority: whom the client believes to be connected to.
    ///   - name: what TLS was asked for.
    func inside(_ session: InnerSession, to authority: Authority, asking name: String?) -> ConnectedClient {
        // The default port is not written, so that targets are shown as a client has them.
        let isDefault = authority.port == 443
        let shown = Authority(host: authority.host, port: isDefault ? nil : authority.port)
        let client = ConnectedClient(peer, at: listener, to: shown, isCounted: isCounted)
        client.connection.serverName = name
        client.inner = session
        return client
    }

    /// As ``knownAuthority``, valid until it changes: no reference is counted.
    var borrowedAuthority: Unmanaged<KnownAuthority>? { isInTunnel ? knownAuthority.map { .passUnretained($0) } : nil }

    /// Lets go of what was made of its requests by a plan.
    func forgetRequests() {
        lastOutgoing = nil
        knownAuthority = nil
    }

    /// The handshake has shown what carries exchanges.
    func isServed(by carriage: ConnectionContext.Carriage) { connection.carriage = carriage }

    /// The handshake has shown whether others can read along, and what was agreed on.
    func isServed(by handshake: any TransportHandshake) {
        connection.security = handshake.isSecure ? .secure : .plain
        session = handshake.agreement
    }

    /// Gives back its slots in the limits, and in the load of its loop. The last call.
    func leave(_ limits: ConnectionLimits, _ loop: EventLoop, _ log: ServerLog) {
        tellDistrust(log)
        if isTurnedAway { limits.leaveRefused() }
        if listener.role == .metrics { limits.leaveMonitors() }
        guard isCounted else { return }
        loop.connections.add(-1)
        limits.leave(peer)
    }

    /// Tells the log if the client does not trust who answers inside of its tunnel; once.
    /// - Returns: whether it does not.
    @discardableResult func tellDistrust(_ log: ServerLog) -> Bool {
        guard let inner else { return false }
        self.inner = nil
        guard let facts = inner.ended() else { return false }
        if !facts.isEmpty { log.tell(.distrust, facts) }
        return true
    }
}

@available(*, unavailable) extension ConnectedClient: Sendable {}
