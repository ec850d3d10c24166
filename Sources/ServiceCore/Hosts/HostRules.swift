// The Host values that reverse mode and the admin API answer for, so that no web page reaches them by DNS rebinding.

package import EventLoop
package import HTTPWire
import Upstream

/// The values of Host that are served (RFC 9110 section 7.2; Documentation/guide/web-pages.md).
package struct HostRules: Sendable, Equatable {
    /// The names of the machine, in lower case.
    private let names: Set<String>
    /// The numeric addresses that are served besides those of loopback, IPv6 in brackets; nil for every address.
    private let addresses: Set<String>?

    /// The rules of reverse mode. Every numeric address is served, whatever the listener: only a name can be made to lead
    /// elsewhere, and the addresses by which emulators and forwarded ports reach this machine are none of its own.
    /// - Parameter names: the names that lead here independently of the configuration, without ports.
    package init(names: some Sequence<String>) {
        self.names = Set(names.map { $0.lowercased() })
        addresses = nil
    }

    /// The rules of a listener of the admin API: loopback, and the listener's own address, where the unspecified one
    /// stands for every address.
    package init(admin listener: SocketAddress) {
        names = []
        let isWildcard = !listener.isUnix && listener.ipBytes.allSatisfy { $0 == 0 }
        addresses = isWildcard ? nil : listener.isUnix ? [] : [Self.text(listener)]
    }

    /// Whether requests for this host are answered by every service. Ports are not compared, because a forwarded port
    /// differs.
    package func allows(_ host: Authority) -> Bool {
        let name = host.name
        if Self.isLoopback(name) || names.contains(name) { return true }
        return addresses.map { $0.contains(name) } ?? (Self.address(name) != nil)
    }

    /// Whether a host is `localhost`, a name below it, in 127.0.0.0/8, or [::1].
    package static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        return address(host)?.isLoopback ?? false
    }

    /// The numeric address of a host; nil if the host is a name.
    package static func address(_ host: String, port: UInt16 = 0) -> SocketAddress? {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        return SystemResolver.numeric(isBracketed ? String(host.dropFirst().dropLast()) : host, port: port)
    }

    private static func text(_ address: SocketAddress) -> String {
        address.host.contains(":") ? "[\(address.host)]" : address.host
    }
}

extension Authority {
    /// The host without the dot of the DNS root at its end.
    package var name: String { host.hasSuffix(".") && host.utf8.count > 1 ? String(host.dropLast()) : host }
}

/// The comparison of a web page's origin (RFC 6454) with the host of a request.
package enum OriginRules {
    /// Whether the value of Origin names the host of the request; false for `null`, and for a value that is no origin.
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
    /// The range of the first occurrence of `mark`, found without Foundation.
    fileprivate func range(of mark: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(mark) { return start..<index(start, offsetBy: mark.count) }
            start = index(after: start)
        }
        return nil
    }
}
