// How fetches are made: who gets the next slot, how requests share a fetch, and whether redirects are followed.

/// How requests for one key wait for each other.
package struct CollapseLimits: Sendable, Equatable {
    /// How long a request waits for the head of another's fetch, in nanoseconds; then it fetches for itself.
    package var wait: UInt64
    /// How many wait; the next fetches for itself.
    package var waiters: Int

    package init(wait: UInt64 = 30_000_000_000, waiters: Int = 10_000) {
        self.wait = wait
        self.waiters = waiters
    }
}

/// What happens to a shared fetch when its last client has left.
package enum ClientAbort: Sendable, Equatable {
    /// The fetch continues, for later requests.
    case finish
    /// The fetch ends.
    case abort
    /// The fetch continues if at least this share of the body has arrived, 0 to 1; it ends if less has, or if the
    /// length is unknown.
    case finishIf(Double)

    /// - Parameters:
    ///   - received: bytes of the body so far.
    ///   - length: of the whole body; nil where it is unknown.
    package func goesOn(received: Int64, length: Int64?) -> Bool {
        switch self {
        case .finish: true
        case .abort: false
        case .finishIf(let share): length.map { Double(received) >= share * Double($0) } ?? false
        }
    }
}

// MARK: - Priority

/// The classes of fetches, the most urgent first.
package enum FetchPriority: UInt8, Sendable, CaseIterable, Comparable {
    /// A client waits for it.
    case client
    /// The fetch validates a stored response behind an answer (`stale-while-revalidate`).
    case revalidation
    /// The fetch looks for the size of an item of a batch.
    case sizeCheck
    /// The fetch downloads an item of a batch.
    case prefetch

    /// The more urgent one is the greater.
    package static func < (left: FetchPriority, right: FetchPriority) -> Bool { left.rawValue > right.rawValue }

    /// The name as metrics and documents write it.
    package var name: String {
        switch self {
        case .client: "client"
        case .revalidation: "revalidation"
        case .sizeCheck: "size_check"
        case .prefetch: "prefetch"
        }
    }
}

// MARK: - Redirects

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
