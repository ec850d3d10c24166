// A request with the service that it is for, and the origin that it names: found once, and asked by answers, explanations
// and batches.

import DownloadCore
package import HTTPWire
package import Upstream

/// A request with its service, found once and passed by reference. It does not change, except for the early draw, which
/// is set once.
package final class RouteMatch {
    package let route: ServiceRoute
    package let endpoint: EndpointRoute
    /// The target without the service's prefix: empty, or beginning with `/` or `?`. In forward mode, the path and
    /// query.
    package let rest: String
    /// The origin of the request; nil if the service asks another one, or only plays demo answers.
    package let origin: OriginAddress?
    /// The rules for the addresses that the origin may have.
    package let target: TargetRules
    /// The request in origin form, whose Host is decisive.
    package let request: RequestHead
    /// How the client has reached the service.
    package let reach: Reach
    /// Why the origin that the request names is not asked; nil if it is, or if the service has one of its own.
    package let obstacle: OriginObstacle?
    /// The draw of the demo answer, if it was made before the latency.
    package internal(set) var early: EarlyDraw?

    /// Makes a match for a request to this daemon itself. It names no origin for a service that has none: what is
    /// stored for the URL that Host and the connection make may answer, but nobody is asked.
    /// - Parameters:
    ///   - endpoint: the endpoint of the route for the request's method and `rest`; nil to find it here.
    ///   - connection: what the request came over; by default as for one of the daemon's own.
    package init(
        _ route: ServiceRoute,
        _ rest: String,
        _ request: RequestHead,
        endpoint: EndpointRoute? = nil,
        over connection: @autoclosure () -> ConnectionContext = ConnectionContext()
    ) {
        self.route = route
        self.rest = rest
        self.request = request
        self.endpoint = endpoint ?? route.endpoint(for: request.method, rest)
        target = route.plan.target
        reach = .direct
        if route.asksTarget {
            let host = request.fields.first(.host).flatMap { Authority.parse($0) }
            origin = route.named(scheme: connection().scheme, port: host?.port)
            obstacle = .unnamed
        } else {
            origin = route.plan.origin
            obstacle = nil
        }
    }

    /// Makes a match for a request that names its origin.
    /// - Parameter endpoint: the endpoint of the route for the request's method and `rest`; nil to find it here.
    init(
        _ route: ServiceRoute,
        _ rest: String,
        _ request: RequestHead,
        origin: OriginAddress?,
        target: TargetRules,
        reach: Reach,
        obstacle: OriginObstacle? = nil,
        endpoint: EndpointRoute? = nil
    ) {
        self.route = route
        self.rest = rest
        self.request = request
        self.endpoint = endpoint ?? route.endpoint(for: request.method, rest)
        self.origin = origin
        self.target = target
        self.reach = reach
        self.obstacle = obstacle
    }

    /// The same match, answered by a stage of the endpoint's sources.
    func staged(_ endpoint: EndpointRoute) -> RouteMatch {
        RouteMatch(
            route,
            rest,
            request,
            origin: origin,
            target: target,
            reach: reach,
            obstacle: obstacle,
            endpoint: endpoint
        )
    }

    /// The rules by which the fields of an answer are rewritten for the client.
    package var rewriting: Rewriting { reach == .direct ? route.rewriting : route.rewritings[reach] }

    /// Whether the client has sent the request to a proxy: in absolute form, or inside of a tunnel.
    var isProxied: Bool { reach != .direct }

    /// Whether the request is not found, because no endpoint names it: the service answers only its endpoints, or the
    /// request is to this daemon itself, which is no origin to pass it to, while each endpoint has an answer of its own.
    package var isUnlisted: Bool {
        endpoint.isUnlisted || obstacle == .unnamed && route.answersItself && endpoint.endpoint == nil
    }
}

@available(*, unavailable) extension RouteMatch: Sendable {}

// MARK: - Origins that requests name

/// Why the origin that a request names is not asked. Demo answers, recordings and stored responses answer nevertheless.
package enum OriginObstacle: Sendable, Equatable {
    /// The request is to this daemon itself, so that its target names no other origin.
    case unnamed
    /// Forward mode is off, so that no client may choose an origin.
    case forwardOff
    /// No rule of forward mode allows the target: the service's `match.host` is none.
    case refused(String)
}

extension FetchError {
    /// The failure of a call whose origin is not asked.
    init(_ obstacle: OriginObstacle, of route: ServiceRoute) {
        let service = "service \(route.plan.name) has no base_url, and asks the origin that a proxied request names"
        let (host, remedy) = (route.host ?? "", "give the service a base_url")
        switch obstacle {
        case .unnamed:
            self = .misdirected(
                "\(service): this request was sent to the daemon itself, and nothing is stored for it; "
                    + "\(remedy), or send GET http://\(host)/... to the daemon as a proxy (http_proxy)"
            )
        case .forwardOff:
            self = .misdirected(
                "\(service), but forward mode is off, and nothing is stored for this request; "
                    + "\(remedy), or set forward.enabled: true"
            )
        case .refused(let target):
            self = .targetRefused(
                "\(service), but no rule of forward mode allows \(target); "
                    + "add it under forward.allow (for https, under forward.connect.allow as well), or \(remedy)"
            )
        }
    }
}

extension ServiceRoute {
    /// The origin that a proxied request for the service's host names. The prefix selects the service, and stays in the
    /// path.
    func named(scheme: String, port: UInt16?) -> OriginAddress {
        OriginAddress(scheme: scheme, host: host ?? "", port: port, basePath: address.basePath)
    }

    /// The origin of the service that a URL belongs to: its own, or the one that a proxied request for the URL names.
    /// - Parameter url: absolute, with scheme and host in lower case. It need not be below the base path.
    /// - Returns: nil if the service has no origin, or none with this URL.
    package func origin(of url: String) -> OriginAddress? {
        guard asksTarget, let host else { return plan.origin }
        guard let scheme = ["http", "https"].first(where: { url.hasPrefix($0 + "://") }) else { return nil }
        let rest = url.dropFirst(scheme.utf8.count + 3)
        guard let authority = Authority.parse(String(rest.prefix { !"/?#".contains($0) })), authority.name == host
        else { return nil }
        return named(scheme: scheme, port: authority.port)
    }
}
