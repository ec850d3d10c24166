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
    /// One of them has endpoints, a base path or credentials, which a path with dot segments could leave.
    var guardsPaths = false
    /// The secret query items that they add.
    var secrets = SecretQuery()
}

/// A service with everything that its answers need.
///
/// Sendable: nothing in it changes, but for the counters in `runtime` and `ordinals`, which say what protects them.
package final class ServiceRoute: Sendable {
    package let plan: ServicePlan
    package let runtime: ServiceRuntime
    package let ordinals: DrawOrdinals
    /// The bytes that the target of a request begins with; empty for a service matched by its host alone, or at the root.
    package let prefix: [UInt8]
    /// Lower case; nil for a service matched by its prefix alone.
    package let host: String?
    /// Under which it answers, besides what leads here anyway; none where `host` is there.
    let hosts: [HostPattern]
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
    /// Paths with dot segments are refused (http-rules.md 20).
    let guardsPaths: Bool
    /// A service in front of this one adds secret query items, so that one URL may have several keys.
    let isAskedInSecret: Bool
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
        hosts: [HostPattern],
        inner: String?,
        demo: DemoRule?,
        endpointDemos: [DemoRule?],
        listedOnly: Bool,
        corsOrigins: [String],
        chain: ServiceChain,
        sharesWebOrigin: Bool,
        isAskedInSecret: Bool,
        via: String
    ) {
        self.plan = plan
        self.runtime = runtime
        self.ordinals = ordinals
        let prefix = prefix == "/" ? "" : prefix
        self.prefix = Array(prefix.utf8)
        self.host = host
        self.hosts = hosts
        self.inner = inner
        self.demo = demo
        self.endpointDemos = endpointDemos
        self.listedOnly = listedOnly
        self.corsOrigins = corsOrigins
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
        let requests = [plan.request] + plan.endpoints.map(\.request)
        shapes = requests.map { request in
            var hasher = Hasher()
            hasher.combine(String(describing: request.policy))
            hasher.combine(request.key)
            hasher.combine(request.storesGet)
            // What was made ready before a seed folder was opened has to be found behind it.
            hasher.combine(request.seed?.identity)
            hasher.combine(rewriting)
            hasher.combine(address)
            // What was stored under a path that is refused now is not to be found without the check.
            hasher.combine(chain.guardsPaths)
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

    /// The path and query that a request asks the origin for, but for secret items, which its source adds.
    /// - Parameters:
    ///   - rest: what follows the prefix: empty, or beginning with `/` or `?`.
    ///   - hidden: what the services before this one add to the query.
    func path(_ rest: String, _ request: RequestPlan, behind hidden: [HiddenItem] = []) -> String {
        request.query.apply(to: address.path(appending: rest), behind: hidden.texts)
    }

    /// Whether it answers for a host that does not lead here anyway.
    /// - Parameter name: in lower case, without the root's dot.
    func answers(for name: String) -> Bool { host.map { $0 == name } ?? hosts.contains { $0.matches(name) } }

    /// Where clients find it: `/github`, `api.localhost` or `api.localhost/github`.
    var place: String {
        let path = String(decoding: prefix, as: UTF8.self)
        return host.map { $0 + path } ?? (path.isEmpty ? "/" : path)
    }

    /// Some requests, or all, get demo answers.
    package var playsDemo: Bool { demo != nil || endpointDemos.contains { $0 != nil } }

    /// Some requests, or all, go to an origin or to another service.
    package var asksOrigin: Bool {
        (plan.origin != nil || inner != nil) && (demo == nil && !listedOnly || endpointDemos.contains { $0 == nil })
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
    /// Names of the machine that lead here whatever is configured, in lower case; none where only loopback may connect.
    let machineNames: Set<String>
    /// The names of services, and what is written out under `hosts`.
    let writtenNames: Set<String>
    /// The names that are this daemon's and no other's: these, and those of the machine.
    let ownNames: Set<String>
    /// Those under `hosts` of the whole daemon.
    private let daemonHosts: [HostPattern]
    /// Those that are matched by their prefix alone, the longest first.
    private let prefixes: [ServiceRoute]
    /// The others, by their host, the longest prefix first.
    private let hosts: [String: [ServiceRoute]]

    /// - Parameter hosts: patterns in lower case, of the whole daemon.
    init(
        name: String,
        services: [ServiceRoute],
        forward: ForwardPlan?,
        hosts daemonHosts: [HostPattern] = [],
        machineNames: Set<String> = []
    ) {
        self.name = name
        self.services = services
        self.forward = forward
        self.machineNames = machineNames
        self.daemonHosts = daemonHosts
        via = "1.1 \(name)"
        let byLength = services.sorted { $0.prefix.count > $1.prefix.count }
        prefixes = byLength.filter { $0.host == nil }
        hosts = Dictionary(grouping: byLength.filter { $0.host != nil }) { $0.host ?? "" }
        let patterns = daemonHosts + services.flatMap(\.hosts)
        writtenNames = Set(hosts.keys).union(patterns.compactMap(\.name))
        ownNames = writtenNames.union(machineNames)
    }

    /// The value of the Via line that is added to requests and answers.
    package let via: String

    /// The query items that any of the services adds in secret.
    var secrets: SecretQuery {
        services.reduce(into: SecretQuery()) { all, route in all.formUnion(route.rewriting.secrets) }
    }

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

    /// The services that requests for a host are tried with, in order: first those of that very host.
    /// - Parameter name: in lower case, without the root's dot.
    func routes(host name: String) -> [ServiceRoute] {
        guard let named = hosts[name] else { return prefixes }
        // One that takes every path leaves none to the others.
        return named.last?.prefix.isEmpty == true ? named : named + prefixes
    }

    /// Whether `hosts` of the whole daemon has the name.
    func hasHost(_ name: String) -> Bool { daemonHosts.contains { $0.matches(name) } }
}

extension ServiceRoute {
    /// Whether a target begins with the prefix, on a segment boundary.
    func leads(_ target: UnsafeRawBufferPointer) -> Bool {
        let length = prefix.count
        guard target.begins(with: prefix) else { return false }
        return length == target.count || target[length] == UInt8(ascii: "/") || target[length] == UInt8(ascii: "?")
    }
}
