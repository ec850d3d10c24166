// Which Host values reverse mode and the admin API answer for, so that no web page reaches them by DNS rebinding.

package import EventLoop
package import HTTPWire
import Upstream

/// The values of Host that are served (RFC 9110 section 7.2; Documentation/guide/web-pages.md).
package struct HostRules: Sendable, Equatable {
    /// Names of the machine, in lower case.
    private var names: Set<String>
    /// Addresses that are listened on, numeric, IPv6 in brackets.
    private var addresses: Set<String>
    /// One of them is the unspecified address, which stands for all of the machine's.
    private var isWildcard: Bool

    /// - Parameters:
    ///   - names: that lead here whatever is configured, without ports.
    ///   - listeners: the addresses of the listening sockets.
    package init(names: some Sequence<String>, listeners: [SocketAddress]) {
        self.names = Set(names.map { $0.lowercased() })
        addresses = Set(listeners.filter { !$0.isUnix }.map { Self.text($0) })
        isWildcard = listeners.contains { !$0.isUnix && $0.ipBytes.allSatisfy { $0 == 0 } }
    }

    /// Whether requests for this host are answered by every service. Ports are not compared: a
    /// forwarded port changes them.
    package func allows(_ host: Authority) -> Bool {
        let name = host.name
        if Self.isLoopback(name) || names.contains(name) || addresses.contains(name) { return true }
        // An address is what it says: only a name can be made to lead elsewhere.
        return isWildcard && Self.address(name) != nil
    }

    /// `localhost`, any name below it, 127.0.0.0/8 and [::1].
    package static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        return address(host)?.isLoopback ?? false
    }

    /// The numeric address that a host of an authority is, if it is one.
    package static func address(_ host: String, port: UInt16 = 0) -> SocketAddress? {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        return SystemResolver.numeric(isBracketed ? String(host.dropFirst().dropLast()) : host, port: port)
    }

    private static func text(_ address: SocketAddress) -> String {
        address.host.contains(":") ? "[\(address.host)]" : address.host
    }
}

extension Authority {
    /// The host without the dot of the DNS root at its end, which names the same one.
    package var name: String { host.hasSuffix(".") && host.utf8.count > 1 ? String(host.dropLast()) : host }
}

/// Where a request of a web page comes from (RFC 6454).
package enum OriginRules {
    /// Whether `origin` (the value of Origin) names the host that the request went to. `null` and
    /// what is no origin do not.
    package static func isSameSite(origin: String, host: Authority) -> Bool {
        guard let end = origin.range(of: "://") else { return false }
        let scheme = origin[..<end.lowerBound]
        guard scheme == "http" || scheme == "https", let source = Authority.parse(String(origin[end.upperBound...]))
        else { return false }
        return source.host == host.host && (source.port ?? port(scheme)) == (host.port ?? port(scheme))
    }

    private static func port(_ scheme: Substring) -> UInt16 { scheme == "https" ? 443 : 80 }
}

extension String {
    /// Where `mark` first occurs; without Foundation.
    fileprivate func range(of mark: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(mark) { return start..<index(start, offsetBy: mark.count) }
            start = index(after: start)
        }
        return nil
    }
}
