// The cache key of a request as a value; the hot path makes the same bytes in a buffer of its own.

package import CacheStore
import HTTPCaching
package import HTTPWire

extension ServiceRoute {
    /// The key of a path that the origin is asked for.
    /// - Parameters:
    ///   - path: the path and query on the origin.
    ///   - host: the client's Host; part of the key only if it reaches an origin, whose answer may depend on it.
    ///   - origin: the origin that a target names; otherwise without effect.
    ///   - lines: the further lines of the key.
    package func key(
        path: String,
        host: String?,
        on origin: OriginAddress? = nil,
        lines: [String] = []
    ) -> CacheKey {
        if asksTarget, let origin { return CacheKey(service: plan.name, url: origin.root + path, lines: lines) }
        if let keyRoot, path.utf8.first == UInt8(ascii: "/") {
            return CacheKey(root: keyRoot, path: path, lines: lines)
        }
        guard keysHost, let authority = host.flatMap({ Authority.parse($0) }) else {
            return CacheKey(service: plan.name, url: address.root + path, lines: lines)
        }
        let scheme = Self.keyScheme(address, keysHost: true)
        return CacheKey(service: plan.name, url: "\(scheme)://\(authority)" + path, lines: lines)
    }

    /// The key of a request by the rules of its endpoint.
    /// - Parameter origin: the origin that the target names; otherwise without effect.
    package func key(path: String, _ fields: Fields, _ endpoint: EndpointRoute, on origin: OriginAddress?) -> CacheKey {
        let path = endpoint.request.key.path(path)
        let lines = endpoint.keyLines + endpoint.request.key.lines(fields)
        // Host is read only if it may be part of the key.
        return key(path: path, host: keysHost ? fields.first(.host) : nil, on: origin, lines: lines)
    }

    /// The key of a GET of `rest`, as far as the URL determines it.
    /// - Parameter origin: the origin that a target names; otherwise without effect.
    package func key(rest: String, host: String?, on origin: OriginAddress? = nil) -> CacheKey {
        let endpoint = endpoint(for: .get, rest)
        let path = path(filledOrPlain(rest, endpoint), endpoint)
        return key(path: endpoint.request.key.path(path), host: host, on: origin, lines: endpoint.keyLines)
    }

    /// The scheme in keys. If the client's Host replaces the authority, the name of a service that stands in for an
    /// origin becomes a part of the scheme.
    static func keyScheme(_ address: OriginAddress, keysHost: Bool) -> String {
        keysHost && address.scheme == "service" ? "service.\(address.host)".lowercased() : address.scheme
    }

    package var defaultPort: UInt16 { address.scheme == "https" ? 443 : 80 }
}
