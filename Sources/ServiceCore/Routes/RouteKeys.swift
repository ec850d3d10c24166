// The cache key of a request, as a value; the hot path makes the same bytes in a buffer of its own.

package import CacheStore
import HTTPCaching
package import HTTPWire

extension ServiceRoute {
    /// The key of a path that the origin is asked for.
    /// - Parameters:
    ///   - path: path and query on the origin.
    ///   - host: the client's Host; it counts only where it reaches an origin, which may answer by it.
    ///   - lines: what else tells requests apart.
    package func key(path: String, host: String?, lines: [String] = []) -> CacheKey {
        if let keyRoot, path.utf8.first == UInt8(ascii: "/") {
            return CacheKey(root: keyRoot, path: path, lines: lines)
        }
        guard keysHost, let authority = host.flatMap({ Authority.parse($0) }) else {
            return CacheKey(service: plan.name, url: address.root + path, lines: lines)
        }
        let scheme = Self.keyScheme(address, keysHost: true)
        return CacheKey(service: plan.name, url: "\(scheme)://\(authority)" + path, lines: lines)
    }

    /// The key of a request, as the rules of its endpoint have it.
    /// - Parameter origin: in forward mode, the one that the target names; else nil.
    package func key(path: String, _ fields: Fields, _ endpoint: EndpointRoute, on origin: OriginAddress?) -> CacheKey {
        let path = endpoint.request.key.path(path)
        let lines = endpoint.keyLines + endpoint.request.key.lines(fields)
        if asksTarget, let origin { return CacheKey(service: self.plan.name, url: origin.root + path, lines: lines) }
        // Host is read only where it may be part of the key.
        return key(path: path, host: keysHost ? fields.first(.host) : nil, lines: lines)
    }

    /// The key that a GET of `rest` is stored under, as far as its URL says.
    package func key(rest: String, host: String?) -> CacheKey {
        let endpoint = endpoint(for: .get, rest)
        let path = path(filledOrPlain(rest, endpoint), endpoint)
        return key(path: endpoint.request.key.path(path), host: host, lines: endpoint.keyLines)
    }

    /// With the client's Host in its place, the service that stands in for an origin moves into the scheme.
    static func keyScheme(_ address: OriginAddress, keysHost: Bool) -> String {
        keysHost && address.scheme == "service" ? "service.\(address.host)".lowercased() : address.scheme
    }

    package var defaultPort: UInt16 { address.scheme == "https" ? 443 : 80 }
}
