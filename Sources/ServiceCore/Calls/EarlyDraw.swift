// The draw of a demo answer before anything else is made of its request, so that next to nothing is held while it waits.

import DemoMode
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
