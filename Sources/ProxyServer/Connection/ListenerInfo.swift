// The listener at which a connection came in, and what it is for.

package import EventLoop

/// What a listener is for.
package enum ListenerRole: Sendable, Hashable {
    /// Reverse and forward mode.
    case proxy
    /// The admin API: outside caps, access log and request counters.
    case admin
}

/// The listener at which a connection came in.
package final class ListenerInfo: Sendable {
    package let role: ListenerRole
    package let address: SocketAddress

    package init(role: ListenerRole, address: SocketAddress) {
        self.role = role
        self.address = address
    }
}
