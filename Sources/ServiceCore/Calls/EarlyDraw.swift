// The draws that are made before a request is answered: its demo answer, whose latency comes first, and the faults that
// replace a request to the origin.

package import DemoMode
import EventLoop
import HTTPWire
import Policies

/// A draw whose latency has already passed when its request is answered. It equals the draw that the request would make
/// later: the same rule, with the same ordinal.
package final class EarlyDraw {
    let draw: DemoDraw
    let faults: FaultDraws?

    fileprivate init(_ counted: DemoState.Counted) {
        draw = DemoDraw.draw(counted)
        faults = counted.faults
    }

    /// The nanoseconds to wait before the request is answered.
    package var latency: UInt64 { draw.latency }
}

@available(*, unavailable) extension EarlyDraw: Sendable {}

extension RouteMatch {
    /// Draws once, if the answer has to wait, and if no body, no retry and no possible refusal comes before that.
    /// - Parameter now: the time in nanoseconds by the clock of outages.
    /// - Returns: the nanoseconds to wait; nil if nothing was drawn.
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

/// Draws the faults that keep a request from the origin. Made for one request of a client; loop-bound.
package final class FaultGate {
    private let plan: FaultPlan
    private let match: RouteMatch
    /// The draws that were made before the origin was to be asked; nil if it has not come to that.
    package private(set) var draws: FaultDraws?

    /// Makes a gate; nil if no fault keeps the origin from being asked.
    package init?(_ match: RouteMatch) {
        guard let plan = match.endpoint.request.faults, plan.sparesOrigin else { return nil }
        self.plan = plan
        self.match = match
    }

    /// Draws once, at the moment when the origin is to be asked.
    /// - Parameter isStored: whether a stored response is to be validated, so that the origin's answer decides about
    ///   the source of the answer.
    /// - Returns: the status that the log shows for an answer without the origin; nil if the origin is asked.
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
