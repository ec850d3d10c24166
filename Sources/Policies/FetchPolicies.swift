// The policies of fetches: the order of waiting fetches, the sharing of a fetch by requests, and whether redirects are
// followed.

/// The limits of requests for one key that wait for each other.
package struct CollapseLimits: Sendable, Equatable {
    /// The longest time in nanoseconds for which a request waits for the head of another one's fetch; then it fetches
    /// for itself.
    package var wait: UInt64
    /// The most requests that wait; the next one fetches for itself.
    package var waiters: Int

    package init(wait: UInt64 = 30_000_000_000, waiters: Int = 10_000) {
        self.wait = wait
        self.waiters = waiters
    }
}

/// The treatment of a transfer when everybody who waited for it has left.
public enum AbandonmentPolicy: Sendable, Hashable {
    /// The transfer goes on, and what comes is kept for later requests.
    case finish
    /// The transfer ends.
    case abort
    /// The transfer goes on if at least this share of the body has arrived, 0 to 1; it ends if less has, or if the
    /// length is unknown.
    case finishBeyond(Double)

    /// Whether the transfer goes on.
    /// - Parameters:
    ///   - received: the bytes of the body so far.
    ///   - length: the length of the whole body in bytes; nil if it is unknown.
    package func goesOn(received: Int64, length: Int64?) -> Bool {
        switch self {
        case .finish: true
        case .abort: false
        case .finishBeyond(let share): length.map { Double(received) >= share * Double($0) } ?? false
        }
    }
}

// MARK: - Priority

/// The classes of fetches, the most urgent first.
package enum FetchPriority: UInt8, Sendable, CaseIterable, Comparable {
    /// A client waits for the fetch.
    case client
    /// The fetch validates a stored response in the background (`stale-while-revalidate`).
    case revalidation
    /// The fetch finds the size of an item of a batch.
    case sizeCheck
    /// The fetch downloads an item of a batch.
    case prefetch

    /// Compares by urgency: the more urgent class is the greater.
    package static func < (left: FetchPriority, right: FetchPriority) -> Bool { left.rawValue > right.rawValue }

    /// The name in metrics and documents.
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

/// The treatment of redirects, as a configuration names it.
package enum RedirectMode: String, Sendable, CaseIterable {
    /// The client gets the redirect, with its `Location` rewritten to the path of the service.
    case pass
    /// The client gets the answer that the redirect leads to.
    case follow
}

/// The rules for redirects that are followed.
package struct RedirectPolicy: Sendable, Equatable {
    /// The most redirects that are followed for one request; 0 to forward them to the client.
    package var limit: Int
    /// The `HOST` or `HOST:PORT` patterns of the origins that a redirect may lead to, besides those that are the
    /// `base_url` of a service. As in forward mode, only a pattern that names one host allows an internal address.
    package var allow: [String]

    package init(limit: Int = 0, allow: [String] = ["*"]) {
        self.limit = limit
        self.allow = allow
    }
}
