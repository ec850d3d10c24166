// What a request is routed by: services by prefix and host, compiled from a configuration. Immutable; a reload makes a new tree.

package import DemoMode
package import HTTPCaching
internal import HTTPWire
package import ServiceCore

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
    package let rewriting: Rewriting
    /// The bytes of a cache key up to the path.
    package let keyPrefix: [UInt8]
    /// What shapes a ready head: of the service first, then of its endpoints.
    package let shapes: [UInt64]
    /// Whether a target says all of the key, so that the hot path may look it up.
    package let isPlain: Bool

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
        via: String
    ) {
        self.plan = plan
        self.runtime = runtime
        self.ordinals = ordinals
        self.prefix = Array((prefix == "/" ? "" : prefix).utf8)
        self.host = host
        self.inner = inner
        self.demo = demo
        self.endpointDemos = endpointDemos
        self.listedOnly = listedOnly
        self.corsOrigins = corsOrigins
        let base = plan.origin?.base ?? "service://\(inner ?? plan.name)"
        rewriting = Rewriting(prefix: prefix == "/" ? "" : prefix, origin: plan.origin)
        keyPrefix = Array(plan.name.utf8) + [0] + Array(base.utf8)
        shapes = ([plan.request] + plan.endpoints.map(\.request)).map { request in
            var hasher = Hasher()
            hasher.combine(String(describing: request.policy))
            hasher.combine(prefix)
            hasher.combine(base)
            hasher.combine(via)
            return UInt64(bitPattern: Int64(hasher.finalize()))
        }
        let requests = [plan.request] + plan.endpoints.map(\.request)
        isPlain =
            requests.allSatisfy { $0.query.isEmpty } && demo == nil && corsOrigins.isEmpty
            && plan.authorization == nil
    }

    /// What applies to a request, and the shape that goes with it; `endpoint` is from `plan.endpoint(for:path:)`.
    func request(_ endpoint: Int?) -> (plan: RequestPlan, shape: UInt64) {
        guard let endpoint else { return (plan.request, shapes[0]) }
        return (plan.endpoints[endpoint].request, shapes[endpoint + 1])
    }

    /// The rules of reuse for a stored response, by the URL in its key.
    package func policy(storedAt url: String) -> CachePolicy {
        let base = keyPrefix.drop { $0 != 0 }.dropFirst()
        let rest = Array(url.utf8.starts(with: base) ? url.utf8.dropFirst(base.count) : "".utf8[...])
        let endpoint = rest.withUnsafeBytes { plan.endpoint(for: .get, path: $0) }
        return request(endpoint).plan.policy
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
    /// Longest first.
    private let prefixes: [ServiceRoute]
    private let hosts: [String: ServiceRoute]

    init(name: String, services: [ServiceRoute], forward: ForwardPlan?) {
        self.name = name
        self.services = services
        self.forward = forward
        prefixes = services.filter { $0.host == nil }.sorted { $0.prefix.count > $1.prefix.count }
        hosts = Dictionary(services.compactMap { route in route.host.map { ($0, route) } }) { first, _ in first }
    }

    /// The value of the Via line that is added to requests and answers.
    package var via: String { "1.1 \(name)" }

    /// The hosts that services are matched by.
    package var serviceHosts: [String] { hosts.keys.sorted() }

    package func service(named name: String) -> ServiceRoute? { services.first { $0.plan.name == name } }

    /// Whether any service is matched by host, so that Host has to be looked at.
    var matchesHosts: Bool { !hosts.isEmpty }

    func service(host: String) -> ServiceRoute? { hosts[host] }

    /// The service with the longest prefix, on a segment boundary. No allocation.
    func service(target: UnsafeRawBufferPointer) -> ServiceRoute? {
        prefixes.first { route in
            let length = route.prefix.count
            guard target.begins(with: route.prefix) else { return false }
            return length == target.count || target[length] == UInt8(ascii: "/") || target[length] == UInt8(ascii: "?")
        }
    }
}
