// All routes of a configuration, and which of them answers for a host.

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
    /// Names of the machine that lead here whatever is configured, in lower case; none where only loopback may connect.
    package let machineNames: Set<String>
    /// The names of services, and what is written out under `hosts`.
    package let writtenNames: Set<String>
    /// The names that are this daemon's and no other's: these, and those of the machine.
    package let ownNames: Set<String>
    /// What of contents logs and the journal do not have.
    package let contents: SecretContent
    /// The names under `hosts` of the whole daemon.
    private let daemonHosts: [HostPattern]
    /// The services that are matched by their prefix alone, the longest prefix first.
    private let prefixes: [ServiceRoute]
    /// The others, by their host, the longest prefix first.
    private let hosts: [String: [ServiceRoute]]

    /// - Parameters:
    ///   - hosts: patterns in lower case, of the whole daemon.
    ///   - notSecret: names whose values are shown, although they look like secrets.
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

    /// The same for a message that came in an older version (RFC 9110 section 7.6.3).
    package func via(_ version: HTTPVersion) -> String { version == .http10 ? "1.0 \(name)" : via }

    /// The query items that any of the services adds in secret.
    package var secrets: SecretQuery {
        services.reduce(into: SecretQuery()) { all, route in all.formUnion(route.rewriting.secrets) }
    }

    package func service(named name: String) -> ServiceRoute? { services.first { $0.plan.name == name } }

    /// Puts the limits of the services in force; until then those of the plan before hold. Calls that wait for an origin
    /// which is not the service's any more end.
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

    /// The services that requests for a host are tried with, in order: first those of that very host.
    /// - Parameter name: in lower case, without the root's dot.
    package func routes(host name: String) -> [ServiceRoute] {
        guard let named = hosts[name] else { return prefixes }
        // One that takes every path leaves none to the others.
        return named.last?.prefix.isEmpty == true ? named : named + prefixes
    }

    /// Whether `hosts` of the whole daemon has the name.
    package func hasHost(_ name: String) -> Bool { daemonHosts.contains { $0.matches(name) } }
}
