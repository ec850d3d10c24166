// The demo mode of services and endpoints: their own answer, and the rules that are tried before it.

package import DemoMode
package import Matching
package import Policies
package import Trees

/// The demo mode of a service or an endpoint.
package struct DemoConfiguration: Sendable, Equatable {
    /// Whether demo answers replace the origin's; true only if there is an answer.
    package var enabled: Bool
    /// The rules in their order; the first whose condition holds answers.
    package var rules: [DemoRuleConfiguration] = []
    /// The answer if no rule answers, valid if ``hasOwnAnswer``; rules take from it the settings that they lack.
    package var answer: DemoRuleConfiguration
    /// Whether there is an answer in addition to the rules.
    package var hasOwnAnswer: Bool
    /// The treatment of requests that no rule answers. Default: 404.
    package var unmatched: UnmatchedPolicy
    /// The most bytes of a body that are read for conditions. Default: 1 MiB.
    package var bodyLimit: Int
    /// The longest latency in nanoseconds that a request may ask for itself; nil if requests may change nothing.
    /// Default: nil.
    package var overrides: UInt64?

    /// Whether there is something to answer with, so that demo mode can be switched on.
    package var hasAnswer: Bool { hasOwnAnswer || !rules.isEmpty }

    /// Whether some requests may get no demo answer, and are passed to the origin.
    package var mayPass: Bool {
        unmatched == .pass && !hasOwnAnswer && !rules.contains(where: \.isUnconditional)
    }
}

/// One rule: the requests that it answers, and its answers.
package struct DemoRuleConfiguration: Sendable, Equatable {
    /// The name of the rule; nil for the service's or the endpoint's own answer.
    package var name: String?
    /// The condition on a request; nil for every request.
    package var condition: RequestCondition?
    /// The condition on earlier requests; nil for none.
    package var gate: RuleGate?
    /// The requests that are counted together. Default: those with the same method and target.
    package var counting: CountScope
    /// The answer if there is only one.
    package var answer: DemoAnswerConfiguration
    package var choice = DemoChoiceConfiguration()
    /// The fields of every answer, failures included, in addition to those that the daemon makes itself.
    package var headers: [HeaderValue]
    /// The latency of the answers. Default: none.
    package var latency: LatencyPolicy
    package var failure: FailureConfiguration?
    /// The deliberate mistakes of the answers, each kind once.
    package var misbehaviours: [Misbehaviour] = []
    /// The seed of all random draws of the rule. Default: 0.
    package var randomSeed: UInt64

    /// Whether the rule answers every request.
    package var isUnconditional: Bool { condition == nil && gate == nil }
}

/// The choice among several answers of a rule.
package enum DemoChoiceConfiguration: Sendable, Equatable {
    case one
    /// The answers with their shares, which are 0...1 and add up to 1.
    case weighted([WeightedAnswerConfiguration])
    case sequence([DemoAnswerConfiguration], after: SequenceEnd)

    package init() { self = .one }
}

/// One answer among several that are drawn.
package struct WeightedAnswerConfiguration: Sendable, Equatable {
    package var share: Double
    package var answer: DemoAnswerConfiguration
}

/// The parts of one answer.
package struct DemoAnswerConfiguration: Sendable, Equatable {
    /// The status of the answer. Default: 200, and 503 for a failure.
    package var status: Int
    /// The absolute path of the file with the body; nil for none.
    package var file: String?
    /// The fields of this answer; they replace fields of the rule with the same name.
    package var headers: [HeaderValue] = []
    /// The body itself, instead of a file; nil for none.
    package var inline: InlineContent?
    /// Whether the body is a template that is filled in for each request.
    package var isTemplate: Bool
    /// The items that requests read and change, instead of a body; nil for none.
    package var collection: CollectionConfiguration?
    /// The server-sent events, instead of a body; nil for none.
    package var events: EventsConfiguration?
}

/// Server-sent events of a list or of a file.
package struct EventsConfiguration: Sendable, Equatable {
    package var list: [DemoEvents.Event] = []
    /// The absolute path of a file with the events, instead of the list; nil for none.
    package var file: String?
    /// The nanoseconds from one event to the next. Default: 1 s.
    package var interval: UInt64
    /// The number of times that all events are sent; nil for endlessly. Default: 1.
    package var rounds: Int?
}

/// A body that is written in the configuration.
package enum InlineContent: Sendable, Equatable {
    case text(String)
    case json(ContentTree)
}

/// A collection of items in a JSON file that requests read and change.
package struct CollectionConfiguration: Sendable, Equatable {
    /// The absolute path of the file.
    package var file: String
    /// The member that identifies an item. Default: id.
    package var id: String
    /// The source of the ids of new items. Default: counting.
    package var newIDs: NewIDs
}

/// The failures among demo answers.
package struct FailureConfiguration: Sendable, Equatable {
    /// The share of failures, 0...1.
    package var chance: Double
    package var answer: DemoAnswerConfiguration
}
