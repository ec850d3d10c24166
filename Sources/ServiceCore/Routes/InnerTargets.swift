// What may be asked for inside of a tunnel that the daemon reads: resources of the authority that it leads to, and nothing
// else.

import EventLoop
import HTTPWire
import Upstream

/// The targets of requests that come over a connection to somebody else.
enum InnerTargets {
    /// The path and query of a request, as a resource of the authority that its client believes to be connected to. The
    /// authority of the tunnel, the name that TLS was asked for, and the authority of the request have to agree.
    /// - Throws: ``RouteRefusal/misdirected(_:)`` or ``RouteRefusal/nestedTunnel``.
    static func path(
        of request: RequestHead,
        _ target: RequestTarget,
        to authority: Authority,
        over connection: ConnectionContext
    ) throws(RouteRefusal) -> String {
        if let name = connection.serverName, !isSame(Authority(host: name), authority, connection, asksPort: false) {
            throw .misdirected("TLS was asked for \(name), and the tunnel leads to \(authority)")
        }
        switch target.form {
        case .authority: throw .nestedTunnel
        case .asterisk, .origin:
            // A client of HTTP/1.0 need not send Host.
            if let text = request.fields.first(.host) {
                guard let host = Authority.parse(text), isSame(host, authority, connection) else {
                    throw .misdirected("Host is \(text), and the tunnel leads to \(authority)")
                }
            }
            // OPTIONS of the server as a whole has no path (RFC 9112 section 3.2.4).
            if case .origin(let path) = target.form { return path }
            return ""
        case .absolute(let scheme, let asked, let path):
            guard scheme == connection.scheme, isSame(asked, authority, connection) else {
                throw .misdirected(
                    "the request is for \(scheme)://\(asked), and the tunnel leads to \(connection.scheme)://\(authority)"
                )
            }
            return target.isServerWide ? "" : path
        }
    }

    /// Whether two authorities are one, whether or not the default port and the dot of the DNS root are written.
    private static func isSame(
        _ one: Authority,
        _ other: Authority,
        _ connection: ConnectionContext,
        asksPort: Bool = true
    ) -> Bool {
        let port = other.port ?? connection.defaultPort
        if asksPort, (one.port ?? connection.defaultPort) != port { return false }
        if one.name == other.name { return true }
        guard let address = HostRules.address(one.name, port: port) else { return false }
        return address == HostRules.address(other.name, port: port)
    }
}
