// The rules of an endpoint, or of a service itself, of which the first answers whose condition holds and whose gate is
// open.

package import Matching
package import Policies

/// The rules of an endpoint or a service, in their order. Immutable, shared by every loop.
package struct DemoPlan: Sendable {
    /// The name of the endpoint or the service.
    package let name: String
    /// The `random_seed` of the endpoint or the service; a rule may have another.
    package let seed: UInt64
    /// The rules in their order: the first whose condition holds answers. The endpoint's own answer is the last one,
    /// and has no condition.
    package let rules: [DemoRule]
    /// The answer to requests that no rule answers; default a 404.
    package let unmatched: UnmatchedPolicy
    /// The most bytes of a body that are read for conditions; default 1 MiB.
    package let bodyLimit: Int
    /// The longest latency in nanoseconds that a request may choose by ``DemoOverride``; nil if requests must not
    /// choose anything.
    package let overrides: UInt64?
    /// The index of the last rule that counts all requests that it applies to, whichever rule answers them; nil if none
    /// does.
    let lastTurn: Int?
    /// Whether some rule reads the body, for its condition or its answer.
    package let needsBody: Bool
    /// Whether some answers have a latency.
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

    /// Makes a plan of one rule that answers every request.
    package init(_ rule: DemoRule) { self.init(name: rule.endpoint, seed: rule.seed, rules: [rule]) }

    /// The only rule, if it answers every request in the same way; nil if the request has to be examined first.
    package var plain: DemoRule? {
        guard overrides == nil, rules.count == 1, let rule = rules.first, rule.isPlain else { return nil }
        return rule
    }

    /// True if some requests may be left to the origin.
    package var mayPass: Bool { unmatched == .pass && !rules.contains(where: \.isUnconditional) }

    /// The scenarios with steps in the rules.
    package var scenarios: Set<String> { Set(rules.compactMap { $0.gate?.step?.scenario }) }
}

/// A rule that does not answer a request, and why.
package struct DemoNearMiss: Sendable, Equatable, CustomStringConvertible {
    /// The most near misses in one message.
    package static let most = 3

    package let rule: String
    /// The differences; each names the part of the request, and what the rule requires.
    package let differences: [String]

    package init(rule: String, differences: [String]) {
        self.rule = rule
        self.differences = differences
    }

    package var description: String { "\(rule): \(differences.joined(separator: "; "))" }
}

// MARK: - Rules

/// A rule of an endpoint or of a whole service: immutable, shared by every loop. It is a class, since the waiter for an
/// answer holds it.
package final class DemoRule: Sendable {
    /// The endpoint or the service of the rule, as `Drydock-Demo` names it.
    package let endpoint: String
    /// The rule's name in the list of rules; nil for the endpoint's own answer.
    package let label: String?
    /// The requests that it answers; nil for every request.
    package let condition: RequestCondition?
    /// The condition on earlier requests; nil for none.
    package let gate: RuleGate?
    /// The requests that are counted together, for a sequence and for turns; by default those with the same method and
    /// target.
    package let counting: CountScope
    /// The `random_seed`: another seed gives other draws for the same requests. Default 0.
    package let seed: UInt64
    /// The latency of an answer; by default there is none.
    package let latency: LatencyPolicy
    /// The answer that is not a failure, if there is only one; by default a 200 without content.
    package let answer: DemoAnswer
    /// The choice among several answers.
    package let choice: DemoChoice
    /// The share of failures and their answer; nil if the rule never fails.
    package let failure: DemoFailure?
    /// The misbehaviours of its answers, each kind once; by default none.
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

    /// All possible answers, failures included.
    package var answers: [DemoAnswer] { [answer] + choice.answers + (failure.map { [$0.answer] } ?? []) }

    /// Whether the rule answers every request with the same answer or the same failure, whose bytes are known
    /// beforehand.
    package var isPlain: Bool {
        isUnconditional && choice.isOne && misbehaviours.isEmpty && answers.allSatisfy(\.content.isFixed)
    }

    /// The name of the rule in the key of every draw.
    package var name: String { Self.name(endpoint, label) }

    /// The name in keys: `endpoint`, or `endpoint/rule` for one of a list.
    package static func name(_ endpoint: String, _ label: String?) -> String {
        label.map { "\(endpoint)/\($0)" } ?? endpoint
    }
}

/// A share of a rule's answers that fail.
package struct DemoFailure: Sendable {
    /// The share that fails, 0 to 1: 0 never, 1 always. Values outside are limited to the nearer end; not-a-number is
    /// 0.
    package let chance: Double
    /// The answer of a failure; by default a 503 without content.
    package let answer: DemoAnswer

    package init(chance: Double, answer: DemoAnswer = DemoAnswer(status: 503)) {
        self.chance = chance.isNaN ? 0 : min(max(chance, 0), 1)
        self.answer = answer
    }
}

// MARK: - Gates

// The conditions for an open gate: the number of a request, and the time.
extension RuleTurn {
    /// Whether a request has its turn.
    /// - Parameter count: the number of requests that came before.
    package func holds(_ count: UInt64) -> Bool {
        if let nth, count + 1 != UInt64(nth) { return false }
        if let first, count >= UInt64(first) { return false }
        if let every, (count + 1) % UInt64(every) != 0 { return false }
        return true
    }

    /// The requests that have a turn, for messages: `nth 3`.
    var description: String {
        let parts = [("nth", nth), ("first", first), ("every", every)]
        return parts.compactMap { name, value in value.map { "\(name) \($0)" } }.joined(separator: " and ")
    }
}

extension RuleOutage {
    /// Whether a time is within a window, in which the rule answers.
    /// - Parameter elapsed: nanoseconds since the beginning.
    package func isOpen(elapsed: UInt64) -> Bool {
        guard elapsed >= after else { return false }
        guard let duration else { return true }
        let since = elapsed - after
        return every.map { since % max(1, $0) < duration } ?? (since < duration)
    }

    /// Whether requests are counted for it.
    var countsRequests: Bool { afterRequests > 0 || requests != nil }

    /// Whether a request is within the window, in which the rule answers.
    /// - Parameter count: the number of requests that came before.
    package func isOpen(request count: UInt64) -> Bool {
        guard count >= UInt64(afterRequests) else { return false }
        return requests.map { count - UInt64(afterRequests) < UInt64($0) } ?? true
    }
}
