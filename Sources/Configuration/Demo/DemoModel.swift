// What services and endpoints play in demo mode: their own answer, and rules before it.

package import Content
package import DemoMode
package import Matching
package import Policies

/// Demo mode of a service or an endpoint.
package struct DemoConfiguration: Sendable, Equatable {
    /// Whether demo answers replace the origin's; true only if there is an answer.
    package var enabled: Bool
    /// In their order; the first whose condition holds answers.
    package var rules: [DemoRuleConfiguration] = []
    /// What answers if no rule does, where ``hasOwnAnswer``; rules take from it what they do not say themselves.
    package var answer: DemoRuleConfiguration
    /// Whether there is an answer besides the rules.
    package var hasOwnAnswer: Bool
    /// Default: 404.
    package var unmatched: UnmatchedPolicy
    /// Bytes of a body that are read for conditions. Default: 1 MiB.
    package var bodyLimit: Int
    /// Nanoseconds that a request may make its own answer take; nil: requests change nothing. Default: nil.
    package var overrides: UInt64?

    /// Whether there is something to answer with, so that demo mode can be switched on.
    package var hasAnswer: Bool { hasOwnAnswer || !rules.isEmpty }

    /// Whether some requests may get no answer from here, and go on.
    package var mayPass: Bool {
        unmatched == .pass && !hasOwnAnswer && !rules.contains(where: \.isUnconditional)
    }
}

/// One rule: for which requests it is, and what it answers with.
package struct DemoRuleConfiguration: Sendable, Equatable {
    /// Nil for the service's or the endpoint's own answer.
    package var name: String?
    /// Nil: every request.
    package var condition: RequestCondition?
    /// What it asks of the requests before; nil: nothing.
    package var gate: RuleGate?
    /// Default: those with one method and target.
    package var counting: CountScope
    /// Where there is one only.
    package var answer: DemoAnswerConfiguration
    package var choice = DemoChoiceConfiguration()
    /// Fields of every answer, failures too, beside those that the daemon makes itself.
    package var headers: [HeaderValue]
    /// Default: none.
    package var latency: LatencyPolicy
    package var failure: FailureConfiguration?
    /// What its answers get wrong, each kind once.
    package var misbehaviours: [Misbehaviour] = []
    /// Default: 0.
    package var randomSeed: UInt64

    /// It answers every request.
    package var isUnconditional: Bool { condition == nil && gate == nil }
}

/// How the answer of a rule is chosen among several.
package enum DemoChoiceConfiguration: Sendable, Equatable {
    case one
    /// Shares are 0...1, and add up to 1.
    case weighted([WeightedAnswerConfiguration])
    case sequence([DemoAnswerConfiguration], after: SequenceEnd)

    package init() { self = .one }
}

/// One answer among several that are drawn.
package struct WeightedAnswerConfiguration: Sendable, Equatable {
    package var share: Double
    package var answer: DemoAnswerConfiguration
}

/// What an answer consists of.
package struct DemoAnswerConfiguration: Sendable, Equatable {
    /// Default: 200; of a failure 503.
    package var status: Int
    /// The absolute path of the body; nil for none.
    package var file: String?
    /// Fields beside those of the rule; of two with one name, this one counts.
    package var headers: [HeaderValue] = []
    /// The body itself, in place of a file; nil for none.
    package var inline: InlineContent?
    /// The body is filled in for each request.
    package var isTemplate: Bool
    /// Items that requests read and change, in place of a body; nil for none.
    package var collection: CollectionConfiguration?
    /// Server-sent events, in place of a body; nil for none.
    package var events: EventsConfiguration?
}

/// Events of a list or a file.
package struct EventsConfiguration: Sendable, Equatable {
    package var list: [DemoEvents.Event] = []
    /// The absolute path of a file with them, in place of the list.
    package var file: String?
    /// Nanoseconds from one to the next. Default: 1 s.
    package var interval: UInt64
    /// How often they are sent; nil: without end. Default: once.
    package var rounds: Int?
}

/// A body that stands in the configuration.
package enum InlineContent: Sendable, Equatable {
    case text(String)
    case json(ContentTree)
}

/// Items over a JSON file that requests read and change.
package struct CollectionConfiguration: Sendable, Equatable {
    /// Absolute.
    package var file: String
    /// The member that tells items apart. Default: id.
    package var id: String
    /// Default: counting.
    package var newIDs: NewIDs
}

/// Failures among demo answers.
package struct FailureConfiguration: Sendable, Equatable {
    /// 0...1.
    package var chance: Double
    package var answer: DemoAnswerConfiguration
}
