// One rule of a demo plan: for which requests it is, and what it answers with; compiled once when the plan is built.

package import Matching
package import Policies

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

    /// It answers every request.
    package var isUnconditional: Bool { condition == nil && gate == nil }

    /// Whatever it may answer with, failures too.
    package var answers: [DemoAnswer] { [answer] + choice.answers + (failure.map { [$0.answer] } ?? []) }

    /// It answers every request with the same answer or the same failure, of bytes that are known beforehand.
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
