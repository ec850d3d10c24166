// The documents of demo mode: its state, a reset, and a draw that is repeated.

/// The document of `GET /v1/demo`, which `POST /v1/demo` answers, too.
package struct AdminDemo: Codable, Sendable, Equatable {
    /// A change of demo mode, which holds in place of the configuration's setting.
    package struct Override: Codable, Sendable, Equatable {
        /// The name of the service; nil for all services.
        package var service: String?
        /// The name of the endpoint; nil for the whole service.
        package var endpoint: String?
        /// The setting that is changed, such as `enabled`, `latency`, `status` or `chance`.
        package var key: String
        /// The value of the setting as it was written.
        package var value: String
        /// Seconds until the change ends; nil if it holds until it is cleared or the configuration is reloaded.
        package var left: Int?
    }

    /// A service or an endpoint that has demo answers.
    package struct Answers: Codable, Sendable, Equatable {
        package var service: String
        /// The name of the endpoint; nil for the requests of the service without a named endpoint.
        package var endpoint: String?
        /// True if the demo answers are given.
        package var isOn: Bool
    }

    /// The learned latency of an origin.
    package struct Latency: Codable, Sendable, Equatable {
        /// The route of the latency: a service, `SERVICE/ENDPOINT`, or `forward`.
        package var of: String
        /// The number of answers from which it was learned.
        package var answers: Int
        /// The median in nanoseconds; nil, like the other quantiles, if there was no answer yet.
        package var median: UInt64?
        package var p90: UInt64?
        package var p99: UInt64?
    }

    package var answers: [Answers]
    /// The changes in the order in which they were made; a later one wins.
    package var overrides: [Override]
    /// The learned latencies, sorted by name.
    package var latencies: [Latency]
}

/// The answer of `POST /v1/demo/reset`.
package struct AdminDemoReset: Codable, Sendable, Equatable {
    /// The number of requests that begin at their first draw again.
    package var requests: Int
    /// The number of journal entries that were removed; nil if the journal was not cleared.
    package var entries: Int?
    /// The number of learned latencies that were forgotten; nil if they are kept.
    package var latencies: Int?
}

/// The answer of `GET /v1/demo/draw`: how a request with this draw is answered by the configuration in force.
package struct AdminDraw: Codable, Sendable, Equatable {
    /// One rule of demo mode or of `faults`, with its draw.
    package struct Member: Codable, Sendable, Equatable {
        /// The member of Drydock-Demo that was given.
        package var said: String
        /// The member of Drydock-Demo as it would be now; nil if the rule draws nothing now, or is gone.
        package var drawn: String?
        /// Nanoseconds by which the rule delays the answer; nil if it does not delay it.
        package var latency: UInt64?
        /// The reason why nothing is drawn, or why the draw may differ.
        package var note: String?
    }

    package var members: [Member]
    /// True if every draw is as it was given.
    package var isSame: Bool
}
