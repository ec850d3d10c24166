// What a request is routed by: services by prefix and host, compiled from a configuration. Immutable; a reload makes a new tree.

package import CacheStore
package import DemoMode
package import HTTPCaching
internal import HTTPWire
package import ServiceCore

/// What a service leads to, through the services that it asks.
struct ServiceChain {
    /// Where the last of them sends requests; nil where it plays demo answers only.
    var origin: OriginAddress?
    /// One of them adds credentials to requests.
    var addsCredentials = false
    /// One of them passes the client's Host on.
    var preservesHost = false
}

/// A service with everything that its answers need.
///
/// Sendable: nothing in it changes, but for the counters in `runtime` and `ordinals`, which say what protects them.
package final class ServiceRoute: Sendable {
    package let plan: ServicePlan
    package let runtime: ServiceRuntime
    package let ordinals: DrawOrdinals
    /// The bytes that the target of a request begins with; empty for a service matched by host, or at the root.
    package let prefix: [UInt8]
    /// Lower case; nil for a service matched by prefix.
    package let host: String?
    /// The service that this one asks instead of an origin.
    package let inner: String?
    /// Answers for what no endpoint names; nil unless demo mode is on.
    package let demo: DemoRule?
    /// By endpoint; nil where its demo mode is off.
    package let endpointDemos: [DemoRule?]
    /// Paths that no endpoint names are not found.
    package let listedOnly: Bool
    /// Web origins that may call the service.
    package let corsOrigins: [String]
    /// The service, or one that it asks, adds credentials: foreign web origins are refused (http-rules.md 42).
    package let addsCredentials: Bool
    package let rewriting: Rewriting
    /// The client's Host reaches an origin, so that it is part of the key.
    let keysHost: Bool
    /// The origin as keys name it; a service that stands in for one has the scheme `service`.
    let address: OriginAddress
    /// The bytes of a cache key up to the path; up to the host where the client's Host is part of the key.
    let keyPrefix: [UInt8]
    /// The same without the base path; nil where the client's Host is part of the key.
    let keyRoot: [UInt8]?
    /// What shapes a ready head: of the service first, then of its endpoints.
    let shapes: [UInt64]
    /// In the same order.
    let hotKeys: [HotKey]
    /// In the same order.
    let directPlans: [DirectPlan]
    /// Demo answers that need no waiting, in the same order.
    let readyDemos: [ReadyDemo?]

    init(
        plan: ServicePlan,
        runtime: ServiceRuntime,
        ordinals: DrawOrdinals,
        prefix: String,
        host: String?,
        inner: String?,
        demo: DemoRule?,
        endpointDemos: [DemoRule?],
        listedOnly: Bool,
        corsOrigins: [String],
        chain: ServiceChain,
        via: String
    ) {
        self.plan = plan
        self.runtime = runtime
        self.ordinals = ordinals
        let prefix = prefix == "/" ? "" : prefix
        self.prefix = Array(prefix.utf8)
        self.host = host
        self.inner = inner
        self.demo = demo
        self.endpointDemos = endpointDemos
        self.listedOnly = listedOnly
        self.corsOrigins = corsOrigins
        addsCredentials = chain.addsCredentials
        keysHost = chain.preservesHost
        let standIn = OriginAddress(scheme: "service", host: inner ?? plan.name, port: nil, basePath: "")
        let address = plan.origin ?? standIn
        self.address = address
        rewriting = Rewriting(prefix: prefix, origin: chain.origin)
        let scheme = Self.keyScheme(address, keysHost: keysHost)
        // A path that is no more than its slash: what follows the authority is appended later.
        let whole = keysHost ? "" : String(CacheKey(service: "", url: address.root + "/").description.dropLast())
        keyPrefix = Array(plan.name.utf8) + [0] + Array((keysHost ? "\(scheme)://" : whole + address.basePath).utf8)
        keyRoot = keysHost ? nil : Array(plan.name.utf8) + [0] + Array(whole.utf8)
        let requests = [plan.request] + plan.endpoints.map(\.request)
        shapes = requests.map { request in
            var hasher = Hasher()
            hasher.combine(String(describing: request.policy))
            hasher.combine(request.key)
            hasher.combine(request.storesGet)
            // What was made ready before a seed folder was opened has to be found behind it.
            hasher.combine(request.seed?.identity)
            hasher.combine(prefix)
            hasher.combine(address)
            hasher.combine(chain.origin)
            hasher.combine(corsOrigins.isEmpty)
            hasher.combine(via)
            return UInt64(bitPattern: Int64(hasher.finalize()))
        }
        let demos = [demo] + endpointDemos
        hotKeys = requests.indices.map { index in
            let isPlain = requests[index].query.isEmpty && demos[index] == nil && (index > 0 || !listedOnly)
            return isPlain ? HotKey(requests[index].key) : .none
        }
        directPlans = requests.indices.map { index in
            let isPlain = demos[index] == nil && (index > 0 || !listedOnly) && plan.origin != nil && corsOrigins.isEmpty
            return DirectPlan(requests[index], isPlain: isPlain)
        }
        let rewriting = rewriting
        readyDemos = demos.map { rule in
            rule.flatMap { ReadyDemo($0, rewriting, addsVary: !corsOrigins.isEmpty) }
        }
    }

    /// What applies to a request, and the shape that goes with it; `endpoint` is from `plan.paths.first(for:path:)`.
    func request(_ endpoint: Int?) -> (plan: RequestPlan, shape: UInt64) {
        guard let endpoint else { return (plan.request, shapes[0]) }
        return (plan.endpoints[endpoint].request, shapes[endpoint + 1])
    }

    /// The rules of reuse for a stored response, by the URL in its key.
    package func policy(storedAt url: String) -> CachePolicy { plan(storedAt: url).policy }

    /// What applies to a GET of a stored response, by the URL in its key.
    func plan(storedAt url: String) -> RequestPlan {
        var slashes = 0
        // Scheme and authority end before the third slash.
        let path = url.utf8.drop { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes < 3
        }
        let rest = path.starts(with: address.basePath.utf8) ? Array(path.dropFirst(address.basePath.utf8.count)) : []
        let endpoint = rest.withUnsafeBytes { plan.paths.first(for: .get, path: $0) }
        return request(endpoint).plan
    }

    /// The path and query that a request asks the origin for.
    /// - Parameter rest: what follows the prefix: empty, or beginning with `/` or `?`.
    func path(_ rest: String, _ request: RequestPlan) -> String {
        request.query.apply(to: address.path(appending: rest))
    }

    /// The demo answer that applies to a request.
    func demo(_ endpoint: Int?) -> DemoRule? { endpoint.map { endpointDemos[$0] ?? nil } ?? demo }
}

/// All routes of a configuration.
package final class RoutePlan: Sendable {
    /// The pseudonym in Via and Cache-Status.
    package let name: String
    package let services: [ServiceRoute]
    package let forward: ForwardPlan?
    /// Longest first; `services` holds them.
    private let prefixes: [Unmanaged<ServiceRoute>]
    private let hosts: [String: ServiceRoute]

    init(name: String, services: [ServiceRoute], forward: ForwardPlan?) {
        self.name = name
        self.services = services
        self.forward = forward
        via = "1.1 \(name)"
        prefixes = services.filter { $0.host == nil }.sorted { $0.prefix.count > $1.prefix.count }
            .map { .passUnretained($0) }
        hosts = Dictionary(services.compactMap { route in route.host.map { ($0, route) } }) { first, _ in first }
    }

    /// The value of the Via line that is added to requests and answers.
    package let via: String

    /// The hosts that services are matched by.
    package var serviceHosts: [String] { hosts.keys.sorted() }

    package func service(named name: String) -> ServiceRoute? { services.first { $0.plan.name == name } }

    /// Puts the limits of the services in force; until then those of the plan before hold.
    package func takeEffect() {
        for route in services { route.runtime.admission.update(route.plan.admission) }
    }

    /// The seed folders of all routes, each once, in the order of the configuration.
    package var seeds: [SeedFolder] {
        var seen: Set<UInt64> = []
        let requests = services.flatMap { [$0.plan.request] + $0.plan.endpoints.map(\.request) }
        return (requests + (forward.map { [$0.request] } ?? [])).compactMap(\.seed).filter { folder in
            seen.insert(folder.identity).inserted
        }
    }

    func service(host: String) -> ServiceRoute? { hosts[host] }

    /// The service with the longest prefix, on a segment boundary. No allocation.
    func service(target: UnsafeRawBufferPointer) -> ServiceRoute? {
        borrowedService(target: target)?.takeUnretainedValue()
    }

    /// The same for as long as the plan is held.
    func borrowedService(target: UnsafeRawBufferPointer) -> Unmanaged<ServiceRoute>? {
        for place in prefixes.indices where prefixes[place]._withUnsafeGuaranteedRef({ $0.leads(target) }) {
            return prefixes[place]
        }
        return nil
    }
}

extension ServiceRoute {
    /// Whether a target begins with the prefix, on a segment boundary.
    fileprivate func leads(_ target: UnsafeRawBufferPointer) -> Bool {
        let length = prefix.count
        guard target.begins(with: prefix) else { return false }
        return length == target.count || target[length] == UInt8(ascii: "/") || target[length] == UInt8(ascii: "?")
    }
}
