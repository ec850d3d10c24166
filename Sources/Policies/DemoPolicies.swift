// How demo mode answers: turns, sequences, scenarios and outages of rules, how long answers take, and what becomes of
// requests without a rule or against a document.

/// Which requests are counted together.
package enum CountScope: String, Sendable, CaseIterable {
    /// Requests with the same method and target are counted, each target for itself: connections that race change
    /// nothing.
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
    /// The rule is for the request with this number alone; the first is 1.
    package var nth: Int?
    /// The rule is for this many requests, from the first on.
    package var first: Int?
    /// The rule is for each request whose number this divides.
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

// MARK: - Latency

/// A distribution of latencies. Times are nanoseconds.
package struct LatencyPolicy: Sendable, Hashable {
    package enum Shape: Sendable, Hashable {
        /// Each latency of the range is as likely as any other; both ends included.
        case uniform(ClosedRange<UInt64>)
        /// The bell curve; what would be less than nothing is nothing.
        case normal(mean: UInt64, deviation: UInt64)
        /// The long tail of a network: half of the latencies are below `median`, and one of a hundred is above `p99`.
        case lognormal(median: UInt64, p99: UInt64)
        /// What was measured: points of the distribution with rising percentiles and latencies; at least one.
        case percentiles([Point])
        /// What an origin took, as far as it is known when a plan is made.
        case learned(LearnedLatencyPolicy)
    }

    /// A percentile: this share of the latencies, in percent, is at most the latency.
    package struct Point: Sendable, Hashable {
        /// 0...100.
        package var percentile: Double
        package var latency: UInt64

        package init(percentile: Double, latency: UInt64) {
            self.percentile = percentile
            self.latency = latency
        }
    }

    package var shape: Shape
    /// Longer ones are this long; nil: as they are.
    package var max: UInt64?

    package init(_ shape: Shape, max: UInt64? = nil) {
        self.shape = shape
        self.max = max
    }

    /// No wait.
    package static let none = LatencyPolicy(.uniform(0...0))
}

/// The latencies that an origin had before.
package struct LearnedLatencyPolicy: Sendable, Hashable {
    /// The service, or `SERVICE/ENDPOINT`, whose latencies are learned; nil stands for the place where the policy
    /// stands.
    package var source: String?
    /// The factor by which each of them is longer. Default: 1.
    package var times: Double
    /// What stands in for them while there are none, in nanoseconds. Default: nothing.
    package var otherwise: UInt64

    package init(of source: String? = nil, times: Double = 1, otherwise: UInt64 = 0) {
        self.source = source
        self.times = times
        self.otherwise = otherwise
    }
}

// MARK: - Requests without a rule

/// What becomes of a request in demo mode that no rule answers.
package enum UnmatchedPolicy: String, Sendable, CaseIterable {
    /// The request gets a 404, which says what the nearest rules want: nothing reaches an origin by mistake.
    case notFound = "404"
    /// The request goes on as if demo mode were off.
    case pass
}

// MARK: - Requests against a document

/// What becomes of a request that is not as a document describes it.
package enum ExaminationPolicy: String, Sendable, CaseIterable {
    /// The request is answered; the log, a metric and a field of the answer say what is wrong.
    case report
    /// The request gets a 400.
    case refuse
}
