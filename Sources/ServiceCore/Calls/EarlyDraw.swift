// What is drawn for a request before it is answered: its demo answer, whose latency it waits for first, and the faults that
// keep its origin from being asked.

package import DemoMode
import EventLoop
import HTTPWire
import Policies

/// A draw whose latency has been waited for when its request is answered. It says what the request would have drawn in any
/// case: the same rule, by the same ordinal.
package final class EarlyDraw {
    let draw: DemoDraw
    let faults: FaultDraws?

    fileprivate init(_ counted: DemoState.Counted) {
        draw = DemoDraw.draw(counted)
        faults = counted.faults
    }

    /// Nanoseconds to wait before the request is answered.
    package var latency: UInt64 { draw.latency }
}

@available(*, unavailable) extension EarlyDraw: Sendable {}

extension RouteMatch {
    /// Draws now, once, where the answer has to wait, and neither a body, a retry nor something that could refuse the
    /// request comes before that.
    /// - Parameter now: nanoseconds, by the clock of outages.
    /// - Returns: nanoseconds to wait; nil where nothing was drawn.
    package func drawEarly(now: UInt64) -> UInt64? {
        guard endpoint.openWays.contains(.earlyDraw), let plan = endpoint.demo, plan.hasLatency else { return nil }
        let key = ServiceCall.demoKey(request.method, rest)
        let parts = ServiceCall.demoParts(self, OutgoingRequest.endToEnd(request))
        let faults = endpoint.request.faults
        guard let counted = route.demoState.count(plan, parts, key: key, now: now, faults: faults) else { return nil }
        let draw = EarlyDraw(counted)
        early = draw
        return draw.latency
    }
}

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
