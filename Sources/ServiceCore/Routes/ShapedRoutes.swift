// Targets of endpoints that ask their origin for another one than the client's: filled, keyed, and found again.

package import CacheStore
import Content
import HTTPCaching
import HTTPWire

extension ServiceRoute {
    /// The target of a request as its endpoint has it, and what of it goes into the content.
    /// - Parameters:
    ///   - rest: what follows the prefix.
    ///   - content: of the request, where it was read.
    /// - Throws: that a parameter is missing or refused.
    func fill(
        _ rest: String,
        _ endpoint: EndpointRoute,
        content: ContentTree? = nil
    ) throws(RouteRefusal) -> FilledTarget {
        guard let shape = endpoint.request.shape else { return FilledTarget(rest: rest, members: []) }
        do throws(RequestFault) {
            return try shape.fill(rest, content: content)
        } catch {
            throw .request(error, service: plan.name, endpoint: endpoint.name)
        }
    }

    /// The same without the members; what follows the prefix where that cannot be filled, which is then a target that
    /// nothing is stored for.
    func filledOrPlain(_ rest: String, _ endpoint: EndpointRoute) -> String {
        guard endpoint.request.shape != nil else { return rest }
        return (try? fill(rest, endpoint))?.rest ?? rest
    }

    /// What the origin is asked for below the base URL, where a client asks for `rest` by GET.
    package func askedRest(_ rest: String) -> String { filledOrPlain(rest, endpoint(for: .get, rest)) }

    /// The keys under which endpoints with a target of their own may have stored what a path names, as far as its URL
    /// says.
    /// - Parameter path: path and query on the origin.
    func keys(asking path: String, host: String?) -> Set<CacheKey> {
        Set(
            endpoints.filter { $0.request.shape?.to != nil }
                .map { key(path: $0.request.key.path(path), host: host) }
        )
    }

    /// What a client asks for so that the origin is asked for a path: the path itself, unless an endpoint asks
    /// for something else instead, and what endpoints make it of.
    /// - Parameter rest: what follows the base URL on the origin.
    func clientRests(for rest: String) -> [String] {
        let direct = endpoint(for: .get, rest)
        var rests = direct.request.shape == nil || filledOrPlain(rest, direct) == rest ? [rest] : []
        for endpoint in endpoints where endpoint.endpoint?.method == .get {
            guard let shape = endpoint.request.shape, shape.to != nil else { continue }
            for target in endpoint.request.query.targets(of: rest) {
                guard let found = shape.rest(leadingTo: target), self.endpoint(for: .get, found) === endpoint,
                    !rests.contains(found)
                else { continue }
                rests.append(found)
            }
        }
        return rests
    }

    /// The plan for a GET of a stored response.
    package func plan(storedAs key: CacheKey) -> RequestPlan {
        let lines = key.extras?.split(separator: "\n") ?? []
        if let endpoint = endpoints.first(where: { endpoint in
            endpoint.keyLines.contains { lines.contains($0[...]) }
        }) {
            return endpoint.request
        }
        var slashes = 0
        // Scheme and authority end before the third slash.
        let path = key.description.utf8.drop { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes < 3
        }
        let rest = path.starts(with: address.basePath.utf8) ? Array(path.dropFirst(address.basePath.utf8.count)) : []
        return rest.withUnsafeBytes { endpoint(for: .get, $0) }.request
    }
}
