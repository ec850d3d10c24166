// The keys that a successful unsafe request makes invalid (RFC 9111 section 4.4), by URLs of the origin: on its own
// service, and wherever else they may be stored.

import CacheStore
import DownloadCore
import HTTPWire

extension RouteMatch {
    /// Where services stand in for the origin, references are those of the origin behind them.
    private var referred: OriginAddress {
        route.rewriting.origin
            ?? OriginAddress(scheme: "http", host: route.address.host.lowercased(), port: nil, basePath: "")
    }

    /// The absolute URL of the request's target on its origin.
    /// - Parameter rest: what is asked for below the base URL.
    func targetURL(_ rest: String) -> String {
        if route.asksTarget, let origin { return origin.root + rest }
        return referred.root + referred.path(appending: rest)
    }

    /// The keys under which a GET of what an answer names, or of what a redirect led to, may be stored. Forward mode has
    /// none of its own: what any service stores of such a URL is found by the URL.
    /// - Parameters:
    ///   - urls: absolute.
    ///   - host: the client's Host.
    func keys(of urls: [String], host: String?) -> [CacheKey] {
        if route.asksTarget { return [] }
        let base = referred.base
        return urls.flatMap { url -> [CacheKey] in
            // No key holds what the service adds in secret.
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
    /// Where other services, and forward mode, may have what an unsafe request changes.
    /// - Parameters:
    ///   - urls: of the target on the origin.
    ///   - url: the one that its answer refers to.
    func elsewhere(
        _ plan: RoutePlan,
        _ urls: [String],
        _ url: String,
        but route: ServiceRoute?
    ) -> (ResponseHead) -> UncachedRequest.Elsewhere {
        { answer in
            let places = plan.places(storing: urls + self.urls(named: answer, url) + self.changed, but: route)
            return UncachedRequest.Elsewhere(keys: Array(places.keys), anyHost: Array(places.anyHost))
        }
    }
}
