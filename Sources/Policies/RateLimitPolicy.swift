// How many requests a service or an endpoint answers in a time.

/// A quota of requests in fixed windows of time.
package struct RateLimitPolicy: Sendable, Equatable {
    /// What counts.
    package enum Counted: String, Sendable, CaseIterable {
        case all
        /// Requests that reach the origin: what is answered from the store, or by demo mode, is free.
        case origin
    }

    /// Whose requests are counted together.
    package enum Client: String, Sendable, CaseIterable {
        /// The requests of one client address.
        case client
        case all
    }

    /// What has the quota: an endpoint's name; empty: the service.
    package var scope: String
    /// Requests in a window, at least 1.
    package var limit: Int
    /// Whole seconds, in nanoseconds.
    package var window: UInt64
    /// What a request gets that is one too many.
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
