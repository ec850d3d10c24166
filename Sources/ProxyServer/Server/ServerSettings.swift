// The bounds that every client connection keeps, as one immutable value per configuration.

package import Configuration
package import HTTPWire

/// Times are nanoseconds.
package struct ServerSettings: Sendable {
    /// The pseudonym in Via, Cache-Status and Proxy-Status.
    package var name: String
    package var head: HeadLimits
    /// For a whole head from its first byte; 408 past it.
    package var headTimeout: UInt64
    /// Between two requests, and without any progress of a write.
    package var idle: UInt64
    /// Least bytes per second of a request body, while the client is waited for.
    package var bodyRate: Int
    /// Nanoseconds of waiting for a request body before its minimum rate applies.
    package var bodyGrace: UInt64 = 10_000_000_000
    /// For the client to take the last answer before the connection is closed.
    package var linger: UInt64 = 2_000_000_000
    /// Connections in all.
    package var connections: Int
    /// Connections of one client address.
    package var perClient: Int
    /// The clients that may connect over IP.
    package var clients: [ClientRule]

    package init(_ configuration: Configuration) {
        let limits = configuration.limits
        name = configuration.name
        head = HeadLimits(head: limits.head, fields: limits.fields, field: limits.field, target: limits.target)
        headTimeout = limits.headTimeout
        idle = limits.idle
        bodyRate = limits.bodyRate
        connections = limits.connections
        perClient = limits.perClient
        clients = configuration.clients
    }

    /// How often deadlines are looked at: often enough for the shortest of them, at most every 10
    /// ms, at least every second.
    var sweepInterval: UInt64 {
        let shortest = min(min(headTimeout, idle), min(linger, bodyGrace))
        return min(max(shortest / 4, 10_000_000), 1_000_000_000)
    }
}
