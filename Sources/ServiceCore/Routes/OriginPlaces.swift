// Under which keys a URL of an origin may be stored: in every service that leads there, and in forward mode.

package import CacheStore
import HTTPCaching
import HTTPWire

/// The keys of URLs of origins.
package struct OriginPlaces {
    package var keys: Set<CacheKey> = []
    /// The origins of services whose keys hold the client's Host: any host may stand in its place.
    package var anyHost: Set<CacheKey> = []
}

/// A request of a client that leads to a URL of an origin.
package struct ClientWay {
    package let route: ServiceRoute
    /// In origin form.
    package let target: String
    /// Nil: that of a listener.
    package let host: String?

    package init(_ route: ServiceRoute, _ target: some StringProtocol, host: String?) {
        self.route = route
        self.target = target.hasPrefix("/") ? String(target) : "/" + target
        self.host = host
    }
}

extension RoutePlan {
    /// Where these URLs may be stored, whichever way they were asked for.
    /// - Parameters:
    ///   - urls: absolute, as an origin is asked for them.
    ///   - route: the service that has asked, whose own keys its caller knows: with the client's Host in them, those
    ///     with another one are other resources. Nil in forward mode.
    package func places(storing urls: [String], but route: ServiceRoute? = nil) -> OriginPlaces {
        var places = OriginPlaces()
        for url in urls.map({ CacheKey(service: "", url: $0).description }) {
            if let forward, let root = Self.root(of: url) {
                let path = forward.route.itself.request.key.path(String(url.dropFirst(root.count)))
                places.keys.insert(CacheKey(service: "", url: root + path))
            }
            for service in services where !(service === route && service.keysHost) {
                // No key holds what a service adds in secret.
                for url in Set([url, service.rewriting.secrets.removed(from: url)]) {
                    var keys = Set(rests(of: url, through: service).map { service.key(rest: $0, host: nil) })
                    for path in askedPaths(of: url, through: service) {
                        keys.formUnion(service.keys(asking: service.address.path(appending: path), host: nil))
                    }
                    if service.keysHost { places.anyHost.formUnion(keys) } else { places.keys.formUnion(keys) }
                }
            }
        }
        return places
    }

    /// How keys may call what an origin calls by this URL, or by one that begins with it.
    package func listedForms(of url: String) -> [String] {
        let beginnings = services.filter { !$0.keysHost }.flatMap { service in
            rests(of: url, through: service).map { service.address.base + $0 }
        }
        return beginnings + places(storing: [url]).keys.map(\.description)
    }

    /// How clients ask services for a URL: that of an origin, or one that a listing shows of a
    /// service in front of another.
    /// - Parameter service: only this one; nil for all, those with the longest base URL first.
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
            // Endpoints with targets of their own lead there, too.
            let shaped = rests.dropFirst().filter { route.endpoint(for: .get, $0).isShaped }
            var found = (rests.prefix(1) + shaped).map { ClientWay(route, prefix + $0, host: route.host) }
            let root = CacheKey(service: "", url: route.keysHost ? url : route.address.root + "/").description
            if found.isEmpty, route.keysHost, service != nil, let own = Self.root(of: url) {
                // With the client's Host in the key, that is the authority of what is listed.
                let path = url.dropFirst(own.count)
                if path.hasPrefix(route.address.basePath) {
                    let host = own.firstRange(of: "://").map { String(own[$0.upperBound...]) }
                    found = [ClientWay(route, prefix + path.dropFirst(route.address.basePath.count), host: host)]
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

    /// What a service asks for below its base URL where `url` is asked for at the end.
    private func askedPaths(of url: String, through route: ServiceRoute, depth: Int = 0) -> [String] {
        if let base = route.plan.origin?.base {
            guard url.hasPrefix(base) else { return [] }
            let rest = String(url.dropFirst(base.count))
            return rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") ? [rest] : []
        }
        guard let inner = route.inner.flatMap({ service(named: $0) }), depth < ServiceRoute.maximumDepth else {
            return []
        }
        return rests(of: url, through: inner, depth: depth + 1).flatMap { rest in
            // The inner service adds items to the query: the path that it was asked for does not have them yet.
            inner.endpoint(for: .get, rest).request.query.targets(of: rest)
        }
    }

    /// Scheme and authority.
    private static func root(of url: String) -> String? {
        guard let scheme = url.firstRange(of: "://") else { return nil }
        return String(url[..<(url[scheme.upperBound...].firstIndex(of: "/") ?? url.endIndex)])
    }
}
