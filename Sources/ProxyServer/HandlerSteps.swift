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
    /// The Host field, as sent and taken apart; nil where it is none.
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
        if let text = request.fields.first(.host), let authority = Authority.parse(text) {
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
            route.plan.endpoint(for: request.head.method, path: UnsafeRawBufferPointer(bytes))
        }
        if let rule = route.demo(endpoint) { return .demo(rule) }
        if endpoint == nil, route.listedOnly { throw Self.notListed(route) }
        let (plan, shape) = route.request(endpoint)
        let source = try source(route, plan, depth: request.depth)
        let path = route.path(rest, plan)
        let isPlain = request.framing == .none || request.framing == .length(0)
        guard isPlain, request.head.method == .get || request.head.method == .head else {
            return .pass(path: path, source)
        }
        return .store(ask(request, path, plan, shape), source)
    }

    /// The question of a request in reverse mode.
    /// - Parameter path: path and query on the origin.
    func ask(_ request: RoutedRequest, _ path: String, _ plan: RequestPlan, _ shape: UInt64) -> CacheAsk {
        let (route, fields) = (request.route, request.originFields)
        return CacheAsk(
            key: route.key(path: path, host: request.head.fields.first(.host)),
            request: request.head,
            originFields: plan.policy.mode == .none ? fields : Self.withoutUnkeyed(fields),
            path: path,
            policy: plan.policy,
            shape: shape,
            collapse: plan.collapse,
            prepare: { [via = self.plan.via] in Self.prepare($0, route, via: via) }
        )
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
        CacheAsk(
            key: ForwardPlan.key(origin, path: path),
            request: head,
            originFields: forward.request.policy.mode == .none ? fields : Self.withoutUnkeyed(fields),
            path: path,
            policy: forward.request.policy,
            shape: forward.shape,
            collapse: forward.request.collapse,
            prepare: { [via = plan.via] in StoredResponse.prepare($0, length: $0.bodyLength, via: via) }
        )
    }
}

extension ServiceRoute {
    /// What follows the prefix of a target that is the service's.
    func rest(_ target: String) -> String { String(decoding: target.utf8.dropFirst(prefix.count), as: UTF8.self) }
}
