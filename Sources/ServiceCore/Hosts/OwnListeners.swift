// The daemon's listeners, and the targets that would lead back to them.

package import EventLoop
package import HTTPWire
package import Upstream

/// The daemon's own listeners. Loop-bound through its resolver.
package struct OwnListeners {
    /// The addresses that clients connect to.
    package let clients: [SocketAddress]
    /// The addresses of all listeners, the admin API's included: none of them may be the target of a request.
    package let all: [SocketAddress]
    private let resolver: Resolver

    package init(clients: [SocketAddress], admin: [SocketAddress], resolver: Resolver) {
        self.clients = clients
        all = clients + admin
        self.resolver = resolver
    }

    /// Whether a transfer to a port may reach a listener; if not, its host need not be resolved.
    func mayBeOwn(port: UInt16) -> Bool { all.contains { !$0.isUnix && $0.port == port } }

    package func isOwn(_ addresses: [SocketAddress]) -> Bool {
        addresses.contains { LoopDetection.isOwn($0, listeners: all) }
    }

    /// Whether an authority is one of the listeners, as far as that is known without a name server.
    package func isOwn(_ authority: Authority, port: UInt16) -> Bool {
        let port = authority.port ?? port
        guard mayBeOwn(port: port) else { return false }
        let host = authority.host.hasSuffix(".") ? String(authority.host.dropLast()) : authority.host
        if host == "localhost" || host.hasSuffix(".localhost") { return isOwn(Self.loopback(port)) }
        guard case .success(let addresses)? = resolver.known(host, port: port, rules: .any) else { return false }
        return isOwn(addresses)
    }

    /// Checks the addresses of a host.
    /// - Throws: the refusal, if one of them is this daemon's own.
    package func check(_ addresses: [SocketAddress], of host: String) throws(UpstreamError) {
        if isOwn(addresses) { throw Self.refusal(of: host) }
    }

    /// The refusal of a host that leads to this daemon itself.
    static func refusal(of host: String) -> UpstreamError {
        UpstreamError(
            .addressRefused,
            detail:
                "\(host) leads to this daemon itself, which is never a target; ask it directly, or, if that is one of its own names,"
                + " write the full name under hosts (one such as *.lan does not count here)"
        )
    }

    // MARK: - Clients

    package func takesClients(on port: UInt16) -> Bool { clients.contains { !$0.isUnix && $0.port == port } }

    /// Whether clients that connect to an address, or to a name of loopback, reach this daemon.
    /// - Parameter name: the name in lower case, without the dot of the DNS root.
    func takesClients(at name: String, port: UInt16) -> Bool {
        if name == "localhost" || name.hasSuffix(".localhost") {
            return Self.loopback(port).contains { LoopDetection.isOwn($0, listeners: clients) }
        }
        guard let address = HostRules.address(name, port: port) else { return false }
        if LoopDetection.isOwn(address, listeners: clients) { return true }
        // A listener on every address also has the addresses of the interfaces.
        let wildcard = [UInt8](repeating: 0, count: address.ipBytes.count)
        return clients.contains { $0.port == port && $0.ipBytes == wildcard } && Machine.has(address)
    }

    private static func loopback(_ port: UInt16) -> [SocketAddress] {
        ["127.0.0.1", "::1"].compactMap { SocketAddress(numericHost: $0, port: port) }
    }
}
