// What becomes of an origin's redirects: they go on to the client, or are followed on its behalf.

/// The two ways, as a configuration says them.
package enum RedirectMode: String, Sendable, CaseIterable {
    /// The client gets the redirect, with its `Location` rewritten to the service's place.
    case pass
    /// The client gets what the redirect leads to.
    case follow
}

/// How redirects are followed.
package struct RedirectPolicy: Sendable, Equatable {
    /// Redirects that are followed for one request; 0: they are passed on.
    package var limit: Int
    /// `HOST` or `HOST:PORT` patterns of the origins that a redirect may lead to, besides those that are configured as
    /// the `base_url` of a service. As in forward mode, only a pattern that names one host allows an internal address.
    package var allow: [String]

    package init(limit: Int = 0, allow: [String] = ["*"]) {
        self.limit = limit
        self.allow = allow
    }
}
