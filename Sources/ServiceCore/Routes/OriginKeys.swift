// The keys under which a URL of an origin may be stored: in every service that leads there, and in forward mode.

package import CacheStore
import HTTPCaching
import HTTPWire

/// The keys of URLs of origins.
package struct OriginKeys {
    package var keys: Set<CacheKey> = []
    /// The keys that contain the client's Host, with their own origin in its place: any host may be there instead.
    package var anyHost: Set<CacheKey> = []
}

/// A request by which a client reaches a URL of an origin.
package struct ClientWay {
    package let route: ServiceRoute
    /// The target in origin form, or the URL where the target has to name the origin.
    package let target: String
    /// The host of the request; nil for that of a listener, or of the target.
    package let host: String?

    package init(_ route: ServiceRoute, _ target: some StringProtocol, host: String?) {
        self.route = route
        let isAbsolute = target.hasPrefix("http://") || target.hasPrefix("https://")
        self.target = isAbsolute || target.hasPrefix("/") ? String(target) : "/" + target
        self.host = host
    }
}

extension RoutePlan {
    /// The keys of URLs, for every way of asking for them.
    /// - Parameters:
    ///   - urls: absolute, as an origin is asked for them.
    ///   - route: the service that has asked, whose own keys its caller knows: with the client's Host in them, those
    ///     with another one are other resources. Nil in forward mode.
    package func keys(storing urls: [String], but route: ServiceRoute? = nil) -> OriginKeys {
        var found = OriginKeys()
        for url in urls.map({ CacheKey(service: "", url: $0).description }) {
            if let forward, let root = Self.root(of: url) {
                let path = forward.route.itself.request.key.path(String(url.dropFirst(root.count)))
                found.keys.insert(CacheKey(service: "", url: root + path))
            }
            for service in services where !(service === route && service.keysHost) {
                let origin = service.origin(of: url)
                // No key contains the query items that a service adds in secret.
                for url in Set([url, service.rewriting.secrets.removed(from: url)]) {
                    var keys = Set(
                        rests(of: url, through: service).map { service.key(rest: $0, host: nil, on: origin) }
                    )
                    for path in askedPaths(of: url, through: service) {
                        let asked = service.address.path(appending: path)
                        keys.formUnion(service.keys(asking: asked, host: nil, on: origin))
                    }
                    if service.keysHost { found.anyHost.formUnion(keys) } else { found.keys.formUnion(keys) }
                }
            }
        }
        return found
    }

    /// The forms in which keys may contain this URL of an origin, or one that begins with it.
    package func listedForms(of url: String) -> [String] {
        let beginnings = services.filter { !$0.keysHost }.flatMap { service in
            rests(of: url, through: service).map { (service.origin(of: url) ?? service.address).base + $0 }
        }
        return beginnings + keys(storing: [url]).keys.map(\.description)
    }

    /// The requests by which clients reach a URL: that of an origin, or one that a listing shows of a service in front
    /// of another.
    /// - Parameter service: the only service to consider; nil for all, those with the longest base URL first.
    package func ways(to url: String, through service: String? = nil) -> [ClientWay] {
        let url = CacheKey(service: "", url: String(url.prefix { $0 != "#" })).description
        let ordered = services.filter { service == nil || $0.plan.name == service }
            .sorted { one, other in
                let (direct, others) = (one.plan.origin != nil, other.plan.origin != nil)
                return direct == others ? one.address.base.utf8.count > other.address.base.utf8.count : direct
            }
        return ordered.flatMap { route -> [ClientWay] in
            let prefix = String(decoding: route.prefix, as: UTF8.self)
            let rests = rests(of: url, through: route)
            // Endpoints with targets of their own may lead to the URL, too.
            let shaped = rests.dropFirst().filter { route.endpoint(for: .get, $0).isShaped }
            // The URL names the origin only where it is asked for through the proxy.
            let named = route.asksTarget ? route.origin(of: url)?.root : nil
            let host = named == nil ? route.host : nil
            var found = (rests.prefix(1) + shaped).map { ClientWay(route, (named ?? "") + prefix + $0, host: host) }
            let root = CacheKey(service: "", url: route.keysHost ? url : route.address.root + "/").description
            if found.isEmpty, route.keysHost, service != nil, let own = Self.root(of: url) {
                // If the key contains the client's Host, the listed URL has it as its authority.
                let path = url.dropFirst(own.count)
                if path.hasPrefix(route.address.basePath) {
                    let asked = own.firstRange(of: "://").map { String(own[$0.upperBound...]) }
                    found = [ClientWay(route, prefix + path.dropFirst(route.address.basePath.count), host: asked)]
                }
            } else if found.isEmpty, !route.keysHost, url.hasPrefix(root), route.inner != nil {
                found = [ClientWay(route, prefix + "/" + url.dropFirst(root.count), host: route.host)]
            }
            return found
        }
    }

    /// The paths behind a service's prefix for which its origin is asked for `url`.
    package func rests(of url: String, through route: ServiceRoute, depth: Int = 0) -> [String] {
        askedPaths(of: url, through: route, depth: depth).flatMap { route.clientRests(for: $0) }
    }

    /// The paths below its base URL that a service asks for, if `url` is requested in the end.
    private func askedPaths(of url: String, through route: ServiceRoute, depth: Int = 0) -> [String] {
        if let base = route.origin(of: url)?.base {
            guard url.hasPrefix(base) else { return [] }
            let rest = String(url.dropFirst(base.count))
            return rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") ? [rest] : []
        }
        guard let inner = route.inner.flatMap({ service(named: $0) }), depth < ServiceRoute.maximumDepth else {
            return []
        }
        return rests(of: url, through: inner, depth: depth + 1).flatMap { rest in
            // The inner service adds items to the query, and the path that it was asked for lacks them.
            inner.endpoint(for: .get, rest).request.query.targets(of: rest)
        }
    }

    /// The scheme and the authority of a URL.
    private static func root(of url: String) -> String? {
        guard let scheme = url.firstRange(of: "://") else { return nil }
        return String(url[..<(url[scheme.upperBound...].firstIndex(of: "/") ?? url.endIndex)])
    }
}
