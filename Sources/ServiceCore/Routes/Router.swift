// The router: it finds out once whether a request is for the daemon itself, a tunnel, or a service with its endpoint.
// Answers, explanations and batches use it.

import EventLoop
package import HTTPWire
package import Upstream

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
        hosts = HostRules(names: plan.machineNames)
    }

    /// The methods that Allow names. Requests with other methods are forwarded, too, except for TRACE and TRACK.
    package static let methods = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, CONNECT"

    /// Whether every service answers for a host.
    package func allows(_ host: Authority) -> Bool { hosts.allows(host) }

    /// Whether any service of a plan answers for a host, so that a request for it is not refused for its Host alone.
    package static func answers(for host: Authority, by plan: RoutePlan) -> Bool {
        HostRules(names: plan.machineNames).allows(host) || plan.hasHost(host.name)
            || KnownHost("", host, plan, isOwn: false).isServed
    }

    /// Finds the destination of a request.
    /// - Parameters:
    ///   - connection: what the request came over; by default as for one of the daemon's own.
    ///   - found: what an origin-form target of it is for, where that is known already.
    ///   - known: finds a Host value that has been learnt before.
    ///   - learnt: takes a Host value that was not known, and that is answered for.
    ///   - allowed: takes the target of a request through the proxy that is answered, and that is none of the daemon's own.
    /// - Throws: the refusal of a request that has been here before, that asks for itself, that has an expectation that
    ///   is not understood, or that no service answers.
    package func destination(
        _ request: RequestHead,
        _ target: RequestTarget,
        over connection: ConnectionContext = ConnectionContext(),
        found: RouteMatch? = nil,
        known: (UnsafeRawBufferPointer) -> KnownHost?,
        learnt: (KnownHost) -> Void = { _ in },
        allowed: (ProxyTarget) -> Void = { _ in }
    ) throws(RouteRefusal) -> RequestDestination {
        try accept(request)
        if request.method == .options, OutgoingRequest.maxForwards(request.fields) == 0 { return .daemon }
        if let authority = connection.authority {
            let path = try InnerTargets.path(of: request, target, to: authority, over: connection)
            let asked = ProxyTarget(scheme: connection.scheme, authority: authority, path: path)
            let match = try proxied(request, asked, by: taker(of: asked, over: connection), over: connection)
            allowed(asked)
            return .service(match)
        }
        switch target.form {
        case .asterisk: return .daemon
        case .authority(let authority): return .tunnel(authority)
        case .origin(let path):
            if let found { return .service(found) }
            return .service(try service(request, target: path, over: connection, known: known, learnt: learnt))
        case .absolute(let scheme, let authority, let path):
            let asked = ProxyTarget(scheme: scheme, authority: authority, path: target.isServerWide ? "" : path)
            let taker = taker(of: asked, over: connection)
            if case .own = taker {
                if target.isServerWide { return .daemon }
                // The authority of the target wins over Host (RFC 9112 section 3.2.2).
                var request = request
                request.target = path
                request.fields.set(.host, authority.description)
                let match = try service(request, target: path, over: connection, known: known, learnt: learnt)
                // The daemon at the name of a service without an origin is not that origin.
                let isOwn = listeners.isOwn(authority, port: asked.port)
                return .service(match.route.asksTarget && !isOwn ? named(match, by: asked, .proxied) : match)
            }
            let match = try proxied(request, asked, by: taker, over: connection)
            allowed(asked)
            return .service(match)
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
        over connection: ConnectionContext,
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
            return RouteMatch(route, route.rest(target), request, over: connection)
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

    // MARK: - Proxied requests

    /// Finds the route of a request that its client has sent to a proxy, and that is not for the daemon's own address.
    /// - Throws: the refusal of a target that is this daemon itself, or of a request that forward mode refuses.
    private func proxied(
        _ request: RequestHead,
        _ asked: ProxyTarget,
        by taker: ProxyTaker,
        over connection: ConnectionContext
    ) throws(RouteRefusal) -> RouteMatch {
        guard case .service(let route) = taker else {
            return try forward(request, asked, over: connection)
        }
        try check(asked, over: connection)
        // The authority that the client was told to reach wins over Host (RFC 9112 section 3.2.2).
        var request = request
        request.target = asked.path
        request.fields.set(.host, asked.origin.authority)
        let match = RouteMatch(
            route,
            route.rest(asked.path),
            request,
            origin: route.plan.origin,
            target: route.plan.target,
            reach: connection.proxyReach
        )
        return route.asksTarget ? named(match, by: asked, match.reach) : match
    }

    /// A match of a service without a base URL, with the origin that the target names: forward mode's rules say whether
    /// it is asked, and at which addresses.
    private func named(_ match: RouteMatch, by asked: ProxyTarget, _ reach: Reach) -> RouteMatch {
        let verdict = plan.forward?.verdict(on: asked)
        let obstacle: OriginObstacle? =
            switch verdict {
            case .named, .anyPublic: nil
            case .refused: .refused("\(asked.origin.host):\(asked.port)")
            case nil: .forwardOff
            }
        return RouteMatch(
            match.route,
            match.rest,
            match.request,
            origin: match.route.named(scheme: asked.scheme, port: asked.authority.port),
            target: verdict == .named ? .any : .noPrivate,
            reach: reach,
            obstacle: obstacle,
            endpoint: match.endpoint
        )
    }

    /// Checks what a client wants to reach, whoever takes the request.
    /// - Throws: the refusal of a target that is this daemon itself, or of its scheme.
    private func check(_ asked: ProxyTarget, over connection: ConnectionContext) throws(RouteRefusal) {
        if listeners.isOwn(asked.authority, port: asked.port) { throw .loop }
        guard asked.isSecure || asked.scheme == "http" else { throw .scheme(asked.scheme) }
        // A client that writes https:// wants secrecy, and its request must not have crossed the network in the clear.
        if asked.isSecure, connection.security == .plain, let listener = connection.listener, !listener.isLoopback {
            throw .secureFromAfar
        }
    }

    /// Finds the route of forward mode.
    /// - Throws: the refusal of a target that is this daemon itself, or that no rule allows.
    private func forward(
        _ request: RequestHead,
        _ asked: ProxyTarget,
        over connection: ConnectionContext
    ) throws(RouteRefusal) -> RouteMatch {
        guard let forward = plan.forward else {
            throw listeners.isOwn(asked.authority, port: asked.port) ? .loop : .forwardOff
        }
        try check(asked, over: connection)
        let verdict = forward.verdict(on: asked)
        if verdict == .refused {
            let authority = asked.authority
            throw .target(asked.isSecure ? "\(authority.host):\(asked.port)" : authority.description)
        }
        return RouteMatch(
            forward.route,
            asked.path,
            request,
            origin: asked.origin,
            target: verdict == .named ? .any : .noPrivate,
            reach: connection.proxyReach,
            endpoint: forward.route.itself
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
