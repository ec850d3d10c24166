// An authority that clients ask for through the proxy, with those who take its targets: found once on the waiting path,
// and then found by its bytes.

import CacheStore
import HTTPWire

/// An authority that requests through the proxy are for. It never changes, and is valid only for the plan that it was made
/// from, and for the scheme of the request that it was made for.
package final class KnownAuthority {
    /// A service by host, or forward mode.
    private struct Taker {
        // The plan, which is held beside this object, holds the route.
        let route: Unmanaged<ServiceRoute>
        /// The bytes of a cache key up to what follows the service's prefix in the target.
        let keyStart: [UInt8]
    }

    /// What requests name it by: in a target in absolute form, or in Host inside of a tunnel.
    package let bytes: [UInt8]
    package let reach: Reach
    package let plan: RoutePlan
    /// In the order of ``ProxyTaker``.
    private let takers: [Taker]

    /// The most bytes that it is worth while to remember: those of the longest name with its port.
    package static let limit = 300

    /// - Parameter asked: the target of a request that was allowed, and that is none of the daemon's own.
    package init(_ bytes: [UInt8], _ asked: ProxyTarget, _ reach: Reach, _ plan: RoutePlan) {
        self.bytes = bytes
        self.reach = reach
        self.plan = plan
        let forward = plan.forward.flatMap { $0.verdict(on: asked) == .refused ? nil : $0.route }
        takers = (plan.services(ofHost: asked.authority.name) + (forward.map { [$0] } ?? [])).map { route in
            let origin = route.isForward ? asked.origin : route.named(scheme: asked.scheme, port: asked.authority.port)
            // With a slash at its end, which belongs to the target already.
            let key = route.key(path: route.address.path(appending: "/"), host: asked.origin.authority, on: origin)
            return Taker(route: .passUnretained(route), keyStart: key.bytes.dropLast())
        }
    }

    /// Who takes a target.
    /// - Parameter path: in origin form.
    /// - Returns: its number; nil if nobody does.
    package func taker(of path: UnsafeRawBufferPointer) -> Int? {
        takers.indices.first { takers[$0].route._withUnsafeGuaranteedRef { $0.leads(path) } }
    }

    /// The route of a taker, valid as long as this object is held.
    package func borrowedRoute(of taker: Int) -> Unmanaged<ServiceRoute> { takers[taker].route }

    package func keyStart(of taker: Int) -> [UInt8] { takers[taker].keyStart }
}

@available(*, unavailable) extension KnownAuthority: Sendable {}
