// Compiles a configuration into routes: the one module where configured values become plans.

import CacheStore
package import Configuration
import Content
import DemoMode
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
package import ServiceCore
import Upstream

/// What the routes of a configuration are made of, besides themselves.
struct RouteParts {
    let configuration: Configuration
    let neighbours: Neighbours
    let registry: PlanRegistry
    let files: AnswerFiles
    /// The labels that latencies are learned of.
    let learned: Set<String>
}

extension RoutePlan {
    /// Reads the demo files, opens the seed folders and builds the routes. The plan in force does not change, see
    /// ``takeEffect()``. Blocks.
    /// - Parameters:
    ///   - files: reads the files of demo answers.
    ///   - kept: services that are in the configuration as they were compiled before.
    ///   - seeds: opens the seed folders; nil opens none.
    ///   - machineNames: the names of the machine on the network.
    /// - Throws: `PlanError` naming the file or the folder that cannot be read.
    package static func compile(
        _ configuration: Configuration,
        registry: PlanRegistry,
        files: AnswerFiles = AnswerFiles(),
        keeping kept: [ServiceRoute] = [],
        seeds: SeedOpener? = nil,
        machineNames: () -> Set<String> = Machine.names
    ) throws(PlanError) -> RoutePlan {
        var seeds = SeedTable(seeds)
        var routes: [ServiceRoute] = []
        let neighbours = Neighbours(configuration)
        let learned = configuration.learnedLabels
        // A route that is kept learns what it did before.
        let kept = learned == registry.learnedLabels ? kept : []
        let parts = RouteParts(
            configuration: configuration,
            neighbours: neighbours,
            registry: registry,
            files: files,
            learned: learned
        )
        for service in configuration.services {
            if let route = kept.first(where: { $0.plan.name == service.name }) {
                routes.append(route)
                continue
            }
            let chain = chain(service, configuration)
            routes.append(try route(service, chain, parts, &seeds))
        }
        let plan = RoutePlan(
            name: configuration.name,
            services: routes,
            forward: configuration.forward.enabled ? try forward(configuration, registry, files, learned, &seeds) : nil,
            hosts: configuration.hosts.map(HostPattern.init),
            machineNames: configuration.clients.allSatisfy(\.isLoopback) ? [] : machineNames(),
            notSecret: configuration.notSecret
        )
        registry.learnedLabels = learned
        return plan
    }

    private static func forward(
        _ configuration: Configuration,
        _ registry: PlanRegistry,
        _ files: AnswerFiles,
        _ learned: Set<String>,
        _ seeds: inout SeedTable
    ) throws(PlanError) -> ForwardPlan {
        let label = RouteLabel(service: Configuration.forwardName, learned: learned)
        let request = try request(RouteSettings(configuration.forward), label, registry.latencies, files, &seeds)
        let plan = ServicePlan(
            name: "",
            origin: nil,
            request: request,
            proxies: configuration.forward.upstreamProxy,
            tls: TLSOptions(ca: configuration.forward.ca, caKey: "'forward.tls.ca'"),
            responseLimits: responseLimits(configuration.limits),
            isLenient: configuration.forward.lenient,
            admission: AdmissionLimits(
                concurrent: configuration.forward.maxConcurrent,
                queueLength: configuration.forward.maxQueue.length,
                wait: configuration.forward.maxQueue.wait
            ),
            breaker: configuration.forward.breaker
        )
        let route = ServiceRoute(
            plan: plan,
            runtime: registry.services.runtime(for: plan),
            demoState: registry.demoState(for: ""),
            asksTarget: true,
            via: "1.1 \(configuration.name)"
        )
        return ForwardPlan(
            allow: configuration.forward.allow,
            connect: configuration.forward.connectAllow,
            interception: InterceptionRules(
                hosts: configuration.forward.interception.hosts,
                except: configuration.forward.interception.except
            ),
            route: route
        )
    }

    private static func route(
        _ service: ServiceConfiguration,
        _ chain: ServiceChain,
        _ parts: RouteParts,
        _ seeds: inout SeedTable
    ) throws(PlanError) -> ServiceRoute {
        let (configuration, registry, latencies) = (parts.configuration, parts.registry, parts.registry.latencies)
        var sources = DemoSources(
            files: parts.files,
            state: registry.demoState(for: service.name),
            latencies: latencies,
            label: service.name
        )
        var secrets = SecretQuery()
        for rule in Credentials.query(of: service) { secrets.insert(rule.name, rule.values) }
        var endpoints: [(EndpointPlan, DemoPlan?)] = []
        var label = RouteLabel(
            service: service.name,
            secrets: secrets,
            notSecret: configuration.notSecret,
            targetedFields: ["CDN-Cache-Control"],
            learned: parts.learned
        )
        let own = try request(service.settings, label, latencies, sources.files, &seeds)
        for endpoint in service.endpoints {
            label.endpoint = endpoint.name
            var request = try request(endpoint.settings, label, latencies, sources.files, &seeds)
            request.storeAs = endpoint.cache.storeAs
            request.authorization = authorization(endpoint.auth)
            request.withholdsAuthorization = endpoint.auth == .withheld
            request.shape = try shape(endpoint)
            let plan = EndpointPlan(
                name: endpoint.name,
                method: Method(endpoint.method),
                pattern: PathPattern(endpoint.path),
                request: request
            )
            sources.label = label.name
            endpoints.append((plan, try demo(endpoint.demo, name: endpoint.name, request, sources)))
        }
        sources.label = service.name
        endpoints.sort { $0.0.pattern.isMoreSpecific(than: $1.0.pattern) }
        let plan = ServicePlan(
            name: service.name,
            origin: origin(service),
            preservesHost: service.host == .preserve,
            request: own,
            authorization: authorization(service.auth),
            proxies: service.upstreamProxy,
            tls: TLSOptions(
                verify: service.tls.verify,
                ca: service.tls.ca,
                clientCertificate: service.tls.clientCert,
                clientKey: service.tls.clientKey,
                pins: service.tls.pins,
                caKey: "'tls.ca' of the service '\(service.name)'"
            ),
            responseLimits: responseLimits(configuration.limits),
            isLenient: service.lenient,
            admission: AdmissionLimits(
                concurrent: service.maxConcurrent,
                queueLength: service.maxQueue.length,
                wait: service.maxQueue.wait
            ),
            breaker: service.breaker,
            park: service.park,
            examination: try examination(service.openAPI, sources.files),
            endpoints: endpoints.map(\.0)
        )
        var inner: String?
        if case .service(let name)? = service.baseURL { inner = name }
        return ServiceRoute(
            plan: plan,
            runtime: registry.services.runtime(for: plan),
            demoState: sources.state,
            prefix: service.match.prefix ?? "",
            host: service.match.host,
            hosts: service.hosts.map(HostPattern.init),
            inner: inner,
            asksTarget: service.asksNamedOrigin,
            answersItself: service.answersItself,
            demo: try demo(service.demo, name: service.name, plan.request, sources),
            endpointDemos: endpoints.map(\.1),
            listedOnly: service.unlisted == .notFound,
            cors: CrossOriginRules(service.cors),
            access: AccessRules(service),
            chain: chain,
            sharesWebOrigin: parts.neighbours.shareWebOrigin(service.match),
            isAskedInSecret: parts.neighbours.askedInSecret.contains(service.name),
            via: "1.1 \(configuration.name)"
        )
    }

    /// Follows `base_url: service:NAME`, which never leads in a circle, to its end.
    private static func chain(_ service: ServiceConfiguration, _ configuration: Configuration) -> ServiceChain {
        var chain = ServiceChain()
        var next: ServiceConfiguration? = service
        for _ in 0...ServiceRoute.maximumDepth {
            guard let service = next else { break }
            chain.origin = origin(service)
            chain.addsCredentials = chain.addsCredentials || Credentials.areAdded(by: service)
            chain.preservesHost = chain.preservesHost || service.host == .preserve
            let hasBasePath = chain.origin.map { !$0.basePath.isEmpty } ?? false
            let hasRules = !service.allow.isEmpty || !service.deny.isEmpty
            let isGuarded = hasBasePath || chain.addsCredentials || !service.endpoints.isEmpty || hasRules
            chain.guardsPaths = chain.guardsPaths || isGuarded
            for rule in Credentials.query(of: service) { chain.secrets.insert(rule.name, rule.values) }
            guard case .service(let name)? = service.baseURL else { break }
            next = configuration.service(named: name)
        }
        return chain
    }

    private static func origin(_ service: ServiceConfiguration) -> OriginAddress? {
        guard case .origin(let url)? = service.baseURL else { return nil }
        return OriginAddress(scheme: url.scheme, host: url.host, port: url.port, basePath: url.path)
    }

    private static func responseLimits(_ limits: LimitsConfiguration) -> HeadLimits {
        HeadLimits(head: limits.responseHead, fields: limits.responseFields, field: limits.responseLine)
    }

    private static func authorization(_ auth: AuthConfiguration?) -> String? {
        switch auth {
        case .bearer(let token)?: "Bearer \(token)"
        case .basic(let user, let password)?: "Basic \(Base64.encode(Array("\(user):\(password)".utf8)))"
        case .withheld?, nil: nil
        }
    }
}
