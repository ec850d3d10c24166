// Repeats draws by their names: a draw is a pure function of its rule, key and ordinal, and needs no request.

package import DemoMode
import Policies

/// The result of a repeated draw under the plan in force.
package struct RepeatedDraw: Sendable, Equatable {
    package let said: SaidDraw
    /// The member of Drydock-Demo; nil if the rule does not act.
    package var drawn: String?
    /// The latency in nanoseconds; nil if the rule has none.
    package var latency: UInt64?
    /// The reason why nothing is drawn, or why the result may differ; nil if there is none.
    package var note: String?

    /// Whether the result equals the given one.
    package var isSame = false
}

/// The rules for repeated draws.
package struct DrawReplay {
    private let plan: RoutePlan

    package init(_ plan: RoutePlan) { self.plan = plan }

    /// Repeats a draw. If several services have a rule of that name, the one with the same result is taken, or else the
    /// first.
    /// - Parameter service: the service of the rule; nil for all, forward mode included.
    package func draw(again said: SaidDraw, service: String?) -> RepeatedDraw {
        let routes = (plan.services + (plan.forward.map { [$0.route] } ?? [])).filter {
            service == nil || $0.label == service
        }
        let found = routes.flatMap { route in
            ([route.itself] + route.endpoints).flatMap { Self.draws(again: said, $0) }
        }
        if let same = found.first(where: \.isSame) ?? found.first { return same }
        let owner = service.map { "service \($0)" } ?? "any service"
        return RepeatedDraw(said: said, note: "no rule of \(owner) has this name now")
    }

    private static func draws(again said: SaidDraw, _ route: EndpointRoute) -> [RepeatedDraw] {
        switch said.rule {
        case .demo(let endpoint, let label):
            let rules = route.demo.map { plan in plan.name == endpoint ? plan.rules : [] } ?? []
            return rules.filter { $0.label == label }.map { draw(again: said, $0) }
        case .fault(let name):
            let rules = route.request.faults?.rules ?? []
            return rules.filter { $0.policy.name == name }.map { rule in
                let effect = rule.effect(of: said.name)
                var repeated = RepeatedDraw(said: said, drawn: effect?.fieldValue)
                repeated.latency = effect.flatMap { $0.isDelayed ? $0.latency : nil }
                guard let drawn = effect?.fieldValue else {
                    repeated.note = "the fault does not act on this request now"
                    return repeated
                }
                // Of several rules that act, each part of the result comes from the first that has it.
                let (parts, saidParts) = (Self.parts(drawn), Self.parts(said.text))
                let others = parts.filter { !saidParts.contains($0) }
                repeated.isSame =
                    saidParts == parts.filter { saidParts.contains($0) }
                    && !others.contains { other in
                        saidParts.contains { Self.name(of: $0) == Self.name(of: other) }
                    }
                if repeated.isSame, !others.isEmpty {
                    repeated.note = "a rule before it has said: \(others.map(Self.name).joined(separator: ", "))"
                }
                return repeated
            }
        }
    }

    private static func draw(again said: SaidDraw, _ rule: DemoRule) -> RepeatedDraw {
        var draw = DemoDraw.draw(rule, key: said.name.key, ordinal: said.name.ordinal)
        // Some of the drawn mistakes may have had no effect on the request, and are missing in the given result.
        let wrongs = Set(draw.misbehaviours.map(\.kind))
        draw.misbehaved = said.misbehaved.filter(wrongs.contains)
        var repeated = RepeatedDraw(said: said, drawn: draw.fieldValue, latency: draw.latency)
        repeated.isSame = draw.fieldValue == said.text
        if said.isOverridden {
            repeated.note = "the request had asked for some of it by \(DemoOverride.fieldName)"
        } else if case .sequence = rule.choice, rule.counting == .rule {
            repeated.note = "which answer of its sequence came, the count of the rule decides, and no draw"
        } else if draw.content.hasOwnStatus {
            repeated.isSame = Self.withoutStatus(draw.fieldValue) == Self.withoutStatus(said.text)
            repeated.note = "the status is the collection's, and not drawn"
        }
        return repeated
    }

    private static func parts(_ member: String) -> [String] {
        member.split(separator: ";").map { String($0.drop { $0 == " " }) }
    }

    private static func name(of part: String) -> String { String(part.prefix { $0 != "=" }) }

    private static func withoutStatus(_ member: String) -> [Substring] {
        member.split(separator: ";").filter { !$0.hasPrefix(" status=") }
    }
}
