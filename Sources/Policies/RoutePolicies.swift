// The policies that a configuration sets for a route, and that the cores obey unchanged: one value each.

/// The policies of a route: of an endpoint, or of the requests that no endpoint of a service names.
package struct RoutePolicies: Sendable, Equatable {
    /// How a fetch that failed is made again.
    package var retry = RetryPolicy()
    /// Whether redirects are followed. Default: they are passed on.
    package var redirects = RedirectPolicy()
    /// How many requests are answered in a time; nil: all.
    package var rateLimit: RateLimitPolicy?
    /// Bytes of each body that are logged, up to 64 KiB; nil: none.
    package var logBodies: Int?

    package init() {}
}

/// What becomes of tunnels of a client that does not trust the local authority.
package enum DistrustPolicy: String, Sendable, CaseIterable {
    /// They are read still, so that the client is not served.
    case fail
    /// They are left as they are for some time, so that the client speaks with the target itself.
    case tunnel
}
