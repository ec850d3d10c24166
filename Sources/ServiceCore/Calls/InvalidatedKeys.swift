// The keys that a successful unsafe request invalidates (RFC 9111 section 4.4), by URLs of the origin: in its own
// service, and in all others that may store them.

import CacheStore
import DownloadCore
import HTTPWire

extension RouteMatch {
    /// The origin that references in answers belong to: that at the end of the chain of services.
    private var referred: OriginAddress {
        route.rewriting.origin
            ?? OriginAddress(scheme: "http", host: route.address.host.lowercased(), port: nil, basePath: "")
    }

    /// The absolute URL of the request's target on its origin.
    /// - Parameter rest: the target below the base URL.
    func targetURL(_ rest: String) -> String {
        if route.asksTarget, let origin { return origin.base + rest }
        return referred.root + referred.path(appending: rest)
    }

    /// The keys under which a GET of the given URLs may be stored in this service. Where requests name
    /// their origin there are none of its own, because its stored responses are found by the URL.
    /// - Parameters:
    ///   - urls: the absolute URLs that an answer names, or that redirects led to.
    ///   - host: the client's Host.
    func keys(of urls: [String], host: String?) -> [CacheKey] {
        if route.asksTarget { return [] }
        let base = referred.base
        return urls.flatMap { url -> [CacheKey] in
            // No key contains the query items that the service adds in secret.
            let url = route.rewriting.secrets.removed(from: url)
            guard url.hasPrefix(base) else { return [] }
            let rest = String(url.dropFirst(base.count))
            guard rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") else { return [] }
            let asked = route.keys(asking: route.address.path(appending: rest), host: host)
            return route.clientRests(for: rest).map { route.key(rest: $0, host: host) } + asked
        }
    }
}

extension FetchTrail {
    /// The keys under which other services, and forward mode, may have stored the URLs that an unsafe request changes.
    /// - Parameters:
    ///   - urls: the URLs of the target on the origin.
    ///   - url: the URL that the answer refers to.
    func elsewhere(
        _ plan: RoutePlan,
        _ urls: [String],
        _ url: String,
        but route: ServiceRoute?
    ) -> (ResponseHead) -> UncachedRequest.Elsewhere {
        { answer in
            let found = plan.keys(storing: urls + self.urls(named: answer, url) + self.changed, but: route)
            return UncachedRequest.Elsewhere(keys: Array(found.keys), anyHost: Array(found.anyHost))
        }
    }
}
