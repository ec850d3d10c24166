// Who a request is for and what becomes of it, decided from the plan alone: answering takes this way, and so does explaining.

import CacheStore
import DemoMode
import DownloadCore
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

/// The service that a request in origin form is for.
struct ServicePlace {
    /// The Host field, as sent and taken apart; nil where it is none, or was answered for before.
    var host: (text: String, authority: Authority)?
    /// The service that the host names.
    var named: ServiceRoute?
    /// The service by host, else by prefix; nil where none matches.
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
    /// - Throws: the refusal of a request that has been here before, or that expects what is not understood.
    func accept(_ request: RequestHead) throws(Problem) {
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
        if let known = request.fields.withFirst(.host, { hot.known(host: $0) }) ?? nil {
            place.named = known.route
        } else if let text = request.fields.first(.host), let authority = Authority.parse(text) {
            guard hostRules.allows(authority) else { throw HostRules.problem(authority) }
            place.host = (text, authority)
            place.named = plan.service(host: authority.host)
        }
        var target = target
        place.route = place.named ?? target.withUTF8 { plan.service(target: UnsafeRawBufferPointer($0)) }
        return place
    }

    /// - Throws: that no endpoint names the path and only those are answered, or that nobody answers.
    func step(_ request: RoutedRequest) throws(Problem) -> ServiceStep {
        let route = request.route
        var rest = request.rest
        let endpoint = rest.withUTF8 { bytes in
            route.plan.paths.first(for: request.head.method, path: UnsafeRawBufferPointer(bytes))
        }
        if let rule = route.demo(endpoint) { return .demo(rule) }
        if endpoint == nil, route.listedOnly { throw Self.notListed(route) }
        let (plan, shape) = route.request(endpoint)
        let source = try source(route, endpoint, depth: request.depth)
        let path = route.path(rest, plan)
        let isPlain = request.framing == .none || request.framing == .length(0)
        if Self.mayStorePost(request.head, request.framing, plan) {
            return .post(ask(request, path, plan, shape), source)
        }
        guard isPlain, request.head.method == .get || request.head.method == .head else {
            return .pass(path: path, source)
        }
        return .store(Self.get(ask(request, path, plan, shape), plan), source)
    }

    /// The question of a request in reverse mode.
    /// - Parameter path: path and query on the origin.
    func ask(_ request: RoutedRequest, _ path: String, _ plan: RequestPlan, _ shape: UInt64) -> CacheAsk {
        let (route, fields) = (request.route, request.originFields)
        var ask = CacheAsk(
            key: route.key(path: path, request.head.fields, plan),
            request: request.head,
            originFields: plan.policy.mode == .none ? fields : Self.withoutUnkeyed(fields, plan.key),
            path: path,
            policy: plan.policy,
            shape: shape,
            collapse: plan.collapse,
            prepare: { [via = self.plan.via] in Self.prepare($0, route, via: via) }
        )
        ask.seed = plan.seed
        ask.phases = plan.phases
        ask.onClientAbort = plan.onClientAbort
        ask.sharesURL = plan.sharesURL
        // With a query of the client's own it is another resource.
        if let file = plan.storeAs, !request.rest.contains("?") { ask.storeAs = file }
        return ask
    }

    // MARK: - Forward mode

    /// The origin of an absolute target, as a service of its own.
    /// - Throws: the refusal of a target that is this daemon itself, or that no rule allows.
    func forwardTarget(
        _ scheme: String,
        _ authority: Authority
    ) throws(Problem) -> (ForwardPlan, OriginAddress, ServicePlan) {
        if isOwn(authority, port: 80) { throw LoopDetection.problem(pseudonym: plan.name) }
        guard let forward = plan.forward else { throw ForwardRules.disabled }
        guard scheme == "http" else { throw ForwardRules.scheme(scheme) }
        let verdict = forward.verdict(host: authority.host)
        if verdict == .refused { throw ForwardRules.refused(authority.description) }
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
        let service = ServicePlan(
            name: "",
            origin: origin,
            request: forward.request,
            tls: forward.tls,
            target: verdict == .named ? .any : .noPrivate
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
                ? fields : Self.withoutUnkeyed(fields, forward.request.key),
            path: path,
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
