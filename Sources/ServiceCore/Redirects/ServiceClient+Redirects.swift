// Which origins the redirects of a service may lead to, and how these are asked.

import Content
import DownloadCore
import EventLoop
import HTTPWire
import Policies
package import Upstream

extension ServiceClient {
    /// The source of a call to an origin, which follows redirects from there.
    func following(_ source: any FetchSource, from origin: OriginAddress, _ call: ServiceCall) -> RedirectingSource {
        // The closures hold the endpoint, and no copy of its plan.
        let (route, endpoint) = (call.match.route, call.match.endpoint)
        var secrets = route.rewriting.secrets
        for item in call.hidden {
            if let outer = plan.service(named: item.service) { secrets.formUnion(outer.rewriting.secrets) }
        }
        return RedirectingSource(
            source,
            origin,
            RedirectRules(
                limit: endpoint.request.policies.redirects.limit,
                limitName: "'redirects.follow' of the service '\(route.plan.name)'",
                policy: endpoint.request.policy,
                secrets: secrets
            ),
            clock: core.clock,
            elsewhere: { (target: RedirectTarget) throws(FetchError) -> any FetchSource in
                try self.source(redirectedTo: target, by: route, endpoint.request)
            },
            check: { (target: RedirectTarget, request: FetchRequest) throws(FetchError) in
                try self.check(request, redirectedTo: target, by: route)
            },
            onFollow: { route.runtime.countRedirect() }
        )
    }

    /// An origin that redirects must not be a way past the rules of a service: below its base URL, a redirect leads only
    /// where a client may go. Of several services there, one that allows the request is enough.
    private func check(
        _ request: FetchRequest,
        redirectedTo target: RedirectTarget,
        by route: ServiceRoute
    ) throws(FetchError) {
        let redirect = "a redirect of the service '\(route.plan.name)' leads to \(target.url.withoutQuery)"
        // The daemon may have gone offline since the request was sent that is redirected.
        if core.isOffline { throw .offline("\(redirect), \(FetchError.offlineAdvice)") }
        let head = RequestHead(method: request.method, target: target.path, fields: request.fields)
        let below = ([route] + plan.services.filter { $0 !== route }).filter { service in
            service.origin(of: target.url).map { target.mayBeBelow($0) } ?? false
        }
        // The service's own rules count, whatever others say of the same origin.
        let judges = below.first === route ? [route] : below
        var refusal: FetchError?
        for service in judges {
            guard let rule = Self.rule(of: service, refusing: head) else { return }
            refusal = refusal ?? .redirect("\(redirect), which is denied: \(rule) of service '\(service.plan.name)'")
        }
        if let refusal { throw refusal }
    }

    /// What of a service refuses a request for a target on its origin.
    private static func rule(of service: ServiceRoute, refusing head: RequestHead) -> String? {
        let base = service.address.basePath
        if service.access.isEmpty { return nil }
        // No reading of the path says where it leads then.
        if DotSegments.mayOccur(in: head.target) { return "a dot segment" }
        guard head.target.hasPrefix(base) else { return "another spelling of base_url" }
        return service.access.refusal(of: head, String(head.target.dropFirst(base.count)))
    }

    /// The source of requests to another origin: without the credentials of the service and of its client.
    /// - Throws: the refusal of an origin that the configuration neither has as a `base_url` nor allows.
    private func source(
        redirectedTo target: RedirectTarget,
        by route: ServiceRoute,
        _ request: RequestPlan
    ) throws(FetchError) -> any FetchSource {
        let origin = target.origin
        // Where a proxy looks names up, no address is compared later.
        let authority = Authority(host: origin.host, port: origin.effectivePort)
        if listeners.isOwn(authority, port: origin.effectivePort) {
            throw .upstream(OwnListeners.refusal(of: origin.host))
        }
        let known = plan.services.first { $0.plan.origin.map(target.isSameOrigin) ?? false }?.plan
        let rules: TargetRules
        if known != nil {
            rules = .any
        } else {
            guard let allowed = TargetPattern.rules(request.policies.redirects.allow, origin.host, origin.effectivePort)
            else {
                throw .upstream(
                    UpstreamError(
                        .addressRefused,
                        detail:
                            "a redirect of the service '\(route.plan.name)' leads to \(origin.root), which 'redirects.allow' does not name"
                    )
                )
            }
            rules = allowed
        }
        var tls = known?.tls ?? TLSOptions()
        tls.clientCertificate = nil
        tls.clientKey = nil
        let plan = RequestPlan(rules: request.rules.withoutSecrets, timeouts: request.timeouts)
        let service = ServicePlan(
            name: route.plan.name,
            origin: origin,
            request: plan,
            proxies: route.plan.proxies,
            tls: tls,
            target: rules,
            responseLimits: route.plan.responseLimits,
            isLenient: route.plan.isLenient,
            admission: route.plan.admission
        )
        return ForwardSource(origin, service.proxies, rules, request.timeouts, client, listeners) {
            [client, onFetch] addresses, timeouts in
            OriginSource(
                service: service,
                origin: origin,
                plan: plan,
                runtime: route.runtime,
                client: client,
                target: rules,
                addresses: addresses,
                timeouts: timeouts,
                onFetch: onFetch
            )
        }
    }
}

extension RedirectTarget {
    /// Whether it may be a URL of a service, however it is written.
    fileprivate func mayBeBelow(_ base: OriginAddress) -> Bool {
        isSameOrigin(as: base) && PathReadings(path).mayBeBelow(base.basePath)
    }
}

extension TargetPattern {
    /// The addresses that a host may have which a list of patterns allows; nil where none of them matches.
    /// - Parameter host: in lower case.
    package static func rules(_ allow: [String], _ host: String, _ port: UInt16) -> TargetRules? {
        let matching = allow.map(TargetPattern.init).filter { $0.matches(host, port) }
        if matching.isEmpty { return nil }
        return matching.contains { $0.host.isOneHost } ? .any : .noPrivate
    }
}

extension FieldRules {
    /// These rules for an origin that must not get what is secret in them.
    fileprivate var withoutSecrets: FieldRules {
        FieldRules(
            remove: remove,
            set: set.filter { !SecretNames.isForOneOrigin($0.name) },
            add: add.filter { !SecretNames.isForOneOrigin($0.name) },
            dropsUnderscores: dropsUnderscores
        )
    }
}
