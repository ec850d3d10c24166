// What an endpoint, or a service itself, plays: its rules, of which the first whose condition holds and whose gate is
// open answers.

package import Matching
package import Policies

/// The rules of an endpoint or a service, in their order. Immutable, shared by every loop.
package struct DemoPlan: Sendable {
    /// The name of the endpoint or the service.
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
    /// The differences: each says what was found, and what the rule wants.
    package let differences: [String]

    package init(rule: String, differences: [String]) {
        self.rule = rule
        self.differences = differences
    }

    package var description: String { "\(rule): \(differences.joined(separator: "; "))" }
}

// MARK: - Rules

/// A rule of an endpoint or of a whole service: immutable, shared by every loop. A class, since whoever waits for an answer
/// holds it.
package final class DemoRule: Sendable {
    /// The endpoint or the service that plays it; stands in `Drydock-Demo`.
    package let endpoint: String
    /// Its name in the list of rules; nil for the endpoint's own answer.
    package let label: String?
    /// The requests that it answers; nil: every request.
    package let condition: RequestCondition?
    /// What it asks of the requests before; nil: nothing.
    package let gate: RuleGate?
    /// Which requests count together, for a sequence and for turns. Default: those with the same method and target.
    package let counting: CountScope
    /// `random_seed`: another seed gives other draws for the same requests. Default 0.
    package let seed: UInt64
    /// How long an answer takes. Default: no wait.
    package let latency: LatencyPolicy
    /// The answer that is not a failure, where there is one only. Default: 200, and no content.
    package let answer: DemoAnswer
    /// How it is chosen among several.
    package let choice: DemoChoice
    /// How often and with what the rule fails; nil never fails.
    package let failure: DemoFailure?
    /// What its answers get wrong, each kind once. Default: nothing.
    package let misbehaviours: [Misbehaviour]

    package init(
        endpoint: String,
        label: String? = nil,
        condition: RequestCondition? = nil,
        gate: RuleGate? = nil,
        counting: CountScope = .request,
        seed: UInt64 = 0,
        latency: LatencyPolicy = .none,
        answer: DemoAnswer = DemoAnswer(),
        choice: DemoChoice = .one,
        failure: DemoFailure? = nil,
        misbehaviours: [Misbehaviour] = []
    ) {
        self.endpoint = endpoint
        self.label = label
        self.condition = condition
        self.gate = gate
        self.counting = counting
        self.seed = seed
        self.latency = latency
        self.answer = answer
        self.choice = choice
        self.failure = failure
        self.misbehaviours = misbehaviours
    }

    /// Whether the rule answers every request.
    package var isUnconditional: Bool { condition == nil && gate == nil }

    /// Whatever it may answer with, failures too.
    package var answers: [DemoAnswer] { [answer] + choice.answers + (failure.map { [$0.answer] } ?? []) }

    /// Whether the rule answers every request with the same answer or the same failure, of bytes that are known
    /// beforehand.
    package var isPlain: Bool {
        isUnconditional && choice.isOne && misbehaviours.isEmpty && answers.allSatisfy(\.content.isFixed)
    }

    /// The part of every draw's key that is the rule's.
    package var name: String { Self.name(endpoint, label) }

    /// `endpoint`, or `endpoint/rule` for one of a list.
    package static func name(_ endpoint: String, _ label: String?) -> String {
        label.map { "\(endpoint)/\($0)" } ?? endpoint
    }
}

/// A share of a rule's answers that fail.
package struct DemoFailure: Sendable {
    /// The share that fails, 0 to 1: 0 never, 1 always. Values outside are brought to the
    /// nearer end; not-a-number is 0.
    package let chance: Double
    /// Default: 503, and no content.
    package let answer: DemoAnswer

    package init(chance: Double, answer: DemoAnswer = DemoAnswer(status: 503)) {
        self.chance = chance.isNaN ? 0 : min(max(chance, 0), 1)
        self.answer = answer
    }
}

// MARK: - Gates

// When a gate is open: by the number of a request, and by the time.
extension RuleTurn {
    /// - Parameter count: how many requests came before.
    package func holds(_ count: UInt64) -> Bool {
        if let nth, count + 1 != UInt64(nth) { return false }
        if let first, count >= UInt64(first) { return false }
        if let every, (count + 1) % UInt64(every) != 0 { return false }
        return true
    }

    /// Which request it wants, for messages: `nth 3`.
    var description: String {
        let parts = [("nth", nth), ("first", first), ("every", every)]
        return parts.compactMap { name, value in value.map { "\(name) \($0)" } }.joined(separator: " and ")
    }
}

extension RuleOutage {
    /// - Parameter elapsed: nanoseconds since the beginning.
    package func isOpen(elapsed: UInt64) -> Bool {
        guard elapsed >= after else { return false }
        guard let duration else { return true }
        let since = elapsed - after
        return every.map { since % max(1, $0) < duration } ?? (since < duration)
    }

    /// Requests are counted for it.
    var countsRequests: Bool { afterRequests > 0 || requests != nil }

    /// - Parameter count: how many requests came before.
    package func isOpen(request count: UInt64) -> Bool {
        guard count >= UInt64(afterRequests) else { return false }
        return requests.map { count - UInt64(afterRequests) < UInt64($0) } ?? true
    }
}
