// Where an upgrade goes: through the services that stand in for an origin, to the last of them.

import DownloadCore
package import EventLoop
import HTTPWire
package import Upstream

/// The origin of an upgrade, and what the services on the way to it do to the request.
package struct UpgradeHop {
    /// The last of them.
    package let service: ServicePlan
    package let origin: OriginAddress
    /// The addresses that the origin may have.
    package let target: TargetRules
    package let plan: RequestPlan
    /// How long its tunnel may be idle, in nanoseconds: as long as every service on the way allows; nil: no limit.
    package let tunnelTimeout: UInt64?
    /// Path and query on the origin, but for `hidden`.
    package let path: String
    /// The services whose `max_concurrent` counts it, the outermost first.
    package let gates: [UpgradeGate]
    /// The changes of fields by the services on the way, the outermost first.
    package let passed: [FieldChange]
    /// Secret query items of the services on the way, percent-encoded.
    package let hidden: [String]
}

/// A service that an upgrade passes, and its admission.
package struct UpgradeGate {
    package let service: ServicePlan
    package let runtime: ServiceRuntime

    /// Waits for a slot, which the caller gives back.
    /// - Throws: that there is none.
    package func enter(on loop: isolated EventLoop) async throws(RouteRefusal) {
        do throws(AdmissionRefusal) {
            try await runtime.admission.acquire(on: loop)
        } catch {
            throw .notAdmitted(FetchError(error, service: service))
        }
    }
}

extension RoutePlan {
    /// The origin that an upgrade goes to, through the services that stand in for one. Nil if a demo answer would take
    /// the request, or no service asks an origin: Upgrade is ignored then.
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
            if endpoint.demo != nil || endpoint.ladder != nil || endpoint.request.judgesAnswers { return nil }
            if endpoint.isUnlisted { throw .noEndpoint(match.request.method, match.rest, route) }
            let request = endpoint.request
            tunnelTimeout = [tunnelTimeout, request.timeouts.tunnel].compactMap(\.self).min()
            let path = route.path(try route.fill(match.rest, endpoint).rest, endpoint, behind: hidden)
            hidden = hidden.adding(request.query, of: route, to: path)
            gates.append(UpgradeGate(service: route.plan, runtime: route.runtime))
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
