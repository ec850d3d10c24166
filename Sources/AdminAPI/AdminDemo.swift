// Demo mode while the daemon runs: what is played, and what an operator has changed.

/// `GET /v1/demo`, and the answer of `POST /v1/demo`.
package struct AdminDemo: Codable, Sendable, Equatable {
    /// What holds in place of the configuration's word.
    package struct Override: Codable, Sendable, Equatable {
        /// Nil: of all services.
        package var service: String?
        /// Nil: of the whole service.
        package var endpoint: String?
        /// `enabled`, `latency`, `status` or `chance`.
        package var key: String
        /// As it was written.
        package var value: String
        /// Seconds until it ends; nil where it holds until it is cleared, or the configuration is read again.
        package var left: Int?

        package init(service: String?, endpoint: String?, key: String, value: String, left: Int?) {
            self.service = service
            self.endpoint = endpoint
            self.key = key
            self.value = value
            self.left = left
        }
    }

    /// Something that has demo answers.
    package struct Answers: Codable, Sendable, Equatable {
        package var service: String
        /// Nil: of what no endpoint names.
        package var endpoint: String?
        /// They are given.
        package var isOn: Bool

        package init(service: String, endpoint: String?, isOn: Bool) {
            self.service = service
            self.endpoint = endpoint
            self.isOn = isOn
        }
    }

    /// What is known of how long an origin takes.
    package struct Latency: Codable, Sendable, Equatable {
        /// A service, `SERVICE/ENDPOINT`, or `forward`.
        package var of: String
        /// How many latencies it is made of.
        package var answers: Int
        /// Nanoseconds; nil where there is no answer yet.
        package var median: UInt64?
        package var p90: UInt64?
        package var p99: UInt64?

        package init(of: String, answers: Int, median: UInt64?, p90: UInt64?, p99: UInt64?) {
            self.of = of
            self.answers = answers
            self.median = median
            self.p90 = p90
            self.p99 = p99
        }
    }

    package var answers: [Answers]
    /// In the order in which they were made: a later one counts more.
    package var overrides: [Override]
    /// By name.
    package var latencies: [Latency]

    package init(answers: [Answers], overrides: [Override], latencies: [Latency] = []) {
        self.answers = answers
        self.overrides = overrides
        self.latencies = latencies
    }
}

/// `POST /v1/demo/reset`.
package struct AdminDemoReset: Codable, Sendable, Equatable {
    /// Requests that begin at their first draw again.
    package var requests: Int
    /// Entries of the journal that are gone; nil where it was left as it is.
    package var entries: Int?
    /// Latencies of origins that are forgotten; nil where they are still known.
    package var latencies: Int?

    package init(requests: Int, entries: Int?, latencies: Int? = nil) {
        self.requests = requests
        self.entries = entries
        self.latencies = latencies
    }
}
