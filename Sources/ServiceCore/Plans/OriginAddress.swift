// The address of a service's origin, and how a request target is joined to its base URL.

package import Upstream

/// The base URL of a service.
package struct OriginAddress: Sendable, Hashable {
    /// The scheme in lower case, `http` or `https`.
    package let scheme: String
    /// The host in lower case; an IPv6 address is in brackets.
    package let host: String
    /// The port; nil for the scheme's default.
    package let port: UInt16?
    /// The path of the base URL, which is empty, or begins with a slash and does not end with one.
    package let basePath: String
    /// The authority as Host carries it, `host` or `host:port`.
    package let authority: String
    /// The scheme and the authority, without a slash at the end.
    package let root: String

    package init(scheme: String, host: String, port: UInt16?, basePath: String) {
        self.scheme = scheme
        self.host = host
        let isDefault = port == (scheme == "https" ? 443 : 80)
        self.port = isDefault ? nil : port
        let authority = isDefault ? host : port.map { "\(host):\($0)" } ?? host
        self.authority = authority
        root = "\(scheme)://\(authority)"
        self.basePath = basePath.hasSuffix("/") ? String(basePath.dropLast()) : basePath
    }

    package var effectivePort: UInt16 { port ?? (scheme == "https" ? 443 : 80) }

    /// The base URL without a slash at the end.
    package var base: String { root + basePath }

    /// The base URL's path with `rest` appended, byte for byte.
    /// - Parameter rest: a path and query: empty, or beginning with `/` or `?`.
    package func path(appending rest: String) -> String {
        if rest.isEmpty { return basePath.isEmpty ? "/" : basePath }
        if rest.utf8.first == UInt8(ascii: "/") { return basePath.isEmpty ? rest : basePath + rest }
        return (basePath.isEmpty ? "/" : basePath) + rest
    }
}

extension UpstreamProxies {
    /// The proxy for an origin; nil for none.
    package func proxy(to origin: OriginAddress) -> UpstreamProxy? {
        proxy(scheme: origin.scheme, host: origin.host, port: origin.effectivePort)
    }
}
