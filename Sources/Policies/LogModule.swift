// The modules of the daemon's own log, which may each have a level of their own (`log.modules`).

/// A module of the daemon's own log.
package enum LogModule: String, Sendable, CaseIterable {
    /// The start, reloads, changes by operators, the watchdog and the end.
    case daemon
    /// Clients that are refused, or do not speak as they should.
    case client
    /// What becomes of each request, and its bodies.
    case request
    /// What origins are asked, and what they answer.
    case download
    /// The circuit breakers, retries, quotas and parked calls of services.
    case service
    /// The store and its disk, seeds, recordings, purges and memory pressure.
    case store
    /// Changes of demo mode, and learned latencies.
    case demo
    /// Batches, and groups of calls.
    case batch
    /// Certificates and the local authority.
    case tls

    /// The name of the field of a log line that names its module.
    package static let field = "module"
    /// The modules whose debug lines are about single requests: at that level a request takes the waiting path.
    package static let ofRequests: [LogModule] = [.request, .download]

    /// The names of all modules, as a sentence lists them.
    package static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }

    /// The position among all modules.
    package var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
