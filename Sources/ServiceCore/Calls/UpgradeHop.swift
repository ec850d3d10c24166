// The way of an upgrade through the services that stand in for an origin, to the last of them.

import DownloadCore
package import EventLoop
import HTTPWire
package import Upstream

/// The origin of an upgrade, and the changes of the services on the way to the request.
package struct UpgradeHop {
    /// The last service on the way.
    package let service: ServicePlan
    package let origin: OriginAddress
    /// The rules for the origin's addresses.
    package let target: TargetRules
    package let plan: RequestPlan
    /// The longest idle time of the tunnel in nanoseconds, the shortest of all services on the way; nil for no limit.
    package let tunnelTimeout: UInt64?
    /// The path and query on the origin, without `hidden`.
    package let path: String
    /// The services whose `max_concurrent` counts the upgrade, the outermost first.
    package let gates: [UpgradeGate]
    /// The changes to fields by the services on the way, the outermost first.
    package let passed: [FieldChange]
    /// The secret query items of the services on the way, percent-encoded.
    package let hidden: [String]
}

/// A service on the way of an upgrade, with its admission.
package struct UpgradeGate {
    package let service: ServicePlan
    package let runtime: ServiceRuntime

    /// Waits for a slot, which the caller returns.
    /// - Throws: a refusal if there is none.
    package func enter(on loop: isolated EventLoop) async throws(RouteRefusal) {
        do throws(AdmissionRefusal) {
            try await runtime.admission.acquire(on: loop)
        } catch {
            throw .notAdmitted(FetchError(error, service: service))
        }
    }
}

extension RoutePlan {
    /// The way of an upgrade. Nil if a demo answer would take the request, or if no service asks an origin: Upgrade is
    /// ignored then.
    /// - Throws: the refusal that a request without Upgrade would get.
    package func upgradeHop(_ match: RouteMatch) throws(RouteRefusal) -> UpgradeHop? {
        var match = match
        var passed: [FieldChange] = []
        var gates: [UpgradeGate] = []
        var hidden: [HiddenItem] = []
        var tunnelTimeout: UInt64?
        for _ in 0..<ServiceRoute.maximumDepth {
            let (route, endpoint) = (match.route, match.endpoint)
            try ServiceClient.admit(match.request, match.rest, route)
            if endpoint.demo != nil || endpoint.order != nil || endpoint.request.judgesAnswers { return nil }
            if match.isUnlisted { throw .noEndpoint(match.request.method, match.rest, route) }
            let request = endpoint.request
            tunnelTimeout = [tunnelTimeout, request.timeouts.tunnel].compactMap(\.self).min()
            let path = route.path(try route.fill(match.rest, endpoint).rest, endpoint, behind: hidden)
            hidden = hidden.adding(request.query, of: route, to: path)
            gates.append(UpgradeGate(service: route.plan, runtime: route.runtime))
            if match.obstacle != nil { return nil }
            if let origin = match.origin {
                return UpgradeHop(
                    service: route.plan,
                    origin: origin,
                    target: match.target,
                    plan: request,
                    tunnelTimeout: tunnelTimeout,
                    path: path,
                    gates: gates,
                    passed: passed,
                    hidden: hidden.texts
                )
            }
            guard let name = route.inner, let inner = service(named: name) else { return nil }
            passed.append(route.plan.change(request))
            match = RouteMatch(inner, path, match.request)
        }
        return nil
    }
}
