// What an endpoint, or a service itself, plays: its rules, of which the first whose condition holds answers.

import Matching
package import Policies

/// The rules of an endpoint or a service, in their order. Immutable, shared by every loop.
package struct DemoPlan: Sendable {
    /// Of the endpoint or the service.
    package let name: String
    /// `random_seed` of the endpoint or the service; a rule may have another.
    package let seed: UInt64
    /// The first whose condition holds answers. The endpoint's own answer is the last one, and has no condition.
    package let rules: [DemoRule]
    /// What becomes of requests that no rule answers. Default: a 404.
    package let unmatched: UnmatchedPolicy
    /// Bytes of a body that are read for conditions. Default: 1 MiB.
    package let bodyLimit: Int
    /// Nanoseconds that a request may make its own answer take by ``DemoOverride``; nil: requests change nothing.
    package let overrides: UInt64?
    /// The place of the last rule that counts the requests it is for, whoever answers them; nil: none counts.
    let lastTurn: Int?
    /// Some rule looks into the body, or makes its answer of it.
    package let needsBody: Bool
    /// Some answers take longer than nothing.
    package let hasLatency: Bool

    package init(
        name: String,
        seed: UInt64 = 0,
        rules: [DemoRule],
        unmatched: UnmatchedPolicy = .notFound,
        bodyLimit: Int = 1 << 20,
        overrides: UInt64? = nil
    ) {
        self.name = name
        self.seed = seed
        self.rules = rules
        self.unmatched = unmatched
        self.bodyLimit = bodyLimit
        self.overrides = overrides
        lastTurn = rules.lastIndex { $0.gate.map { !$0.turn.isEmpty } ?? false }
        hasLatency = rules.contains { !$0.latency.isNone }
        needsBody = rules.contains { rule in
            rule.condition?.needsBody ?? false || rule.answers.contains(where: \.content.readsBody)
        }
    }

    /// One rule that answers every request.
    package init(_ rule: DemoRule) { self.init(name: rule.endpoint, seed: rule.seed, rules: [rule]) }

    /// The one rule that answers every request in the same way; nil where something has to be looked at first.
    package var plain: DemoRule? {
        guard overrides == nil, rules.count == 1, let rule = rules.first, rule.isPlain else { return nil }
        return rule
    }

    /// Some requests may get no answer from here.
    package var mayPass: Bool { unmatched == .pass && !rules.contains(where: \.isUnconditional) }

    /// The scenarios that its rules have steps of.
    package var scenarios: Set<String> { Set(rules.compactMap { $0.gate?.step?.scenario }) }
}

/// A rule that does not answer a request, and why.
package struct DemoNearMiss: Sendable, Equatable, CustomStringConvertible {
    /// How many of them a message has.
    package static let most = 3

    package let rule: String
    /// Each what was found, and what the rule wants.
    package let differences: [String]

    package init(rule: String, differences: [String]) {
        self.rule = rule
        self.differences = differences
    }

    package var description: String { "\(rule): \(differences.joined(separator: "; "))" }
}
