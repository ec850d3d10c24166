// For whom a fetch is made, which decides who gets the next slot where fetches queue.

/// The classes of fetches, the most urgent first.
package enum FetchPriority: UInt8, Sendable, CaseIterable, Comparable {
    /// A client waits for it.
    case client
    /// It validates a stored response behind an answer (`stale-while-revalidate`).
    case revalidation
    /// It looks for the size of an item of a batch.
    case sizeCheck
    /// It downloads an item of a batch.
    case prefetch

    /// The more urgent one is the greater.
    package static func < (left: FetchPriority, right: FetchPriority) -> Bool { left.rawValue > right.rawValue }

    /// As metrics and documents write it.
    package var name: String {
        switch self {
        case .client: "client"
        case .revalidation: "revalidation"
        case .sizeCheck: "size_check"
        case .prefetch: "prefetch"
        }
    }
}
