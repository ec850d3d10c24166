// Where a service's origin is, and how the rest of a request target joins its base URL.

package import Upstream

/// The base URL of a service.
package struct OriginAddress: Sendable, Hashable {
    /// `http` or `https`.
    package let scheme: String
    /// Lower case; an IPv6 address in brackets.
    package let host: String
    /// Nil: the scheme's own.
    package let port: UInt16?
    /// Empty, or begins with a slash and does not end with one.
    package let basePath: String
    /// `host` or `host:port`, as Host carries it.
    package let authority: String
    /// Scheme and authority, without a slash at the end.
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

    /// Appends `rest` (empty, or beginning with `/` or `?`, query included) to the base URL, byte for byte.
    package func path(appending rest: String) -> String {
        if rest.isEmpty { return basePath.isEmpty ? "/" : basePath }
        if rest.utf8.first == UInt8(ascii: "/") { return basePath.isEmpty ? rest : basePath + rest }
        return (basePath.isEmpty ? "/" : basePath) + rest
    }
}

extension UpstreamProxies {
    /// The proxy for an origin; nil: none.
    package func proxy(to origin: OriginAddress) -> UpstreamProxy? {
        proxy(scheme: origin.scheme, host: origin.host, port: origin.effectivePort)
    }
}
