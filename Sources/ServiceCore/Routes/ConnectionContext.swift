// What the connection says about the requests that come over it: whom they reach by which scheme, and how.

package import EventLoop
package import HTTPWire

/// The context of a request: what its client's connection says about it, and its own bytes do not. A value that is the same
/// for all requests of a connection.
package struct ConnectionContext: Sendable, Equatable {
    /// Whether others can read along.
    package enum Security: Sendable { case plain, secure }

    /// What carries the exchanges.
    package enum Carriage: Sendable { case http1, http2 }

    package var security = Security.plain
    package var carriage = Carriage.http1
    /// What the client believes to be connected to, if that is not this daemon: the target of a CONNECT inside of which
    /// the daemon answers. Every target in origin form is a resource of this authority.
    package var authority: Authority?
    /// The name that TLS was asked for inside of the tunnel; nil if it was asked for none, and outside of tunnels.
    package var serverName: String?
    /// Where the connection came in; nil for requests of the daemon's own.
    package var listener: SocketAddress?

    package init(
        security: Security = .plain,
        carriage: Carriage = .http1,
        authority: Authority? = nil,
        listener: SocketAddress? = nil
    ) {
        self.security = security
        self.carriage = carriage
        self.authority = authority
        self.listener = listener
    }

    /// The scheme of targets in origin form (RFC 9110 section 4.2).
    package var scheme: String { security == .secure ? "https" : "http" }

    /// The port that an authority without one means.
    package var defaultPort: UInt16 { security == .secure ? 443 : 80 }

    /// How the services are reached that requests for somebody else are for.
    var proxyReach: Reach { authority == nil ? .proxied : .tunnelled }

    /// The protocol of a request as logs name it.
    /// - Parameter version: what the head says; HTTP/2 has no other.
    package func protocolName(_ version: HTTPVersion) -> String { carriage == .http2 ? "HTTP/2.0" : version.name }

    /// A target as logs and the journal show it: in absolute form if the request line alone would not say whose it is.
    package func shown(_ target: String) -> String {
        guard let authority, target.hasPrefix("/") else { return target }
        return "\(scheme)://\(authority)\(target)"
    }
}
