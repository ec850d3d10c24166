// Tunnels that the daemon reads: what the server knows of whoever makes the sessions in them.

package import EventLoop
package import HTTPWire
package import TLS

/// Makes the sessions with clients in tunnels that are read. It knows certificates and clients that do not trust them; the
/// server knows tunnels and what is asked in them.
package protocol Interception: AnyObject, Sendable {
    /// What becomes of a tunnel to a target whose tunnels the plan has read.
    func decide(on target: Authority, for client: SocketAddress) -> InterceptionDecision

    /// Begins a session with a client in its tunnel.
    /// - Parameters:
    ///   - hello: what the client has said first; nil if it cannot be read, and is to be answered with an alert.
    ///   - received: what the client has sent already.
    ///   - transport: taken over; it has not begun.
    /// - Returns: nil if there can be none; the transport is still the caller's then.
    func session(
        in tunnel: ReadTunnel,
        hello: ClientHello?,
        received: [UInt8],
        over transport: any ByteTransport,
        on loop: isolated EventLoop
    ) -> InnerSession?
}

package enum InterceptionDecision: Sendable, Equatable {
    case read
    /// It is left as it is, and the text says why.
    case leave(_ reason: String)
    /// It can neither be read nor be left alone, and the text says why.
    case refuse(_ reason: String)
}

/// A tunnel that is read, as its CONNECT has asked for it.
package struct ReadTunnel: Sendable {
    /// Whom the client believes to be connected to.
    package let target: Authority
    package let client: SocketAddress
    /// What the client calls itself; empty if it does not say.
    package let userAgent: String

    package init(target: Authority, client: SocketAddress, userAgent: String) {
        self.target = target
        self.client = client
        self.userAgent = userAgent
    }
}

/// A session with a client inside of its tunnel. Loop-bound.
package struct InnerSession {
    let transport: any ByteTransport
    /// Called once, when the session is over and before its transport goes. Nil: it was no matter of trust. Else the client
    /// does not trust the local authority, and these are the facts for the log, none if they were told before.
    let ended: () -> [(String, String)]?

    package init(_ transport: any ByteTransport, ended: @escaping () -> [(String, String)]?) {
        self.transport = transport
        self.ended = ended
    }
}

@available(*, unavailable) extension InnerSession: Sendable {}
