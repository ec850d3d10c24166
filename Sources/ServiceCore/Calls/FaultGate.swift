// The faults of a request that is about to be sent: they are drawn before, and some of them keep its origin from being asked.

package import DemoMode
import HTTPWire
import Policies

/// Made for one request of a client. Loop-bound.
package final class FaultGate {
    private let plan: FaultPlan
    private let match: RouteMatch
    /// What was drawn before the origin was to be asked; nil: that has not come yet.
    package private(set) var draws: FaultDraws?

    /// Nil where no fault keeps the origin from being asked.
    package init?(_ match: RouteMatch) {
        guard let plan = match.endpoint.request.faults, plan.sparesOrigin else { return nil }
        self.plan = plan
        self.match = match
    }

    /// Draws, once, when the origin is to be asked.
    /// - Parameter isStored: a stored response is to be validated: what the origin says decides where the answer comes from.
    /// - Returns: the status that the log has of an answer that does not come from the origin; nil: the origin is asked.
    func standIn(isStored: Bool) -> Int? {
        guard draws == nil else { return nil }
        let drawn = plan.draws(
            before: isStored ? [.miss, .revalidate, .stale] : [.miss],
            request: ServiceCall.demoKey(match.request.method, match.rest),
            match.route.ordinals
        )
        draws = drawn
        return drawn.sparesOrigin ? drawn.effect?.substitute?.status ?? 502 : nil
    }
}

@available(*, unavailable) extension FaultGate: Sendable {}
