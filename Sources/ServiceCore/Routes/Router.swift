// The router: it finds out once whether a request is for the daemon itself, a tunnel, or a service with its endpoint.
// Answers, explanations and batches use it.

package import EventLoop
import HTTPCaching
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
    /// The draw of the demo answer, if it was made before the latency.
    package internal(set) var early: EarlyDraw?

    /// Makes a match for a service.
    /// - Parameter endpoint: the endpoint of the route for the request's method and `rest`; nil to find it here.
    package init(
        _ route: ServiceRoute,
        _ rest: String,
        _ request: RequestHead,
        endpoint: EndpointRoute? = nil
    ) {
        self.route = route
        self.rest = rest
        self.request = request
        self.endpoint = endpoint ?? route.endpoint(for: request.method, rest)
        origin = route.plan.origin
        target = route.plan.target
    }

    /// Makes a match for forward mode.
    init(
        _ route: ServiceRoute,
        origin: OriginAddress,
        target: TargetRules,
        path: String,
        request: RequestHead
    ) {
        self.route = route
        rest = path
        self.request = request
        endpoint = route.itself
        self.origin = origin
        self.target = target
    }
}

@available(*, unavailable) extension RouteMatch: Sendable {}

/// The destination of a request.
package enum RequestDestination {
    /// The daemon itself, for an OPTIONS of the whole server (RFC 9110 section 9.3.7), or for one that may go no
    /// further (section 7.6.2).
    case daemon
    /// A tunnel to the target of CONNECT.
    case tunnel(Authority)
    case service(RouteMatch)
}

/// Finds the destinations of requests. Loop-bound through its resolver; made anew with each plan.
package struct Router {
    package let plan: RoutePlan
    package let listeners: OwnListeners
    private let hosts: HostRules

    package init(_ plan: RoutePlan, _ listeners: OwnListeners) {
        self.plan = plan
        self.listeners = listeners
        hosts = HostRules(names: plan.machineNames, listeners: listeners.clients)
    }

    /// The methods that Allow names. Requests with other methods are forwarded, too, except for TRACE and TRACK.
    package static let methods = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, CONNECT"

    /// Whether every service answers for a host.
    package func allows(_ host: Authority) -> Bool { hosts.allows(host) }

    /// Whether any service of a plan answers for a host, so that a request for it is not refused for its Host alone.
    /// - Parameter listeners: the addresses that clients connect to.
    package static func answers(for host: Authority, by plan: RoutePlan, at listeners: [SocketAddress]) -> Bool {
        HostRules(names: plan.machineNames, listeners: listeners).allows(host) || plan.hasHost(host.name)
            || KnownHost("", host, plan, isOwn: false).isServed
    }

    /// Finds the destination of a request.
    /// - Parameters:
    ///   - connection: what the request came over; by default as for one of the daemon's own.
    ///   - found: what an origin-form target of it is for, where that is known already.
    ///   - known: finds a Host value that has been learnt before.
    ///   - learnt: takes a Host value that was not known, and that is answered for.
    /// - Throws: the refusal of a request that has been here before, that asks for itself, that has an expectation that
    ///   is not understood, or that no service answers.
    package func destination(
        _ request: RequestHead,
        _ target: RequestTarget,
        over connection: ConnectionContext = ConnectionContext(),
        found: RouteMatch? = nil,
        known: (UnsafeRawBufferPointer) -> KnownHost?,
        learnt: (KnownHost) -> Void = { _ in }
    ) throws(RouteRefusal) -> RequestDestination {
        try accept(request)
        if request.method == .options, OutgoingRequest.maxForwards(request.fields) == 0 { return .daemon }
        if let authority = connection.authority {
            let path = try InnerTargets.path(of: request, target, to: authority, over: connection)
            return .service(
                try forward(request, scheme: connection.scheme, authority: authority, path: path, over: connection)
            )
        }
        switch target.form {
        case .asterisk: return .daemon
        case .authority(let authority): return .tunnel(authority)
        case .origin(let path):
            if let found { return .service(found) }
            return .service(try service(request, target: path, known: known, learnt: learnt))
        case .absolute(let scheme, let authority, let path):
            if scheme == connection.scheme, isServedHere(authority, over: connection) {
                if target.isServerWide { return .daemon }
                // The authority of the target wins over Host (RFC 9112 section 3.2.2).
                var request = request
                request.target = path
                request.fields.set(.host, authority.description)
                return .service(try service(request, target: path, known: known, learnt: learnt))
            }
            // OPTIONS without a path asks about the server as a whole (RFC 9112 section 3.2.4).
            let path = target.isServerWide ? "" : path
            return .service(
                try forward(request, scheme: scheme, authority: authority, path: path, over: connection)
            )
        }
    }

    /// Checks a request independently of its destination.
    /// - Throws: the refusal of a request that no service would answer.
    private func accept(_ request: RequestHead) throws(RouteRefusal) {
        if request.method.isLoopBack { throw .loopBack(request.method) }
        if LoopDetection.hasPassed(request.fields, pseudonym: plan.name) { throw .loop }
        if OutgoingRequest.hasUnsupportedExpectation(request) { throw .expectation }
    }

    // MARK: - Reverse mode

    /// Finds the service by host and prefix, or else by prefix.
    /// - Throws: the refusal of a Host that is not served, or of a target without a service.
    private func service(
        _ request: RequestHead,
        target: String,
        known: (UnsafeRawBufferPointer) -> KnownHost?,
        learnt: (KnownHost) -> Void
    ) throws(RouteRefusal) -> RouteMatch {
        var host = request.fields.withFirst(.host, known) ?? nil
        if host == nil {
            let text = request.fields.first(.host) ?? ""
            // A client of HTTP/1.0 need not send Host.
            let authority = Authority.parse(text) ?? Authority(host: "localhost")
            let isOwn = hosts.allows(authority)
            let made = KnownHost(text, authority, plan, isOwn: isOwn)
            guard isOwn || made.isServed || plan.hasHost(authority.name) else {
                throw .host(authority, service: nil)
            }
            if !text.isEmpty { learnt(made) }
            host = made
        }
        var target = target
        if let route = target.withUTF8({ host?.service(target: UnsafeRawBufferPointer($0)) }) {
            return RouteMatch(route, route.rest(target), request)
        }
        if let host, let refusing = target.withUTF8({ host.refusing(target: UnsafeRawBufferPointer($0)) }) {
            throw .host(host.authority, service: refusing.plan.name)
        }
        throw .noService(target: target)
    }

    /// Whether clients reach this daemon by an authority: then a target in absolute form is answered as one in origin
    /// form, which is what programs send for a URL of the daemon while `http_proxy` names it. The admin API's
    /// listeners are not among those.
    package func isServedHere(_ authority: Authority, over connection: ConnectionContext = ConnectionContext()) -> Bool
    {
        let port = authority.port ?? connection.defaultPort
        guard listeners.takesClients(on: port) else { return false }
        return plan.ownNames.contains(authority.name) || listeners.takesClients(at: authority.name, port: port)
    }

    // MARK: - Forward mode

    /// Finds the route of forward mode.
    /// - Throws: the refusal of a target that is this daemon itself, or that no rule allows.
    private func forward(
        _ request: RequestHead,
        scheme: String,
        authority: Authority,
        path: String,
        over connection: ConnectionContext
    ) throws(RouteRefusal) -> RouteMatch {
        let isSecure = scheme == "https"
        let port = authority.port ?? (isSecure ? 443 : 80)
        if listeners.isOwn(authority, port: port) { throw .loop }
        guard let forward = plan.forward else { throw .forwardOff }
        guard isSecure || scheme == "http" else { throw .scheme(scheme) }
        // A client that writes https:// wants secrecy, and its request must not have crossed the network in the clear.
        if isSecure, connection.security == .plain, let listener = connection.listener, !listener.isLoopback {
            throw .secureFromAfar
        }
        let verdict =
            isSecure
            ? forward.verdict(connect: Authority(host: authority.host, port: port))
            : forward.verdict(host: authority.host, port: port)
        if verdict == .refused { throw .target(isSecure ? "\(authority.host):\(port)" : authority.description) }
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
        return RouteMatch(
            forward.route,
            origin: origin,
            target: verdict == .named ? .any : .noPrivate,
            path: path,
            request: request
        )
    }

    /// Checks the target of CONNECT.
    /// - Returns: the rules for the addresses that it may have.
    /// - Throws: the refusal of a target that is this daemon itself, or that no rule allows.
    package func tunnel(to authority: Authority) throws(RouteRefusal) -> TargetRules {
        guard let forward = plan.forward else { throw .forwardOff }
        if listeners.isOwn(authority, port: authority.port ?? 443) { throw .loop }
        let verdict = forward.verdict(connect: authority)
        if verdict == .refused { throw .target(authority.description) }
        return verdict == .named ? .any : .noPrivate
    }
}
