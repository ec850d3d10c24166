// All routes of a configuration, found by host and path.

package import CacheStore
package import Content
import DemoMode
import EventLoop
package import HTTPWire

/// All routes of a configuration.
package final class RoutePlan: Sendable {
    /// The pseudonym in Via and Cache-Status.
    package let name: String
    package let services: [ServiceRoute]
    package let forward: ForwardPlan?
    /// The names of the machine that lead here independently of the configuration, in lower case; empty if only
    /// loopback may connect.
    package let machineNames: Set<String>
    /// The names of services, and the names under `hosts` that are no patterns.
    package let writtenNames: Set<String>
    /// The names that are only this daemon's: ``writtenNames`` and ``machineNames``.
    package let ownNames: Set<String>
    /// The rules for the secrets in contents that logs and the journal leave out.
    package let contents: SecretContent
    /// The patterns under `hosts` of the whole daemon.
    private let daemonHosts: [HostPattern]
    /// The services that are matched by their prefix alone, the longest prefix first.
    private let prefixes: [ServiceRoute]
    /// The services that are matched by a host, by that host, the longest prefix first.
    private let hosts: [String: [ServiceRoute]]

    /// Makes the routes.
    /// - Parameters:
    ///   - hosts: the patterns of the whole daemon, in lower case.
    ///   - notSecret: the names whose values are shown, although they look like secrets.
    package init(
        name: String,
        services: [ServiceRoute],
        forward: ForwardPlan?,
        hosts daemonHosts: [HostPattern] = [],
        machineNames: Set<String> = [],
        notSecret: [String] = []
    ) {
        self.name = name
        contents = SecretContent(shown: notSecret)
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

    /// The value of the Via line for a message that came in this version (RFC 9110 section 7.6.3).
    package func via(_ version: HTTPVersion) -> String { version == .http10 ? "1.0 \(name)" : via }

    /// The query items that any of the services adds in secret.
    package var secrets: SecretQuery {
        services.reduce(into: SecretQuery()) { all, route in all.formUnion(route.rewriting.secrets) }
    }

    package func service(named name: String) -> ServiceRoute? { services.first { $0.plan.name == name } }

    /// Puts the limits of the services in force; until then those of the previous plan hold. Waiting calls end if their
    /// origin is no longer the service's.
    package func takeEffect() {
        if let route = forward?.route { route.runtime.admission.update(route.plan.admission) }
        for route in services {
            route.runtime.admission.update(route.plan.admission)
            route.demoState.keep(route.scenarios)
            route.runtime.parked.serve(
                route.plan.park == nil ? nil : route.plan.origin?.root,
                why: "a reload has changed base_url or park of service \(route.plan.name)"
            )
        }
    }

    /// The seed folders of all routes, each once, in the order of the configuration.
    package var seeds: [SeedFolder] {
        var seen: Set<UInt64> = []
        let routes = services + (forward.map { [$0.route] } ?? [])
        let requests = routes.flatMap { [$0.itself.request] + $0.endpoints.map(\.request) }
        return requests.compactMap(\.seed).filter { folder in
            seen.insert(folder.identity).inserted
        }
    }

    /// The candidates for requests with a host, in order: first the services of that very host.
    /// - Parameter name: the host in lower case, without the dot of the DNS root.
    package func routes(host name: String) -> [ServiceRoute] {
        guard let named = hosts[name] else { return prefixes }
        // A service of the host that takes every path leaves none to the others.
        return named.last?.prefix.isEmpty == true ? named : named + prefixes
    }

    /// The services that are matched by a host, the longest prefix first.
    /// - Parameter name: the host in lower case, without the dot of the DNS root.
    func services(ofHost name: String) -> [ServiceRoute] { hosts[name] ?? [] }

    /// The service of a host with the longest prefix that leads to the target; nil if the host has none for it.
    /// - Parameter name: the host in lower case, without the dot of the DNS root.
    package func service(ofHost name: String, target: String) -> ServiceRoute? {
        guard let named = hosts[name] else { return nil }
        var target = target
        return target.withUTF8 { target in
            let target = UnsafeRawBufferPointer(target)
            return named.first { $0.leads(target) }
        }
    }

    /// Whether `hosts` of the whole daemon includes the name.
    package func hasHost(_ name: String) -> Bool { daemonHosts.contains { $0.matches(name) } }
}
