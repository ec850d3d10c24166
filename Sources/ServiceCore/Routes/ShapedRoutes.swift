// The targets of endpoints that ask their origin for another one than the client's: filled, used as keys, and found
// again.

package import CacheStore
import HTTPCaching
import HTTPWire
import Trees

extension ServiceRoute {
    /// Fills the target of a request as its endpoint demands, and collects the parameters for the content.
    /// - Parameters:
    ///   - rest: the target without the prefix.
    ///   - content: the content of the request, if it was read.
    /// - Throws: an error for a parameter that is missing or refused.
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

    /// The filled target without the parameters for the content. If it cannot be filled, the target without the prefix,
    /// for which nothing is stored.
    func filledOrPlain(_ rest: String, _ endpoint: EndpointRoute) -> String {
        guard endpoint.request.shape != nil else { return rest }
        return (try? fill(rest, endpoint))?.rest ?? rest
    }

    /// The target below the base URL that the origin is asked for, if a client asks for `rest` by GET.
    package func askedRest(_ rest: String) -> String { filledOrPlain(rest, endpoint(for: .get, rest)) }

    /// The keys under which endpoints with a target of their own may have stored a path, as far as its URL determines
    /// them.
    /// - Parameters:
    ///   - path: the path and query on the origin.
    ///   - origin: the origin that a target names; otherwise without effect.
    func keys(asking path: String, host: String?, on origin: OriginAddress? = nil) -> Set<CacheKey> {
        Set(
            endpoints.filter { $0.request.shape?.to != nil }
                .map { key(path: $0.request.key.path(path), host: host, on: origin) }
        )
    }

    /// The targets by which clients reach a path on the origin: the path itself, unless an endpoint asks for another
    /// one instead, and the targets that endpoints turn into it.
    /// - Parameter rest: the target below the base URL on the origin.
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
        // The scheme and the authority end before the third slash.
        let path = key.description.utf8.drop { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes < 3
        }
        let rest = path.starts(with: address.basePath.utf8) ? Array(path.dropFirst(address.basePath.utf8.count)) : []
        return rest.withUnsafeBytes { endpoint(for: .get, $0) }.request
    }
}
