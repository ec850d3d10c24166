// The number of requests that a service or an endpoint answers in a time.

/// A quota of requests in fixed windows of time.
package struct RateLimitPolicy: Sendable, Equatable {
    /// The requests that count.
    package enum Counted: String, Sendable, CaseIterable {
        case all
        /// Only requests that reach the origin count, and not answers from the store or demo mode.
        case origin
    }

    /// The clients whose requests are counted together.
    package enum Client: String, Sendable, CaseIterable {
        /// The requests of one client address are counted together.
        case client
        case all
    }

    /// The name of the endpoint with the quota; empty for the service.
    package var scope: String
    /// The number of requests in a window, at least 1.
    package var limit: Int
    /// The length of a window in nanoseconds; a whole number of seconds.
    package var window: UInt64
    /// The status of the answer to a request beyond the quota.
    package var status: Int
    package var count: Counted
    package var by: Client

    package init(
        scope: String = "",
        limit: Int,
        window: UInt64,
        status: Int = 429,
        count: Counted = .all,
        by: Client = .client
    ) {
        self.scope = scope
        self.limit = limit
        self.window = window
        self.status = status
        self.count = count
        self.by = by
    }
}
