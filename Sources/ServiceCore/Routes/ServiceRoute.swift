// The route of a service: its prefix or host, its origin, and its endpoints.

import CacheStore
package import DemoMode
import HTTPCaching
package import HTTPWire
import Policies

/// The chain from a service to its origin, through the services that it asks.
package struct ServiceChain {
    /// The origin of the last service; nil if it only plays demo answers.
    package var origin: OriginAddress?
    /// Whether one of the services adds credentials to requests.
    package var addsCredentials = false
    /// Whether one of the services passes the client's Host on.
    package var preservesHost = false
    /// Whether one of the services has endpoints, a base path or credentials, which a path with dot segments could
    /// circumvent.
    package var guardsPaths = false
    /// The secret query items that the services add.
    package var secrets = SecretQuery()

    package init() {}
}

/// A service that requests are routed to; forward mode is one, whose requests name their origin.
///
/// Sendable: it never changes, except for the counters in `runtime` and `demoState`, which say what protects them.
package final class ServiceRoute: Sendable {
    package let plan: ServicePlan
    /// The name in logs, counters and commands.
    package let label: String
    package let runtime: ServiceRuntime
    package let demoState: DemoState
    /// The ordinals of `demoState`, kept here for the hot path.
    package let ordinals: DrawOrdinals
    /// The first bytes of the service's targets; empty for a service matched by its host alone, or at the root.
    package let prefix: [UInt8]
    /// The host in lower case; nil for a service matched by its prefix alone.
    package let host: String?
    /// The hosts under which the service answers, in addition to the names of the daemon; empty if `host` is set.
    let hosts: [HostPattern]
    /// The service that this one asks instead of an origin.
    package let inner: String?
    /// Whether the target of a request names the origin: in forward mode, and in a service by host without a base URL.
    package let asksTarget: Bool
    /// Whether the service has no base URL, and each of its endpoints an answer of its own.
    package let answersItself: Bool
    /// The web pages that may call the service, and their rights.
    package let cors: CrossOriginRules
    /// The access rules of the service. With rules, no request takes the hot path, which has none.
    package let access: AccessRules
    /// Whether the service, or one that it asks, adds credentials, so that foreign web origins are refused.
    package let addsCredentials: Bool
    /// Whether paths with dot segments are refused (RFC 3986 section 3.3).
    package let guardsPaths: Bool
    /// Whether a service in front of this one adds secret query items, so that one URL may have several keys.
    let isAskedInSecret: Bool
    /// The rules by which the fields of answers to clients are rewritten that ask the daemon itself.
    package let rewriting: Rewriting
    /// The rules by which the fields of answers are rewritten. A client that asks a proxy knows the service by its real name.
    package let rewritings: ByReach<Rewriting>
    /// Whether the client's Host reaches an origin, and so is part of the key.
    package let keysHost: Bool
    /// The origin in keys; a service that stands in for one has the scheme `service`.
    package let address: OriginAddress
    /// The bytes of a cache key up to the path; up to the host, if the client's Host is part of the key.
    package let keyPrefix: [UInt8]
    /// The bytes of a cache key up to the base path; nil if the client's Host is part of the key.
    let keyRoot: [UInt8]?
    /// The route of the requests that no endpoint names.
    package let itself: EndpointRoute
    /// The endpoints, by the numbers that `plan.paths` finds.
    package let endpoints: [EndpointRoute]

    /// Makes a route.
    /// - Parameters:
    ///   - demo: the demo answers of requests without an endpoint; nil if demo mode is off.
    ///   - endpointDemos: the demo answers of the plan's endpoints, in their order; nil for an endpoint without demo
    ///     mode.
    ///   - listedOnly: whether requests without an endpoint are not found.
    package init(
        plan: ServicePlan,
        runtime: ServiceRuntime,
        demoState: DemoState = DemoState(),
        prefix: String = "",
        host: String? = nil,
        hosts: [HostPattern] = [],
        inner: String? = nil,
        asksTarget: Bool = false,
        answersItself: Bool = false,
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
        label = asksTarget && host == nil ? "forward" : plan.name
        self.runtime = runtime
        self.demoState = demoState
        ordinals = demoState.ordinals
        let prefix = prefix == "/" ? "" : prefix
        self.prefix = Array(prefix.utf8)
        self.host = host
        self.hosts = hosts
        self.inner = inner
        self.asksTarget = asksTarget
        self.answersItself = answersItself
        self.cors = cors
        self.access = access
        addsCredentials = chain.addsCredentials
        guardsPaths = chain.guardsPaths
        self.isAskedInSecret = isAskedInSecret
        // The origin that a target names is the client's Host, and is the beginning of the key already.
        keysHost = chain.preservesHost && !asksTarget
        let basePath = asksTarget ? prefix : ""
        let standIn = OriginAddress(scheme: "service", host: inner ?? plan.name, port: nil, basePath: basePath)
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
        let rewritings = rewriting.byReach
        self.rewritings = rewritings
        let scheme = Self.keyScheme(address, keysHost: keysHost)
        // A path that consists of a slash only is left out, because the rest of a target is appended later.
        let whole = keysHost ? "" : String(CacheKey(service: "", url: address.root + "/").description.dropLast())
        keyPrefix = Array(plan.name.utf8) + [0] + Array((keysHost ? "\(scheme)://" : whole + address.basePath).utf8)
        keyRoot = keysHost ? nil : Array(plan.name.utf8) + [0] + Array(whole.utf8)
        let addsVary = !cors.origins.isEmpty
        let label = label
        func route(
            _ endpoint: EndpointPlan?,
            _ request: RequestPlan,
            _ demo: DemoPlan?,
            _ order: SourceOrder<EndpointRoute>? = nil
        ) -> EndpointRoute {
            func formatID(_ rewriting: Rewriting) -> UInt64 {
                var hasher = Hasher()
                hasher.combine(String(describing: request.policy))
                hasher.combine(request.key)
                hasher.combine(request.storesGet)
                // A head that was made ready before a seed folder was opened must not be sent without a look into the
                // folder.
                hasher.combine(request.seed?.identity)
                hasher.combine(rewriting)
                hasher.combine(address)
                // A head that was made ready for a path that is refused now must not be sent without the check.
                hasher.combine(chain.guardsPaths)
                hasher.combine(addsVary)
                hasher.combine(via)
                return UInt64(bitPattern: Int64(hasher.finalize()))
            }
            let facts = RouteFacts(
                request: request,
                service: plan,
                access: access,
                hasCrossOrigin: addsVary,
                asksNamedOrigin: asksTarget && host != nil,
                demo: demo,
                isUnlisted: endpoint == nil && listedOnly
            )
            return EndpointRoute(
                endpoint,
                facts,
                number: runtime.numbers.number(service: label, endpoint: endpoint?.name ?? ""),
                headFormatIDs: rewritings.map(formatID),
                order: order,
                readyDemo: { ReadyDemo($0, rewritings, addsVary: addsVary) }
            )
        }
        func ordered(_ endpoint: EndpointPlan?, _ demo: DemoPlan?) -> EndpointRoute {
            let request = endpoint?.request ?? plan.request
            guard !request.sources.isEmpty else { return route(endpoint, request, demo) }
            let order = SourceOrder(request.sources) { sources in
                route(endpoint, request.limited(to: sources), sources == [.demo] ? demo : nil)
            }
            return route(endpoint, request, demo, order)
        }
        itself = ordered(nil, demo)
        endpoints = plan.endpoints.indices.map { index in
            ordered(plan.endpoints[index], endpointDemos.indices.contains(index) ? endpointDemos[index] : nil)
        }
    }

    /// The longest chain of services. The configuration refuses cycles; this is a second bound.
    package static let maximumDepth = 16

    /// Whether a target begins with the prefix, at the boundary of a segment.
    func leads(_ target: UnsafeRawBufferPointer) -> Bool {
        let length = prefix.count
        guard target.begins(with: prefix) else { return false }
        return length == target.count || target[length] == UInt8(ascii: "/") || target[length] == UInt8(ascii: "?")
    }

    /// The part of a target after the prefix; the target must be the service's.
    package func rest(_ target: String) -> String {
        if prefix.isEmpty { return target }
        return String(Substring(target.utf8.dropFirst(prefix.count)))
    }

    /// The endpoint that answers a request: the most specific one that matches, or the service itself. It does not
    /// allocate.
    /// - Parameter rest: the target without the prefix.
    package func endpoint(for method: Method, _ rest: UnsafeRawBufferPointer) -> EndpointRoute {
        borrowedEndpoint(for: method, rest).takeUnretainedValue()
    }

    /// The endpoint as ``endpoint(for:_:)`` finds it, valid as long as this object is held: no reference is counted.
    package func borrowedEndpoint(for method: Method, _ rest: UnsafeRawBufferPointer) -> Unmanaged<EndpointRoute> {
        // This object holds all of them.
        guard let index = plan.paths?.first(for: method, path: rest) else {
            return .passUnretained(itself)
        }
        return .passUnretained(endpoints[index])
    }

    /// The endpoint as ``endpoint(for:_:)`` finds it, for a text.
    package func endpoint(for method: Method, _ rest: String) -> EndpointRoute {
        var rest = rest
        return rest.withUTF8 { endpoint(for: method, UnsafeRawBufferPointer($0)) }
    }

    /// The path and query that the origin is asked for, without the secret items, which its source adds.
    /// - Parameters:
    ///   - rest: the result of ``filled(_:_:content:)``; for an endpoint that changes no targets, the target without
    ///     the prefix: empty, or beginning with `/` or `?`.
    ///   - hidden: the items that the services before this one add to the query.
    package func path(_ rest: String, _ endpoint: EndpointRoute, behind hidden: [HiddenItem] = []) -> String {
        isForward ? rest : endpoint.request.query.apply(to: address.path(appending: rest), behind: hidden.texts)
    }

    /// Whether this is the route of forward mode.
    package var isForward: Bool { asksTarget && host == nil }

    /// Whether the service answers for a host that is no name of the daemon.
    /// - Parameter name: the host in lower case, without the dot of the DNS root.
    func answers(for name: String) -> Bool { host.map { $0 == name } ?? hosts.contains { $0.matches(name) } }

    /// Where clients find it: `/github`, `api.localhost` or `api.localhost/github`.
    package var mountPoint: String {
        let path = String(decoding: prefix, as: UTF8.self)
        return host.map { $0 + path } ?? (path.isEmpty ? "/" : path)
    }

    /// The names of the scenarios of its demo answers.
    package var scenarios: Set<String> {
        ([itself] + endpoints).reduce(into: []) { $0.formUnion($1.demo?.scenarios ?? []) }
    }

    /// Whether some or all requests get demo answers.
    package var playsDemo: Bool { ([itself] + endpoints).contains { $0.demo != nil } }

    /// Whether some or all requests go to an origin or to another service.
    package var asksOrigin: Bool {
        (plan.origin != nil || inner != nil || asksTarget)
            && ([itself] + endpoints).contains { endpoint in
                let passes = endpoint.order?.sources.contains(.live) ?? endpoint.demo?.mayPass ?? true
                return passes && !endpoint.isUnlisted
            }
    }
}
