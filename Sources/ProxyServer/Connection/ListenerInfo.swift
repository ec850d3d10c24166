// The listener at which a connection came in, and what it is for.

package import EventLoop
package import ServiceCore

/// What a listener is for.
package enum ListenerRole: String, Sendable, Hashable {
    /// Reverse and forward mode.
    case proxy
    /// The admin API: outside caps, access log and request counters.
    case admin
    /// What monitors ask for, from other machines, too: metrics and the state of the daemon, which they cannot change. Outside
    /// access log and request counters, with a cap of its own.
    case metrics
}

/// The listener at which a connection came in.
package final class ListenerInfo: Sendable {
    package let role: ListenerRole
    package let address: SocketAddress
    /// Whether others can read along.
    package let security: ConnectionContext.Security

    package init(role: ListenerRole, address: SocketAddress, security: ConnectionContext.Security = .plain) {
        self.role = role
        self.address = address
        self.security = security
    }
}
