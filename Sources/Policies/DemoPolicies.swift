// The policies of demo mode: turns, sequences, scenarios and outages of rules, latencies, and the treatment of requests
// without a rule or against a document.

/// The requests that are counted together.
package enum CountScope: String, Sendable, CaseIterable {
    /// Requests with the same method and target are counted, each target separately: connections that race change
    /// nothing.
    case request
    /// All requests that reach the rule are counted, in the order in which they come.
    case rule
}

/// The answer after the last one of a sequence.
package enum SequenceEnd: String, Sendable, CaseIterable {
    /// The sequence starts again.
    case `repeat`
    /// The last answer is repeated.
    case last
    /// The answer is a 404.
    case notFound = "404"
}

/// The counted requests that a rule applies to; a nil member restricts nothing.
package struct RuleTurn: Sendable, Equatable {
    /// The number of the only request that the rule applies to; the first is 1.
    package var nth: Int?
    /// The number of requests that the rule applies to, from the first on.
    package var first: Int?
    /// The divisor of the numbers of the requests that the rule applies to.
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
    /// The state in which the rule answers; default `started`.
    package var state: String
    /// The state after the answer; nil to keep the state.
    package var next: String?

    package init(scenario: String, state: String = ScenarioStep.initial, next: String? = nil) {
        self.scenario = scenario
        self.state = state
        self.next = next
    }
}

/// The windows in which a rule answers: of time, of requests, or of both.
package struct RuleOutage: Sendable, Equatable {
    /// The start of the window, in nanoseconds from the start of the daemon or the last reset. Default 0.
    package var after: UInt64
    /// The length of a window in nanoseconds; nil for no end.
    package var duration: UInt64?
    /// The nanoseconds from one window to the next; nil for only one.
    package var every: UInt64?
    /// The number of requests before the window. Default 0.
    package var afterRequests: Int
    /// The number of requests in the window; nil for all that come.
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

/// The conditions of a rule on earlier requests; all of them must hold.
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
        /// The normal distribution; a negative value is 0.
        case normal(mean: UInt64, deviation: UInt64)
        /// The long tail of a network: half of the latencies are below `median`, and one in a hundred is above `p99`.
        case lognormal(median: UInt64, p99: UInt64)
        /// Measured latencies: points of the distribution with rising percentiles and latencies; at least one.
        case percentiles([Point])
        /// The latencies of an origin, as far as they are known when a plan is made.
        case learned(LearnedLatencyPolicy)
    }

    /// A percentile: this share of the latencies, in percent, is at most the latency.
    package struct Point: Sendable, Hashable {
        /// The percentile, 0...100.
        package var percentile: Double
        package var latency: UInt64

        package init(percentile: Double, latency: UInt64) {
            self.percentile = percentile
            self.latency = latency
        }
    }

    package var shape: Shape
    /// The limit of latencies in nanoseconds; nil for none.
    package var max: UInt64?

    package init(_ shape: Shape, max: UInt64? = nil) {
        self.shape = shape
        self.max = max
    }

    /// The policy without latency.
    package static let none = LatencyPolicy(.uniform(0...0))
}

/// The earlier latencies of an origin.
package struct LearnedLatencyPolicy: Sendable, Hashable {
    /// The service, or `SERVICE/ENDPOINT`, whose latencies are learned; nil for the one that has the policy.
    package var source: String?
    /// The factor for each latency. Default 1.
    package var times: Double
    /// The latency in nanoseconds while none is known. Default 0.
    package var otherwise: UInt64

    package init(of source: String? = nil, times: Double = 1, otherwise: UInt64 = 0) {
        self.source = source
        self.times = times
        self.otherwise = otherwise
    }
}

// MARK: - Requests without a rule

/// The treatment of a request in demo mode that no rule answers.
package enum UnmatchedPolicy: String, Sendable, CaseIterable {
    /// The request gets a 404, which lists the conditions of the nearest rules: nothing reaches an origin by mistake.
    case notFound = "404"
    /// The request goes on as if demo mode were off.
    case pass
}

// MARK: - Requests against a document

/// The treatment of a request that differs from its document.
package enum ExaminationPolicy: String, Sendable, CaseIterable {
    /// The request is answered; the log, a metric and a field of the answer report the differences.
    case report
    /// The request gets a 400.
    case refuse
}
