// Who a request is for and what becomes of it, decided from the plan alone: answering takes this way, and so does explaining.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

/// The service that a request in origin form is for.
struct ServicePlace {
    /// The Host field; nil where it is none, or was answered for before.
    var fresh: KnownHost?
    /// The service by host and prefix, else by prefix; nil where none matches.
    var route: ServiceRoute?
}

/// What becomes of a request to a service.
enum ServiceStep {
    case demo(DemoRule)
    /// A GET or HEAD: from the store, or from the source through it.
    case store(CacheAsk, any FetchSource)
    /// A POST whose answer may be stored, by its content, which is yet to be read.
    case post(CacheAsk, any FetchSource)
    /// Any other method, or a request with a body: on to the path at the source.
    case pass(path: String, any FetchSource)
}

extension ProxyHandler {
    /// What is passed on, as Allow names it; other methods that are no loop-backs go on, too.
    static let methods = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, CONNECT"

    /// - Throws: the refusal of a request that has been here before, that asks for itself, or that expects what is not understood.
    func accept(_ request: RequestHead) throws(Problem) {
        if request.method.isLoopBack {
            throw Problem(
                status: 405,
                title: "Method not allowed",
                detail: "\(request.method.name) asks for the request itself, and an origin would send back the"
                    + " credentials that were added to it; it goes no further than this",
                proxyError: "http_request_denied",
                fields: Fields([("Allow", Self.methods)])
            )
        }
        if LoopDetection.hasPassed(request.fields, pseudonym: plan.name) {
            throw LoopDetection.problem(pseudonym: plan.name)
        }
        if Self.expectsTheUnknown(request) {
            throw Problem(
                status: 417,
                title: "Expectation not known",
                detail: "only 'Expect: 100-continue' is understood; send the request without the other expectation"
            )
        }
    }

    // MARK: - Reverse mode

    /// - Throws: the refusal of a Host that is not served.
    func service(for request: RequestHead, _ target: String) throws(Problem) -> ServicePlace {
        var place = ServicePlace()
        var known = request.fields.withFirst(.host, { hot.known(host: $0) }) ?? nil
        if known == nil {
            let text = request.fields.first(.host) ?? ""
            // A client of HTTP/1.0 need not say whom it asks.
            let authority = Authority.parse(text) ?? Authority(host: "localhost")
            let isOwn = hostRules.allows(authority)
            let fresh = KnownHost(text, authority, plan, isOwn: isOwn)
            guard isOwn || fresh.isServed || plan.hasHost(authority.name) else { throw HostRules.problem(authority) }
            if !text.isEmpty { place.fresh = fresh }
            known = fresh
        }
        guard let known else { return place }
        var target = target
        place.route = target.withUTF8 { known.service(target: UnsafeRawBufferPointer($0)) }
        if place.route == nil, let refusing = target.withUTF8({ known.refusing(target: UnsafeRawBufferPointer($0)) }) {
            throw HostRules.problem(known.authority, service: refusing.plan.name)
        }
        return place
    }

    /// - Throws: that the path may leave what the service answers for, that no endpoint names it and only those are answered, or that
    ///   nobody answers.
    func step(_ request: RoutedRequest) throws(Problem) -> ServiceStep {
        let route = request.route
        var rest = request.rest
        try Self.checkPath(rest, route)
        let endpoint = rest.withUTF8 { bytes in
            route.plan.paths.first(for: request.head.method, path: UnsafeRawBufferPointer(bytes))
        }
        if let rule = route.demo(endpoint) { return .demo(rule) }
        if endpoint == nil, route.listedOnly { throw Self.notListed(route) }
        let (plan, shape) = route.request(endpoint)
        let (depth, hidden) = (request.depth, request.hidden)
        let source = try source(route, endpoint, depth: depth, hidden: hidden, trace: request.trace)
        let path = route.path(rest, plan, behind: request.hidden)
        let isPlain = request.framing == .none || request.framing == .length(0)
        if Self.mayStorePost(request.head, request.framing, plan) {
            return .post(ask(request, path, plan, shape), source)
        }
        guard isPlain, request.head.method == .get || request.head.method == .head else {
            return .pass(path: path, source)
        }
        return .store(Self.get(ask(request, path, plan, shape), plan), source)
    }

    /// Where a service has endpoints, a base path or credentials, no path may lead out of what its first bytes name: it is refused
    /// before anything is matched, since what a server makes of it is not what is matched, stored and logged here.
    /// - Throws: the refusal of a path with dot segments.
    static func checkPath(_ rest: String, _ route: ServiceRoute) throws(Problem) {
        guard route.guardsPaths, DotSegments.mayOccur(in: rest) else { return }
        throw Problem(
            status: 400,
            title: "Path with dot segments",
            detail:
                "the path holds '.' or '..' as a segment, as it is or made by %2e, %2f, %5c, '\\' or ';', and could leave what service "
                + "\(route.plan.name) answers for; send the path that it leads to",
            proxyError: "http_request_error"
        )
    }

    /// The question of a request in reverse mode.
    /// - Parameter path: path and query on the origin.
    func ask(_ request: RoutedRequest, _ path: String, _ plan: RequestPlan, _ shape: UInt64) -> CacheAsk {
        let (route, fields) = (request.route, request.originFields)
        var ask = CacheAsk(
            key: route.key(path: path, request.head.fields, plan),
            request: request.head,
            originFields: plan.policy.mode == .none ? fields : UnkeyedFields.removed(from: fields, plan.key),
            path: plan.storesAnything ? plan.key.path(path) : path,
            policy: plan.policy,
            shape: shape,
            collapse: plan.collapse,
            prepare: { [via = self.plan.via] in Self.prepare($0, route, via: via) }
        )
        ask.seed = plan.seed
        ask.phases = plan.phases
        ask.onClientAbort = plan.onClientAbort
        ask.sharesURL = plan.sharesURL || route.isAskedInSecret
        let secrets = route.rewriting.secrets
        if !secrets.isEmpty { ask.shown = { secrets.removed(from: $0) } }
        if !request.hidden.isEmpty { ask.key = ask.key.adding(lines: request.hidden.map(\.line)) }
        // With a query of the client's own, or of a service in front, it is another resource.
        if let file = plan.storeAs, !request.rest.contains("?"), request.hidden.isEmpty { ask.storeAs = file }
        return ask
    }

    // MARK: - Forward mode

    /// The origin of an absolute target, as a service of its own.
    /// - Parameter listener: where the request came in; nil for one of the daemon's own.
    /// - Throws: the refusal of a target that is this daemon itself, or that no rule allows.
    func forwardTarget(
        _ scheme: String,
        _ authority: Authority,
        from listener: SocketAddress? = nil
    ) throws(Problem) -> (ForwardPlan, OriginAddress, ServicePlan) {
        let isSecure = scheme == "https"
        let port = authority.port ?? (isSecure ? 443 : 80)
        if isOwn(authority, port: port) { throw LoopDetection.problem(pseudonym: plan.name) }
        guard let forward = plan.forward else { throw ForwardRules.disabled }
        guard isSecure || scheme == "http" else { throw ForwardRules.scheme(scheme) }
        // What is meant to be secret must not have crossed the network in the clear.
        if isSecure, let listener, !listener.isLoopback { throw ForwardRules.secureFromAfar }
        let verdict =
            isSecure
            ? forward.verdict(connect: Authority(host: authority.host, port: port))
            : forward.verdict(host: authority.host, port: port)
        if verdict == .refused {
            throw ForwardRules.refused(isSecure ? "\(authority.host):\(port)" : authority.description)
        }
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
        let service = ServicePlan(
            name: "",
            origin: origin,
            request: forward.request,
            tls: forward.tls,
            target: verdict == .named ? .any : .noPrivate,
            responseLimits: forward.responseLimits,
            isLenient: forward.isLenient
        )
        return (forward, origin, service)
    }

    /// The question of a request in forward mode.
    /// - Parameter originFields: from ``originFields(_:hasBody:)``.
    func ask(
        _ forward: ForwardPlan,
        _ origin: OriginAddress,
        _ path: String,
        _ head: RequestHead,
        originFields fields: Fields
    ) -> CacheAsk {
        var ask = CacheAsk(
            key: forward.key(origin, path: path, head),
            request: head,
            originFields: forward.request.policy.mode == .none
                ? fields : UnkeyedFields.removed(from: fields, forward.request.key),
            path: forward.request.storesAnything ? forward.request.key.path(path) : path,
            policy: forward.request.policy,
            shape: forward.shape,
            collapse: forward.request.collapse,
            prepare: { [via = plan.via] in StoredResponse.prepare($0, length: $0.bodyLength, via: via) }
        )
        ask.seed = forward.request.seed
        ask.phases = forward.request.phases
        ask.onClientAbort = forward.request.onClientAbort
        ask.sharesURL = forward.request.sharesURL
        return ask
    }
}

extension ServiceRoute {
    /// What follows the prefix of a target that is the service's.
    func rest(_ target: String) -> String {
        if prefix.isEmpty { return target }
        return String(Substring(target.utf8.dropFirst(prefix.count)))
    }
}
