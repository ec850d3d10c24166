// The keys under which a URL of an origin is stored, for the import of seeds.

package import CacheStore
package import DownloadCore
import HTTPCaching
import HTTPWire

/// A route that would ask an origin for a URL.
package struct SeedTarget: Sendable {
    /// The key of the URL, and the conditions on a seed.
    package let destination: SeedDestination
    /// The route's own seed folder.
    package let seed: SeedFolder?

    fileprivate init(_ key: CacheKey, _ plan: RequestPlan) {
        let expectation = PhasePlan.seedExpectation(plan.phases, plan.policy)
        destination = SeedDestination(key: key, policy: plan.policy, expectation: expectation)
        seed = plan.seed
    }
}

/// The resource of an endpoint that is also kept as a file.
package struct StoredFileTarget: Sendable {
    package let key: CacheKey
    package let name: String
}

extension RoutePlan {
    /// The services whose base URL contains this URL, the longest first; then forward mode, for http. A service that
    /// passes the client's Host to its origin has no URL of its own for it, and is left out.
    package func seedTargets(of url: String) -> [SeedTarget] {
        let found = services.filter { route in
            guard let origin = route.origin(of: url), !route.keysHost, url.hasPrefix(origin.base) else { return false }
            return url.utf8.dropFirst(origin.base.utf8.count).first.map { "/?".utf8.contains($0) } ?? false
        }
        let ordered = found.sorted { $0.address.base.utf8.count > $1.address.base.utf8.count }
        var targets = ordered.flatMap { route in
            // Endpoints with targets of their own store the same URL under keys of their own.
            rests(of: url, through: route).map { rest in
                let isShaped = route.endpoint(for: .get, rest).isShaped
                let key =
                    isShaped
                    ? route.key(rest: rest, host: nil, on: route.origin(of: url))
                    : CacheKey(service: route.plan.name, url: url)
                return SeedTarget(key, route.plan(storedAs: key))
            }
        }
        if let forward, url.hasPrefix("http://") {
            targets.append(SeedTarget(CacheKey(service: "", url: url), forward.route.itself.request))
        }
        return targets.filter { $0.destination.policy.mode != .none }
    }

    /// The folders of URLs that the routes name: base URLs, and the literal beginnings of endpoints' paths.
    package var knownFolders: [String] {
        var folders: [String] = []
        for route in services {
            // A service by host has URLs with either scheme.
            let named = route.asksTarget ? ["https", "http"].map { route.named(scheme: $0, port: nil) } : []
            for origin in route.plan.origin.map({ [$0] }) ?? named {
                folders.append(origin.base)
                for endpoint in route.plan.endpoints {
                    var folder = origin.base
                    for case .literal(let bytes) in endpoint.pattern.segments.prefix(while: \.isLiteral) {
                        folder += "/" + String(decoding: bytes, as: UTF8.self)
                        folders.append(folder)
                    }
                }
            }
        }
        return folders
    }

    /// The resources that endpoints keep as files, with their keys.
    package var storedFiles: [StoredFileTarget] {
        services.flatMap { route in
            route.plan.endpoints.compactMap { endpoint in
                guard let name = endpoint.request.storeAs, !route.keysHost else { return nil }
                var rest = ""
                for case .literal(let bytes) in endpoint.pattern.segments {
                    rest += "/" + String(decoding: bytes, as: UTF8.self)
                }
                return StoredFileTarget(key: route.key(rest: rest.isEmpty ? "/" : rest, host: nil), name: name)
            }
        }
    }
}

extension PathPattern.Segment {
    fileprivate var isLiteral: Bool {
        if case .literal = self { true } else { false }
    }
}
