// How rules of demo mode remember: turns, sequences, scenarios and outages, as a file or a program chooses them.

/// Which requests are counted together.
package enum CountScope: String, Sendable, CaseIterable {
    /// Those with the same method and target, each such for itself: connections that race change nothing.
    case request
    /// All that reach the rule, in the order in which they come.
    case rule
}

/// What answers when a sequence has been played.
package enum SequenceEnd: String, Sendable, CaseIterable {
    /// The sequence, from its beginning.
    case `repeat`
    /// Its last answer, again and again.
    case last
    /// A 404.
    case notFound = "404"
}

/// For which of the counted requests a rule is; what is nil restricts nothing.
package struct RuleTurn: Sendable, Equatable {
    /// That one alone; the first is 1.
    package var nth: Int?
    /// So many, from the first on.
    package var first: Int?
    /// Each whose number this divides.
    package var every: Int?

    package init(nth: Int? = nil, first: Int? = nil, every: Int? = nil) {
        self.nth = nth
        self.first = first
        self.every = every
    }

    package var isEmpty: Bool { nth == nil && first == nil && every == nil }
}

/// A step of a scenario: the rule answers in one state, and may lead to the next.
package struct ScenarioStep: Sendable, Equatable {
    /// The state in which every scenario begins.
    package static let initial = "started"

    package var scenario: String
    /// Default: started.
    package var state: String
    /// The state after the answer; nil leaves it.
    package var next: String?

    package init(scenario: String, state: String = ScenarioStep.initial, next: String? = nil) {
        self.scenario = scenario
        self.state = state
        self.next = next
    }
}

/// When a rule answers: in windows of time, of requests, or of both.
package struct RuleOutage: Sendable, Equatable {
    /// Nanoseconds from the start of the daemon, or from the last reset. Default: 0.
    package var after: UInt64
    /// Nanoseconds that a window lasts; nil: for ever.
    package var duration: UInt64?
    /// Nanoseconds from one window to the next; nil: there is one.
    package var every: UInt64?
    /// How many requests come before the window. Default: 0.
    package var afterRequests: Int
    /// How many requests are in it; nil: all that come.
    package var requests: Int?

    package init(
        after: UInt64 = 0,
        duration: UInt64? = nil,
        every: UInt64? = nil,
        afterRequests: Int = 0,
        requests: Int? = nil
    ) {
        self.after = after
        self.duration = duration
        self.every = every
        self.afterRequests = afterRequests
        self.requests = requests
    }
}

/// What a rule asks of the requests before: all of it must hold.
package struct RuleGate: Sendable, Equatable {
    package var step: ScenarioStep?
    package var outage: RuleOutage?
    package var turn: RuleTurn

    package init(step: ScenarioStep? = nil, outage: RuleOutage? = nil, turn: RuleTurn = RuleTurn()) {
        self.step = step
        self.outage = outage
        self.turn = turn
    }

    package var isEmpty: Bool { step == nil && outage == nil && turn.isEmpty }
}
