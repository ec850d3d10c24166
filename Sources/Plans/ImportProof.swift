// Asks the rules of an import for the requests that they were made of: each has to be answered by its own rule.

package import Configuration
import DemoMode
import HTTPWire
package import Interchange
import Matching
import Policies
import ServiceCore

/// What became of the requests of a source, by the rules of its configuration. Nothing is listened on.
package struct ImportProof: Sendable {
    /// How many requests were asked.
    package let asked: Int
    /// Those that another rule answers than the one that was made of them, or none.
    package let notes: [ImportNote]

    /// - Parameter configuration: as it was written.
    /// - Throws: `PlanError` where a file of it is not there any more.
    package init(_ imported: ImportedConfiguration, _ configuration: Configuration) throws {
        let plan = try RoutePlan.compile(configuration, registry: PlanRegistry())
        asked = imported.examples.count
        notes = imported.examples.compactMap { example in
            let own = DemoRule.name(example.endpoint.isEmpty ? example.service : example.endpoint, example.rule)
            let answering = Self.rule(for: example, plan)
            if answering == own { return nil }
            let target = example.target.count > 100 ? example.target.prefix(100) + "…" : example.target
            let who = answering.map { "the rule '\($0)' answers" } ?? "no rule answers"
            let reason = "\(who) \(example.method) \(target), of which '\(own)' was made"
            return ImportNote(example.location, .answeredByOther, reason)
        }
    }

    /// The name of the rule that answers a request; nil: none does.
    private static func rule(for example: ImportExample, _ plan: RoutePlan) -> String? {
        guard let service = plan.service(named: example.service) else { return nil }
        let method = Method(example.method)
        let endpoint = service.endpoint(for: method, example.target)
        guard let demo = endpoint.demo else { return nil }
        let head = RequestHead(
            method: method,
            target: example.target,
            fields: Fields(example.fields.map { ($0.name, $0.value) })
        )
        var parts = ServiceCall.demoParts(RouteMatch(service, example.target, head, endpoint: endpoint), head)
        parts.body = .whole(WholeBody(example.body))
        return demo.rules.first { rule in
            guard isInState(rule.gate?.step, example) else { return false }
            return rule.condition?.holds(parts) ?? true
        }?.name
    }

    /// Scenarios are as they begin, but for that of the example.
    private static func isInState(_ step: ScenarioStep?, _ example: ImportExample) -> Bool {
        guard let step else { return true }
        let wanted = example.state?.scenario == step.scenario ? example.state?.state : nil
        return step.state == wanted ?? ScenarioStep.initial
    }
}
