// A service with everything that its answers need: where it is mounted, whom it asks, and its endpoints.

import CacheStore
package import DemoMode
import HTTPCaching
package import HTTPWire
import Policies

/// The way from a service to its origin, through the services that it asks.
package struct ServiceChain {
    /// Where the last of them sends requests; nil where it plays demo answers only.
    package var origin: OriginAddress?
    /// One of them adds credentials to requests.
    package var addsCredentials = false
    /// One of them passes the client's Host on.
    package var preservesHost = false
    /// One of them has endpoints, a base path or credentials, which a path with dot segments could leave.
    package var guardsPaths = false
    /// The secret query items that they add.
    package var secrets = SecretQuery()

    package init() {}
}

/// A service that requests are routed to; forward mode is one, whose requests name their origin.
///
/// Sendable: nothing in it changes, but for the counters in `runtime` and `demoState`, which say what protects them.
package final class ServiceRoute: Sendable {
    package let plan: ServicePlan
    /// As logs, counters and commands call it.
    package let label: String
    package let runtime: ServiceRuntime
    package let demoState: DemoState
    /// Those of `demoState`, one step nearer for the hot path.
    package let ordinals: DrawOrdinals
    /// The bytes that the target of a request begins with; empty for a service matched by its
    /// host alone, or at the root.
    package let prefix: [UInt8]
    /// Lower case; nil for a service matched by its prefix alone.
    package let host: String?
    /// Under which it answers, besides what leads here anyway; none where `host` is there.
    let hosts: [HostPattern]
    /// The service that this one asks instead of an origin.
    package let inner: String?
    /// Forward mode: the origin is the one that the target of a request names.
    package let asksTarget: Bool
    /// Which web pages may call the service.
    package let cors: CrossOriginRules
    /// Which requests it answers at all. Where there are rules, no request takes the hot path, which knows none.
    package let access: AccessRules
    /// True if the service, or one that it asks, adds credentials: foreign web origins are refused
    /// (Documentation/guide/web-pages.md).
    package let addsCredentials: Bool
    /// True if paths with dot segments are refused (RFC 3986 section 3.3; Documentation/guide/web-pages.md).
    package let guardsPaths: Bool
    /// A service in front of this one adds secret query items, so that one URL may have several keys.
    let isAskedInSecret: Bool
    package let rewriting: Rewriting
    /// The client's Host reaches an origin, so that it is part of the key.
    package let keysHost: Bool
    /// The origin as keys name it; a service that stands in for one has the scheme `service`.
    package let address: OriginAddress
    /// The bytes of a cache key up to the path; up to the host where the client's Host is part of the key.
    package let keyPrefix: [UInt8]
    /// The same without the base path; nil where the client's Host is part of the key.
    let keyRoot: [UInt8]?
    /// Answers what no endpoint names.
    package let itself: EndpointRoute
    /// By the numbers that `plan.paths` finds.
    package let endpoints: [EndpointRoute]

    /// - Parameters:
    ///   - demo: of what no endpoint names; nil where its demo mode is off.
    ///   - endpointDemos: of the endpoints of the plan, in their order; one that is missing is off.
    ///   - listedOnly: paths that no endpoint names are not found.
    package init(
        plan: ServicePlan,
        runtime: ServiceRuntime,
        demoState: DemoState = DemoState(),
        prefix: String = "",
        host: String? = nil,
        hosts: [HostPattern] = [],
        inner: String? = nil,
        asksTarget: Bool = false,
        demo: DemoPlan? = nil,
        endpointDemos: [DemoPlan?] = [],
        listedOnly: Bool = false,
        cors: CrossOriginRules = CrossOriginRules(),
        access: AccessRules = AccessRules(),
        chain: ServiceChain = ServiceChain(),
        sharesWebOrigin: Bool = false,
        isAskedInSecret: Bool = false,
        via: String
    ) {
        self.plan = plan
        label = asksTarget ? "forward" : plan.name
        self.runtime = runtime
        self.demoState = demoState
        ordinals = demoState.ordinals
        let prefix = prefix == "/" ? "" : prefix
        self.prefix = Array(prefix.utf8)
        self.host = host
        self.hosts = hosts
        self.inner = inner
        self.asksTarget = asksTarget
        self.cors = cors
        self.access = access
        addsCredentials = chain.addsCredentials
        guardsPaths = chain.guardsPaths
        self.isAskedInSecret = isAskedInSecret
        keysHost = chain.preservesHost
        let standIn = OriginAddress(scheme: "service", host: inner ?? plan.name, port: nil, basePath: "")
        let address = plan.origin ?? standIn
        self.address = address
        let rewriting = Rewriting(
            prefix: prefix,
            host: host,
            origin: chain.origin,
            sharesWebOrigin: sharesWebOrigin,
            secrets: chain.secrets
        )
        self.rewriting = rewriting
        let scheme = Self.keyScheme(address, keysHost: keysHost)
        // A path that is no more than its slash: what follows the authority is appended later.
        let whole = keysHost ? "" : String(CacheKey(service: "", url: address.root + "/").description.dropLast())
        keyPrefix = Array(plan.name.utf8) + [0] + Array((keysHost ? "\(scheme)://" : whole + address.basePath).utf8)
        keyRoot = keysHost ? nil : Array(plan.name.utf8) + [0] + Array(whole.utf8)
        let addsVary = !cors.origins.isEmpty
        func route(
            _ endpoint: EndpointPlan?,
            _ request: RequestPlan,
            _ demo: DemoPlan?,
            _ ladder: Ladder<EndpointRoute>? = nil
        ) -> EndpointRoute {
            var hasher = Hasher()
            hasher.combine(String(describing: request.policy))
            hasher.combine(request.key)
            hasher.combine(request.storesGet)
            // A head that was made ready before a seed folder was opened must not be sent without a look into the
            // folder.
            hasher.combine(request.seed?.identity)
            hasher.combine(rewriting)
            hasher.combine(address)
            // A head that was made ready under a path that is refused now must not be sent without the check.
            hasher.combine(chain.guardsPaths)
            hasher.combine(addsVary)
            hasher.combine(via)
            let facts = RouteFacts(
                request: request,
                service: plan,
                access: access,
                hasCrossOrigin: addsVary,
                demo: demo,
                isUnlisted: endpoint == nil && listedOnly
            )
            return EndpointRoute(
                endpoint,
                facts,
                headFormatID: UInt64(bitPattern: Int64(hasher.finalize())),
                ladder: ladder,
                readyDemo: { ReadyDemo($0, rewriting, addsVary: addsVary) }
            )
        }
        func climbing(_ endpoint: EndpointPlan?, _ demo: DemoPlan?) -> EndpointRoute {
            let request = endpoint?.request ?? plan.request
            guard !request.rungs.isEmpty else { return route(endpoint, request, demo) }
            let ladder = Ladder(request.rungs) { rungs in
                route(endpoint, request.limited(to: rungs), rungs == [.demo] ? demo : nil)
            }
            return route(endpoint, request, demo, ladder)
        }
        itself = climbing(nil, demo)
        endpoints = plan.endpoints.indices.map { place in
            climbing(plan.endpoints[place], endpointDemos.indices.contains(place) ? endpointDemos[place] : nil)
        }
    }

    /// The configuration refuses cycles; this bounds a chain of services all the same.
    package static let maximumDepth = 16

    /// Whether a target begins with the prefix, on a segment boundary.
    func leads(_ target: UnsafeRawBufferPointer) -> Bool {
        let length = prefix.count
        guard target.begins(with: prefix) else { return false }
        return length == target.count || target[length] == UInt8(ascii: "/") || target[length] == UInt8(ascii: "?")
    }

    /// What follows the prefix of a target that is the service's.
    package func rest(_ target: String) -> String {
        if prefix.isEmpty { return target }
        return String(Substring(target.utf8.dropFirst(prefix.count)))
    }

    /// The endpoint that answers a request: the most specific one that names it, or the service itself. No allocation.
    /// - Parameter rest: what follows the prefix.
    package func endpoint(for method: Method, _ rest: UnsafeRawBufferPointer) -> EndpointRoute {
        borrowedEndpoint(for: method, rest).takeUnretainedValue()
    }

    /// As ``endpoint(for:_:)``, valid as long as this object is held: no reference is counted.
    package func borrowedEndpoint(for method: Method, _ rest: UnsafeRawBufferPointer) -> Unmanaged<EndpointRoute> {
        // This object holds all of them.
        guard let place = plan.paths?.first(for: method, path: rest) else {
            return .passUnretained(itself)
        }
        return .passUnretained(endpoints[place])
    }

    /// As ``endpoint(for:_:)``, of a text.
    package func endpoint(for method: Method, _ rest: String) -> EndpointRoute {
        var rest = rest
        return rest.withUTF8 { endpoint(for: method, UnsafeRawBufferPointer($0)) }
    }

    /// The path and query that a request asks the origin for, but for secret items, which its source adds.
    /// - Parameters:
    ///   - rest: what ``filled(_:_:content:)`` gives; for an endpoint without a shape, what follows the prefix: empty,
    ///     or beginning with `/` or `?`.
    ///   - hidden: what the services before this one add to the query.
    package func path(_ rest: String, _ endpoint: EndpointRoute, behind hidden: [HiddenItem] = []) -> String {
        asksTarget ? rest : endpoint.request.query.apply(to: address.path(appending: rest), behind: hidden.texts)
    }

    /// Whether it answers for a host that does not lead here anyway.
    /// - Parameter name: in lower case, without the root's dot.
    func answers(for name: String) -> Bool { host.map { $0 == name } ?? hosts.contains { $0.matches(name) } }

    /// Where clients find it: `/github`, `api.localhost` or `api.localhost/github`.
    package var place: String {
        let path = String(decoding: prefix, as: UTF8.self)
        return host.map { $0 + path } ?? (path.isEmpty ? "/" : path)
    }

    /// The scenarios of its demo answers.
    package var scenarios: Set<String> {
        ([itself] + endpoints).reduce(into: []) { $0.formUnion($1.demo?.scenarios ?? []) }
    }

    /// Some requests, or all, get demo answers.
    package var playsDemo: Bool { ([itself] + endpoints).contains { $0.demo != nil } }

    /// Some requests, or all, go to an origin or to another service.
    package var asksOrigin: Bool {
        (plan.origin != nil || inner != nil)
            && ([itself] + endpoints).contains { endpoint in
                let passes = endpoint.ladder?.rungs.contains(.live) ?? endpoint.demo?.mayPass ?? true
                return passes && !endpoint.isUnlisted
            }
    }
}
