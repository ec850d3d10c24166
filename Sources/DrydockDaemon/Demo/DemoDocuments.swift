// The documents of demo mode: what is played and what was changed, a reset, and a draw that is done again.

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
    }

    /// Something that has demo answers.
    package struct Answers: Codable, Sendable, Equatable {
        package var service: String
        /// Nil: of what no endpoint names.
        package var endpoint: String?
        /// They are given.
        package var isOn: Bool
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
    }

    package var answers: [Answers]
    /// In the order in which they were made: a later one counts more.
    package var overrides: [Override]
    /// By name.
    package var latencies: [Latency]
}

/// `POST /v1/demo/reset`.
package struct AdminDemoReset: Codable, Sendable, Equatable {
    /// Requests that begin at their first draw again.
    package var requests: Int
    /// Entries of the journal that are gone; nil where it was left as it is.
    package var entries: Int?
    /// Latencies of origins that are forgotten; nil where they are still known.
    package var latencies: Int?
}

/// `GET /v1/demo/draw`: what a request with this draw is answered with, by the configuration that is in force.
package struct AdminDraw: Codable, Sendable, Equatable {
    /// One rule of demo mode, or of `faults`, and what it draws.
    package struct Member: Codable, Sendable, Equatable {
        /// As Drydock-Demo had it.
        package var said: String
        /// As Drydock-Demo would have it now; nil: the rule draws nothing now, or is gone.
        package var drawn: String?
        /// Nanoseconds that the answer is late by this rule; nil: the rule says nothing of it.
        package var latency: UInt64?
        /// Why nothing is drawn, or why something else may be.
        package var note: String?
    }

    package var members: [Member]
    /// All of it is drawn as it was said.
    package var isSame: Bool
}
